//! The reference of every key of specs and studies, made from the code: `docs/reference.md`.
//!
//! Files are read by strict types whose fields carry a sentence each; this reads those sentences. A test that the page is
//! current is part of the check.

use crate::root;
use anyhow::{Context, ensure};
use std::fmt::Write as _;
use std::fs;

/// Where the keys are, under which heading, and which types of a file are tables of it.
const SOURCES: [(&str, &str, &[&str]); 4] = [
    ("crates/niwaki-train/src/spec/raw.rs", "A run's spec (`niwaki train run.toml`)", &[]),
    (
        "crates/niwaki-study/src/training/spec.rs",
        "A training study (`niwaki reproduce study.toml`)",
        &["Calibration", "Choice", "Tried"],
    ),
    ("crates/niwaki-study/src/training/claims.rs", "What a training study says the paper printed", &[]),
    ("crates/niwaki-study/src/diagnostics/spec.rs", "A study of exact diagnostics", &[]),
];

const HEAD: &str = "\
# Reference of keys

Made from the code by `cargo xtask reference`; the check fails where it is not current. An unknown key is refused with the
nearest valid one. `niwaki train --print-spec` prints the keys that a run of your kinds has, with the values they take.
";

/// A type that a file has as a table.
#[derive(Debug, Default, PartialEq, Eq)]
struct Type {
    name: String,
    about: String,
    keys: Vec<Key>,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Key {
    name: String,
    kind: String,
    about: String,
    default: String,
}

/// Writes the page.
pub(crate) fn write() -> anyhow::Result<String> {
    fs::write(root().join("docs/reference.md"), page()?)?;
    Ok("reference: docs/reference.md written".to_owned())
}

/// Fails where the page is not what the code says.
pub(crate) fn verify() -> anyhow::Result<String> {
    let there = fs::read_to_string(root().join("docs/reference.md")).unwrap_or_default();
    ensure!(there == page()?, "docs/reference.md is not current: run cargo xtask reference");
    Ok("reference: current".to_owned())
}

fn page() -> anyhow::Result<String> {
    let mut text = HEAD.to_owned();
    for (path, heading, internal) in SOURCES {
        let code = fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))?;
        let _ = write!(text, "\n## {heading}\n");
        for found in types(&code).iter().filter(|found| !internal.contains(&found.name.as_str())) {
            let _ = write!(
                text,
                "\n### {}\n\n{}\n\n| key | value | default | meaning |\n|---|---|---|---|\n",
                title(found),
                found.about
            );
            for key in &found.keys {
                let _ = writeln!(text, "| `{}` | {} | {} | {} |", key.name, key.kind, key.default, key.about);
            }
        }
    }
    Ok(text)
}

/// What a table is called: its place in the file where its sentence says it, else its type.
fn title(found: &Type) -> String {
    let place = found.about.strip_prefix('`').and_then(|rest| rest.split_once('`')).map(|(place, _)| place);
    match place {
        Some(place) if place.starts_with('[') => format!("`{place}`"),
        _ => found.name.clone(),
    }
}

/// The types of a source that are read from files.
fn types(code: &str) -> Vec<Type> {
    let mut found = Vec::new();
    let (mut about, mut reads, mut open): (Vec<&str>, bool, Option<Type>) = (Vec::new(), false, None);
    let mut skipped = false;
    for line in code.lines() {
        let line = line.trim();
        if let Some(said) = line.strip_prefix("///") {
            about.push(said.trim());
        } else if line.starts_with("#[") {
            reads |= line.contains("Deserialize");
            skipped |= line == "#[serde(skip)]";
        } else if let Some(name) = line.strip_prefix("pub struct ").and_then(|rest| rest.strip_suffix(" {")) {
            if reads {
                open = Some(Type { name: name.to_owned(), about: said(&about), keys: Vec::new() });
            }
            about.clear();
        } else if let (Some(table), Some(rest)) = (&mut open, line.strip_prefix("pub ")) {
            if let Some((name, kind)) = rest.trim_end_matches(',').split_once(": ")
                && !skipped
            {
                let key = Key {
                    name: name.to_owned(),
                    kind: value(kind),
                    about: said(&about),
                    default: String::new(),
                };
                table.keys.push(key);
            }
            about.clear();
            skipped = false;
        } else if line == "}" {
            found.extend(open.take());
            (reads, skipped) = (false, false);
            about.clear();
        } else if !line.is_empty() {
            about.clear();
            reads = false;
        }
    }
    for table in &mut found {
        let given = defaults(code, &table.name);
        for key in &mut table.keys {
            key.default = given
                .iter()
                .find(|(name, _)| *name == key.name)
                .map_or(String::new(), |(_, value)| value.clone());
        }
    }
    found
}

