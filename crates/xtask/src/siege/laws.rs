//! The laws that draw their cases, under a seed of the day.

use super::attempt::Arena;
use super::{Row, Scale};
use crate::root;
use anyhow::Context;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// The laws that draw cases, under a seed that no check has seen. With every check they draw the same ones.
pub(super) fn laws(_: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    if scale == Scale::Quick {
        return Ok(Vec::new());
    }
    let seed = seed()?;
    let mut row = Row::new(&format!("laws with cases of seed {seed}"));
    let output = Command::new(env!("CARGO"))
        .args(["test", "--locked", "--workspace", "--exclude", "xtask", "--no-fail-fast"])
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
