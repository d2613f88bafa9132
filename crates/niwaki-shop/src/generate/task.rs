//! The table of distributions.

use super::{literature, paper, taillard};
use crate::{Error, Instance, Result};
use niwaki_stream::Key;

/// How large an instance is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Number of jobs.
    pub jobs: usize,
    /// Number of machines.
    pub machines: usize,
}

/// The largest number of operations that is drawn: generating is meant for shops, not for filling disks.
const MOST_CELLS: usize = 1 << 24;

/// A distribution of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// Flow shop with the middle machine as bottleneck.
    EasyFlow,
    /// Flow shop with every odd machine as bottleneck.
    HardFlow,
    /// Job shop with one shared bottleneck.
    JobShop,
    /// Flexible job shop.
    Flexible,
    /// Flexible job shop with resting windows.
    Windows,
    /// Two-machine flow shop with lags.
    Lags,
    /// Two orders, one of them lag-critical.
    TwoOrders,
    /// Two orders, both with due dates.
    TwoOrdersBoth,
    /// Single machine with due dates.
    Single,
    /// L2D's job shops.
    L2d,
    /// Those, of several sizes.
    L2dMixed,
    /// Song's flexible job shops.
    Sd1,
    /// Song's, on condition that all instances have equally many operations.
    Sd1Even,
    /// Those, with resting windows.
    Sd1Windows,
    /// DANIEL's flexible job shops.
    Sd2,
    /// Flexible job shops of several kinds and sizes.
    Mixed,
    /// Taillard's distribution of flow shops.
    TaillardFlow,
    /// Taillard's distribution of job shops.
    TaillardJob,
}

impl Task {
    /// All distributions, in the order of the variants: name, default jobs and machines, and what it draws.
    const TABLE: [(Self, &'static str, usize, usize, &'static str); 18] = [
        (Self::EasyFlow, "easy-flow", 12, 3, "flow shop, the middle machine a bottleneck"),
        (Self::HardFlow, "hard-flow", 20, 7, "flow shop, machines 1, 3, 5, … bottlenecks"),
        (Self::JobShop, "job-shop", 8, 5, "job shop with one shared bottleneck"),
        (Self::Flexible, "flexible", 10, 5, "flexible job shop, as many operations per job as machines"),
        (Self::Windows, "windows", 10, 5, "flexible job shop with resting windows"),
        (Self::Lags, "lags", 8, 2, "two-machine flow shop with lags and due dates"),
        (Self::TwoOrders, "two-orders", 2, 2, "two orders, one lag-critical with a tight due date"),
        (Self::TwoOrdersBoth, "two-orders-both", 2, 2, "two orders, both with due dates"),
        (Self::Single, "single", 8, 1, "single machine with due dates that can be met"),
        (Self::L2d, "l2d", 6, 6, "L2D's job shops: times 1 to 99"),
        (Self::L2dMixed, "l2d-mixed", 20, 15, "L2D job shops of mixed size, from half the given size"),
        (Self::Sd1, "sd1", 10, 5, "Song's flexible job shops"),
        (Self::Sd1Even, "sd1-even", 10, 5, "Song's, all with equally many operations (50 where 10 × 5)"),
        (Self::Sd1Windows, "sd1-windows", 10, 5, "those, with resting windows"),
        (Self::Sd2, "sd2", 10, 5, "DANIEL's flexible job shops"),
        (
            Self::Mixed,
            "mixed",
            20,
            10,
            "flexible and ordinary job shops of several kinds, from half of that size on",
        ),
        (Self::TaillardFlow, "taillard-flow", 20, 5, "Taillard's flow shops, from his generator"),
        (Self::TaillardJob, "taillard-job", 15, 15, "Taillard's job shops, from his generator"),
    ];

    fn row(self) -> (Self, &'static str, usize, usize, &'static str) {
        Self::TABLE[self as usize]
    }

