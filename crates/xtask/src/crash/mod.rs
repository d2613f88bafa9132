//! The crash law: `train` and `reproduce`, killed at every system call that writes, alone and beside a second process of the
//! same; the same command then ends with the bytes of a run that nobody disturbed, and leaves no litter.
//!
//! The program knows nothing of it: `strace` sees its calls and kills. Where there is none, the clock does, at moments spread
//! evenly over a run.
//!
//! | file | what belongs there |
//! |---|---|
//! | `places.rs` | where a command can be killed, and a command that is |
//! | `left.rs` | what a command leaves in its folder, but for the clock's doing |

mod left;
mod places;

use crate::root;
use anyhow::{Context, bail, ensure};
use left::files;
use places::Places;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const USAGE: &str = "usage: cargo xtask crash [--quick] [--binary PATH]";

/// How many places of one kind are enough for every check.
const FEW: usize = 3;

/// A study of two arms and two seeds.
const STUDY: &str = r#"
label = "tab:crash"
title = "t"
question = "q"
seeds = 2
endpoints = ["auc"]
[base]
iterations = 3
[base.task]
horizon = 3
[base.rollout]
lanes = 8
[[arm]]
name = "ppo"
[[arm]]
name = "full"
"#;

/// Commands that are killed; each leaves its results in `out`.
const COMMANDS: [(&str, &str); 2] = [
    (
        "train",
        "train --quiet --set iterations=4 --set task.horizon=3 --set rollout.lanes=8 --set checkpoint.every=2 \
         --set dump.every=2 --out=out",
    ),
    ("reproduce", "reproduce study.toml --out=out"),
];

/// What a second process of `train` may say of a folder that is in use.
const IN_USE: &str = "another process trains in this folder";

/// What came of killing one command.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// What was killed, and beside whom.
    pub(crate) attack: String,
    /// How often.
    pub(crate) kills: u64,
    /// What was then not as it should be.
    pub(crate) failures: Vec<String>,
}

/// Holds the command to the law: a given one, or else that of the working tree.
pub(crate) fn run(mut words: impl Iterator<Item = String>) -> anyhow::Result<String> {
    let (mut quick, mut binary) = (false, None);
    while let Some(word) = words.next() {
        match word.as_str() {
            "--quick" => quick = true,
            "--binary" => {
                let path =
                    PathBuf::from(words.next().with_context(|| format!("--binary needs a path; {USAGE}"))?);
                let whole = path.canonicalize();
                binary = Some(whole.with_context(|| format!("there is no command at {}", path.display()))?);
            }
            _ => bail!("{word} is not a flag; {USAGE}"),
        }
    }
    let binary = binary.map_or_else(|| built("niwaki"), Ok)?;
    let start = Instant::now();
    let outcomes = hold(&binary, quick)?;
    let mut table = String::from("| attack | kills | failures |\n|---|---:|---:|\n");
    for Outcome { attack, kills, failures } in &outcomes {
        let _ = writeln!(table, "| {attack} | {kills} | {} |", failures.len());
    }
    let failures: Vec<&str> = outcomes.iter().flat_map(|one| &one.failures).map(String::as_str).collect();
    ensure!(failures.is_empty(), "the crash law is broken\n\n{table}\n{}", failures.join("\n"));
    let kills: u64 = outcomes.iter().map(|one| one.kills).sum();
    Ok(format!("{table}\ncrash law: {kills} kills, 0 failures, {:.0} s", start.elapsed().as_secs_f64()))
}

/// A binary of the workspace, built as tests are (an overflow is a panic) and by the very words that build them: after them
/// it is there, where any other words would build half of the workspace anew, with other features of shared dependencies.
pub(crate) fn built(package: &str) -> anyhow::Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--locked", "--workspace", "--no-run"])
        .current_dir(root())
        .status()
        .context("cannot run cargo")?;
    ensure!(status.success(), "the workspace does not build");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    Ok(target.join("debug").join(package))
}

/// Holds a command to the law: at every place, or at a few of each kind.
pub(crate) fn hold(binary: &Path, quick: bool) -> anyhow::Result<Vec<Outcome>> {
    // A killed process loses nothing that it has handed to the system, so memory will do, and waits for no disk.
    let memory = Path::new("/dev/shm");
    let ground = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    let home = ground.join(format!("niwaki-crash-{}", std::process::id()));
    fs::create_dir_all(&home)?;
    let outcomes = besiege(binary, quick, &home);
    fs::remove_dir_all(&home)?;
    outcomes
}

fn besiege(binary: &Path, quick: bool, home: &Path) -> anyhow::Result<Vec<Outcome>> {
    fs::write(home.join("study.toml"), STUDY)?;
    let mut outcomes = Vec::new();
    for (door, words) in COMMANDS {
        let victim = Victim { binary, words: words.split_whitespace().collect(), home };
        outcomes.extend(victim.besiege(door, quick)?);
    }
    Ok(outcomes)
}

/// A command that is killed.
pub(crate) struct Victim<'a> {
    binary: &'a Path,
    words: Vec<&'a str>,
    home: &'a Path,
}

