//! Text to tokens and back.
//!
//! A Hugging Face folder brings `tokenizer.json`; a GGUF file has tokens and merges among its keys, from which the same
//! description is written.

use crate::weights::{Entry, Gguf};
use crate::{Error, Result};
use serde_json::{Map, Value, json};
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tokenizers::{ModelWrapper, Tokenizer};

thread_local! {
    static WITHIN: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs what a description of a tokenizer asks for. The `tokenizers` crate panics over some that no sound
/// model has; such a panic becomes an error, and a hook should not show it as a defect.
#[must_use]
pub fn within_tokenizer() -> bool {
    WITHIN.get()
}

/// Runs what a description asks for.
fn guarded<T>(run: impl FnOnce() -> tokenizers::Result<T>) -> std::result::Result<T, String> {
    WITHIN.set(true);
    let ended = catch_unwind(AssertUnwindSafe(run));
    WITHIN.set(false);
    match ended {
        Ok(ended) => ended.map_err(|error| error.to_string()),
        Err(_) => Err("its description asks for what cannot be done".to_owned()),
    }
}

/// How many times as long its replacements may make a text.
const MOST_GROWTH: u128 = 64;

/// How many times as long the replacements of one part of a description, with those within it, may make a text.
fn growth(part: &Value) -> u128 {
    let length = |value: Option<&Value>| value.and_then(Value::as_str).map_or(0, |text| text.len() as u128);
    let within =
        ["normalizers", "pretokenizers", "decoders"].into_iter().filter_map(|name| part[name].as_array());
    let within = within.flatten().map(growth).fold(1, u128::saturating_mul);
    if part["type"] != "Replace" {
        return within;
    }
    let (pattern, content) = (&part["pattern"], length(part.get("content")));
    let times = match length(pattern.get("String")) {
        // An expression may match between any two bytes, and the bytes stay.
        0 => content + 1,
        replaced => content.div_ceil(replaced),
    };
    within.saturating_mul(times.max(1))
}

/// A model's tokenizer and its description.
#[derive(Clone, Debug)]
pub struct Text {
    tokenizer: Tokenizer,
    description: Vec<u8>,
}

impl Text {
    /// Reads the text of a `tokenizer.json`; `path` is how a message calls it.
    ///
    /// # Errors
    /// If it describes no tokenizer.
    pub fn new(path: &Path, description: Vec<u8>) -> Result<Self> {
        let mut tokenizer = guarded(|| Tokenizer::from_bytes(&description))
            .map_err(|error| Error::file(path, format!("no tokenizer: {error}")))?;
        let parts: Value = serde_json::from_slice(&description).unwrap_or_default();
        for key in ["normalizer", "pre_tokenizer", "decoder"] {
            let times = growth(&parts[key]);
            if times > MOST_GROWTH {
                let reason = format!(
                    "its replacements make a text up to {times} times as long, and {MOST_GROWTH} times is the most that is read"
                );
                return Err(Error::key(path, key, reason));
            }
        }
        if let ModelWrapper::BPE(model) = tokenizer.get_model()
            && model.dropout.is_some_and(|share| share != 0.0)
        {
            return Err(Error::key(
                path,
                "model.dropout",
                "merges that chance leaves out give other tokens each time",
            ));
        }
        // A description may ask to cut texts off or to fill them up; callers here want all tokens, and no others.
        tokenizer.with_padding(None);
        tokenizer.with_truncation(None).map_err(|error| Error::file(path, error))?;
        Ok(Self { tokenizer, description })
    }

    /// The tokens of a text, without any that mark its beginning or end.
    ///
    /// # Errors
    /// If the tokenizer refuses it.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>> {
        let encoded = guarded(|| self.tokenizer.encode_fast(text, false));
        encoded.map(|encoded| encoded.get_ids().to_vec()).map_err(Error::Text)
    }

    /// The tokens of a text, each with the bytes of the text that it stands for.
    ///
    /// # Errors
    /// If the tokenizer refuses it.
    pub fn spans(&self, text: &str) -> Result<Vec<(u32, Range<usize>)>> {
        let encoded = guarded(|| self.tokenizer.encode(text, false)).map_err(Error::Text)?;
        let spans = encoded.get_offsets().iter().map(|&(start, end)| start..end);
        Ok(encoded.get_ids().iter().copied().zip(spans).collect())
    }

    /// The text of some tokens.
    ///
    /// # Errors
    /// If the tokenizer refuses them.
    pub fn decode(&self, tokens: &[u32]) -> Result<String> {
        guarded(|| self.tokenizer.decode(tokens, false)).map_err(Error::Text)
    }

    /// The text of `tokenizer.json`.
    #[must_use]
    pub fn description(&self) -> &[u8] {
        &self.description
    }

    /// Writes the description of a GGUF file's tokenizer and reads it.
    ///
    /// # Errors
    /// If the file has no tokens, or splits text in an unknown way.
    pub(crate) fn of_gguf(file: &Gguf) -> Result<Self> {
        let path = file.path();
        let texts = |key: &str| -> Result<Vec<&str>> {
            let list =
                file.entry(key).and_then(Entry::list).ok_or_else(|| Error::key(path, key, "is missing"))?;
            Ok(list.iter().map(|entry| entry.text().unwrap_or_default()).collect())
        };
        let kind = "tokenizer.ggml.model";
        match file.entry(kind).and_then(Entry::text) {
            Some("gpt2") => {}
            other => {
                let reason = format!(
                    "'{}' is not read, only 'gpt2'; put the model's tokenizer.json beside the file",
                    other.unwrap_or("nothing")
                );
                return Err(Error::key(path, kind, reason));
            }
        }
        let (tokens, merges) = (texts("tokenizer.ggml.tokens")?, texts("tokenizer.ggml.merges")?);
        let pre = file.entry("tokenizer.ggml.pre").and_then(Entry::text).unwrap_or("default");
        let kinds = file.entry("tokenizer.ggml.token_type").and_then(Entry::list).unwrap_or_default();
        // Control tokens and a user's own are never parts of words.
        let whole = |id: usize| matches!(kinds.get(id), Some(Entry::Integer(3 | 4)));
        let vocab: Map<String, Value> =
            tokens.iter().enumerate().map(|(id, token)| ((*token).to_owned(), json!(id))).collect();
        let added: Vec<Value> = (0..tokens.len())
            .filter(|&id| whole(id))
            .map(|id| {
                let special = kinds[id] == Entry::Integer(3);
                json!({
                    "id": id, "content": tokens[id], "single_word": false, "lstrip": false, "rstrip": false,
                    "normalized": false, "special": special,
                })
            })
            .collect();
        let description = json!({
            "version": "1.0", "truncation": null, "padding": null, "added_tokens": added, "normalizer": null,
            "pre_tokenizer": splitting(path, pre)?,
            "post_processor": null,
            "decoder": { "type": "ByteLevel", "add_prefix_space": true, "trim_offsets": true, "use_regex": true },
            "model": {
                "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": false, "ignore_merges": false,
                "vocab": vocab, "merges": merges,
            },
        });
        Self::new(path, description.to_string().into_bytes())
    }
}

