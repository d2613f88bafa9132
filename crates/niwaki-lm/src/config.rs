//! Sizes and kinds of a decoder, and its tensors by name.
//!
//! Names are those of Hugging Face's checkpoints; GGUF's are translated where they are read.

use crate::{Error, Result};
use niwaki_nn::{Layout, Rotary};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::Path;

/// Which family of decoders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Architecture {
    /// Llama's, SmolLM's and others of their kind.
    Llama,
    /// Qwen 2 and 2.5: queries, keys and values have biases.
    Qwen2,
}

impl Architecture {
    const ALL: [Self; 2] = [Self::Llama, Self::Qwen2];

    /// Its name in `config.json` and in GGUF.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Llama => "llama",
            Self::Qwen2 => "qwen2",
        }
    }

    /// The architecture of a name.
    ///
    /// # Errors
    /// If there is none of that name; `key` is where it stood.
    pub(crate) fn named(path: &Path, key: &str, name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(" and ");
            Error::key(path, key, format!("no decoder of architecture '{name}' is known; {known} are"))
        })
    }
}

/// A decoder's sizes and kinds.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// The family.
    pub architecture: Architecture,
    /// Width of the residual stream.
    pub width: usize,
    /// Width between the two projections of a block.
    pub hidden: usize,
    /// Blocks.
    pub layers: usize,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values.
    pub key_heads: usize,
    /// Columns of a head.
    pub head_width: usize,
    /// Tokens.
    pub vocab: usize,
    /// Positions that the model was made for.
    pub positions: usize,
    /// Added to a norm's mean square.
    pub epsilon: f64,
    /// How positions turn queries and keys.
    pub rotary: Rotary,
    /// Whether queries, keys and values have biases.
    pub qkv_bias: bool,
    /// Whether attention's last projection has a bias.
    pub out_bias: bool,
    /// Whether the head is the embedding.
    pub tied: bool,
    /// Tokens that end a text.
    pub ends: Vec<u32>,
}

/// How a tensor lies in a checkpoint and in a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Gains and biases.
    Vector,
    /// A weight: `[out, in]` in a checkpoint, `[in, out]` in a program.
    Matrix,
    /// One row per token, of which a program may have only some.
    Table,
}

/// One tensor of a decoder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// Its name in a Hugging Face checkpoint.
    pub name: String,
    /// Its shape there.
    pub shape: Vec<usize>,
    /// How it lies.
    pub form: Form,
    /// The parameter of a program that holds it.
    pub param: String,
    /// Its first column there.
    pub start: usize,
}

impl Tensor {
    /// The tensor as a checkpoint has it, out of a program's parameters or gradients; a table has the program's rows. `None` where
    /// the program does not hold it.
    #[must_use]
    pub fn taken(&self, layout: &Layout, flat: &[f32]) -> Option<Vec<f32>> {
        let slice = layout.slice(layout.find(&self.param)?);
        let (own, columns) = (&flat[slice.range()], slice.shape.last().copied().unwrap_or(1));
        Some(match self.form {
            Form::Table => own.to_vec(),
            Form::Vector => own[self.start..][..self.shape[0]].to_vec(),
            Form::Matrix => {
                let [rows, width] = [self.shape[0], self.shape[1]];
                let mut turned = vec![0.0; rows * width];
                squares(rows, width, |out, at| {
                    turned[out * width + at] = own[at * columns + self.start + out];
                });
                turned
            }
        })
    }
}

/// Calls for every row and column, in squares that stay in the first cache: a matrix is read one way and written the other.
pub(crate) fn squares(rows: usize, columns: usize, mut each: impl FnMut(usize, usize)) {
    const SIDE: usize = 32;
    for top in (0..rows).step_by(SIDE) {
        for left in (0..columns).step_by(SIDE) {
            for row in top..rows.min(top + SIDE) {
                for column in left..columns.min(left + SIDE) {
                    each(row, column);
                }
            }
        }
    }
}

/// The table of the embedding.
pub(crate) const EMBEDDING: &str = "model.embed_tokens.weight";
/// The head of a decoder whose head is its own.
pub(crate) const HEAD: &str = "lm_head.weight";
/// The gain of the last norm.
pub(crate) const NORM: &str = "model.norm.weight";
/// A block's parameter of queries, keys and values, side by side.
pub(crate) const QUERY_KEY_VALUE: &str = "self_attn.qkv_proj";
/// A block's parameter of gate and up, side by side.
pub(crate) const GATE_AND_UP: &str = "mlp.gate_up_proj.weight";

