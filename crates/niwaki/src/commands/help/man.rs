//! `niwaki help man`: manual pages.

use crate::{Niwaki, output, terminal};
use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::path::PathBuf;
use std::process::ExitCode;

/// Writes manual pages.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The command to print the page of, e.g. advise; of niwaki itself if absent.
    command: Option<String>,
    /// Write every page into this folder instead, e.g. ~/.local/share/man/man1.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    out: Option<PathBuf>,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut whole = Niwaki::command();
        whole.build();
        let Some(folder) = &self.out else {
            let page = match &self.command {
                None => &whole,
                Some(name) => whole
                    .find_subcommand(name)
                    .with_context(|| format!("there is no command {name}; `niwaki --help` lists them"))?,
            };
            terminal::give(rendered(page)?.trim_end());
            return Ok(ExitCode::SUCCESS);
        };
        let mut pages = Vec::new();
        collect(&whole, &mut pages);
        for page in &pages {
            output::write_whole(&folder.join(format!("{}.1", named(page))), &rendered(page)?)?;
        }
        terminal::say(&format!("wrote {} pages into {}", pages.len(), folder.display()));
        Ok(ExitCode::SUCCESS)
    }
}

/// A command and all that stand below it, without clap's own `help`.
fn collect<'a>(command: &'a Command, pages: &mut Vec<&'a Command>) {
    pages.push(command);
    command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
        .for_each(|below| collect(below, pages));
}

/// A page's name: niwaki-bench-shop.
fn named(command: &Command) -> String {
    command.get_display_name().unwrap_or(command.get_name()).to_owned()
}

fn rendered(command: &Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).title(named(command)).render(&mut page)?;
    Ok(String::from_utf8(page)?)
}
