//! The law of a refactor: what an older commit's command writes and prints, today's writes and prints too.
//!
//! `cargo xtask same COMMIT` builds both commands, gives both the older commit's examples, and compares every byte. What
//! the clock decides is left out ([`volatile`]); a format that changes on purpose is declared with its reason and the last
//! commit that has the old one ([`declared`]). Anything else that differs fails, and so does a declaration without need.

mod binary;
mod compare;
mod declared;
mod items;
mod volatile;

use crate::root;
use anyhow::{Context, bail, ensure};
use compare::Finding;
use declared::{DECLARED, Declared};
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

/// How to call it.
const USAGE: &str =
    "usage: cargo xtask same COMMIT [--release] [--old-binary PATH] [--new-binary PATH] [--only WORD]";

/// What was asked for.
#[derive(Debug, Default)]
struct Asked {
    commit: String,
    release: bool,
    old_binary: Option<PathBuf>,
    new_binary: Option<PathBuf>,
    /// Only items with this word in their name.
    only: Option<String>,
}

impl Asked {
    fn read(mut words: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut asked = Self::default();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value; {USAGE}"));
            match word.as_str() {
                "--release" => asked.release = true,
                "--old-binary" => asked.old_binary = Some(value()?.into()),
                "--new-binary" => asked.new_binary = Some(value()?.into()),
                "--only" => asked.only = Some(value()?),
                flag if flag.starts_with('-') => bail!("{flag} is not a flag; {USAGE}"),
                commit if asked.commit.is_empty() => commit.clone_into(&mut asked.commit),
                extra => bail!("{extra} is one word too many; {USAGE}"),
            }
        }
        ensure!(!asked.commit.is_empty(), "which commit? {USAGE}");
        Ok(asked)
    }
}

#[expect(clippy::print_stdout, reason = "the log of a long run needs its place")]
pub(crate) fn run(words: impl Iterator<Item = String>) -> anyhow::Result<String> {
    let asked = Asked::read(words)?;
    let old = binary::older(&asked.commit, asked.release, asked.old_binary.as_deref())?;
    let today = binary::today(asked.release, asked.new_binary.as_deref())?;
    let sides = [(old.folder.join("old"), &old.binary), (old.folder.join("new"), &today)];
    for (side, _) in &sides {
        if side.exists() {
            fs::remove_dir_all(side).with_context(|| format!("cannot clear {}", side.display()))?;
        }
        binary::copy(&old.folder.join("examples"), &side.join("examples"))?;
        fs::write(side.join(items::STUDY_FILE), items::STUDY)?;
    }
    let mut report = String::from("| what ran | files | result | first difference |\n|---|---|---|---|\n");
    let declared = in_force(&asked.commit)?;
    let (mut broken, mut met) = (0, vec![false; declared.len()]);
    for item in items::items(&old.folder.join("examples/train"))? {
        if asked.only.as_ref().is_some_and(|word| !item.name.contains(word.as_str())) {
            continue;
        }
        println!("running {}", item.name);
        for (side, binary) in &sides {
            item.run(binary, side)?;
        }
        let finding = compare::folders(&sides[0].0, &sides[1].0, &item.folder(), &declared)?;
        finding.declared.iter().for_each(|&place| met[place] = true);
        broken += usize::from(finding.first.is_some());
        row(&mut report, &item.name, &finding);
    }
    report += "\nNot compared, because the clock decides it:\n";
    for what in volatile::VOLATILE {
        let _ = writeln!(report, "- {}: {}", what.file, what.reason);
    }
    let mut idle = 0;
    if !declared.is_empty() {
        report += "\nDeclared differences:\n";
    }
    for (what, met) in declared.iter().zip(met) {
        idle += usize::from(!met);
        let _ = writeln!(report, "- {} ({})", what, if met { "met" } else { "did not occur" });
    }
    let expired = DECLARED.len() - declared.len();
    if expired > 0 {
        let _ = writeln!(report, "\n{expired} declared differences have expired against {}", asked.commit);
    }
    ensure!(broken == 0, "{broken} items differ from {}\n\n{report}", asked.commit);
    ensure!(
        idle == 0 || asked.only.is_some(),
        "{idle} declared differences did not occur; take them out\n\n{report}"
    );
    Ok(format!("{report}\nthe same as {}", asked.commit))
}

/// The declarations that a comparison with a commit may use: those whose last commit of the old format is it or a later one.
fn in_force(commit: &str) -> anyhow::Result<Vec<Declared>> {
    let mut kept = Vec::new();
    for one in DECLARED {
        if binary::is_ancestor(commit, one.last).with_context(|| format!("declared.rs, {}", one.path))? {
            kept.push(*one);
        }
    }
    Ok(kept)
}

fn row(report: &mut String, name: &str, finding: &Finding) {
    let result = match (&finding.first, finding.declared.is_empty()) {
        (Some(_), _) => "**different**",
        (None, true) => "same",
        (None, false) => "same but for what is declared",
    };
    let first = finding.first.as_deref().unwrap_or("").replace('|', "\\|");
    let _ = writeln!(report, "| {name} | {} | {result} | {first} |", finding.files);
}

/// The folder that all of this works in.
fn workshop() -> PathBuf {
    root().join("target/same")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> anyhow::Result<Asked> {
        Asked::read(line.split_whitespace().map(ToOwned::to_owned))
    }

    #[test]
    fn flags_are_read_and_strangers_refused() {
        let asked = read("abc --old-binary x --only train").unwrap();
        assert_eq!((asked.commit.as_str(), asked.release), ("abc", false));
        assert_eq!((asked.old_binary, asked.only), (Some("x".into()), Some("train".to_owned())));
        for wrong in ["", "--release", "abc def", "abc --fast", "abc --only"] {
            assert!(read(wrong).unwrap_err().to_string().contains("usage"), "{wrong}");
        }
    }
}