/// `config.json`, as far as it is read; the rest of the file is kept as it is.
#[derive(Deserialize)]
struct Raw {
    model_type: String,
    hidden_size: usize,
    intermediate_size: usize,
    num_hidden_layers: usize,
    num_attention_heads: usize,
    num_key_value_heads: Option<usize>,
    head_dim: Option<usize>,
    vocab_size: usize,
    max_position_embeddings: usize,
    rms_norm_eps: f64,
    hidden_act: Option<String>,
    rope_theta: Option<f64>,
    rope_scaling: Option<RawRope>,
    /// Where newer files have both of the above.
    rope_parameters: Option<RawRope>,
    tie_word_embeddings: Option<bool>,
    attention_bias: Option<bool>,
    mlp_bias: Option<bool>,
    use_sliding_window: Option<bool>,
    /// One token, or several.
    eos_token_id: Option<Value>,
}

#[derive(Deserialize)]
struct RawRope {
    rope_type: Option<String>,
    /// What `rope_type` was called before.
    r#type: Option<String>,
    rope_theta: Option<f64>,
    factor: Option<f64>,
    low_freq_factor: Option<f64>,
    high_freq_factor: Option<f64>,
    original_max_position_embeddings: Option<f64>,
}

impl RawRope {
    fn rotary(&self, path: &Path, base: f64) -> Result<Rotary> {
        let need = |key: &str, value: Option<f64>| {
            value.ok_or_else(|| Error::key(path, &format!("rope_scaling.{key}"), "is missing"))
        };
        match self.rope_type.as_deref().or(self.r#type.as_deref()).unwrap_or("default") {
            "default" if self.factor.is_some_and(|factor| factor != 1.0) => {
                let reason = "a factor that no rope_type reads; name one, linear or llama3";
                Err(Error::key(path, "rope_scaling.factor", reason))
            }
            "default" => Ok(Rotary::plain(base)),
            "linear" => Ok(Rotary::linear(base, need("factor", self.factor)?)),
            "llama3" => Ok(Rotary {
                base,
                factor: need("factor", self.factor)?,
                low: need("low_freq_factor", self.low_freq_factor)?,
                high: need("high_freq_factor", self.high_freq_factor)?,
                original: need("original_max_position_embeddings", self.original_max_position_embeddings)?,
            }),
            other => {
                let reason = format!("'{other}' is unknown; default, linear and llama3 are known");
                Err(Error::key(path, "rope_scaling.rope_type", reason))
            }
        }
    }
}

impl Raw {
    /// What `rope_parameters` says, or the older `rope_scaling` and `rope_theta`; where both stand they must agree.
    fn rotary(&self, path: &Path) -> Result<Rotary> {
        const BASE: f64 = 10_000.0;
        let said = |rope: Option<&RawRope>| {
            let Some(rope) = rope else { return Ok(None) };
            let base = rope.rope_theta.or(self.rope_theta).unwrap_or(BASE);
            rope.rotary(path, base).map(Some)
        };
        let (newer, older) = (said(self.rope_parameters.as_ref())?, said(self.rope_scaling.as_ref())?);
        let Some(rotary) = newer.or(older) else { return Ok(Rotary::plain(self.rope_theta.unwrap_or(BASE))) };
        let other = |key: &str| {
            Error::key(path, key, "'rope_parameters' stands beside it and says otherwise; keep the true one")
        };
        if newer.is_some() && older.is_some_and(|older| older != rotary) {
            return Err(other("rope_scaling"));
        }
        if newer.is_some() && self.rope_theta.is_some_and(|base| base != rotary.base) {
            return Err(other("rope_theta"));
        }
        Ok(rotary)
    }
}

/// A token, or a list of them.
fn tokens(value: &Value) -> Vec<u32> {
    let one = |value: &Value| value.as_u64().and_then(|token| u32::try_from(token).ok());
    value
        .as_array()
        .map_or_else(|| one(value).into_iter().collect(), |list| list.iter().filter_map(one).collect())
}