/// How text is split before merges, by the name that GGUF has for it.
fn splitting(path: &Path, name: &str) -> Result<Value> {
    let bytes = |regex: bool| json!({ "type": "ByteLevel", "add_prefix_space": false, "trim_offsets": true, "use_regex": regex });
    let split = |pattern: &str| {
        let split = json!({ "type": "Split", "pattern": { "Regex": pattern }, "behavior": "Isolated", "invert": false });
        json!({ "type": "Sequence", "pretokenizers": [split, bytes(false)] })
    };
    // Words, numbers, punctuation and blanks; Llama takes three digits at a time and Qwen one.
    let words = |digits: &str| {
        format!(
            r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|{digits}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        )
    };
    Ok(match name {
        "default" | "gpt-2" => bytes(true),
        "smollm" => {
            let digits = json!({ "type": "Digits", "individual_digits": true });
            json!({ "type": "Sequence", "pretokenizers": [digits, bytes(true)] })
        }
        "qwen2" => split(&words(r"\p{N}")),
        "llama-bpe" => split(&words(r"\p{N}{1,3}")),
        other => {
            let reason = format!(
                "'{other}' is not read, only default, gpt-2, smollm, qwen2 and llama-bpe; put the model's tokenizer.json beside the file"
            );
            return Err(Error::key(path, "tokenizer.ggml.pre", reason));
        }
    })
}
