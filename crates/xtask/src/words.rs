//! Phrases that stop a fluent reader stay out of the tree; `STYLE.md` says what to write.

use crate::files::below;
use crate::root;
use anyhow::ensure;
use std::fs;

/// What is held out, in lower case, and what stands for it; each begins and ends at a word's edge.
const PHRASES: &[(&str, &str)] = &[
    ("somebody", "the caller, users, anyone who"),
    ("whoever", "the caller, users, anyone who"),
    ("gives back", "returns"),
    ("give back", "return"),
    ("manieth", "nth"),
    ("begin anew", "start again"),
    ("begins anew", "starts again"),
    ("what is no", "what is not a"),
    ("is no folder", "is not a folder"),
    ("is no text", "is not text"),
    ("is no number", "is not a number"),
    ("is no file", "is not a file"),
    ("is no table", "is not a table"),
    ("is no array", "is not an array"),
    ("is no count", "is not a count"),
    ("is no record", "is not a record"),
    ("is no terminal", "is not a terminal"),
    ("is no command", "is not a command"),
    ("is no shop", "is not a shop"),
    ("is no job", "is not a job"),
    ("is no regular", "is not a regular"),
    ("is no single", "is not a single"),
    ("is no candidate", "is not a candidate"),
    ("is no summary", "is not a summary"),
    ("is no whole number of", "does not divide into"),
    ("are no whole number of", "do not divide into"),
    ("no sign of life", "has not renewed its lease"),
];

/// Where the phrases may stand: this list, the page that explains it, and dated results, which stay as they were written.
const EXEMPT: [&str; 4] = ["STYLE.md", "CHANGELOG.md", "crates/xtask/src/words.rs", "results/"];

pub(crate) fn run() -> anyhow::Result<String> {
    let (mut found, mut files) = (Vec::new(), 0);
    for path in below(&root(), &[".rs", ".md", ".py", ".toml", ".cu", ".js", ".sh"])? {
        let name = path.strip_prefix(root()).unwrap_or(&path).display().to_string();
        if EXEMPT.iter().any(|exempt| name.starts_with(exempt)) {
            continue;
        }
        files += 1;
        for (line, text) in fs::read_to_string(&path)?.lines().enumerate() {
            for (phrase, instead) in held_out(text) {
                found.push(format!("{name}:{}: '{phrase}'; write '{instead}'", line + 1));
            }
        }
    }
    ensure!(found.is_empty(), "{} phrases that STYLE.md holds out:\n{}", found.len(), found.join("\n"));
    Ok(format!("words: {files} files without the {} phrases that STYLE.md holds out", PHRASES.len()))
}

/// The phrases that a line has. "There is no file" is plain English.
fn held_out(line: &str) -> impl Iterator<Item = &'static (&'static str, &'static str)> {
    let line = line.to_lowercase();
    PHRASES.iter().filter(move |(phrase, _)| {
        line.match_indices(phrase).any(|(at, _)| {
            let edge = |letter: Option<char>| !letter.is_some_and(|letter| letter.is_alphanumeric());
            let before = &line[..at];
            let there = phrase.starts_with("is no ") && before.trim_end().ends_with("there");
            !there && edge(before.chars().next_back()) && edge(line[at + phrase.len()..].chars().next())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_as_words_alone() {
        let found = |line: &str| held_out(line).map(|(phrase, _)| *phrase).collect::<Vec<_>>();
        assert_eq!(found("/// Somebody's run; it is no folder."), ["somebody", "is no folder"]);
        assert_eq!(found("a is no number"), ["is no number"]);
        assert!(found("There is no file.").is_empty());
        assert!(found("the runs are no numbers; this is no foldering; forgives backs").is_empty());
    }
}
