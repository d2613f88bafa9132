//! The independent checker: judges a schedule by its instance alone.
//!
//! It depends on the instance types and the schedule and on nothing else, so that a fault in a rule, a heuristic,
//! a solver or an environment cannot hide here. Every constraint is checked; the first fault is named in one line
//! with job, operation, machine and time.

use crate::{Error, Instance, Placed, Result, Schedule, Window};

/// What the checker found out about a correct schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Verification {
    /// When the last operation ends.
    pub makespan: u32,
    /// By how much rests exceed their soft maximum, in all.
    pub violation: u64,
    /// Jobs that end after their due date.
    pub late: usize,
}

/// What one operation of an instance asks for.
struct Demand {
    /// The machines that may run it, with its time on each.
    choices: Vec<(u32, u32)>,
    /// The rest after its predecessor in the job.
    window: Window,
}

/// Checks a schedule against its instance.
///
/// # Errors
/// The first constraint that does not hold, in one line.
pub fn verify(instance: &Instance, schedule: &Schedule) -> Result<Verification> {
    let demands = demands(instance);
    let placed = collect(&demands, schedule)?;
    for (job, operations) in placed.iter().enumerate() {
        for (op, here) in operations.iter().enumerate() {
            check_machine_and_time(&demands[job][op], here)?;
            if op > 0 {
                check_precedence(&demands[job][op], &operations[op - 1], here)?;
            }
        }
    }
    check_machines(instance.machines(), schedule)?;
    if matches!(instance, Instance::Flow(_) | Instance::Lags(_)) {
        check_common_order(instance.machines(), &placed)?;
    }
    Ok(Verification {
        makespan: schedule.operations.iter().map(|here| here.end).max().unwrap_or(0),
        violation: violation(&demands, &placed),
        late: late(instance, &placed),
    })
}

/// What every operation asks for: `[job][operation]`.
fn demands(instance: &Instance) -> Vec<Vec<Demand>> {
    let fixed = |machine: u32, time| Demand { choices: vec![(machine, time)], window: Window::FREE };
    match instance {
        Instance::Flow(shop) => (0..shop.jobs())
            .map(|job| (0_u32..).zip(shop.job(job)).map(|(machine, &time)| fixed(machine, time)).collect())
            .collect(),
        Instance::Job(shop) => (0..shop.jobs())
            .map(|job| shop.route(job).iter().map(|step| fixed(step.machine, step.time)).collect())
            .collect(),
        Instance::Flexible(shop) => (0..shop.jobs())
            .map(|job| {
                let demand = |operation| Demand {
                    choices: shop.alternatives(operation).iter().map(|one| (one.machine, one.time)).collect(),
                    window: shop.window(operation),
                };
                shop.job(job).map(demand).collect()
            })
            .collect(),
        Instance::Lags(shop) => shop
            .all()
            .iter()
            .map(|job| {
                let window = Window { min: job.lag, max: None };
                vec![fixed(0, job.first), Demand { window, ..fixed(1, job.second) }]
            })
            .collect(),
        Instance::Single(shop) => shop.times().iter().map(|&time| vec![fixed(0, time)]).collect(),
    }
}

/// Puts the operations in their places: each exactly once, none that does not exist.
fn collect(demands: &[Vec<Demand>], schedule: &Schedule) -> Result<Vec<Vec<Placed>>> {
    let mut slots: Vec<Vec<Option<Placed>>> = demands.iter().map(|job| vec![None; job.len()]).collect();
    for here in &schedule.operations {
        let Some(job) = slots.get_mut(here.job as usize) else {
            return fault(format!("job {}: the instance has jobs 0 to {}", here.job, demands.len() - 1));
        };
        let operations = job.len();
        let Some(slot) = job.get_mut(here.op as usize) else {
            return fault(format!(
                "job {}, operation {}: the job has operations 0 to {}",
                here.job,
                here.op,
                operations - 1
            ));
        };
        if let Some(other) = slot.replace(*here) {
            return fault(format!(
                "job {}, operation {}: placed twice, at time {} on machine {} and at time {} on machine {}",
                here.job, here.op, other.start, other.machine, here.start, here.machine
            ));
        }
    }
    let mut placed = Vec::with_capacity(slots.len());
    for (job, operations) in slots.into_iter().enumerate() {
        let mut list = Vec::with_capacity(operations.len());
        for (op, slot) in operations.into_iter().enumerate() {
            let Some(here) = slot else {
                return fault(format!("job {job}, operation {op}: missing from the schedule"));
            };
            list.push(here);
        }
        placed.push(list);
    }
    Ok(placed)
}

