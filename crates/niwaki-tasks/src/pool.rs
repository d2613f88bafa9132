//! Which instances a policy plays, and how they become a construction whose optima are known.
//!
//! A [`ShopPool`] is small and says all; built, it is what a set policy plays. A new kind of shop is one variant of
//! [`Shop`] and one arm of [`construct`].

use crate::graph::flexible;
use crate::two_orders::with_slack;
use crate::{Construction, Error, FlowTask, InstanceFolder, JobTask, LagTask, SingleMachineTask};
use niwaki_shop::construct::{JobOrder, Order};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::optimum::solve;
use niwaki_shop::{Bounds, Instance, JobShop, Limits};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A kind of shop, and how its instances are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shop {
    /// Permutation flow shops in which machines 1, 3, 5, … are bottlenecks, so that three machines have theirs in the
    /// middle.
    Flow,
    /// Job shops with one shared bottleneck.
    Job,
    /// Flexible job shops.
    Flexible {
        /// Their distribution, one of [`Shop::FLEXIBLE`].
        draw: Task,
    },
    /// Two-machine flow shops with lags and due dates.
    Lags,
    /// One machine with due dates that can be met.
    Single,
    /// Two orders, one of them lag-critical.
    TwoOrders {
        /// Whether the other order has a due date too.
        both: bool,
        /// How long after its earliest end each due date is; drawn where absent.
        slack: Option<u32>,
    },
}

impl Shop {
    /// All kinds, with their defaults.
    pub const ALL: [Self; 6] = [
        Self::Flow,
        Self::Job,
        Self::Flexible { draw: Task::Sd1Even },
        Self::Lags,
        Self::Single,
        Self::TwoOrders { both: false, slack: None },
    ];

    /// The distributions of flexible job shops; an ordinary one has one machine for each operation.
    pub const FLEXIBLE: [Task; 9] = [
        Task::Sd1Even,
        Task::Sd1,
        Task::Sd1Windows,
        Task::Sd2,
        Task::Mixed,
        Task::Flexible,
        Task::Windows,
        Task::L2d,
        Task::L2dMixed,
    ];

    /// The kind's name, as users type it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Flow => "flow-shop",
            Self::Job => "job-shop",
            Self::Flexible { .. } => "flexible-shop",
            Self::Lags => "lags",
            Self::Single => "single-machine",
            Self::TwoOrders { .. } => "two-orders",
        }
    }

    /// The size that the paper uses.
    #[must_use]
    pub fn size(self) -> Size {
        self.task().size()
    }

    /// Whether its jobs have due dates.
    #[must_use]
    pub const fn has_due_dates(self) -> bool {
        matches!(self, Self::Lags | Self::Single | Self::TwoOrders { .. })
    }

    /// The instance as one of this kind. A flow shop's file is also that of a job shop in which all routes are the same, and
    /// both are flexible shops in which every operation has one machine.
    ///
    /// # Errors
    /// If it is of another kind.
    pub fn accept(self, instance: Instance) -> Result<Instance, Error> {
        match (self, instance) {
            (Self::Job, Instance::Flow(flow)) => Ok(Instance::Job(JobShop::from_flow_shop(&flow)?)),
            (Self::Flexible { .. }, any) => Ok(Instance::Flexible(flexible(any)?)),
            (Self::Flow, Instance::Job(shop)) => {
                // The layout of pairs leaves open which of the two it holds; the task says it.
                let kind = Error::OtherKind { kind: "job shop", shop: self.name() };
                shop.as_flow_shop().map(Instance::Flow).ok_or(kind)
            }
            (Self::Flow, kept @ Instance::Flow(_))
            | (Self::Job, kept @ Instance::Job(_))
            | (Self::Single, kept @ Instance::Single(_))
            | (Self::Lags | Self::TwoOrders { .. }, kept @ Instance::Lags(_)) => Ok(kept),
            (_, other) => Err(Error::OtherKind { kind: other.kind(), shop: self.name() }),
        }
    }

    const fn task(self) -> Task {
        match self {
            Self::Flow => Task::HardFlow,
            Self::Job => Task::JobShop,
            Self::Flexible { draw } => draw,
            Self::Lags => Task::Lags,
            Self::Single => Task::Single,
            Self::TwoOrders { both: false, .. } => Task::TwoOrders,
            Self::TwoOrders { both: true, .. } => Task::TwoOrdersBoth,
        }
    }

    fn draw(self, size: Size, seed: u64, index: u64) -> Result<Instance, Error> {
        let drawn = generate(self.task(), size, seed, index)?;
        match (self, drawn) {
            (Self::TwoOrders { slack: Some(slack), .. }, Instance::Lags(shop)) => {
                Ok(Instance::Lags(with_slack(&shop, slack)?))
            }
            (_, drawn) => Ok(drawn),
        }
    }
}

