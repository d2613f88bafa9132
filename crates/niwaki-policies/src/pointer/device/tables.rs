//! What the kernels read of the instances of a run, gathered instance by instance.

use super::Dynamics;
use super::flow_shop::flow_shop;
use super::job_shop::job_shop;
use niwaki_shop::construct::JobOrder;
use niwaki_tasks::Construction;
use rayon::prelude::*;

/// Tables of all items, `[member, instance, …]`; one variant for each kind of shop that a device builds by itself.
#[derive(Clone, Debug)]
pub(in crate::pointer) enum Tables {
    Flow { stations: usize, times: Vec<i32>, whole: Vec<f32>, unit: Vec<f32> },
    Job { sizes: [usize; 2], order: JobOrder, steps: Vec<i32>, starts: Vec<i32>, unit: Vec<f32> },
}

impl Tables {
    /// Those of a task's instances; nothing where devices leave its schedules to the host.
    pub(in crate::pointer) fn of(task: &dyn Construction, instances: &[u32]) -> Option<Self> {
        let pool = task.training() + task.validation();
        if let Some(stations) = task.stations() {
            return Some(Self::Flow {
                stations: stations.count,
                times: gather(&stations.times, pool, instances),
                whole: gather(&stations.whole, pool, instances),
                unit: gather(&stations.unit, pool, instances),
            });
        }
        let routes = task.routes()?;
        Some(Self::Job {
            sizes: [routes.machines, routes.jobs],
            order: routes.order,
            steps: gather(&routes.steps, pool, instances),
            starts: gather(&routes.starts, pool, instances),
            unit: gather(&routes.unit, pool, instances),
        })
    }

    /// What a kernel makes of them.
    pub(in crate::pointer) fn dynamics(&self) -> Option<Dynamics<'_>> {
        match self {
            Self::Flow { stations, times, whole, unit } => Some(flow_shop(*stations, times, whole, unit)),
            Self::Job { sizes, order, steps, starts, unit } => job_shop(*sizes, *order, steps, starts, unit),
        }
    }
}

/// The rows of some instances, of a table with equally long ones for each of `pool`.
fn gather<T: Copy + Default + Send + Sync>(table: &[T], pool: usize, instances: &[u32]) -> Vec<T> {
    let size = table.len() / pool;
    let mut all = vec![T::default(); instances.len() * size];
    let rows = all.par_chunks_mut(size.max(1)).zip(instances).with_min_len(64);
    rows.for_each(|(to, &at)| to.copy_from_slice(&table[at as usize * size..(at as usize + 1) * size]));
    all
}
