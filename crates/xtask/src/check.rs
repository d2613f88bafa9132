//! Everything that guards `main`, cheapest first.

use crate::{
    book, crash, dependencies, layers, pages, paper, pictures, promises, prose, readme, reference, results,
    root, versions, words,
};
use anyhow::ensure;
use std::process::Command;
use std::time::Instant;

/// Every feature that a crate of the workspace has.
const FEATURES: [&str; 2] = ["--features", "buckets,cuda"];

const DENY: [&str; 3] = ["--", "-D", "warnings"];

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
    step("words", &words::run)?;
    step("prose", &prose::run)?;
    step("versions", &versions::run)?;
    step("layers", &layers::run)?;
    step("dependencies", &dependencies::run)?;
    step("promises", &promises::run)?;
    step("paper map", &paper::verify)?;
    step("reference", &reference::verify)?;
    step("results", &results::verify)?;
    step("book", &book::run)?;
    // Once with every feature, all targets; then what stands in for a feature that is off.
    step("clippy", &|| {
        let every = ["clippy", "--workspace", "--all-targets", "--locked"];
        cargo(&[&every, &FEATURES[..], &DENY[..]].concat(), &[])
    })?;
    step("clippy without features", &|| {
        cargo(&[&["clippy", "-p", "niwaki", "--bins", "--locked"], &DENY[..]].concat(), &[])
    })?;
    step("packages", &package)?;
    step("tests", &|| cargo(&["test", "--workspace", "--locked"], &[]))?;
    step("crash law", &|| crash::run(std::iter::once("--quick".to_owned())))?;
    // What a feature adds; everything else has just been run without it.
    step("tests of cuda", &|| feature_tests("niwaki-nn", "cuda"))?;
    step("tests of buckets", &|| feature_tests("niwaki-store", "buckets"))?;
    step("docs", &|| {
        let every = ["doc", "--workspace", "--no-deps", "--locked"];
        cargo(&[&every, &FEATURES[..]].concat(), &[("RUSTDOCFLAGS", "-D warnings")])
    })?;
    step("readme", &readme::run)?;
    step("users", &users)?;
    step("pictures", &|| pictures::run(std::iter::once("--verify".to_owned())))?;
    step("pages", &|| pages::run(std::iter::empty()))?;
    // The README's commands have compiled what the wheel carries.
    step("python", &python)?;
    Ok(format!("all checks passed in {:.0} s", start.elapsed().as_secs_f64()))
}

/// What can be published, each after what it needs.
const PUBLISHED: [&str; 10] = [
    "niwaki-correction",
    "niwaki-stats",
    "niwaki-words",
    "niwaki-simd",
    "niwaki-stream",
    "niwaki-files",
    "niwaki-page",
    "niwaki-exact",
    "niwaki-shop",
    "niwaki-advise",
];

/// Packs the crates that can be published, and builds what was packed, each against the others' packages.
pub(crate) fn package() -> anyhow::Result<String> {
    let names = PUBLISHED.iter().flat_map(|name| ["-p", name]);
    let arguments = ["package", "--allow-dirty", "--quiet"].into_iter().chain(names);
    cargo(&arguments.collect::<Vec<_>>(), &[])
}

/// The unit tests of a crate's module that is named like the feature it stands behind.
fn feature_tests(package: &str, feature: &str) -> anyhow::Result<String> {
    cargo(&["test", "-p", package, "--features", feature, "--locked", "--lib", &format!("{feature}::")], &[])
}

/// Strangers who type the README and the tutorials in a clean clone, with the command that the README's step has built.
fn users() -> anyhow::Result<String> {
    let status = Command::new(".ci/users").arg("target/release/niwaki").current_dir(root()).status()?;
    ensure!(status.success(), ".ci/users failed");
    Ok("users: all of them arrived".to_owned())
}

/// Builds the wheel in a fresh virtual environment and runs Python's tests there.
pub(crate) fn python() -> anyhow::Result<String> {
    let status = Command::new("python/test.sh").current_dir(root()).status()?;
    ensure!(status.success(), "python/test.sh failed");
    Ok("python: the wheel installs and its tests pass".to_owned())
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
