//! What can be wrong with a process, a table, a reward or a loss.

use crate::process::Process;

/// A refused process, table, reward or loss.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A vocabulary below two or a horizon of zero.
    #[error(
        "a process needs a vocabulary of at least 2 and a horizon of at least 1, got {vocab} and {horizon}"
    )]
    Empty {
        /// The vocabulary asked for.
        vocab: usize,
        /// The horizon asked for.
        horizon: usize,
    },
    /// A tree that would not fit.
    #[error(
        "vocab {vocab}, horizon {horizon} needs about {} of memory and the limit is {}; {mend}",
        in_words(*needed),
        in_words(u128::from(*limit))
    )]
    TooLarge {
        /// The vocabulary asked for.
        vocab: usize,
        /// The horizon asked for.
        horizon: usize,
        /// About how many bytes the arrays of one pair take.
        needed: u128,
        /// How many are allowed.
        limit: u64,
        /// The largest horizon that fits, in words.
        mend: String,
    },
    /// An array of the wrong length.
    #[error("{what} has {came} values; {process} needs {expected} ({axes})")]
    Length {
        /// The array.
        what: &'static str,
        /// Its length.
        came: usize,
        /// The length the process asks for.
        expected: usize,
        /// The axes of the array in words.
        axes: &'static str,
        /// The process.
        process: Process,
    },
    /// A value that is not a finite number.
    #[error("{what}[{index}] is not a finite number")]
    NotFinite {
        /// The array.
        what: &'static str,
        /// Index of the first such value.
        index: usize,
    },
    /// A row of logits so spread that a probability vanishes: importance ratios need full support.
    #[error(
        "logits row {row} spans {spread:.0}: a probability underflows to 0; keep each row's spread below 700"
    )]
    Support {
        /// The row.
        row: usize,
        /// Largest minus smallest logit.
        spread: f64,
    },
    /// Two things that belong to different processes.
    #[error("{what} belongs to {came}, the other to {expected}; use one process for both")]
    Mismatch {
        /// What does not fit.
        what: &'static str,
        /// Its process.
        came: Process,
        /// The process of the other.
        expected: Process,
    },
    /// A reward that needs a longer horizon.
    #[error("reward '{reward}' needs a horizon of at least 2, got {horizon}")]
    Horizon {
        /// The reward.
        reward: &'static str,
        /// The horizon.
        horizon: usize,
    },
    /// A reward that no rung of the ladder has.
    #[error("no reward is called '{came}'; choose one of {known}")]
    UnknownReward {
        /// What was written.
        came: String,
        /// All names.
        known: String,
    },
    /// A member of the family in a form that the tree recursions do not cover.
    #[error("loss '{loss}': {why} cannot be enumerated exactly here")]
    Unsupported {
        /// The loss.
        loss: String,
        /// The form.
        why: &'static str,
    },
    /// A measurement that overflowed.
    #[error("loss '{loss}': {what} is not a finite number; the two policies are too far apart")]
    Overflow {
        /// The loss.
        loss: String,
        /// The measurement.
        what: &'static str,
    },
    /// A grid with nothing on one of its axes.
    #[error("{what} is empty; name at least one")]
    EmptyAxis {
        /// The axis.
        what: &'static str,
    },
    /// A grid that would count one cell as two.
    #[error("{what} holds the same twice; name each once")]
    RepeatedOnAxis {
        /// The axis.
        what: &'static str,
    },
    /// A drift that is not a positive number.
    #[error("drift {0} is not a positive number")]
    Drift(f64),
    /// A batch that has no spread.
    #[error("a batch of {0}: a batch must have at least 2 trajectories")]
    Batch(u64),
    /// A loss was refused.
    #[error(transparent)]
    Loss(#[from] niwaki_correction::Error),
    /// A statistic was refused.
    #[error(transparent)]
    Statistic(#[from] niwaki_stats::Error),
    /// A state of a graph in which nothing is open before its end.
    #[error("a state at step {level} has no choice; a graph's paths have one length")]
    Closed {
        /// The step.
        level: usize,
    },
    /// Two states that look alike to the policy and are not open to the same choices.
    #[error(
        "two states at step {level} look alike and differ in what is open; what the policy sees must say what is open"
    )]
    Ambiguous {
        /// The step.
        level: usize,
    },
    /// A map from histories to states that is none.
    #[error(
        "histories {first:?} and {second:?} share a state but {what} differ; the map must keep what the future needs"
    )]
    NotAState {
        /// One history.
        first: Vec<usize>,
        /// Another that reaches the same state.
        second: Vec<usize>,
        /// What tells them apart.
        what: &'static str,
    },
}

/// A number of bytes in the largest unit that keeps it above one.
fn in_words(bytes: u128) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value < 1e4 { format!("{value:.0} {}", UNITS[unit]) } else { format!("{value:.1e} {}", UNITS[unit]) }
}
