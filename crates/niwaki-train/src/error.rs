//! What can go wrong between a file and a trained policy.

use std::path::{Path, PathBuf};

/// A run that cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file that is not understood.
    #[error("{name}{}: {reason}", line.map_or_else(String::new, |line| format!(", line {line}")))]
    Unreadable {
        /// The file's name.
        name: String,
        /// The line, from 1.
        line: Option<usize>,
        /// What is wrong.
        reason: String,
    },
    /// A setting beside the file that is not understood.
    #[error("{setting}: {reason}")]
    Setting {
        /// The setting.
        setting: String,
        /// What is wrong.
        reason: String,
    },
    /// A value that cannot run.
    #[error("{key}: {reason}")]
    Senseless {
        /// The key, with dots.
        key: &'static str,
        /// What came and what is possible.
        reason: String,
    },
    /// A task of a user's own that cannot be taken.
    #[error("task '{name}': {reason}")]
    Part {
        /// The name that was given to it.
        name: String,
        /// Why.
        reason: String,
    },
    /// A spec that cannot be written.
    #[error("the resolved spec cannot be written: {reason}")]
    Unwritable {
        /// Why.
        reason: String,
    },
    /// Members that cannot train as one cohort.
    #[error("the members of a cohort must share all but seed, loss and learning rate")]
    Mixed,
    /// An iteration that was left because the run was asked to stop.
    #[error("the run was asked to stop within an iteration")]
    Left {
        /// Whether parameters have moved since the iteration began.
        moved: bool,
    },
    /// A batch that the correction refused, e.g. because a log-probability is not finite.
    #[error("iteration {iteration}, member {member}: {source}; a lower learning rate may help")]
    Diverged {
        /// The iteration, from 0.
        iteration: usize,
        /// The member of the cohort.
        member: usize,
        /// What the correction said.
        source: niwaki_correction::Error,
    },
    /// A strength that cannot be measured.
    #[error(
        "tempered:rule: none of {probes} probes has a trajectory with an advantage, so no drift can be measured; give a \
         strength, or a task that pays some trajectories and not others"
    )]
    NoSignal {
        /// Probes that were made.
        probes: usize,
    },
    /// Weights that no policy can go on from.
    #[error(
        "iteration {iteration}, member {member}: tensor {tensor} is no longer finite; a lower learning rate may help"
    )]
    NotFinite {
        /// Iterations done.
        iteration: usize,
        /// The member of the cohort.
        member: usize,
        /// The first such tensor.
        tensor: String,
    },
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] niwaki_nn::Error),
    /// A policy cannot play on.
    #[error(transparent)]
    Policy(#[from] niwaki_policies::Error),
    /// A pretrained model that cannot be read, or that a record does not suit.
    #[error(transparent)]
    Model(#[from] niwaki_lm::Error),
    /// The task cannot be made or enumerated.
    #[error(transparent)]
    Task(#[from] niwaki_tasks::Error),
    /// An instance that a trained policy cannot schedule.
    #[error("the policy schedules {expected}, the instance has {came}")]
    Misfit {
        /// What it was trained for.
        expected: String,
        /// What came.
        came: String,
    },
    /// Training that diverged; its folder says so too.
    #[error("{}: training diverged in iteration {iteration} of seed {seed} ({reason}); {}",
            folder.display(), kept(*after))]
    Lost {
        /// The run's folder.
        folder: PathBuf,
        /// The member's seed.
        seed: u64,
        /// The iteration, from 1.
        iteration: usize,
        /// The iteration whose checkpoint was kept; 0 for none.
        after: usize,
        /// What is not finite.
        reason: String,
    },
    /// Sequences that a trained policy cannot score.
    #[error("the policy scores {expected}; got {came}")]
    Unscored {
        /// What it was trained for.
        expected: String,
        /// What came.
        came: String,
    },
    /// A policy's schedule that is not what its construction says.
    #[error("the checker refused the schedule that was found: {reason}")]
    Schedule {
        /// What the checker found.
        reason: String,
    },
    /// A file of a run that cannot be read or written.
    #[error("{}: {source}{}", path.display(), saved(source))]
    Disk {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A folder that holds another run.
    #[error("{}: {reason}", path.display())]
    OtherRun {
        /// The file that says so.
        path: PathBuf,
        /// What differs, and the mend.
        reason: String,
    },
    /// A file that is not as its run wrote it.
    #[error("{}: {reason}; put it back as it was, or remove the folder {} to train this run again",
            path.display(), path.parent().unwrap_or(Path::new(".")).display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// How a run that diverged goes on.
fn kept(after: usize) -> String {
    let remedy = "in the same folder with a lower optimiser.rate";
    match after {
        0 => format!("nothing was saved; start again {remedy}"),
        after => format!("the checkpoint of iteration {after} is kept; go on from it {remedy}"),
    }
}

/// What is left after a fault of the disk, and what helps.
fn saved(source: &std::io::Error) -> String {
    match source.kind() {
        std::io::ErrorKind::NotFound => {
            "; it or its folder was removed; run the same command again".to_owned()
        }
        _ => format!("; what was saved is kept{}", remedy(source)),
    }
}

/// What helps against a fault of the disk, to follow on a message: nothing but room helps where that was the cause.
#[must_use]
pub fn remedy(source: &std::io::Error) -> &'static str {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match source.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => "; free the place and run the same command again",
        _ => "",
    }
}
