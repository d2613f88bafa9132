//! What a run is judged by.

use super::Endpoint;
use crate::Record;

/// What a run is judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Judged {
    /// Reward of the likeliest trajectory.
    Likeliest,
    /// Expected return η.
    Eta,
    /// Mean reward of the batch, where nothing else was measured.
    Batch,
}

impl Judged {
    /// What it is, for axes and tables.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Likeliest => "reward of the likeliest trajectory",
            Self::Eta => "expected return η",
            Self::Batch => "mean reward of the batch",
        }
    }

    /// Its value in a record; nothing where it was not measured.
    #[must_use]
    pub const fn of(self, record: &Record) -> Option<f64> {
        match self {
            Self::Likeliest => record.greedy,
            Self::Eta => record.eta,
            Self::Batch => Some(record.batch_reward),
        }
    }

    /// What runs are compared by: the mean over the run, and its end.
    #[must_use]
    pub const fn endpoints(self) -> [Endpoint; 2] {
        match self {
            Self::Likeliest => [Endpoint::GreedyAuc, Endpoint::GreedyFinal],
            Self::Eta => [Endpoint::Auc, Endpoint::Final],
            Self::Batch => [Endpoint::BatchAuc, Endpoint::BatchFinal],
        }
    }
}
