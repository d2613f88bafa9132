//! Everything that guards `main`, cheapest first.

use crate::{layers, paper, readme, root};
use anyhow::ensure;
use std::process::Command;
use std::time::Instant;

#[expect(clippy::print_stdout, reason = "the log of a long run needs its place")]
pub(crate) fn run() -> anyhow::Result<String> {
    let start = Instant::now();
    let step = |name: &str, work: &dyn Fn() -> anyhow::Result<String>| -> anyhow::Result<()> {
        println!("== {name}");
        let said = work()?;
        println!("   {said} ({:.0} s so far)", start.elapsed().as_secs_f64());
        Ok(())
    };
    step("format", &|| cargo(&["fmt", "--all", "--check"], &[]))?;
    step("layers", &layers::run)?;
    step("paper map", &paper::verify)?;
    step("clippy", &|| {
        cargo(&["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"], &[])
    })?;
    step("tests", &|| cargo(&["test", "--workspace", "--locked"], &[]))?;
    step("docs", &|| {
        cargo(&["doc", "--workspace", "--no-deps", "--locked"], &[("RUSTDOCFLAGS", "-D warnings")])
    })?;
    step("readme", &readme::run)?;
    Ok(format!("all checks passed in {:.0} s", start.elapsed().as_secs_f64()))
}

fn cargo(arguments: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<String> {
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .envs(variables.iter().copied())
        .current_dir(root())
        .status()?;
    ensure!(status.success(), "cargo {} failed", arguments.join(" "));
    Ok(format!("cargo {} passed", arguments[0]))
}
