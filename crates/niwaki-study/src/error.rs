//! What can be wrong with a study.

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
    /// A study file that does not read.
    #[error("study {label}: {source}")]
    Unreadable {
        /// The study.
        label: &'static str,
        /// What the reader found.
        #[source]
        source: Box<toml::de::Error>,
    },
    /// A study that reads but makes no sense.
    #[error("study {label}: {mend}")]
    Senseless {
        /// The study.
        label: String,
        /// What is wrong and what to write.
        mend: String,
    },
    /// A grid with nothing in it.
    #[error("{what} is empty; name at least one")]
    Empty {
        /// The axis.
        what: &'static str,
    },
    /// A drift that is not a positive number.
    #[error("drift {0} is not a positive number")]
    Drift(f64),
    /// The oracle refused.
    #[error(transparent)]
    Exact(#[from] niwaki_exact::Error),
    /// A loss was refused.
    #[error(transparent)]
    Loss(#[from] niwaki_correction::Error),
    /// A statistic was refused.
    #[error(transparent)]
    Statistic(#[from] niwaki_stats::Error),
}