/// The operation runs on a machine that can run it, for as long as it takes there.
fn check_machine_and_time(demand: &Demand, here: &Placed) -> Result<()> {
    let place = format!("job {}, operation {}", here.job, here.op);
    let Some(&(machine, time)) = demand.choices.iter().find(|(machine, _)| *machine == here.machine) else {
        let known: Vec<_> = demand.choices.iter().map(|(machine, _)| machine.to_string()).collect();
        return fault(format!("{place}: runs on machine {}, expected {}", here.machine, known.join(" or ")));
    };
    if u64::from(here.start) + u64::from(time) != u64::from(here.end) {
        return fault(format!(
            "{place}: takes {time} on machine {machine}, but runs from {} to {}",
            here.start, here.end
        ));
    }
    Ok(())
}

/// The operation starts after its predecessor in the job, and after the least rest.
fn check_precedence(demand: &Demand, before: &Placed, here: &Placed) -> Result<()> {
    let earliest = u64::from(before.end) + u64::from(demand.window.min);
    if u64::from(here.start) >= earliest {
        return Ok(());
    }
    let rest = if demand.window.min == 0 {
        String::new()
    } else {
        format!(" and must rest {} before", demand.window.min)
    };
    fault(format!(
        "job {}, operation {}: starts at {} on machine {}, but operation {} ends at {}{rest}",
        here.job, here.op, here.start, here.machine, before.op, before.end
    ))
}

/// No machine runs two operations at once.
fn check_machines(machines: usize, schedule: &Schedule) -> Result<()> {
    let mut lists = vec![Vec::new(); machines];
    for here in &schedule.operations {
        lists[here.machine as usize].push(*here);
    }
    for (machine, list) in lists.iter_mut().enumerate() {
        list.sort_unstable_by_key(|here| (here.start, here.end));
        for pair in list.windows(2) {
            let (first, second) = (&pair[0], &pair[1]);
            if second.start < first.end {
                return fault(format!(
                    "machine {machine}: job {}, operation {} starts at {} while job {}, operation {} runs until {}",
                    second.job, second.op, second.start, first.job, first.op, first.end
                ));
            }
        }
    }
    Ok(())
}

/// All machines serve the jobs in one common order.
///
/// Where such an order exists, an earlier job starts and ends no later on every machine, so sorting by the sum of
/// all starts and ends finds it; only jobs that coincide everywhere (without length) tie.
fn check_common_order(machines: usize, placed: &[Vec<Placed>]) -> Result<()> {
    let key =
        |job: &[Placed]| job.iter().map(|here| u64::from(here.start) + u64::from(here.end)).sum::<u64>();
    let mut order: Vec<_> = placed.iter().collect();
    order.sort_by_key(|job| key(job));
    for pair in order.windows(2) {
        for machine in 0..machines {
            let (first, second) = (&pair[0][machine], &pair[1][machine]);
            if (second.start, second.end) < (first.start, first.end) {
                return fault(format!(
                    "machine {machine}: job {} runs at {} before job {} at {}, in another order than on other \
                     machines",
                    second.job, second.start, first.job, first.start
                ));
            }
        }
    }
    Ok(())
}

/// By how much rests exceed their soft maximum, in all.
fn violation(demands: &[Vec<Demand>], placed: &[Vec<Placed>]) -> u64 {
    let mut total = 0;
    for (demands, operations) in demands.iter().zip(placed) {
        for op in 1..operations.len() {
            if let Some(max) = demands[op].window.max {
                let rest = operations[op].start - operations[op - 1].end;
                total += u64::from(rest.saturating_sub(max));
            }
        }
    }
    total
}

/// Jobs that end after their due date.
fn late(instance: &Instance, placed: &[Vec<Placed>]) -> usize {
    let due: Vec<Option<u32>> = match instance {
        Instance::Lags(shop) => shop.all().iter().map(|job| job.due).collect(),
        Instance::Single(shop) => shop.due().iter().map(|&due| Some(due)).collect(),
        Instance::Flow(_) | Instance::Job(_) | Instance::Flexible(_) => return 0,
    };
    let ends = placed.iter().map(|job| job.iter().map(|here| here.end).max().unwrap_or(0));
    ends.zip(due).filter(|(end, due)| due.is_some_and(|due| *end > due)).count()
}

