//! `niwaki help …`: the help of any command, what shells complete, and manual pages.

mod completions;
mod man;

use crate::{Niwaki, terminal};
use clap::{CommandFactory, Subcommand};
use std::process::ExitCode;

/// Help in the terminal, in the shell and as manual pages.
#[derive(clap::Args)]
#[command(
    override_usage = "niwaki help [COMMAND...]\n       niwaki help completions SHELL\n       niwaki help man [COMMAND] [--out DIR]"
)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: Option<What>,
}

#[derive(Subcommand)]
enum What {
    /// Print a completion script for your shell.
    Completions(completions::Args),
    /// Print a manual page, or write all of them into a folder.
    Man(man::Args),
    /// The words of a command, e.g. cluster split.
    #[command(external_subcommand)]
    Command(Vec<String>),
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.what {
            None => Ok(show(&[])),
            Some(What::Completions(args)) => args.run(),
            Some(What::Man(args)) => args.run(),
            Some(What::Command(words)) => Ok(show(&words)),
        }
    }
}

/// Says what `niwaki WORDS --help` says.
fn show(words: &[String]) -> ExitCode {
    let typed = std::iter::once("niwaki").chain(words.iter().map(String::as_str)).chain(["--help"]);
    match Niwaki::command().try_get_matches_from(typed) {
        Ok(_) => ExitCode::SUCCESS,
        Err(said) => terminal::refuse_arguments(&said),
    }
}
