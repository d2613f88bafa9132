//! The map from the paper's labels to the places that claim them, kept in `PAPER.md`.
//!
//! A `Paper:` line in a doc comment claims the labels it names; a study file claims its own. The map fails on a
//! label that the paper does not have, and on a label of the paper that is neither claimed nor awaited.

use crate::files;
use crate::root;
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;

/// The paper's labels in order, one per line; a line `label  awaits what` is not claimed yet.
const LABELS: &str = include_str!("labels.txt");

/// What a claim looks like: the kind before the colon.
const KINDS: [&str; 6] = ["eq:", "tab:", "fig:", "sec:", "app:", "alg:"];

pub(crate) fn write() -> anyhow::Result<String> {
    let text = map()?;
    fs::write(root().join("PAPER.md"), &text).context("cannot write PAPER.md")?;
    Ok("wrote PAPER.md".to_owned())
}

/// Fails where `PAPER.md` is not what the sources say.
pub(crate) fn verify() -> anyhow::Result<String> {
    let text = map()?;
    let kept = fs::read_to_string(root().join("PAPER.md")).context("cannot read PAPER.md")?;
    ensure!(kept == text, "PAPER.md is stale; run `cargo xtask paper` and commit it");
    Ok("paper: every label is claimed or awaited".to_owned())
}

fn map() -> anyhow::Result<String> {
    let claims = claims()?;
    let listed: Vec<(&str, &str)> = LABELS
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.split_once("  awaits ").unwrap_or((line.trim(), "")))
        .collect();
    let strangers: Vec<&String> =
        claims.keys().filter(|label| !listed.iter().any(|(known, _)| known == label)).collect();
    ensure!(strangers.is_empty(), "labels that the paper does not have: {strangers:?}");
    let mut text = String::from(
        "# The paper, label by label\n\n\
         Made by `cargo xtask paper` from the `Paper:` lines of the sources and from the study files.\n\n\
         | label | where |\n|---|---|\n",
    );
    let (mut unclaimed, mut stale) = (Vec::new(), Vec::new());
    for (label, awaits) in listed {
        let places = claims.get(label).map(Vec::as_slice).unwrap_or_default();
        match (places, awaits) {
            ([], "") => unclaimed.push(label),
            ([], awaits) => {
                let _ = writeln!(text, "| `{label}` | awaits {awaits} |");
            }
            (places, "") => {
                let shown: Vec<String> =
                    places.iter().map(|place| format!("[{}]({place})", short(place))).collect();
                let _ = writeln!(text, "| `{label}` | {} |", shown.join(", "));
            }
            _ => stale.push(label),
        }
    }
    ensure!(
        unclaimed.is_empty(),
        "nobody claims {unclaimed:?}; claim them or say in labels.txt what they await"
    );
    ensure!(stale.is_empty(), "claimed by now, so labels.txt must not say that they are awaited: {stale:?}");
    Ok(text)
}

/// Labels and the files that claim them.
fn claims() -> anyhow::Result<BTreeMap<String, Vec<String>>> {
    let root = root();
    let mut claims: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut claim = |label: String, place: &str| {
        let places = claims.entry(label).or_default();
        if !places.iter().any(|known| known == place) {
            places.push(place.to_owned());
        }
    };
    for folder in ["crates", "studies"] {
        for path in files::below(&root.join(folder), &[".rs", ".toml"])? {
            let text =
                fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let place = path.strip_prefix(&root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            if folder == "studies" {
                study_labels(&text).into_iter().for_each(|label| claim(label, &place));
            } else if place.ends_with(".rs") && !place.starts_with("crates/xtask") {
                doc_labels(&text).into_iter().for_each(|label| claim(label, &place));
            }
        }
    }
    Ok(claims)
}

/// Labels named behind `Paper:` in doc comments, up to the end of the sentence's line (and the next lines of the
/// comment while a line ends in a comma).
fn doc_labels(text: &str) -> Vec<String> {
    let mut labels = Vec::new();
    let mut going_on = false;
    for line in text.lines() {
        let line = line.trim_start();
        let doc = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
        let named =
            doc.and_then(|doc| doc.split_once("Paper:").map(|(_, named)| named).or(going_on.then_some(doc)));
        going_on = named.is_some_and(|named| named.trim_end().ends_with(','));
        labels.extend(named.into_iter().flat_map(labels_in));
    }
    labels
}

fn labels_in(text: &str) -> impl Iterator<Item = String> + '_ {
    let apart = |c: char| !(c.is_ascii_alphanumeric() || c == ':' || c == '-');
    text.split(apart)
        .map(|word| word.trim_end_matches(':'))
        .filter(|word| KINDS.iter().any(|kind| word.starts_with(kind) && word.len() > kind.len()))
        .map(ToOwned::to_owned)
}

/// The labels of a study's `label` and `also` lines; what follows a plus tells two studies of one label apart. A design
/// that was registered asks questions of its own and answers for no label.
fn study_labels(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with("label =") || line.starts_with("also ="));
    let quoted = lines.flat_map(|line| line.split('"').skip(1).step_by(2));
    let of_the_paper = quoted.filter(|label| !label.starts_with("registered:"));
    of_the_paper.map(|label| label.split('+').next().unwrap_or(label).to_owned()).collect()
}

/// The crate and file of a place.
fn short(place: &str) -> String {
    place.trim_start_matches("crates/").replace("/src/", "/").trim_end_matches(".rs").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_up_to_date() {
        verify().unwrap();
    }

    #[test]
    fn labels_are_found_in_doc_comments_only() {
        let text = "/// Paper: `eq:one`, `tab:two` (Full),\n///   sec:three.\n// Paper: eq:no\nlet x = \"Paper: eq:nor\";\n";
        assert_eq!(doc_labels(text), ["eq:one", "tab:two", "sec:three"]);
        let study = "label = \"tab:diag+more\"\nalso = [\"fig:a\", \"app:b\"]\ntitle = \"label\"\n";
        assert_eq!(study_labels(study), ["tab:diag", "fig:a", "app:b"]);
    }
}
