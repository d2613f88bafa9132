//! The one check command, the paper map and the layering test.
//!
//! `cargo xtask check` runs everything that guards `main`, cheapest first; the other verbs run one part of it.

mod book;
mod check;
mod crash;
mod dependencies;
mod events;
mod files;
mod layers;
mod miri;
mod pages;
mod paper;
mod pictures;
mod promises;
mod prose;
mod readme;
mod reference;
mod results;
mod same;
mod siege;
mod versions;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask VERB
  book     build the book of docs/ in target/book, and follow every link
  check    everything that guards main, cheapest first
  crash    kill train and reproduce at every system call that writes, and run them again: crash [--quick] [--binary PATH]
  dependencies  licences, versions, sources and notes of what is built beside our own code
  layers   dependencies between crates point down
  miri     the tests of the unsafe kernels under Miri (needs a nightly compiler)
  package  pack the crates that can be published
  pages    open every kind of page and the book in headless Chromium and play a reader: pages [--binary PATH] [--shots DIR] [--book]
  paper    write PAPER.md from the `Paper:` lines and the study files
  pictures draw the pictures of the README and the tutorials with their commands: pictures [--binary PATH] [--verify]
  prose    no sentence of the README and the tutorials has more than 35 words
  python   build the wheel in a fresh virtual environment and run Python's tests
  promises every test that docs/promises.md names is there
  readme   run every command of the README and compare what it prints with the output shown there
  reference write docs/reference.md, every key of specs and studies, from the code
  results  write the index of results/README.md from the questions' pages
  siege    attack readers, flags, specs and runs, and count what breaks (--quick: what every check affords)
  same     run this and an older commit's command on the examples and compare every byte: same COMMIT
  versions one version for all crates, the wheel, the changelog and the README
  words    phrases that STYLE.md holds out are nowhere in the tree";

#[expect(clippy::print_stderr, clippy::print_stdout, reason = "a task runner talks to the terminal")]
fn main() -> ExitCode {
    let verb = std::env::args().nth(1).unwrap_or_default();
    let done = match verb.as_str() {
        "book" => book::run(),
        "check" => check::run(),
        "crash" => crash::run(std::env::args().skip(2)),
        "dependencies" => dependencies::run(),
        "layers" => layers::run(),
        "miri" => miri::run(),
        "package" => check::package(),
        "pages" => pages::run(std::env::args().skip(2)),
        "paper" => paper::write(),
        "pictures" => pictures::run(std::env::args().skip(2)),
        "prose" => prose::run(),
        "python" => check::python(),
        "promises" => promises::run(),
        "readme" => readme::run(),
        "reference" => reference::write(),
        "results" => results::write(),
        "siege" => siege::run(std::env::args().skip(2)),
        "same" => same::run(std::env::args().skip(2)),
        "versions" => versions::run(),
        "words" => words::run(),
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
