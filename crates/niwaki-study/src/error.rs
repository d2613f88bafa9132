//! What can be wrong with a study.

use std::path::PathBuf;

/// A refused study, label or grid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A label that no study has.
    #[error("no study is called '{came}'; {mend}")]
    UnknownLabel {
        /// What was written.
        came: String,
        /// The label that was probably meant, or all of them.
        mend: String,
    },
    /// A study that reads but makes no sense.
    #[error("study {label}: {mend}")]
    Senseless {
        /// The study.
        label: String,
        /// What is wrong and what to write.
        mend: String,
    },
    /// The oracle refused.
    #[error(transparent)]
    Exact(#[from] niwaki_exact::Error),
    /// A loss was refused.
    #[error(transparent)]
    Loss(#[from] niwaki_correction::Error),
    /// A statistic was refused.
    #[error(transparent)]
    Statistic(#[from] niwaki_stats::Error),
    /// A task was refused.
    #[error(transparent)]
    Task(#[from] niwaki_tasks::Error),
    /// A study file, a run's settings or the training itself was refused.
    #[error(transparent)]
    Train(#[from] niwaki_train::Error),
    /// A file of the results that cannot be read or written.
    #[error("{}: {source}; finished runs are kept{}", path.display(), niwaki_train::remedy(source))]
    Disk {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A file of the results that does not read.
    #[error("{}: {reason}; remove it and run the same command again", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A line of an `endpoints.csv` that is not one of the study.
    #[error("{}, line {line}: {reason}", path.display())]
    Lines {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// A report of nothing.
    #[error("study {label}: {} holds no finished run of it", folder.display())]
    NoResults {
        /// The study.
        label: String,
        /// Where results were looked for.
        folder: PathBuf,
    },
    /// A folder without a finished run.
    #[error("{}: {reason}", folder.display())]
    NoRun {
        /// The folder.
        folder: PathBuf,
        /// What is wrong and what to do.
        reason: String,
    },
    /// Runs that cannot stand side by side.
    #[error("these runs cannot be compared: {reason}")]
    Incomparable {
        /// Why.
        reason: String,
    },
    /// A store of results that refuses.
    #[error(transparent)]
    Store(#[from] niwaki_store::Error),
    /// A study that fine-tunes a model which nobody named.
    #[error("study {label}: it fine-tunes a pretrained model")]
    NoModel {
        /// The study.
        label: String,
    },
    /// A plan of work that cannot be used.
    #[error("{name}: {mend}")]
    Plan {
        /// The plan's file.
        name: String,
        /// What is wrong and what to do.
        mend: String,
    },
    /// A unit that a plan does not have.
    #[error("unit {number}: the plan has the units 0 to {}", units.saturating_sub(1))]
    NoUnit {
        /// The number.
        number: usize,
        /// How many there are.
        units: usize,
    },
    /// A unit that comes after one that is not done.
    #[error("{unit} waits for units {} to {}: {missing} is not finished", after.start, after.end - 1)]
    Waits {
        /// The unit.
        unit: String,
        /// What it comes after.
        after: std::ops::Range<usize>,
        /// What is missing.
        missing: String,
    },
    /// A unit that this program cannot work on.
    #[error("{unit}: {mend}")]
    Unit {
        /// The unit.
        unit: String,
        /// What is wrong and what to do.
        mend: String,
    },
    /// A run that was finished twice, with other bytes.
    #[error(
        "run {run}: another process finished it with another {file}; that one stands, and this one is left in {}",
        left.display()
    )]
    Differs {
        /// The run.
        run: String,
        /// The first file that differs.
        file: &'static str,
        /// Where this one is left.
        left: PathBuf,
    },
    /// A run's place in which another process trains.
    #[error("{}: another process trains in this folder; wait for it", folder.display())]
    Busy {
        /// The folder.
        folder: PathBuf,
    },
}
