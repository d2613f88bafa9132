//! The one check command, the paper map and the layering test.
//!
//! `cargo xtask check` runs everything that guards `main`, cheapest first; the other verbs run one part of it.

mod check;
mod crash;
mod dependencies;
mod files;
mod layers;
mod miri;
mod paper;
mod promises;
mod readme;
mod same;
mod siege;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask VERB
  check    everything that guards main, cheapest first
  crash    kill train and reproduce at every system call that writes, and run them again: crash [--quick] [--binary PATH]
  dependencies  licences, versions, sources and notes of what is built beside our own code
  layers   dependencies between crates point down
  miri     the tests of the unsafe kernels under Miri (needs a nightly compiler)
  paper    write PAPER.md from the `Paper:` lines and the study files
  python   build the wheel in a fresh virtual environment and run Python's tests
  promises every test that docs/promises.md names is there
  readme   run every command of the README's `sh` blocks
  siege    attack readers, flags, specs and runs, and count what breaks (--quick: what every check affords)
  same     run this and an older commit's command on the examples and compare every byte: same COMMIT";

#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a task runner talks to the terminal")]
fn main() -> ExitCode {
    let verb = std::env::args().nth(1).unwrap_or_default();
    let done = match verb.as_str() {
        "check" => check::run(),
        "crash" => crash::run(std::env::args().skip(2)),
        "dependencies" => dependencies::run(),
        "layers" => layers::run(),
        "miri" => miri::run(),
        "paper" => paper::write(),
        "python" => check::python(),
        "promises" => promises::run(),
        "readme" => readme::run(),
        "siege" => siege::run(std::env::args().skip(2)),
        "same" => same::run(std::env::args().skip(2)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(said) => {
            println!("{said}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The repository's root.
fn root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).map_or(here.clone(), PathBuf::from)
}
