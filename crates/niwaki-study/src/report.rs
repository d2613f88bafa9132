//! What is asked of a study, what it says on the way, and what comes back: the same for both kinds.

use crate::claim::Outcome;
use crate::verdict::{Count, leads_table, numbers_table, statements_table};
use niwaki_page::{Made, Table};
use niwaki_train::Device;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// What is asked of a study.
pub struct Asked<'a> {
    /// Seeds in place of the study's own number.
    pub seeds: Option<u64>,
    /// The first seed of a study that trains, in place of its own; pilots keep theirs.
    pub first_seed: Option<u64>,
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

    /// How many statements are decided in the paper's favour, against it, and not.
    #[must_use]
    pub fn count(&self) -> Count {
        Count::of(&self.outcomes)
    }
}

/// Where runs are trained.
#[derive(Clone, Debug)]
pub struct Workplace {
    /// Where networks train; tables always train on the processor.
    pub device: Device,
    /// Most members of a cohort on a GPU; see [`Runner::members`](crate::training::Runner).
    pub members: Option<usize>,
}

/// How fast a study was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Speed {
    /// Runs that were trained.
    pub runs: u64,
    /// Their iterations together.
    pub run_iterations: u64,
    /// Seconds from the start to the end.
    pub seconds: f64,
    /// Seconds until the first iteration of a cohort was done.
    pub start_up_seconds: f64,
    /// Where they ran.
    pub device: String,
    /// Threads of the processor.
    pub threads: usize,
}

impl Speed {
    /// Whether a clock can have said so: a file may hold any numbers, and times that follow from them would be nonsense.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        // Thirty thousand years.
        const MOST: f64 = 1e12;
        self.run_iterations > 0
            && self.seconds > 0.0
            && self.seconds < MOST
            && (0.0..=self.seconds).contains(&self.start_up_seconds)
    }

    /// Run-iterations per second, start-up included.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.run_iterations as f64 / self.seconds
    }
}

/// The paper's statements beside ours: numbers, leads and the rest.
#[must_use]
pub fn judged_tables(outcomes: &[Outcome]) -> Vec<Table> {
    conclusion(outcomes).collect()
}

/// The same, one table after the other.
pub(crate) fn conclusion(outcomes: &[Outcome]) -> impl Iterator<Item = Table> {
    let numbers = outcomes
        .iter()
        .any(|outcome| outcome.paper.is_some())
        .then(|| numbers_table("The paper and this run", outcomes));
    let leads = leads_table("The paper's leads and this run's", outcomes);
    let others = statements_table("The paper's other statements", outcomes);
    [numbers, leads, others].into_iter().flatten()
}
