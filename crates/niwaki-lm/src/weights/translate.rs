//! A GGUF file as a checkpoint: its keys as a decoder's sizes, its names and rows in Hugging Face's order.

use super::{Gguf, Place, Source, divisors};
use crate::config::{Architecture, Config, EMBEDDING, HEAD, NORM};
use crate::{Error, Result};
use niwaki_files::Digest;
use niwaki_nn::Rotary;
use std::path::Path;

/// A decoder's GGUF file.
#[derive(Debug)]
pub struct Translated {
    file: Gguf,
    config: Config,
}

/// Parts of a block, in both languages.
const PARTS: &[(&str, &str)] = &[
    ("input_layernorm", "attn_norm"),
    ("self_attn.q_proj", "attn_q"),
    ("self_attn.k_proj", "attn_k"),
    ("self_attn.v_proj", "attn_v"),
    ("self_attn.o_proj", "attn_output"),
    ("post_attention_layernorm", "ffn_norm"),
    ("mlp.gate_proj", "ffn_gate"),
    ("mlp.up_proj", "ffn_up"),
    ("mlp.down_proj", "ffn_down"),
];

/// What the frequencies of positions are divided by, where the file says so.
const DIVISORS: &str = "rope_freqs.weight";

/// How positions turn where a file has divisors.
fn divided(file: &Gguf, place: &Place, config: &Config) -> Result<Rotary> {
    let refuse = |reason: &str| Err(Error::tensor(file.path(), DIVISORS, reason));
    if place.shape != [config.head_width / 2] {
        let (found, expected) = (&place.shape, [config.head_width / 2]);
        return refuse(&format!("has shape {found:?}, expected {expected:?}"));
    }
    if config.rotary != Rotary::plain(config.rotary.base) {
        return refuse(
            "divides frequencies that the file's keys slow already; take the model's Hugging Face folder",
        );
    }
    match divisors::rule(config.rotary.base, &file.scalars(place)) {
        Some(rotary) => Ok(rotary),
        None => refuse("its divisors are not those of Llama 3's rule; take the model's Hugging Face folder"),
    }
}

/// The GGUF name of a tensor.
fn translated(name: &str) -> Option<String> {
    let whole = match name {
        EMBEDDING => Some("token_embd.weight"),
        NORM => Some("output_norm.weight"),
        HEAD => Some("output.weight"),
        _ => None,
    };
    if let Some(whole) = whole {
        return Some(whole.to_owned());
    }
    let (layer, part) = name.strip_prefix("model.layers.")?.split_once('.')?;
    let (part, what) = part.rsplit_once('.')?;
    let (_, other) = PARTS.iter().find(|(own, _)| *own == part)?;
    Some(format!("blk.{layer}.{other}.{what}"))
}

impl Translated {
    /// Reads a decoder's sizes from the keys of a GGUF file.
    ///
    /// # Errors
    /// If a key is missing, or asks for what no known decoder does.
    pub fn new(file: Gguf) -> Result<Self> {
        let path = file.path().to_owned();
        let missing = |key: &str| Error::key(&path, key, "is missing");
        let name = file.entry("general.architecture").and_then(|entry| entry.text());
        let name = name.ok_or_else(|| missing("general.architecture"))?;
        let architecture = Architecture::named(&path, "general.architecture", name)?;
        let find = |key: &str| file.entry(&format!("{name}.{key}"));
        let count = |key: &str| {
            find(key).and_then(|entry| entry.count()).ok_or_else(|| missing(&format!("{name}.{key}")))
        };
        let number = |key: &str| find(key).and_then(|entry| entry.number());
        let base = number("rope.freq_base").unwrap_or(10_000.0);
        let rotary = match find("rope.scaling.type").and_then(|entry| entry.text()) {
            None | Some("none") => Rotary::plain(base),
            Some("linear") => Rotary::linear(base, number("rope.scaling.factor").unwrap_or(1.0)),
            Some(other) => {
                let reason = format!("'{other}' is unknown; none and linear are known");
                return Err(Error::key(&path, &format!("{name}.rope.scaling.type"), reason));
            }
        };
        let embedding = file.place("token_embd.weight").map(|place| place.shape.clone());
        let embedding = embedding.ok_or_else(|| Error::tensor(&path, "token_embd.weight", "is missing"))?;
        let (width, heads) = (count("embedding_length")?, count("attention.head_count")?);
        let mut config = Config {
            architecture,
            width,
            hidden: count("feed_forward_length")?,
            layers: count("block_count")?,
            heads,
            key_heads: find("attention.head_count_kv").and_then(|entry| entry.count()).unwrap_or(heads),
            head_width: find("attention.key_length")
                .and_then(|entry| entry.count())
                .unwrap_or(width / heads.max(1)),
            vocab: embedding.first().copied().unwrap_or(0),
            positions: count("context_length")?,
            epsilon: number("attention.layer_norm_rms_epsilon")
                .ok_or_else(|| missing(&format!("{name}.attention.layer_norm_rms_epsilon")))?,
            rotary,
            qkv_bias: file.place("blk.0.attn_q.bias").is_some(),
            out_bias: file.place("blk.0.attn_output.bias").is_some(),
            tied: file.place("output.weight").is_none(),
            ends: file
                .entry("tokenizer.ggml.eos_token_id")
                .and_then(|entry| entry.count())
                .and_then(|token| u32::try_from(token).ok())
                .map_or_else(Vec::new, |token| vec![token]),
        };
        config.check(&path)?;
        if let Some(place) = file.place(DIVISORS) {
            config.rotary = divided(&file, place, &config)?;
        }
        Ok(Self { file, config })
    }

