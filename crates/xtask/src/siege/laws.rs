//! Every reader against changed inputs, the crash law, and the laws that draw their cases, under a seed of the day.

use super::attempt::Arena;
use super::{Row, Scale};
use crate::crash::built;
use crate::{crash, root};
use anyhow::Context;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Every reader against changed inputs, in a process of their own.
pub(super) fn readers(_: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    let inputs = if scale == Scale::Quick { "60000" } else { "2000000" };
    // The quick part is the same on every machine; the whole one begins elsewhere each time.
    let from = if scale == Scale::Quick { 0 } else { seed()? };
    let output = Command::new(built("niwaki-fuzz")?)
        .args(["--inputs", inputs, "--from", &from.to_string()])
        .output()
        .context("cannot run niwaki-fuzz")?;
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut row = Row::new("changed inputs to readers");
    let cells = |line: &str| -> Vec<String> { line.split('|').map(|cell| cell.trim().to_owned()).collect() };
    let all = table.lines().map(cells).find(|cells| cells.get(1).is_some_and(|name| name == "all"));
    row.count = all.and_then(|cells| cells.get(3)?.parse().ok()).unwrap_or(0);
    if !output.status.success() || row.count == 0 {
        row.failures.extend(String::from_utf8_lossy(&output.stderr).lines().map(ToOwned::to_owned));
        row.failures.push(format!("the campaign against the readers ended with {}", output.status));
    }
    Ok(vec![row])
}

/// The crash law: kills at system calls that write, alone and beside a second process.
pub(super) fn crash(arena: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    let outcomes = crash::hold(&arena.binary, scale == Scale::Quick)?;
    let row = |one: crash::Outcome| Row { attack: one.attack, count: one.kills, failures: one.failures };
    Ok(outcomes.into_iter().map(row).collect())
}

/// The laws that draw cases, under a seed that no check has seen. With every check they draw the same ones.
pub(super) fn laws(_: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    if scale == Scale::Quick {
        return Ok(Vec::new());
    }
    let seed = seed()?;
    let mut row = Row::new(&format!("laws with cases of seed {seed}"));
    let output = Command::new(env!("CARGO"))
        .args([
            "test",
            "--locked",
            "--workspace",
            "--exclude",
            "xtask",
            "--exclude",
            "niwaki-fuzz",
            "--no-fail-fast",
        ])
        .env("PROPTEST_RNG_SEED", seed.to_string())
        .current_dir(root())
        .output()
        .context("cannot run cargo test")?;
    let told = String::from_utf8_lossy(&output.stdout);
    for line in told.lines().filter(|line| line.starts_with("test ")) {
        match line.rsplit_once(" ... ").map(|(_, result)| result) {
            Some("ok") => row.add(None),
            Some("FAILED") => row.add(Some(line.to_owned())),
            _ => {}
        }
    }
    if row.count == 0 || !output.status.success() && row.failures.is_empty() {
        row.failures.push(format!("the tests ended with {}", output.status));
    }
    Ok(vec![row])
}

/// A number that is another one each second.
fn seed() -> anyhow::Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH).context("the clock stands before 1970")?.as_secs())
}
