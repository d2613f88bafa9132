//! Job shops with dates: the tabu search of the job shop at their heart keeps what the job shop does not say.

use super::draw::{self, Features};
use super::{LIMITS, slow};
use niwaki_shop::general::{Parts, Past, Shop, solve, verify};
use niwaki_shop::{Instance, Limits, Schedule};
use niwaki_stream::Key;
use std::time::Duration;

fn parts(shop: &Shop) -> Parts {
    Parts {
        jobs: shop.jobs().to_vec(),
        machines: shop.machines().to_vec(),
        precedences: shop.precedences().to_vec(),
        setups: shop.setups().clone(),
        objective: shop.objective().clone(),
        horizon: shop.horizon(),
    }
}

/// Drawn job shops with releases, windows, deadlines and machines that are free later.
fn dated(index: u64, modes: bool, jobs: usize) -> Shop {
    let mut stream = Key::new(40, "laws/dated").iteration(index).open();
    let features = Features { modes, dates: true, windows: true, waits: true, ..Features::default() };
    let shop = draw::shop(&mut stream, features, jobs, "makespan");
    let mut parts = parts(&draw::harden(&mut stream, &shop));
    parts.precedences.iter_mut().for_each(|link| link.max = None);
    // Sooner than longest waits would allow.
    for job in &mut parts.jobs {
        job.deadline = job.deadline.map(|deadline| deadline - 6);
        for operation in &mut job.operations {
            operation.latest = operation.latest.map(|latest| latest - 6);
        }
    }
    parts.machines.iter_mut().for_each(|machine| machine.available = stream.below(6) as u32);
    Shop::new(parts).unwrap()
}

#[test]
fn dates_reach_the_enumerated_optimum() {
    let (mut possible, mut impossible) = (0, 0);
    for index in 0..80 {
        let shop = dated(index, index % 2 == 0, 3);
        let found = solve(&shop, LIMITS, Past::default(), &mut |_| {});
        if let Some(optimum) = slow::optimum_within_waits(&shop) {
            let found = found.unwrap();
            assert_eq!(found.verdict.values, optimum, "instance {index}: {shop:?}");
            assert!(found.proven(), "instance {index}: {shop:?}");
            possible += 1;
        } else {
            let line = found.unwrap_err().to_string();
            let said = line.contains("there is no schedule") || line.contains("cannot end before");
            assert!(said, "instance {index}: {line}");
            impossible += 1;
        }
    }
    assert!(possible > 50 && impossible > 0, "{possible} possible, {impossible} not");
}

/// Larger ones, with deadlines that a known schedule just keeps: every answer passes the slow checker, and no bound is above it.
#[test]
fn dates_that_a_schedule_keeps_are_kept() {
    for index in 0..12 {
        let mut stream = Key::new(41, "laws/dated").iteration(index).open();
        let shop = draw::shop(
            &mut stream,
            Features { modes: index % 2 == 0, ..Features::default() },
            20,
            "makespan",
        );
        let limits = Limits::new(Duration::MAX, index).for_rounds(4);
        let free = solve(&shop, limits, Past::default(), &mut |_| {}).unwrap();
        let mut parts = parts(&shop);
        for (job, &end) in parts.jobs.iter_mut().zip(&free.verdict.ends) {
            job.deadline = (stream.below(3) == 0).then(|| end + stream.below(4) as u32);
        }
        let bound = Shop::new(parts).unwrap();
        let found = solve(&bound, limits, Past::default(), &mut |_| {}).unwrap();
        assert_eq!(
            slow::judge(&bound, &found.schedule),
            Some(found.verdict.values.clone()),
            "instance {index}"
        );
        // The free one keeps them, too.
        assert!(found.bounds[0] <= free.verdict.values[0] && free.bounds[0] <= found.verdict.values[0]);
        assert!(verify(&bound, &free.schedule).is_ok());
    }
}