    /// The decoder's sizes.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The file.
    #[must_use]
    pub fn file(&self) -> &Gguf {
        &self.file
    }

    fn place(&self, name: &str) -> Result<&Place> {
        let own = translated(name).unwrap_or_else(|| name.to_owned());
        self.file.place(&own).ok_or_else(|| Error::tensor(self.file.path(), &own, "is missing"))
    }

    /// Heads whose rows the file has in its own order, where it does: a Llama's queries and keys.
    fn turned(&self, name: &str) -> Option<usize> {
        let Config { architecture, heads, key_heads, .. } = self.config;
        let of = |part: &str| name.contains(part);
        match (architecture, of("self_attn.q_proj"), of("self_attn.k_proj")) {
            (Architecture::Llama, true, _) => Some(heads),
            (Architecture::Llama, _, true) => Some(key_heads),
            _ => None,
        }
    }
}

/// Puts the rows of each head back: the file has the two halves of a head's rows by turns, a checkpoint one after the other.
fn unturned(scalars: &[f32], heads: usize, rows: usize) -> Vec<f32> {
    let (width, head) = (scalars.len() / rows, rows / heads);
    let mut out = Vec::with_capacity(scalars.len());
    for row in 0..rows {
        let (first, within) = (row / head * head, row % head);
        let from = first + within % (head / 2) * 2 + within / (head / 2);
        out.extend_from_slice(&scalars[from * width..(from + 1) * width]);
    }
    out
}

impl Source for Translated {
    fn shape(&self, name: &str) -> Result<Vec<usize>> {
        Ok(self.place(name)?.shape.clone())
    }

    fn scalars(&self, name: &str) -> Result<Vec<f32>> {
        let place = self.place(name)?;
        let scalars = self.file.scalars(place);
        Ok(match (self.turned(name), place.shape.first()) {
            (Some(heads), Some(&rows)) if rows > 0 && rows.is_multiple_of(2 * heads) => {
                unturned(&scalars, heads, rows)
            }
            _ => scalars,
        })
    }

    fn digest(&self, digest: Digest) -> Digest {
        digest.and(self.file.bytes())
    }

    fn path(&self) -> &Path {
        self.file.path()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_both_languages() {
        assert_eq!(translated("model.layers.12.mlp.down_proj.weight").unwrap(), "blk.12.ffn_down.weight");
        assert_eq!(translated("model.layers.0.self_attn.k_proj.bias").unwrap(), "blk.0.attn_k.bias");
        assert_eq!(translated(EMBEDDING).unwrap(), "token_embd.weight");
        assert_eq!(translated("model.layers.0.conv.weight"), None);
    }

    #[test]
    fn a_heads_rows_go_back() {
        // Two heads of four rows, one column. The file has halves by turns: rows 0, 2, 1, 3 of a checkpoint's head.
        let file = [0.0, 2.0, 1.0, 3.0, 10.0, 12.0, 11.0, 13.0];
        assert_eq!(unturned(&file, 2, 8), [0.0, 1.0, 2.0, 3.0, 10.0, 11.0, 12.0, 13.0]);
    }
}