    /// All distributions.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::TABLE.into_iter().map(|row| row.0)
    }

    /// The distribution's name, as users type it.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// What it draws, in a few words.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.row().4
    }

    /// The size that the paper or the literature uses first.
    #[must_use]
    pub fn size(self) -> Size {
        let (_, _, jobs, machines, _) = self.row();
        Size { jobs, machines }
    }

    /// Whether its number of machines is fixed.
    #[must_use]
    pub const fn fixed_machines(self) -> bool {
        matches!(self, Self::Lags | Self::TwoOrders | Self::TwoOrdersBoth | Self::Single)
    }

    /// The distribution of a name.
    ///
    /// # Errors
    /// If no distribution has it.
    pub fn named(name: &str) -> Result<Self> {
        Self::all().find(|task| task.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::all().map(Self::name).collect();
            Error::Choice(format!("task: expected one of {}, got {name}", known.join(", ")))
        })
    }
}

/// Instance number `index` of the pool of a seed.
///
/// # Errors
/// If the size has no job or machine, is too large, or is not the distribution's own where that is fixed.
pub fn generate(task: Task, size: Size, seed: u64, index: u64) -> Result<Instance> {
    let own = task.size();
    let two_orders = matches!(task, Task::TwoOrders | Task::TwoOrdersBoth);
    if task.fixed_machines() && size.machines != own.machines || two_orders && size.jobs != own.jobs {
        return Err(Error::Choice(format!(
            "task {}: expected {}{} machines, got {} jobs and {} machines",
            task.name(),
            if two_orders { "2 jobs and " } else { "" },
            own.machines,
            size.jobs,
            size.machines
        )));
    }
    let cells = size.jobs.saturating_mul(size.machines).saturating_mul(size.machines);
    if size.jobs == 0 || size.machines == 0 || cells > MOST_CELLS {
        return Err(Error::Choice(format!(
            "task {}: expected at least 1 job and 1 machine and at most {MOST_CELLS} times in all, got {} jobs and {} \
             machines",
            task.name(),
            size.jobs,
            size.machines
        )));
    }
    let mut stream = Key::new(seed, "instances").lane(index).open();
    let stream = &mut stream;
    // Taillard's seeds lie between 1 and 2³¹ − 2.
    let mut taillard_seed = || 1 + stream.below((1 << 31) - 2) as u32;
    Ok(match task {
        Task::TaillardFlow => {
            Instance::Flow(taillard::taillard_flow_shop(size.jobs, size.machines, taillard_seed())?)
        }
        Task::TaillardJob => {
            let (times, machines) = (taillard_seed(), taillard_seed());
            Instance::Job(taillard::taillard_job_shop(size.jobs, size.machines, times, machines)?)
        }
        Task::EasyFlow => {
            Instance::Flow(paper::flow_shop(stream, size, |machine| machine == size.machines / 2)?)
        }
        Task::HardFlow => Instance::Flow(paper::flow_shop(stream, size, |machine| machine % 2 == 1)?),
        Task::JobShop => Instance::Job(paper::job_shop(stream, size)?),
        Task::Flexible => Instance::Flexible(paper::flexible_shop(stream, size)?),
        Task::Windows => {
            let shop = paper::flexible_shop(stream, size)?;
            Instance::Flexible(paper::resting_windows(stream, shop)?)
        }
        Task::Lags => Instance::Lags(paper::lags(stream, size)?),
        Task::TwoOrders => Instance::Lags(paper::two_orders(stream, false)?),
        Task::TwoOrdersBoth => Instance::Lags(paper::two_orders(stream, true)?),
        Task::Single => Instance::Single(paper::single_machine(stream, size)?),
        Task::L2d => Instance::Job(literature::l2d(stream, size)?),
        Task::L2dMixed => Instance::Job(literature::l2d_mixed(stream, size)?),
        Task::Sd1 => Instance::Flexible(literature::sd1(stream, size)?),
        Task::Sd1Even => Instance::Flexible(literature::sd1_even(stream, size)?),
        Task::Sd1Windows => {
            let shop = literature::sd1_even(stream, size)?;
            Instance::Flexible(paper::resting_windows(stream, shop)?)
        }
        Task::Sd2 => Instance::Flexible(literature::sd2(stream, size)?),
        Task::Mixed => Instance::Flexible(literature::mixed(stream, size)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_has_its_own_row() {
        for task in Task::all() {
            assert_eq!(Task::named(task.name()).unwrap(), task);
            assert!(generate(task, task.size(), 1, 0).is_ok(), "{}", task.name());
        }
        let line = generate(Task::Single, Size { jobs: 3, machines: 2 }, 1, 0).unwrap_err().to_string();
        assert_eq!(line, "task single: expected 1 machines, got 3 jobs and 2 machines");
    }
}