impl Config {
    /// Reads `config.json`.
    ///
    /// # Errors
    /// If a key is missing, or asks for what no known decoder does.
    pub(crate) fn read(path: &Path, description: &Map<String, Value>) -> Result<Self> {
        let refuse = |key: &str, reason: &str| Err(Error::key(path, key, reason));
        if let Some(name) = description.get("model_type").and_then(Value::as_str) {
            Architecture::named(path, "model_type", name)?;
        }
        let raw: Raw =
            Raw::deserialize(Value::Object(description.clone())).map_err(|error| Error::file(path, error))?;
        let architecture = Architecture::named(path, "model_type", &raw.model_type)?;
        if raw.hidden_act.as_deref().is_some_and(|name| name != "silu") {
            return refuse("hidden_act", "only 'silu' is known");
        }
        if raw.mlp_bias == Some(true) {
            return refuse("mlp_bias", "projections with a bias between blocks are not known");
        }
        if raw.use_sliding_window == Some(true) {
            return refuse("use_sliding_window", "attention that forgets is not known");
        }
        let rotary = raw.rotary(path)?;
        let biased = raw.attention_bias.unwrap_or(false);
        let config = Self {
            architecture,
            width: raw.hidden_size,
            hidden: raw.intermediate_size,
            layers: raw.num_hidden_layers,
            heads: raw.num_attention_heads,
            key_heads: raw.num_key_value_heads.unwrap_or(raw.num_attention_heads),
            head_width: raw.head_dim.unwrap_or(raw.hidden_size / raw.num_attention_heads.max(1)),
            vocab: raw.vocab_size,
            positions: raw.max_position_embeddings,
            epsilon: raw.rms_norm_eps,
            rotary,
            qkv_bias: biased || architecture == Architecture::Qwen2,
            out_bias: biased && architecture == Architecture::Llama,
            tied: raw.tie_word_embeddings.unwrap_or(false),
            ends: raw.eos_token_id.iter().flat_map(tokens).collect(),
        };
        config.check(path)?;
        Ok(config)
    }

    /// Refuses sizes of which no decoder can be made.
    pub(crate) fn check(&self, path: &Path) -> Result<()> {
        let sizes = [
            ("hidden_size", self.width),
            ("intermediate_size", self.hidden),
            ("num_hidden_layers", self.layers),
            ("num_attention_heads", self.heads),
            ("num_key_value_heads", self.key_heads),
            ("vocab_size", self.vocab),
            ("head_dim", self.head_width),
        ];
        // Beyond it no file holds the tensors, and products of sizes would not fit.
        const MOST: usize = 1 << 24;
        if let Some((key, size)) = sizes.into_iter().find(|&(_, size)| size == 0 || size > MOST) {
            return Err(Error::key(path, key, format!("{size} is not between 1 and {MOST}")));
        }
        let Rotary { base, factor, low, high, original } = self.rotary;
        let numbers = [
            ("rms_norm_eps", self.epsilon, (0.0..1.0).contains(&self.epsilon)),
            ("rope_theta", base, base.is_finite() && base > 0.0),
            ("rope_scaling.factor", factor, factor.is_finite() && factor > 0.0),
            ("rope_scaling.low_freq_factor", low, low.is_finite()),
            ("rope_scaling.high_freq_factor", high, high.is_finite() && high > low),
            (
                "rope_scaling.original_max_position_embeddings",
                original,
                original.is_finite() && original >= 0.0,
            ),
        ];
        if let Some((key, number, _)) = numbers.into_iter().find(|&(.., sound)| !sound) {
            return Err(Error::key(path, key, format!("{number} is out of range for a decoder")));
        }
        if !self.head_width.is_multiple_of(2) {
            let reason = format!("{} columns of a head cannot turn in pairs", self.head_width);
            return Err(Error::key(path, "head_dim", reason));
        }
        if !self.heads.is_multiple_of(self.key_heads) {
            let reason = format!("{} heads cannot share {} evenly", self.heads, self.key_heads);
            return Err(Error::key(path, "num_key_value_heads", reason));
        }
        Ok(())
    }

