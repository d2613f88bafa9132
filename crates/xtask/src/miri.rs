//! The tests of the unsafe kernels under Miri, which sees reads beyond an end, of what was never written, and through
//! pointers that lost their right to it.
//!
//! Every fast path has a safe twin in these tests. Miri knows no processor but the one it is told of, so the wide paths
//! are run under a flag that says AVX2. It needs a nightly compiler, hence no check runs it; what it cannot run is in
//! `results/promises/2026-11-16`.

use crate::root;
use anyhow::{Context, ensure};
use std::fmt::Write as _;
use std::process::Command;
use std::time::Instant;

/// Tests of one package that Miri runs, by the words that choose them.
struct Part {
    package: &'static str,
    tests: &'static [&'static str],
}

const PARTS: &[Part] = &[
    Part { package: "niwaki-simd", tests: &[] },
    Part { package: "niwaki-correction", tests: &["surrogate::", "diagnostics::"] },
    Part { package: "niwaki-nn", tests: &["cpu::panels", "cpu::block", "cpu::product"] },
];

/// Processors that Miri is told of.
const PROCESSORS: &[(&str, &str)] = &[("base", ""), ("AVX2", "-Ctarget-feature=+avx2,+fma")];

pub(crate) fn run() -> anyhow::Result<String> {
    let mut table = String::from("| package | processor | tests passed | seconds |\n|---|---|---:|---:|\n");
    for (processor, flags) in PROCESSORS {
        for Part { package, tests } in PARTS {
            let start = Instant::now();
            // Its own folder: another compiler and other flags would build all of the usual one anew.
            let output = Command::new("cargo")
                .args(["+nightly", "miri", "test", "--locked", "--lib", "-p", package, "--"])
                .args(*tests)
                .envs([("RUSTFLAGS", *flags), ("MIRIFLAGS", "-Zmiri-disable-isolation")])
                .env("CARGO_TARGET_DIR", root().join("target/miri"))
                .current_dir(root())
                .output()
                .context("cannot run cargo +nightly miri; see https://github.com/rust-lang/miri")?;
            let told = String::from_utf8_lossy(&output.stdout);
            let said = String::from_utf8_lossy(&output.stderr);
            ensure!(output.status.success(), "{package} on {processor}:\n{told}\n{said}");
            let passed = passed(&told);
            ensure!(passed > 0, "{package}: no test was run");
            let _ = writeln!(
                table,
                "| {package} | {processor} | {passed} | {:.0} |",
                start.elapsed().as_secs_f64()
            );
        }
    }
    Ok(table)
}

/// How many tests a report counts as passed.
fn passed(told: &str) -> u64 {
    let counts = told.lines().filter_map(|line| line.strip_prefix("test result: ok. "));
    counts.filter_map(|rest| rest.split_once(" passed")?.0.parse::<u64>().ok()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passed_tests_are_counted() {
        let told =
            "running 2 tests\ntest result: ok. 2 passed; 0 failed\n\ntest result: ok. 30 passed; 1 ignored\n";
        assert_eq!(passed(told), 32);
        assert_eq!(passed("test result: FAILED. 3 passed; 1 failed"), 0);
    }
}
