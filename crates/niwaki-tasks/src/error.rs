//! What can be wrong with a task's sizes.

/// A task that cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Too few tokens or steps for the task to have an answer.
    #[error("task {task} needs {axis} of at least {least}, got {came}")]
    TooSmall {
        /// The task.
        task: &'static str,
        /// Which size.
        axis: &'static str,
        /// The least that works.
        least: usize,
        /// What was asked for.
        came: usize,
    },
    /// A busy time that would close every token.
    #[error("busy = {busy} closes all {vocab} tokens; give at most {}", vocab - 1)]
    AllBusy {
        /// Steps for which a chosen token stays closed.
        busy: usize,
        /// Tokens.
        vocab: usize,
    },
    /// A deadline that cannot be met, or not counted in whole numbers.
    #[error("deadline {came} is not a factor from 1 to 100 with at most four decimals")]
    Deadline {
        /// What was asked for.
        came: f64,
    },
    /// A shop that cannot be drawn, or a choice that a shop refuses.
    #[error(transparent)]
    Shop(#[from] niwaki_shop::Error),
    /// The process is too large to enumerate, or the reward does not fit it.
    #[error(transparent)]
    Exact(#[from] niwaki_exact::Error),
}
