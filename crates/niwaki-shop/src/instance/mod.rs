//! The five problems. Each is checked once, when it is made; everything downstream may rely on it.
//!
//! What is checked: shapes agree, machines exist, each operation can run somewhere, lags do not contradict each
//! other, and the sum of all times and lags stays within [`HORIZON`], so that no schedule without needless
//! waiting can overflow. This room must not know how instances are read, drawn or solved.

mod flexible;
mod flow;
mod job;
mod lags;
mod single;

pub use flexible::{Alternative, FlexibleShop, Window};
pub use flow::FlowShop;
pub use job::{JobShop, Operation};
pub use lags::{LaggedJob, TwoMachineLags};
pub use single::SingleMachine;

use crate::{Error, Result};

/// The longest a whole instance may take when everything runs one after the other.
pub const HORIZON: u32 = i32::MAX as u32;

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

/// Refuses a sum of times beyond [`HORIZON`].
fn within_horizon(times: impl Iterator<Item = u32>) -> Result<()> {
    let total: u64 = times.map(u64::from).sum();
    if total > u64::from(HORIZON) {
        return Err(Error::Instance(format!(
            "times add up to {total}: expected at most {HORIZON}; use a coarser unit of time"
        )));
    }
    Ok(())
}