/// Instances to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Generator {
    /// Of which kind.
    pub shop: Shop,
    /// Jobs and machines of each.
    pub size: Size,
    /// Instances to learn from.
    pub training: usize,
    /// Instances to be judged on.
    pub validation: usize,
    /// Seed of the instances.
    pub seed: u64,
}

/// Where instances come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// From a distribution.
    Generated(Generator),
    /// From a user's files.
    Folder(Arc<InstanceFolder>),
}

/// Instances, and how long the optimum of each may be sought.
#[derive(Clone, Debug)]
pub struct ShopPool {
    /// Where they come from.
    pub source: Source,
    /// The longest search for one optimum.
    pub patience: Duration,
    /// How they are built and shown.
    pub reading: Reading,
}

/// How instances are built and shown where a kind leaves that open; a kind that knows no such choice passes over it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// Which operation of a job shop is decided next.
    pub order: JobOrder,
    /// Whether lags and due dates are kept from the policy.
    pub hidden: bool,
}

impl Default for Reading {
    fn default() -> Self {
        Self { order: JobOrder::NonDelay(Order::Canonical), hidden: false }
    }
}

impl Reading {
    /// The orders of a job shop by their names.
    pub const ORDERS: [(&str, JobOrder); 4] = [
        ("machine", JobOrder::Machine),
        ("non-delay", JobOrder::NonDelay(Order::Canonical)),
        ("active", JobOrder::Active),
        ("list", JobOrder::List),
    ];
}

/// Told how many optima of how many are found or given up; called from several threads.
pub type OptimaProgress<'a> = &'a (dyn Fn(usize, usize) + Sync);

impl ShopPool {
    /// Refuses what cannot be drawn.
    ///
    /// # Errors
    /// The first size that is too small or not the kind's.
    pub fn check(&self) -> Result<(), Error> {
        // A folder's instances were checked when they were read.
        let Source::Generated(drawn) = &self.source else { return Ok(()) };
        let sizes = [
            ("machines", drawn.size.machines, 1),
            ("jobs", drawn.size.jobs, 2),
            ("training", drawn.training, 1),
            ("validation", drawn.validation, 1),
        ];
        for (axis, came, least) in sizes {
            if came < least {
                return Err(Error::TooSmall { task: drawn.shop.name(), axis, least, came });
            }
        }
        drawn.shop.draw(drawn.size, drawn.seed, 0)?;
        Ok(())
    }

    /// The instances, and how many of them are to learn from.
    ///
    /// # Errors
    /// As [`ShopPool::check`].
    pub fn instances(&self) -> Result<(Vec<Instance>, usize), Error> {
        self.check()?;
        match &self.source {
            Source::Generated(drawn) => {
                let indices = 0..(drawn.training + drawn.validation) as u64;
                let draw = |index| drawn.shop.draw(drawn.size, drawn.seed, index);
                Ok((indices.map(draw).collect::<Result<_, _>>()?, drawn.training))
            }
            Source::Folder(given) => Ok((given.instances().to_vec(), given.training())),
        }
    }

    /// Seeks the optima of the instances on all cores.
    #[must_use]
    pub fn seek(&self, instances: &[Instance], progress: OptimaProgress<'_>) -> Vec<Bounds> {
        let seed = match &self.source {
            Source::Generated(drawn) => drawn.seed,
            Source::Folder(_) => 0,
        };
        let (limits, done) = (Limits::new(self.patience, seed), AtomicUsize::new(0));
        let seek = |instance: &Instance| {
            let bounds = solve(instance, limits, &mut |_| {}).bounds();
            progress(done.fetch_add(1, Ordering::Relaxed) + 1, instances.len());
            bounds
        };
        instances.par_iter().map(seek).collect()
    }

    /// The instances with their optima, as what a policy plays.
    ///
    /// # Errors
    /// As [`ShopPool::check`].
    pub fn build(&self, progress: OptimaProgress<'_>) -> Result<Arc<dyn Construction>, Error> {
        let (instances, training) = self.instances()?;
        let bounds = self.seek(&instances, progress);
        construct(instances, bounds, training, self.reading)
    }
}

