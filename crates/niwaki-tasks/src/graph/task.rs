//! The pool of a graph dispatcher: shops with their optima, sizes, and what never changes.

use super::features::OPERATION;
use super::lanes::GraphLanes;
use crate::numbered::Numbered;
use crate::{Error, Numbers};
use niwaki_shop::construct::{JobOrder, Order, Outlook};
use niwaki_shop::{Bounds, FlexibleShop, Instance, JobShop};
use std::sync::{Arc, OnceLock};

/// The sizes of the largest shop of a pool, part by part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphSizes {
    /// Jobs.
    pub jobs: usize,
    /// Machines.
    pub machines: usize,
    /// Operations, which are also the steps of a construction.
    pub operations: usize,
    /// Numbers that describe an operation.
    pub features: usize,
}

impl GraphSizes {
    /// Pairs of job and machine: the choices of a step, open or not.
    #[must_use]
    pub const fn pairs(self) -> usize {
        self.jobs * self.machines
    }
}

/// A pool of flexible shops with their optima.
///
/// Paper: `app:sched-driftdial`
#[derive(Clone, Debug)]
pub struct GraphTask {
    pool: Numbered<FlexibleShop>,
    sizes: GraphSizes,
    order: JobOrder,
    /// Which neighbours each operation has in its job, `[instance][operation]`, as are the times.
    neighbours: Vec<Vec<i32>>,
    times: Vec<Vec<OperationTimes>>,
    /// The longest time of each instance.
    longest: Vec<f32>,
    /// What bounds of each instance are computed from, once asked for.
    outlooks: Arc<[OnceLock<Outlook>]>,
}

/// The times of an operation over its machines.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperationTimes {
    /// The least.
    pub least: f32,
    /// The longest.
    pub longest: f32,
    /// Their mean.
    pub mean: f32,
}

impl GraphTask {
    /// The orders in which graphs are built, by their names.
    pub const ORDERS: [(&str, JobOrder); 3] = [
        ("non-delay", JobOrder::NonDelay(Order::Canonical)),
        ("free", JobOrder::NonDelay(Order::Free)),
        ("active", JobOrder::Active),
    ];

    /// Bit of [`GraphTask::neighbours`]: the operation has one before it.
    pub const BEFORE: i32 = 1;
    /// Bit of [`GraphTask::neighbours`]: the operation has one after it.
    pub const AFTER: i32 = 2;

    /// A task over flexible shops, job shops and flow shops of any sizes, of which the first `training` are to learn from.
    ///
    /// # Errors
    /// If there is no shop to learn from, one is of another kind, there is not one pair of bounds for each, or graphs are
    /// not built in that order.
    pub fn new(
        instances: Vec<Instance>,
        bounds: Vec<Bounds>,
        training: usize,
        order: JobOrder,
    ) -> Result<Self, Error> {
        if !Self::ORDERS.iter().any(|(_, known)| *known == order) {
            return Err(Error::GraphOrder);
        }
        let shops = instances.into_iter().map(flexible).collect::<Result<Vec<_>, _>>()?;
        // Any sizes go together.
        let pool = Numbered::new("flexible-shop", shops, bounds, training, |_| (0, 0, 0))?;
        let most = |size: fn(&FlexibleShop) -> usize| pool.shops.iter().map(size).max().unwrap_or(0);
        let windows = pool.shops.iter().any(FlexibleShop::has_windows);
        let sizes = GraphSizes {
            jobs: most(FlexibleShop::jobs),
            machines: most(FlexibleShop::machines),
            operations: most(FlexibleShop::operations),
            features: OPERATION[usize::from(windows)],
        };
        let neighbours = pool.shops.iter().map(neighbours_of).collect();
        let times: Vec<Vec<OperationTimes>> = pool.shops.iter().map(times_of).collect();
        let longest = times.iter().map(|times| times.iter().map(|times| times.longest).fold(0.0, f32::max));
        let longest = longest.collect();
        let outlooks = pool.shops.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { pool, sizes, order, neighbours, times, longest, outlooks })
    }

    /// The sizes of the largest shop.
    #[must_use]
    pub const fn sizes(&self) -> GraphSizes {
        self.sizes
    }

    /// The shops, those to learn from first.
    #[must_use]
    pub fn shops(&self) -> &[FlexibleShop] {
        &self.pool.shops
    }

    /// The instances' numbers and optima.
    #[must_use]
    pub const fn numbers(&self) -> &Numbers {
        &self.pool.numbers
    }

    /// Which neighbours an instance's operations have in their jobs, as bits: `[operation]`.
    #[must_use]
    pub fn neighbours(&self, instance: usize) -> &[i32] {
        &self.neighbours[instance]
    }

    /// The times of an instance's operations over their machines: `[operation]`.
    #[must_use]
    pub fn times(&self, instance: usize) -> &[OperationTimes] {
        &self.times[instance]
    }

    /// The longest time of an instance.
    #[must_use]
    pub fn longest(&self, instance: usize) -> f32 {
        self.longest[instance]
    }

    /// What the bounds of an instance's partial schedules are computed from.
    #[must_use]
    pub fn outlook(&self, instance: usize) -> &Outlook {
        self.outlooks[instance].get_or_init(|| Outlook::new(&self.pool.shops[instance]))
    }

    /// Empty constructions, one lane for each instance named.
    ///
    /// # Errors
    /// If there is no such instance.
    pub fn begin(&self, instances: &[u32]) -> Result<GraphLanes, Error> {
        GraphLanes::new(Arc::clone(&self.pool.shops), self.sizes, self.order, instances)
    }
}

/// The instance as a flexible shop.
pub(crate) fn flexible(instance: Instance) -> Result<FlexibleShop, Error> {
    match instance {
        Instance::Flexible(shop) => Ok(shop),
        Instance::Job(shop) => Ok(FlexibleShop::from_job_shop(&shop)?),
        Instance::Flow(shop) => Ok(FlexibleShop::from_job_shop(&JobShop::from_flow_shop(&shop)?)?),
        other => Err(Error::OtherKind { kind: other.kind(), shop: "flexible-shop" }),
    }
}

fn times_of(shop: &FlexibleShop) -> Vec<OperationTimes> {
    let of = |operation: usize| {
        let times = shop.alternatives(operation).iter().map(|choice| choice.time as f32);
        OperationTimes {
            least: times.clone().fold(f32::INFINITY, f32::min),
            longest: times.clone().fold(0.0, f32::max),
            mean: times.clone().sum::<f32>() / times.len() as f32,
        }
    };
    (0..shop.operations()).map(of).collect()
}

fn neighbours_of(shop: &FlexibleShop) -> Vec<i32> {
    let job = |job| {
        let length = shop.job(job).len();
        (0..length).map(move |index| {
            let before = if index > 0 { GraphTask::BEFORE } else { 0 };
            let after = if index + 1 < length { GraphTask::AFTER } else { 0 };
            before | after
        })
    };
    (0..shop.jobs()).flat_map(job).collect()
}
