//! The command: one file per door under [`commands`], each a thin layer over a library crate.
//!
//! This crate owns the terminal: it parses flags, shows progress, prints tables and turns every mistake of a
//! user into one line and exit code 2. It must not know a formula.

mod commands;
mod device;
mod memory;
mod npy;
mod output;
mod places;
mod terminal;

use clap::Parser;
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// Keeps what one measurement gives back for the next.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// Free everywhere, exact on trees: an exact oracle for policy losses, and the paper it comes from, re-run.
#[derive(Parser)]
#[command(name = "niwaki", version, about, propagate_version = true, max_term_width = 110)]
struct Niwaki {
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    terminal::run(command)
}

fn command() -> ExitCode {
    let niwaki = match Niwaki::try_parse() {
        Ok(niwaki) => niwaki,
        Err(error) => return terminal::refuse_arguments(&error),
    };
    match niwaki.command.run() {
        Ok(code) => code,
        Err(error) => terminal::refuse(&error),
    }
}
