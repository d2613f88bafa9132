//! `niwaki tour`: the doors one after the other, on examples that the program carries.
//!
//! Every stop runs the command that it shows, so that what the page says can be typed again.

mod stops;

use super::Command;
use crate::{Niwaki, output, terminal};
use anyhow::bail;
use clap::Parser;
use niwaki_page::{Page, Section};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Walks through the doors.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder for the examples, a page for each stop, and one page for everything.
    #[arg(long, value_name = "DIR", default_value = "runs/tour")]
    out: PathBuf,
}

/// One stop: what was run, what there is to see, and a part of the tour's page.
struct Stop {
    heading: &'static str,
    /// The command, as one would type it.
    command: String,
    /// A few lines for the terminal.
    said: String,
    section: Section,
}

impl Args {
    /// Runs all stops and writes the page.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        output::make_folder(&self.out)?;
        stops::unpack(&self.out)?;
        let mut page = Page::new("Niwaki in a minute")
            .lead(
                "Four things this program does, each on a small example that came with it. Under each heading is the command \
                 that made what you see; run it again with files of your own.",
            );
        for stop in [stops::advise, stops::oracle, stops::solve, stops::train] {
            let stop = stop(&self.out)?;
            terminal::say(&format!("== {}\n$ {}\n{}\n", stop.heading, stop.command, stop.said.trim_end()));
            page = page.section(stop.section);
        }
        let path = self.out.join("index.html");
        output::write_whole(&path, &page.made(output::made()).to_html())?;
        terminal::say("Everything with its figures, on one page:");
        output::name_written(&[path], false);
        Ok(ExitCode::SUCCESS)
    }
}

/// A command line: words, of which those in capitals stand for files of the tour.
struct Line(Vec<String>);

impl Line {
    /// Reads `niwaki solve HOME/shop.csv`, where `HOME` is the tour's folder, whatever that is called.
    fn new(text: &str, home: &Path) -> Self {
        let home = home.display().to_string();
        Self(text.split(' ').map(|word| word.replace("HOME", &home)).collect())
    }

    /// As the program reads it.
    fn parsed(&self) -> anyhow::Result<Command> {
        match Niwaki::try_parse_from(&self.0) {
            Ok(niwaki) => Ok(niwaki.command),
            Err(error) => bail!("the tour's own command is refused: {error}"),
        }
    }

    /// As one would type it.
    fn typed(&self) -> String {
        self.0.iter().map(|word| output::shown(word)).collect::<Vec<_>>().join(" ")
    }
}
