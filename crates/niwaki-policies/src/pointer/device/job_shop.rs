//! Job shops on the device: `job_shop.cu`.

use super::Dynamics;
use niwaki_nn::HostArray;
use niwaki_shop::construct::{JobOrder, Order};

/// The number that the kernel knows an order by; nothing where it does not know it.
const fn number(order: JobOrder) -> Option<usize> {
    match order {
        JobOrder::Machine => Some(0),
        JobOrder::NonDelay(Order::Canonical) => Some(1),
        JobOrder::Active => Some(2),
        JobOrder::List => Some(3),
        JobOrder::NonDelay(Order::Free) => None,
    }
}

/// The dynamics of job shops; nothing for an order that the kernel does not know. Shapes: `steps [item, candidate, 3]`,
/// `starts [item, job + 1]`, `unit [item]`.
pub(in crate::pointer) fn job_shop<'a>(
    [machines, jobs]: [usize; 2],
    order: JobOrder,
    steps: &'a [i32],
    starts: &'a [i32],
    unit: &'a [f32],
) -> Option<Dynamics<'a>> {
    let items = unit.len().max(1);
    Some(Dynamics {
        name: "job-shop",
        source: concat!(include_str!("construct.cu"), "\n", include_str!("job_shop.cu")),
        kernel: "construct_job_shop",
        tables: vec![
            (steps.len() / items, HostArray::Integers(steps)),
            (starts.len() / items, HostArray::Integers(starts)),
            (1, HostArray::Scalars(unit)),
        ],
        numbers: vec![machines, jobs, number(order)?],
        room: machines + 2 * jobs,
    })
}
