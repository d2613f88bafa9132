//! The resolved file with a sentence above every key.
//!
//! The sentences are those of the tables in `raw.rs`: what the documentation says of a key and what the file says are
//! one text.

use super::Spec;
use crate::Error;

/// The tables' source, whose documentation is also the file's.
const TABLES: &str = include_str!("raw.rs");

impl Spec {
    /// The resolved file: every key with its value, a sentence above it.
    ///
    /// # Errors
    /// As [`Spec::to_toml`].
    pub fn to_commented_toml(&self) -> Result<String, Error> {
        let sentences = sentences();
        let (mut text, mut table) = (String::new(), String::new());
        for line in self.to_toml()?.lines() {
            if let Some(name) = line.strip_prefix('[') {
                table = name.trim_end_matches(']').to_owned() + ".";
            } else if let Some((key, _)) = line.split_once(" = ") {
                let key = format!("{table}{key}");
                if let Some((_, sentence)) = sentences.iter().find(|(known, _)| *known == key) {
                    text += &format!("# {sentence}\n");
                }
            }
            text += line;
            text.push('\n');
        }
        Ok(text)
    }
}

/// What the documentation says of every key, by its full name.
fn sentences() -> Vec<(String, String)> {
    let (mut table, mut said, mut found) = (String::new(), String::new(), Vec::new());
    for line in TABLES.lines() {
        if let Some(comment) = line.trim_start().strip_prefix("/// ") {
            if !said.is_empty() {
                said.push(' ');
            }
            said += comment;
        } else if line.starts_with("pub ") {
            // A table's documentation begins with its name, as in `[policy.prime]`.
            let name = said.strip_prefix("`[").and_then(|rest| rest.split(']').next());
            table = name.map_or_else(String::new, |name| format!("{name}."));
            said.clear();
        } else if let Some(field) = line.strip_prefix("    pub ") {
            let key = field.split(':').next().unwrap_or_default();
            found.push((format!("{table}{key}"), std::mem::take(&mut said).replace('`', "'")));
        } else if !line.trim_start().starts_with("#[") {
            said.clear();
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_its_sentence_and_the_file_reads_back() {
        let settings = [
            "policy.width=8",
            "policy.hidden=16",
            "policy.prime={token=1, mass=0.9}",
            "update.clip_high=0.3",
            "update.dual_clip=3.0",
            "warmup.correction=full",
            "warmup.reuse=9",
            "optimiser.clip_norm=1.0",
        ];
        let spec = Spec::read("run.toml", "", &settings.map(str::to_owned)).unwrap();
        let text = spec.to_commented_toml().unwrap();
        assert_eq!(Spec::read("spec.toml", &text, &[]).unwrap(), spec);
        let mut above = "";
        for line in text.lines() {
            if line.contains(" = ") && !line.starts_with('#') {
                assert!(above.starts_with("# ") && above.len() > 4, "{line} has no sentence");
            }
            above = line;
        }
        assert!(text.contains("# Epochs on each batch.\nreuse = 4\n"), "{text}");
        assert!(text.contains("# The probability it starts with.\nmass = 0.9\n"), "{text}");
    }
}