/// Instances of one kind and shape as what a policy plays; the first `training` are to learn from.
///
/// # Errors
/// If kinds or shapes differ, nobody plays that kind yet, or there is not one pair of bounds for each instance.
pub fn construct(
    instances: Vec<Instance>,
    bounds: Vec<Bounds>,
    training: usize,
    reading: Reading,
) -> Result<Arc<dyn Construction>, Error> {
    Ok(match instances.first() {
        Some(Instance::Flow(_)) => Arc::new(FlowTask::new(
            alike(instances, |one| if let Instance::Flow(shop) = one { Some(shop) } else { None })?,
            bounds,
            training,
        )?),
        Some(Instance::Job(_)) => Arc::new(JobTask::new(
            alike(instances, |one| if let Instance::Job(shop) = one { Some(shop) } else { None })?,
            bounds,
            training,
            reading.order,
        )?),
        Some(Instance::Lags(_)) => Arc::new(LagTask::new(
            alike(instances, |one| if let Instance::Lags(shop) = one { Some(shop) } else { None })?,
            bounds,
            training,
            reading.hidden,
        )?),
        Some(Instance::Single(_)) => Arc::new(SingleMachineTask::new(
            alike(instances, |one| if let Instance::Single(shop) = one { Some(shop) } else { None })?,
            bounds,
            training,
            reading.hidden,
        )?),
        Some(other @ Instance::Flexible(_)) => return Err(Error::NoCandidates { kind: other.kind() }),
        None => return Err(Error::TooSmall { task: "shop", axis: "instances", least: 1, came: 0 }),
    })
}

/// The shops of instances that are all of the first one's kind.
fn alike<S>(instances: Vec<Instance>, shop: impl Fn(Instance) -> Option<S>) -> Result<Vec<S>, Error> {
    let expected = instances.first().map_or("shop", Instance::kind);
    let one = |(place, instance): (usize, Instance)| {
        let came = instance.kind();
        shop(instance).ok_or(Error::Kind { instance: place, expected, came })
    };
    instances.into_iter().enumerate().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(shop: Shop, jobs: usize, machines: usize) -> ShopPool {
        let size = Size { jobs, machines };
        let drawn = Generator { shop, size, training: 3, validation: 2, seed: 1 };
        let (source, reading) = (Source::Generated(drawn), Reading::default());
        ShopPool { source, patience: Duration::from_secs(10), reading }
    }

    #[test]
    fn pools_are_drawn_and_solved() {
        for shop in Shop::ALL.into_iter().filter(|shop| !matches!(shop, Shop::Flexible { .. })) {
            let Size { jobs, machines } = shop.size();
            let sought = AtomicUsize::new(0);
            let task = pool(shop, jobs.min(6), machines.min(3))
                .build(&|_, of| {
                    assert_eq!(of, 5);
                    sought.fetch_add(1, Ordering::Relaxed);
                })
                .unwrap();
            assert_eq!((task.training(), task.validation(), sought.into_inner()), (3, 2, 5));
            assert!(task.bounds().iter().all(|bounds| bounds.proven()), "{}", shop.name());
        }
    }

    #[test]
    fn the_bottleneck_of_three_machines_is_in_the_middle() {
        let (instances, _) = pool(Shop::Flow, 6, 3).instances().unwrap();
        let times = instances.iter().flat_map(|one| match one {
            Instance::Flow(shop) => (0..6).map(|job| shop.job(job).to_vec()).collect::<Vec<_>>(),
            other => panic!("{}", other.kind()),
        });
        let times: Vec<_> = times.collect();
        assert!(times.iter().all(|times| times[0] <= 20 && times[1] >= 10 && times[2] <= 20));
        assert!(times.iter().map(|times| times[1]).max() > Some(20));
    }

    #[test]
    fn slack_moves_the_due_dates_of_two_orders() {
        let due = |slack| {
            let shop = Shop::TwoOrders { both: true, slack: Some(slack) };
            match pool(shop, 2, 2).instances().unwrap().0.remove(0) {
                Instance::Lags(shop) => shop.all().iter().map(|job| job.due.unwrap()).collect::<Vec<_>>(),
                other => panic!("{}", other.kind()),
            }
        };
        let (tight, loose) = (due(0), due(7));
        assert!(tight.iter().zip(&loose).all(|(tight, loose)| tight + 7 == *loose));
    }

    #[test]
    fn what_cannot_be_drawn_or_played_is_named() {
        let refused = |pool: ShopPool| pool.check().unwrap_err().to_string();
        assert!(refused(pool(Shop::Flow, 1, 3)).contains("jobs of at least 2"));
        assert!(
            refused(pool(Shop::TwoOrders { both: false, slack: None }, 3, 2))
                .contains("2 jobs and 2 machines")
        );
        let draw = |task: Task| generate(task, task.size(), 0, 0).unwrap();
        let bounds = vec![Bounds { lower: 0, upper: 1 }; 2];
        let mixed =
            construct(vec![draw(Task::HardFlow), draw(Task::JobShop)], bounds.clone(), 1, Reading::default());
        assert_eq!(mixed.unwrap_err().to_string(), "instance 1 is a job shop, the first is a flow shop");
        let flexible = construct(vec![draw(Task::Flexible)], bounds, 1, Reading::default());
        assert_eq!(
            flexible.unwrap_err().to_string(),
            "a flexible job shop is shown as a graph, not as a set of candidates"
        );
    }
}
