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

#[cfg(test)]
mod tests {
    use super::*;

    /// Most words in a sentence, as `cargo xtask prose` has it for pages.
    const MOST: usize = 35;

    #[test]
    fn no_sentence_of_the_help_is_too_long_to_read() {
        let whole = Niwaki::command();
        let mut pages = Vec::new();
        collect(&whole, &mut pages);
        assert!(pages.len() > 15);
        for page in pages {
            let arguments =
                page.get_arguments().flat_map(|argument| [argument.get_help(), argument.get_long_help()]);
            let texts = [page.get_about(), page.get_long_about()].into_iter().chain(arguments).flatten();
            for text in texts.map(ToString::to_string) {
                for sentence in text.split("\n\n").flat_map(|part| part.split(". ")) {
                    let words =
                        sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric));
                    let count = words.count();
                    assert!(count <= MOST, "{}: {count} words: {sentence}", named(page));
                }
            }
        }
    }
}
