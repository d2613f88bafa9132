//! The door: a study re-run, and what came of it beside what the paper printed.
//!
//! Knows the two kinds of studies and nothing of their insides; writes no report, which is the caller's.

use crate::claim::{Judgement, Outcome};
use crate::training::{Speed, Workplace};
use crate::verdict::{leads_table, numbers_table, statements_table};
use crate::{Contents, Error, diagnostics, training};
use niwaki_page::{Made, Table};
use std::path::{Path, PathBuf};

/// What is asked of a study.
pub struct Asked<'a> {
    /// Seeds in place of the study's own number.
    pub seeds: Option<u64>,
    /// The folder of all studies; each has one of its own in it, and goes on from what is there.
    pub out: &'a Path,
    /// Where missing runs are trained; without it only what the folder holds is reported.
    pub workplace: Option<Workplace>,
    /// How the page says that it was made.
    pub made: Made,
}

/// What a study is doing.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// It begins to measure policy pairs.
    Measures {
        /// The study.
        label: &'a str,
        /// How many pairs.
        pairs: u64,
    },
    /// A strength that the study left to the rule is measured.
    Settled {
        /// The study.
        label: &'a str,
        /// Where, and what came out.
        words: &'a str,
    },
    /// It begins to train.
    Trains {
        /// The study.
        label: &'a str,
        /// Iterations of all runs that are missing.
        run_iterations: u64,
    },
    /// So many of them are done.
    Done(u64),
    /// What was begun has ended, well or not.
    Ends,
    /// Every run is there.
    Trained {
        /// The study.
        label: &'a str,
        /// How fast it went; nothing where every run was there already.
        speed: Option<&'a Speed>,
    },
}

/// A study's report.
#[derive(Debug)]
pub struct Report {
    /// The study.
    pub label: String,
    /// Its folder.
    pub folder: PathBuf,
    /// What was measured, and the paper's statements beside it.
    pub tables: Vec<Table>,
    /// Those statements one by one.
    pub outcomes: Vec<Outcome>,
    /// Names and texts of the report's files, to be written into the folder.
    pub files: Vec<(&'static str, String)>,
}

impl Report {
    /// The page among the files.
    pub const PAGE: &str = "index.html";

    /// How many statements agree with the paper's.
    #[must_use]
    pub fn agreeing(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.judgement == Judgement::Agrees).count()
    }
}

/// Runs a study, or goes on with it, and reports it; where it has a pilot, that first.
///
/// # Errors
/// Where the study is refused, the disk or the device fails, or there is nothing to report.
pub fn reproduce(
    study: Contents,
    asked: &Asked<'_>,
    watch: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Report, Error> {
    match study {
        Contents::Diagnostics(study) => diagnostics::report(&study, asked, watch),
        Contents::Training(study) => training::report(*study, asked, watch),
    }
}

/// The paper's statements beside ours: numbers, leads and the rest.
pub(crate) fn conclusion(outcomes: &[Outcome]) -> impl Iterator<Item = Table> {
    let numbers = outcomes
        .iter()
        .any(|outcome| outcome.paper.is_some())
        .then(|| numbers_table("The paper beside this run", outcomes));
    let leads = leads_table("The paper's leads beside this run", outcomes);
    let others = statements_table("The paper's other statements", outcomes);
    [numbers, leads, others].into_iter().flatten()
}
