//! Any of the problems, where it does not matter which.

use super::{FlexibleShop, FlowShop, JobShop, SingleMachine, TwoMachineLags};

/// Any of the problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instance {
    /// Permutation flow shop.
    Flow(FlowShop),
    /// Job shop.
    Job(JobShop),
    /// Flexible job shop, with or without resting windows.
    Flexible(FlexibleShop),
    /// Two-machine flow shop with time lags.
    Lags(TwoMachineLags),
    /// Single machine with due dates.
    Single(SingleMachine),
}

impl Instance {
    /// The problem's name in words.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Flow(_) => "flow shop",
            Self::Job(_) => "job shop",
            Self::Flexible(_) => "flexible job shop",
            Self::Lags(_) => "two-machine flow shop with lags",
            Self::Single(_) => "single machine",
        }
    }

    /// Number of jobs.
    #[must_use]
    pub fn jobs(&self) -> usize {
        match self {
            Self::Flow(shop) => shop.jobs(),
            Self::Job(shop) => shop.jobs(),
            Self::Flexible(shop) => shop.jobs(),
            Self::Lags(shop) => shop.jobs(),
            Self::Single(shop) => shop.jobs(),
        }
    }

    /// Number of machines.
    #[must_use]
    pub fn machines(&self) -> usize {
        match self {
            Self::Flow(shop) => shop.machines(),
            Self::Job(shop) => shop.machines(),
            Self::Flexible(shop) => shop.machines(),
            Self::Lags(_) => 2,
            Self::Single(_) => 1,
        }
    }

    /// Number of operations of all jobs together.
    #[must_use]
    pub fn operations(&self) -> usize {
        match self {
            Self::Flow(shop) => shop.jobs() * shop.machines(),
            Self::Job(shop) => shop.operations(),
            Self::Flexible(shop) => shop.operations(),
            Self::Lags(shop) => 2 * shop.jobs(),
            Self::Single(shop) => shop.jobs(),
        }
    }
}
