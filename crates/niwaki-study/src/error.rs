//! What can be wrong with a study.

use std::path::PathBuf;

/// A refused study, label or grid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A label that no study has.
    #[error("no study is called '{came}'; the labels that exist so far are {known}")]
    UnknownLabel {
        /// What was written.
        came: String,
        /// All labels.
        known: String,
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
    /// A report of nothing.
    #[error("study {label}: {} holds no finished run of it", folder.display())]
    NoResults {
        /// The study.
        label: String,
        /// Where results were looked for.
        folder: PathBuf,
    },
}
