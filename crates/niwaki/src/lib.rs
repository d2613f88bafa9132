//! The command: one file per door under `commands`, each a thin layer over a library crate.
//!
//! This crate owns the terminal: it parses flags, shows progress, prints tables and turns every mistake of a
//! user into one line and exit code 2. It must not know a formula.
//!
//! It is a library so that a program of yours can be the whole command with [`Parts`] of its own: [`main_with`].

mod commands;
mod device;
mod memory;
mod npy;
mod output;
mod parts;
mod places;
mod python;
mod terminal;
mod watch;

pub use parts::Parts;

use clap::Parser;
use std::process::ExitCode;

/// The version and the commit it was built from.
pub(crate) const VERSION: &str = env!("NIWAKI_VERSION");

/// Find out whether stale data is holding back a reinforcement-learning run, measure policy losses exactly, train with a
/// corrected loss, and schedule job shops.
#[derive(Parser)]
#[command(name = "niwaki", version = VERSION, propagate_version = true, max_term_width = 110, after_help = START, disable_help_subcommand = true)]
pub(crate) struct Niwaki {
    #[command(subcommand)]
    command: commands::Command,
    #[command(flatten)]
    talk: terminal::Talk,
}

/// Where to begin.
const START: &str = "\
Start here:
  niwaki tour                        everything in a minute, on built-in examples
  niwaki advise dump.jsonl           is my run stale?
  niwaki oracle                      which loss?
  niwaki solve shop.csv --out plan   schedule a shop
  niwaki reproduce --list            re-run the paper

`niwaki COMMAND --help` explains each.

Exit codes:
  0    done
  1    done, but a --deadline was missed, a --fail-on condition was met, or a schedule is wrong
  2    refused, with one line that says what to change
  70   a fault of niwaki's own, or no memory left; the line says which
  74   standard output did not take all of the result
  130  interrupted; the same command goes on where that is possible";

/// The command, with tasks and losses of your own beside the built-in ones, by their names in every spec and flag.
#[must_use]
pub fn main_with(parts: Parts) -> ExitCode {
    terminal::run(|| match parts.register() {
        Ok(()) => command(),
        Err(error) => terminal::refuse(&error),
    })
}

fn command() -> ExitCode {
    let niwaki = match Niwaki::try_parse() {
        Ok(niwaki) => niwaki,
        Err(error) => return terminal::refuse_arguments(&error),
    };
    niwaki.talk.settle();
    match niwaki.command.run() {
        Ok(code) => code,
        Err(error) => terminal::refuse(&error),
    }
}
