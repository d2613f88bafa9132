//! What can be wrong with a task.

use std::path::PathBuf;

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
    /// Optima that are not those of the instances.
    #[error("task {task}: {came} pairs of bounds for {instances} instances; expected one each")]
    Bounds {
        /// The task.
        task: &'static str,
        /// Instances.
        instances: usize,
        /// Pairs that came.
        came: usize,
    },
    /// Shops of several shapes.
    #[error(
        "task {task}: instance {instance} has {} jobs, {} machines and {} operations, the first has {}, {} and {}",
        came.0, came.1, came.2, expected.0, expected.1, expected.2
    )]
    Shape {
        /// The task.
        task: &'static str,
        /// The first instance that differs.
        instance: usize,
        /// Jobs, machines and operations of the first one.
        expected: (usize, usize, usize),
        /// Those of this one.
        came: (usize, usize, usize),
    },
    /// Shops of several kinds.
    #[error("instance {instance} is a {came}, the first is a {expected}")]
    Kind {
        /// The first instance that differs.
        instance: usize,
        /// The kind of the first one.
        expected: &'static str,
        /// That of this one.
        came: &'static str,
    },
    /// A kind of shop that has another view.
    #[error("a {kind} is shown as a graph, not as a set of candidates")]
    NoCandidates {
        /// The kind.
        kind: &'static str,
    },
    /// An order in which no graph is built.
    #[error("graphs are built in the orders 'non-delay', 'free' and 'active' only")]
    GraphOrder,
    /// Choices that are not one per lane.
    #[error("expected {expected} choices, one per lane, got {came}")]
    Choices {
        /// Lanes.
        expected: usize,
        /// Choices that came.
        came: usize,
    },
    /// A choice that may not be taken.
    #[error("lane {lane}: choice {choice} is closed")]
    Closed {
        /// The lane.
        lane: usize,
        /// The choice.
        choice: i32,
    },
    /// An instance of another kind than the task's.
    #[error("this is a {kind}, but the task is '{shop}'")]
    OtherKind {
        /// Its kind.
        kind: &'static str,
        /// The task.
        shop: &'static str,
    },
    /// Orders that are not two.
    #[error("two orders: expected 2 jobs, got {came}")]
    TwoOrders {
        /// How many came.
        came: usize,
    },
    /// A user's file or folder that cannot be played.
    #[error("{}: {reason}", path.display())]
    Instances {
        /// The file or folder.
        path: PathBuf,
        /// What came and what is possible.
        reason: String,
    },
    /// A shop that cannot be drawn, or a choice that a shop refuses.
    #[error(transparent)]
    Shop(#[from] niwaki_shop::Error),
    /// The process is too large to enumerate, or the reward does not fit it.
    #[error(transparent)]
    Exact(#[from] niwaki_exact::Error),
}
