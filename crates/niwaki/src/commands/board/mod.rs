//! `niwaki board`: all runs below some folders on one page, written once or served while they train.

mod serve;

use crate::output::{self, Out, Piece};
use crate::{places, terminal};
use anyhow::bail;
use niwaki_page::Made;
use niwaki_study::board::board_page;
use niwaki_study::runs::{Comparison, Row};
use niwaki_train::reading::Reader;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folders of runs, sweeps, studies or plans, or folders above them. Runs that differ in their seed alone are one group;
    /// arms are compared at the same settings, seed by seed. Unfinished and failed runs are marked and counted.
    #[arg(required = true, value_name = "PLACE")]
    places: Vec<PathBuf>,
    /// The arm that others are compared with at first: a loss, or a key with its value, e.g. ppo or optimiser.rate=0.1
    /// [default: ppo where losses differ and one is ppo, else the first run's].
    #[arg(long, value_name = "SETTING")]
    against: Option<String>,
    /// Write the page once: a file that ends in .html, or a folder.
    #[arg(long, value_name = "PLACE", required_unless_present = "watch")]
    out: Option<PathBuf>,
    /// Serve the page on this machine alone, and follow the runs: what they write is shown within five seconds.
    #[arg(long, conflicts_with = "out")]
    watch: bool,
    /// The port to serve on; a free one if 0.
    #[arg(long, value_name = "PORT", default_value_t = 0, requires = "watch")]
    port: u16,
}

/// What is looked at, again and again.
struct Look {
    reader: Reader<Row>,
    places: Vec<PathBuf>,
    against: Option<String>,
}

impl Look {
    /// The runs as they stand; nothing where they stand as they did before, unless they are wanted anyway.
    fn compare(&mut self, anyway: bool) -> anyhow::Result<Option<Comparison>> {
        let found = self.reader.below(&self.places)?;
        if !found.changed && !anyway {
            return Ok(None);
        }
        Ok(Some(Comparison::of(found, self.against.as_deref())?))
    }
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        for place in &self.places {
            let mend =
                "bring its finished runs into one with niwaki reproduce STUDY --report-only --from ADDRESS";
            places::folder_only("PLACE", place, mend)?;
            if !place.is_dir() {
                let what = if place.exists() { "is not a folder" } else { "is not there" };
                bail!("{} {what}; name a folder with runs in it or below it", place.display());
            }
        }
        let place = self.out.as_deref().map(|path| Out::new(path, &["html"])).transpose()?;
        let mut look = Look { reader: Reader::new(Row::of), places: self.places, against: self.against };
        let found = look.reader.below(&look.places)?;
        let comparison = Comparison::of(found, look.against.as_deref())?;
        let Some(place) = place else {
            return serve::serve(look, comparison, self.port);
        };
        if comparison.groups.is_empty() && comparison.damaged.is_empty() {
            bail!("there is no run in or below {}", listed(&look.places));
        }
        let page = page(&comparison, output::made(), false)?;
        comparison
            .left_out()
            .into_iter()
            .chain(comparison.diverged_words())
            .for_each(|line| terminal::warn(&line));
        output::name_written(&place.write(&[Piece::new("index.html", page)])?, false);
        Ok(ExitCode::SUCCESS)
    }
}

fn page(comparison: &Comparison, made: Made, served: bool) -> anyhow::Result<String> {
    Ok(board_page(comparison, made, served)?.to_html())
}

fn listed(places: &[PathBuf]) -> String {
    places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
}