impl Victim<'_> {
    /// Kills it alone and beside a second one.
    fn besiege(&self, door: &str, quick: bool) -> anyhow::Result<Vec<Outcome>> {
        self.clear()?;
        let began = Instant::now();
        self.must_succeed("undisturbed")?;
        let (whole, wanted) = (began.elapsed(), self.left()?);
        self.clear()?;
        let places = Places::find(self, whole, if quick { FEW } else { usize::MAX })?;
        let mut outcomes = Vec::new();
        for company in [false, true] {
            let beside = if company { ", beside a second one" } else { "" };
            let attack = format!("{door} killed at {}{beside}", places.kind());
            let mut outcome = Outcome { attack, kills: 0, failures: Vec::new() };
            for place in places.all() {
                self.clear()?;
                let mut doomed = places.kill(self, place)?;
                let friend = company.then(|| self.join()).transpose()?;
                let dead = doomed()?;
                let mut broke = friend.map_or(Ok(None), |friend| beside_broke(door, friend))?;
                if !dead {
                    // This time no thread came so far.
                    outcome.failures.extend(broke.map(|broke| format!("{door} beside {place}: {broke}")));
                    continue;
                }
                outcome.kills += 1;
                broke = broke.or(self.must_succeed("the next start").err().map(|error| error.to_string()));
                if broke.is_none() {
                    broke = difference(&wanted, &self.left()?);
                }
                outcome
                    .failures
                    .extend(broke.map(|broke| format!("{door} killed at {place}{beside}: {broke}")));
            }
            ensure!(outcome.kills >= 3, "{}: only {} kills came about", outcome.attack, outcome.kills);
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    /// Starts a second one once the first has made its folder, so that it does not do all of its work before.
    fn join(&self) -> anyhow::Result<Child> {
        let began = Instant::now();
        while !self.home.join("out").exists() && began.elapsed() < Duration::from_millis(500) {
            std::thread::sleep(Duration::from_millis(1));
        }
        self.start(&mut self.command())
    }

    /// The command itself, behind nothing.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(self.binary);
        command.args(&self.words);
        command
    }

    /// The command behind another that is given it to run.
    pub(crate) fn behind(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(words).arg(self.binary).args(&self.words);
        command
    }

    pub(crate) fn start(&self, command: &mut Command) -> anyhow::Result<Child> {
        let command = command.current_dir(self.home).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(Stdio::piped()).spawn().context("cannot run the command")
    }

    fn must_succeed(&self, when: &str) -> anyhow::Result<()> {
        let output = self.start(&mut self.command())?.wait_with_output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{when} ended with {}: {}", output.status, said.trim());
        Ok(())
    }

    fn clear(&self) -> anyhow::Result<()> {
        let out = self.home.join("out");
        if out.exists() {
            fs::remove_dir_all(&out).with_context(|| format!("cannot clear {}", out.display()))?;
        }
        Ok(())
    }

    fn left(&self) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
        files(&self.home.join("out"))
    }
}

/// What a second process did that it must not: it ends well, or is told that the folder is in use.
fn beside_broke(door: &str, friend: Child) -> anyhow::Result<Option<String>> {
    let output = friend.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    let refused = door == "train" && output.status.code() == Some(2) && said.contains(IN_USE);
    let fine = output.status.success() || refused;
    Ok((!fine).then(|| format!("the second process ended with {}: {said}", output.status)))
}

/// The first thing in which a folder is not as it should be.
fn difference(wanted: &BTreeMap<String, Vec<u8>>, came: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    if let Some(litter) = came.keys().find(|name| !wanted.contains_key(*name)) {
        return Some(format!("{litter} is litter"));
    }
    let other = wanted.iter().find(|(name, bytes)| came.get(*name) != Some(*bytes))?;
    Some(format!("{} is {}", other.0, if came.contains_key(other.0) { "another" } else { "missing" }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn litter_losses_and_changes_are_told_apart() {
        let folder = |pairs: &[(&str, &str)]| -> BTreeMap<String, Vec<u8>> {
            pairs.iter().map(|(name, text)| ((*name).to_owned(), text.as_bytes().to_vec())).collect()
        };
        let wanted = folder(&[("a", "1"), ("b", "2")]);
        assert_eq!(difference(&wanted, &wanted), None);
        let said = |pairs: &[(&str, &str)]| difference(&wanted, &folder(pairs)).unwrap();
        assert_eq!(said(&[("a", "1")]), "b is missing");
        assert_eq!(said(&[("a", "1"), ("b", "3")]), "b is another");
        assert_eq!(said(&[("a", "1"), ("b", "2"), ("b.part", "")]), "b.part is litter");
    }

    #[test]
    fn strangers_are_refused() {
        for wrong in ["--slow", "--quick twice", "--binary"] {
            let words = wrong.split_whitespace().map(ToOwned::to_owned);
            assert!(run(words).unwrap_err().to_string().ends_with(USAGE), "{wrong}");
        }
    }
}
