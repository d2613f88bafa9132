//! The campaign against the command: attacks, how many of each, and what broke. Nothing may.
//!
//! | file | what belongs there |
//! |---|---|
//! | `attempt.rs` | one run of the command under caps, and what it may end like |
//! | `words.rs` | flags, keys of specs and studies, and files that lie |
//! | `places.rs` | names, things that are no files, environments, outputs that take nothing |
//! | `faults.rs` | errors of the system call by call, files that may not grow, signals, company |
//! | `flips.rs` | one bit of one file, of a folder or of a user's own file |
//! | `folders.rs` | files cut off, doubled, exchanged, taken away; a full disk |
//! | `laws.rs` | changed inputs to readers, and the laws under seeds of the day |

mod attempt;
mod faults;
mod flips;
mod folders;
mod laws;
mod places;
mod words;

use crate::crash::built;
use anyhow::{Context, bail, ensure};
use attempt::Arena;
use std::path::PathBuf;
use std::time::Instant;

/// How much of the campaign is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scale {
    /// What every check can afford.
    Quick,
    /// All of it.
    Whole,
}

/// One attack: how often, and what fell.
#[derive(Debug, Default)]
struct Row {
    attack: String,
    count: u64,
    failures: Vec<String>,
}

impl Row {
    fn new(attack: &str) -> Self {
        Self { attack: attack.to_owned(), ..Self::default() }
    }

    /// Counts one attack and what it broke, if anything.
    fn add(&mut self, broke: Option<String>) {
        self.count += 1;
        self.failures.extend(broke);
    }
}

/// A part of the campaign.
type Part = fn(&Arena, Scale) -> anyhow::Result<Vec<Row>>;

/// All of them, by the name under which one is run alone.
const PARTS: &[(&str, Part)] = &[
    ("readers", laws::readers),
    ("words", words::attack),
    ("places", places::attack),
    ("flips", flips::attack),
    ("folders", folders::attack),
    ("faults", faults::attack),
    ("crash", laws::crash),
    ("laws", laws::laws),
];

const USAGE: &str = "usage: cargo xtask siege [--quick] [--command FILE] [PART …] with PART one of";

#[expect(clippy::print_stdout, reason = "the table is the result")]
pub(crate) fn run(mut words: impl Iterator<Item = String>) -> anyhow::Result<String> {
    let (mut scale, mut parts, mut command) = (Scale::Whole, Vec::new(), None);
    while let Some(word) = words.next() {
        match PARTS.iter().find(|(name, _)| *name == word) {
            _ if word == "--quick" => scale = Scale::Quick,
            _ if word == "--command" => {
                let file = words.next().context("--command: name the command that is attacked")?;
                let whole = PathBuf::from(&file).canonicalize();
                command = Some(whole.with_context(|| format!("there is no command at {file}"))?);
            }
            Some(part) => parts.push(part),
            None => {
                let names: Vec<&str> = PARTS.iter().map(|(name, _)| *name).collect();
                bail!("{USAGE} {}", names.join(", "));
            }
        }
    }
    if parts.is_empty() {
        parts.extend(PARTS);
    }
    let start = Instant::now();
    let command = match command {
        Some(built) => built,
        None => built("niwaki")?,
    };
    let arena = Arena::new(command)?;
    let mut rows = Vec::new();
    println!("\n| attack | count | failures |\n|---|---:|---:|");
    for (_, part) in parts {
        for row in part(&arena, scale)? {
            println!("| {} | {} | {} |", row.attack, row.count, row.failures.len());
            row.failures.iter().take(40).for_each(|failure| println!("  {failure}"));
            rows.push(row);
        }
    }
    let failures: usize = rows.iter().map(|row| row.failures.len()).sum();
    ensure!(failures == 0, "{failures} attacks broke something");
    let count: u64 = rows.iter().map(|row| row.count).sum();
    Ok(format!("siege: {count} attacks, 0 failures, {:.0} s", start.elapsed().as_secs_f64()))
}