#[test]
fn what_binds_nothing_changes_nothing() {
    use niwaki_shop::generate::{Size, Task, generate};
    for (index, task) in [Task::L2d, Task::Sd1, Task::L2d, Task::Flexible].into_iter().enumerate() {
        let instance = generate(task, Size { jobs: 12, machines: 6 }, 5, index as u64).unwrap();
        let shop = Shop::from_instance(&instance, "makespan".parse().unwrap()).unwrap();
        let limits = Limits::new(Duration::MAX, 1).for_rounds(6);
        let plain = solve(&shop, limits, Past::default(), &mut |_| {}).unwrap();
        let longest = first_makespan(&instance);
        let mut parts = parts(&shop);
        for job in &mut parts.jobs {
            job.deadline = Some(longest);
            job.due = Some(1);
            job.weight = 3;
        }
        let other = solve(&Shop::new(parts).unwrap(), limits, Past::default(), &mut |_| {}).unwrap();
        assert_eq!(plain.schedule.operations, other.schedule.operations, "{}", task.name());
        assert_eq!(plain.bounds, other.bounds, "{}", task.name());
    }
}

/// The makespan of a poor schedule, which dates beyond it can bind no better one.
fn first_makespan(instance: &Instance) -> u32 {
    let all = niwaki_shop::optimum::solve(instance, Limits::new(Duration::ZERO, 1), &mut |_| {});
    2 * all.upper
}

/// What has started stays where it is, and the rest is as short as enumeration of the rest.
#[test]
fn the_rest_of_a_schedule_that_has_begun_is_searched_as_a_job_shop() {
    let mut begun = 0;
    for index in 0..30 {
        let mut stream = Key::new(42, "laws/dated").iteration(index).open();
        let features = Features { modes: index % 2 == 0, waits: true, ..Features::default() };
        let shop = draw::shop(&mut stream, features, 3, "makespan");
        let first = solve(&shop, LIMITS.within(Duration::ZERO), Past::default(), &mut |_| {}).unwrap();
        let now = first.schedule.makespan() / 2;
        let past = Past { schedule: Some(&first.schedule), fixed_until: Some(now) };
        let limits = Limits::new(Duration::MAX, 1).for_rounds(8);
        let found = solve(&shop, limits, past, &mut |_| {}).unwrap();
        let stays = |here: &&niwaki_shop::Placed| here.start < now;
        let of =
            |schedule: &Schedule| -> Vec<_> { schedule.operations.iter().filter(stays).copied().collect() };
        assert_eq!(of(&first.schedule), of(&found.schedule), "instance {index}");
        begun += of(&first.schedule).len();
        // The same as a shop of its own: what is left, with releases, on machines that are free later.
        if let Some(rest) = rest_of(&shop, &first.schedule, now) {
            let optimum = slow::optimum_within_waits(&rest).unwrap()[0];
            let fixed = of(&first.schedule).iter().map(|here| u64::from(here.end)).max().unwrap_or(0);
            assert_eq!(found.verdict.values[0], optimum.max(fixed), "instance {index}: {shop:?}");
        }
    }
    assert!(begun > 30, "{begun} operations have begun");
}

/// What has not started by `now`, as a shop of its own.
fn rest_of(shop: &Shop, schedule: &Schedule, now: u32) -> Option<Shop> {
    let mut rest = parts(shop);
    (rest.jobs, rest.precedences) = (Vec::new(), Vec::new());
    for machine in &mut rest.machines {
        machine.available = now;
    }
    let mut number = 0;
    for (index, job) in shop.jobs().iter().enumerate() {
        let mut left = job.clone();
        left.operations.clear();
        for (op, operation) in job.operations.iter().enumerate() {
            let flat = shop.of_job(index).start + op;
            let here = schedule
                .operations
                .iter()
                .find(|here| (here.job as usize, here.op as usize) == (index, op))?;
            let link = shop.precedences().iter().find(|link| link.after as usize == flat);
            if here.start < now {
                let machine = &mut rest.machines[here.machine as usize];
                machine.available = machine.available.max(here.end);
                left.release = left.release.max(here.end);
                continue;
            }
            if let Some(link) = link {
                if left.operations.is_empty() {
                    left.release = left.release.max(left.release + link.min);
                } else {
                    rest.precedences.push(niwaki_shop::general::Precedence {
                        before: number - 1,
                        after: number,
                        ..*link
                    });
                }
            }
            left.operations.push(operation.clone());
            number += 1;
        }
        if !left.operations.is_empty() {
            rest.jobs.push(left);
        }
    }
    (!rest.jobs.is_empty()).then(|| Shop::new(rest).unwrap())
}