fn fault<T>(line: String) -> Result<T> {
    Err(Error::Schedule(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Alternative, FlexibleShop, FlowShop, JobShop, LaggedJob, Operation, SingleMachine, TwoMachineLags,
    };

    fn at(job: u32, op: u32, machine: u32, start: u32, end: u32) -> Placed {
        Placed { job, op, machine, start, end }
    }

    fn refusal(instance: &Instance, operations: &[Placed]) -> String {
        verify(instance, &Schedule { operations: operations.to_vec() }).unwrap_err().to_string()
    }

    fn job_shop() -> (Instance, Vec<Placed>) {
        // Job 0: machine 0 for 3, then machine 1 for 2. Job 1: machine 1 for 4.
        let op = |machine, time| Operation { machine, time };
        let shop = JobShop::new(2, &[vec![op(0, 3), op(1, 2)], vec![op(1, 4)]]).unwrap();
        (Instance::Job(shop), vec![at(0, 0, 0, 0, 3), at(0, 1, 1, 4, 6), at(1, 0, 1, 0, 4)])
    }

    #[test]
    fn a_correct_schedule_passes() {
        let (shop, operations) = job_shop();
        let verdict = verify(&shop, &Schedule { operations }).unwrap();
        assert_eq!(verdict, Verification { makespan: 6, violation: 0, late: 0 });
    }

    #[test]
    fn each_fault_is_named() {
        let (shop, good) = job_shop();
        let with = |index: usize, here: Placed| {
            let mut operations = good.clone();
            operations[index] = here;
            refusal(&shop, &operations)
        };
        assert_eq!(with(0, at(7, 0, 0, 0, 3)), "job 7: the instance has jobs 0 to 1");
        assert_eq!(with(0, at(0, 2, 0, 0, 3)), "job 0, operation 2: the job has operations 0 to 1");
        assert_eq!(
            with(0, at(1, 0, 0, 0, 3)),
            "job 1, operation 0: placed twice, at time 0 on machine 0 and at time 0 on machine 1"
        );
        assert_eq!(refusal(&shop, &good[..2]), "job 1, operation 0: missing from the schedule");
        assert_eq!(with(0, at(0, 0, 1, 0, 3)), "job 0, operation 0: runs on machine 1, expected 0");
        assert_eq!(
            with(0, at(0, 0, 0, 0, 2)),
            "job 0, operation 0: takes 3 on machine 0, but runs from 0 to 2"
        );
        assert_eq!(
            with(0, at(0, 0, 0, 2, 5)),
            "job 0, operation 1: starts at 4 on machine 1, but operation 0 ends at 5"
        );
        assert_eq!(
            with(1, at(0, 1, 1, 3, 5)),
            "machine 1: job 0, operation 1 starts at 3 while job 1, operation 0 runs until 4"
        );
    }

    #[test]
    fn a_flow_shop_needs_one_order() {
        // Two jobs on three machines; job 1 overtakes job 0 on machine 2.
        let shop = Instance::Flow(FlowShop::new(2, 3, vec![1, 5, 1, 1, 1, 1]).unwrap());
        let operations = [
            at(0, 0, 0, 0, 1),
            at(0, 1, 1, 2, 7),
            at(0, 2, 2, 7, 8),
            at(1, 0, 0, 1, 2),
            at(1, 1, 1, 7, 8),
            at(1, 2, 2, 8, 9),
        ];
        assert_eq!(verify(&shop, &Schedule { operations: operations.to_vec() }).unwrap().makespan, 9);
        let mut crossing = operations;
        crossing[0] = at(0, 0, 0, 1, 2);
        crossing[3] = at(1, 0, 0, 0, 1);
        let line = refusal(&shop, &crossing);
        assert_eq!(
            line,
            "machine 0: job 1 runs at 0 before job 0 at 1, in another order than on other machines"
        );
    }

    #[test]
    fn lags_windows_and_due_dates() {
        let job = LaggedJob { first: 2, lag: 3, second: 1, due: Some(5) };
        let shop = Instance::Lags(TwoMachineLags::new(vec![job]).unwrap());
        let line = refusal(&shop, &[at(0, 0, 0, 0, 2), at(0, 1, 1, 4, 5)]);
        assert_eq!(
            line,
            "job 0, operation 1: starts at 4 on machine 1, but operation 0 ends at 2 and must rest 3 before"
        );
        let operations = vec![at(0, 0, 0, 0, 2), at(0, 1, 1, 5, 6)];
        assert_eq!(verify(&shop, &Schedule { operations }).unwrap().late, 1);

        let single = Instance::Single(SingleMachine::new(vec![2, 2], vec![2, 4]).unwrap());
        let operations = vec![at(1, 0, 0, 0, 2), at(0, 0, 0, 2, 4)];
        assert_eq!(verify(&single, &Schedule { operations }).unwrap().late, 1);

        let on = |time| vec![Alternative { machine: 0, time }];
        let shop = FlexibleShop::new(1, &[vec![on(2), on(1)]])
            .and_then(|shop| shop.with_windows(&[vec![Window::FREE, Window { min: 1, max: Some(2) }]]))
            .unwrap();
        let schedule = Schedule { operations: vec![at(0, 0, 0, 0, 2), at(0, 1, 0, 6, 7)] };
        // The rest is 4 and may be 2.
        assert_eq!(schedule.violation(&shop), 2);
        assert_eq!(verify(&Instance::Flexible(shop), &schedule).unwrap().violation, 2);
    }
}