    /// The description that `transformers` reads.
    pub(crate) fn describe(&self) -> Map<String, Value> {
        let rope = if self.rotary == Rotary::plain(self.rotary.base) {
            Value::Null
        } else if self.rotary == Rotary::linear(self.rotary.base, self.rotary.factor) {
            json!({ "rope_type": "linear", "factor": self.rotary.factor })
        } else {
            json!({
                "rope_type": "llama3",
                "factor": self.rotary.factor,
                "low_freq_factor": self.rotary.low,
                "high_freq_factor": self.rotary.high,
                "original_max_position_embeddings": self.rotary.original as u64,
            })
        };
        let class = match self.architecture {
            Architecture::Llama => "LlamaForCausalLM",
            Architecture::Qwen2 => "Qwen2ForCausalLM",
        };
        let described = json!({
            "architectures": [class],
            "model_type": self.architecture.name(),
            "hidden_size": self.width,
            "intermediate_size": self.hidden,
            "num_hidden_layers": self.layers,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.key_heads,
            "head_dim": self.head_width,
            "vocab_size": self.vocab,
            "max_position_embeddings": self.positions,
            "rms_norm_eps": self.epsilon,
            "hidden_act": "silu",
            "rope_theta": self.rotary.base,
            "rope_scaling": rope,
            "tie_word_embeddings": self.tied,
            "attention_bias": self.out_bias,
            "eos_token_id": self.ends,
        });
        match described {
            Value::Object(described) => described,
            _ => Map::new(),
        }
    }

    /// The name of a tensor of a block.
    pub(crate) fn of_layer(layer: usize, name: &str) -> String {
        format!("model.layers.{layer}.{name}")
    }

    /// Every tensor that a checkpoint of this decoder has.
    #[must_use]
    pub fn tensors(&self) -> Vec<Tensor> {
        self.each_tensor().collect()
    }

    /// The same one after the other: a description may name more blocks than any file has, and each is held against the files
    /// before the next is made.
    pub(crate) fn each_tensor(&self) -> impl Iterator<Item = Tensor> + '_ {
        let whole = |name: &str, shape: Vec<usize>, form| {
            let (name, param) = (name.to_owned(), name.to_owned());
            Tensor { name, shape, form, param, start: 0 }
        };
        let table = move |name: &str| whole(name, vec![self.vocab, self.width], Form::Table);
        let norm = whole(NORM, vec![self.width], Form::Vector);
        let head = (!self.tied).then(|| table(HEAD));
        let blocks = (0..self.layers).flat_map(|layer| self.block(layer));
        std::iter::once(table(EMBEDDING)).chain(blocks).chain([norm]).chain(head)
    }

    /// The tensors of one block.
    fn block(&self, layer: usize) -> Vec<Tensor> {
        let (width, queries, keys) =
            (self.width, self.heads * self.head_width, self.key_heads * self.head_width);
        let mut tensors = Vec::new();
        let mut joined = |name: &str, shape: &[usize], param: &str, start: usize| {
            let form = if shape.len() == 1 { Form::Vector } else { Form::Matrix };
            let (name, param) = (Self::of_layer(layer, name), Self::of_layer(layer, param));
            tensors.push(Tensor { name, shape: shape.to_vec(), form, param, start });
        };
        joined("input_layernorm.weight", &[width], "input_layernorm.weight", 0);
        for (name, out, start) in
            [("q_proj", queries, 0), ("k_proj", keys, queries), ("v_proj", keys, queries + keys)]
        {
            let (own, all) = (format!("self_attn.{name}"), QUERY_KEY_VALUE);
            joined(&format!("{own}.weight"), &[out, width], &format!("{all}.weight"), start);
            if self.qkv_bias {
                joined(&format!("{own}.bias"), &[out], &format!("{all}.bias"), start);
            }
        }
        let mut own = |name: &str, shape: &[usize]| joined(name, shape, name, 0);
        own("self_attn.o_proj.weight", &[width, queries]);
        if self.out_bias {
            own("self_attn.o_proj.bias", &[width]);
        }
        own("post_attention_layernorm.weight", &[width]);
        joined("mlp.gate_proj.weight", &[self.hidden, width], GATE_AND_UP, 0);
        joined("mlp.up_proj.weight", &[self.hidden, width], GATE_AND_UP, self.hidden);
        joined("mlp.down_proj.weight", &[width, self.hidden], "mlp.down_proj.weight", 0);
        tensors
    }
}
