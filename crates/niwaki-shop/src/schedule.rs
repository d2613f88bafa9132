//! A schedule: who runs what, where and when. It must not know how it was made.

use crate::{FlexibleShop, FlowShop, SingleMachine, TwoMachineLags};

/// One operation on its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placed {
    /// The job.
    pub job: u32,
    /// The operation's index within its job.
    pub op: u32,
    /// The machine that runs it.
    pub machine: u32,
    /// When it starts.
    pub start: u32,
    /// When it ends.
    pub end: u32,
}

/// A schedule: every operation, in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The operations.
    pub operations: Vec<Placed>,
}

impl Schedule {
    /// When the last operation ends.
    #[must_use]
    pub fn makespan(&self) -> u32 {
        self.operations.iter().map(|placed| placed.end).max().unwrap_or(0)
    }

    /// By how much rests exceed their maximum, summed over all operations that follow another of their job.
    ///
    /// Operations that the shop does not have are not counted; [`crate::verify()`] refuses them.
    ///
    /// Paper: app:sched-driftdial
    #[must_use]
    pub fn violation(&self, shop: &FlexibleShop) -> u64 {
        let mut times = vec![None; shop.operations()];
        for placed in &self.operations {
            if (placed.job as usize) < shop.jobs() {
                let job = shop.job(placed.job as usize);
                if (placed.op as usize) < job.len() {
                    times[job.start + placed.op as usize] = Some((placed.start, placed.end));
                }
            }
        }
        let mut total = 0;
        for job in 0..shop.jobs() {
            for operation in shop.job(job).skip(1) {
                if let (Some((_, end)), Some((start, _)), Some(max)) =
                    (times[operation - 1], times[operation], shop.window(operation).max)
                {
                    total += u64::from(start.saturating_sub(end).saturating_sub(max));
                }
            }
        }
        total
    }

    /// The flow shop's schedule in which jobs run in `order`, each as early as it can.
    #[must_use]
    pub fn of_order(shop: &FlowShop, order: &[u32]) -> Self {
        let mut free = vec![0_u32; shop.machines()];
        let mut operations = Vec::with_capacity(order.len() * shop.machines());
        for &job in order {
            let mut ready = 0;
            for (machine, (free, &time)) in free.iter_mut().zip(shop.job(job as usize)).enumerate() {
                let start = ready.max(*free);
                ready = start + time;
                *free = ready;
                let machine = machine as u32;
                operations.push(Placed { job, op: machine, machine, start, end: ready });
            }
        }
        Self { operations }
    }

    /// The lagged shop's schedule in which jobs run in `order`, each as early as it can.
    #[must_use]
    pub fn of_lagged_order(shop: &TwoMachineLags, order: &[u32]) -> Self {
        let (mut first, mut second) = (0_u32, 0_u32);
        let mut operations = Vec::with_capacity(2 * order.len());
        for &number in order {
            let job = shop.all()[number as usize];
            let start = first;
            first += job.first;
            operations.push(Placed { job: number, op: 0, machine: 0, start, end: first });
            let start = second.max(first + job.lag);
            second = start + job.second;
            operations.push(Placed { job: number, op: 1, machine: 1, start, end: second });
        }
        Self { operations }
    }

    /// The single machine's schedule in which jobs run in `order` without a pause.
    #[must_use]
    pub fn of_single_order(shop: &SingleMachine, order: &[u32]) -> Self {
        let mut now = 0;
        let place = |&job: &u32| {
            let start = now;
            now += shop.times()[job as usize];
            Placed { job, op: 0, machine: 0, start, end: now }
        };
        Self { operations: order.iter().map(place).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alternative, Window};

    #[test]
    fn violation_by_hand() {
        // One job of three operations on one machine: 0–2, 5–6, 6–9. Rests are 3 and 0; the maxima are 1 and 0, so
        // the first rest exceeds its maximum by 2.
        let on = |time| vec![Alternative { machine: 0, time }];
        let window = |min, max| Window { min, max: Some(max) };
        let shop = FlexibleShop::new(1, &[vec![on(2), on(1), on(3)]])
            .and_then(|shop| shop.with_windows(&[vec![Window::FREE, window(0, 1), window(0, 0)]]))
            .unwrap();
        let placed = |op, start, end| Placed { job: 0, op, machine: 0, start, end };
        let schedule = Schedule { operations: vec![placed(1, 5, 6), placed(0, 0, 2), placed(2, 6, 9)] };
        assert_eq!((schedule.violation(&shop), schedule.makespan()), (2, 9));
    }

    #[test]
    fn orders_give_the_makespan_of_their_shop() {
        let shop = FlowShop::new(3, 2, vec![3, 2, 1, 4, 2, 2]).unwrap();
        let schedule = Schedule::of_order(&shop, &[2, 0, 1]);
        assert_eq!(schedule.makespan(), shop.makespan(&[2, 0, 1]));
        assert_eq!(schedule.operations.len(), 6);
    }
}
