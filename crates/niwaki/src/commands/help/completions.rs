//! `niwaki help completions`: what a shell needs to complete this command.

use crate::{Niwaki, terminal};
use clap::CommandFactory;
use clap_complete::Shell;
use std::process::ExitCode;

/// Prints a completion script.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// The shell.
    #[arg(value_enum)]
    shell: Shell,
}

const HELP: &str = "\
bash: niwaki help completions bash > ~/.local/share/bash-completion/completions/niwaki
zsh:  niwaki help completions zsh > a file _niwaki in a folder of your $fpath
fish: niwaki help completions fish > ~/.config/fish/completions/niwaki.fish";

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Niwaki::command(), "niwaki", &mut script);
        terminal::give(String::from_utf8(script)?.trim_end());
        Ok(ExitCode::SUCCESS)
    }
}