/// The paragraph of a doc comment, without what it says of the paper.
fn said(lines: &[&str]) -> String {
    let kept: Vec<&str> =
        lines.iter().copied().take_while(|line| !line.is_empty() && !line.starts_with("Paper:")).collect();
    kept.join(" ").replace('|', "\\|")
}

/// A type in words.
fn value(kind: &str) -> String {
    let inner = |name: &str| kind.strip_prefix(name).and_then(|rest| rest.strip_suffix('>'));
    if let Some(kind) = inner("Option<") {
        return format!("{}, optional", value(kind));
    }
    if let Some(kind) = inner("Vec<") {
        return format!("list of {}", value(kind));
    }
    match kind {
        "u64" | "usize" | "u32" => "whole number".to_owned(),
        "f64" => "number".to_owned(),
        "bool" => "true or false".to_owned(),
        "String" => "text".to_owned(),
        "PathBuf" => "path".to_owned(),
        "toml::Table" => "table".to_owned(),
        "toml::Value" => "any value".to_owned(),
        other => format!("`{other}`"),
    }
}

/// Values of `impl Default for NAME`, where they are plain.
fn defaults(code: &str, name: &str) -> Vec<(String, String)> {
    let Some((_, rest)) = code.split_once(&format!("impl Default for {name} {{")) else { return Vec::new() };
    let Some(fields) =
        rest.split_once("-> Self {").and_then(|(_, rest)| rest.split_once("Self {")?.1.split_once('}'))
    else {
        return Vec::new();
    };
    let pair = |line: &str| {
        let (key, value) = line.trim().split_once(": ")?;
        let value = value.trim_end_matches(".to_owned()");
        let word = value.rsplit_once("::").map_or(value, |(_, word)| word);
        let shown = match value {
            "None" => return None,
            value if value.ends_with("default()") => return None,
            value if value.starts_with('"') => format!("`{}`", value.trim_matches('"')),
            value if value.contains("::") => format!("`{}`", kebab(word)),
            value => format!("`{value}`"),
        };
        Some((key.to_owned(), shown))
    };
    fields.0.split([',', '\n']).filter_map(pair).collect()
}

/// A variant as files write it.
fn kebab(word: &str) -> String {
    let mut text = String::new();
    for (at, letter) in word.chars().enumerate() {
        if letter.is_uppercase() && at > 0 {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_with_their_sentence_and_default() {
        let code = "/// `[update]`: how.\n#[derive(Deserialize)]\npub struct Update {\n    /// Epochs, a | b.\n    pub reuse: usize,\n    \
                    /// Range.\n    #[serde(default)]\n    pub clip: Option<f64>,\n}\n\nimpl Default for Update {\n    fn default() -> Self \
                    {\n        Self { reuse: 4, clip: None }\n    }\n}\n/// Not a file's.\npub struct Other {\n    pub x: u32,\n}\n";
        let found = types(code);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(title(&found[0]), "`[update]`");
        let key = |name: &str, kind: &str, about: &str, default: &str| Key {
            name: name.to_owned(),
            kind: kind.to_owned(),
            about: about.to_owned(),
            default: default.to_owned(),
        };
        assert_eq!(
            found[0].keys,
            [
                key("reuse", "whole number", "Epochs, a \\| b.", "`4`"),
                key("clip", "number, optional", "Range.", "")
            ]
        );
        assert_eq!(kebab("NSgd"), "n-sgd");
    }
}
