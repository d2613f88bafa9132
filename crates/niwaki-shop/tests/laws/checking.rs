//! The checker against an obvious twin: pairs of operations compared one by one, common orders tried one by one, on correct
//! schedules and on schedules with one thing wrong.

use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::rules::{DispatchRule, Dispatcher};
use niwaki_shop::{Instance, Placed, Schedule, verify};
use niwaki_stream::{Key, Stream};

/// What an operation may do: machines with times, and the least rest before it.
fn demand(instance: &Instance, job: usize, op: usize) -> Option<(Vec<(u32, u32)>, u32)> {
    match instance {
        Instance::Flow(shop) => {
            (job < shop.jobs() && op < shop.machines()).then(|| (vec![(op as u32, shop.time(job, op))], 0))
        }
        Instance::Job(shop) => {
            let step = (job < shop.jobs()).then(|| shop.route(job).get(op)).flatten()?;
            Some((vec![(step.machine, step.time)], 0))
        }
        Instance::Flexible(shop) => {
            let number = (job < shop.jobs()).then(|| shop.job(job).nth(op)).flatten()?;
            let choices =
                shop.alternatives(number).iter().map(|choice| (choice.machine, choice.time)).collect();
            Some((choices, shop.window(number).min))
        }
        Instance::Lags(shop) => {
            let job = shop.all().get(job)?;
            [(vec![(0, job.first)], 0), (vec![(1, job.second)], job.lag)].into_iter().nth(op)
        }
        Instance::Single(shop) => {
            (op == 0).then(|| shop.times().get(job)).flatten().map(|&time| (vec![(0, time)], 0))
        }
    }
}

/// Whether a schedule is correct, said as plainly as can be.
fn plainly_correct(instance: &Instance, schedule: &Schedule) -> bool {
    let all = &schedule.operations;
    let find = |job, op| all.iter().find(|here| here.job == job && here.op == op);
    let each = all.iter().all(|here| {
        let Some((choices, rest)) = demand(instance, here.job as usize, here.op as usize) else {
            return false;
        };
        let fits =
            choices.iter().any(|&(machine, time)| here.machine == machine && here.end - here.start == time);
        let after =
            here.op == 0 || find(here.job, here.op - 1).is_some_and(|before| before.end + rest <= here.start);
        fits && after
    });
    let disjoint = (0..all.len()).all(|i| {
        (0..i).all(|j| {
            let (a, b) = (&all[i], &all[j]);
            let twice = a.job == b.job && a.op == b.op;
            let clash = a.machine == b.machine && a.start < b.end && b.start < a.end;
            !twice && !clash
        })
    });
    let complete = all.len() == instance.operations();
    let ordered =
        !matches!(instance, Instance::Flow(_) | Instance::Lags(_)) || some_common_order(instance, all);
    each && disjoint && complete && ordered
}

/// Whether the jobs can be numbered so that every machine serves them by number.
fn some_common_order(instance: &Instance, all: &[Placed]) -> bool {
    fn place(order: &mut Vec<u32>, left: &mut Vec<u32>, fits: &dyn Fn(u32, u32) -> bool) -> bool {
        if left.is_empty() {
            return true;
        }
        for index in 0..left.len() {
            let job = left.remove(index);
            if order.iter().all(|&before| fits(before, job)) {
                order.push(job);
                if place(order, left, fits) {
                    return true;
                }
                order.pop();
            }
            left.insert(index, job);
        }
        false
    }
    let fits = |first: u32, second: u32| {
        all.iter().filter(|here| here.job == first).all(|a| {
            all.iter()
                .filter(|here| here.job == second && here.machine == a.machine)
                .all(|b| a.end <= b.start)
        })
    };
    place(&mut Vec::new(), &mut (0..instance.jobs() as u32).collect(), &fits)
}

/// Makes one thing wrong, or perhaps not.
fn disturb(schedule: &mut Schedule, machines: usize, stream: &mut Stream) {
    let count = schedule.operations.len() as u64;
    let (one, two) = (stream.below(count) as usize, stream.below(count) as usize);
    let amount = 1 + stream.below(6) as u32;
    let here = &mut schedule.operations[one];
    match stream.below(7) {
        0 => {
            here.start += amount;
            here.end += amount;
        }
        1 => {
            let back = amount.min(here.start);
            here.start -= back;
            here.end -= back;
        }
        2 => here.end += amount,
        3 => here.machine = stream.below(machines as u64) as u32,
        4 => here.op = stream.below(4) as u32,
        5 => drop(schedule.operations.remove(one)),
        _ => {
            let (a, b) = (schedule.operations[one], schedule.operations[two]);
            (schedule.operations[one].start, schedule.operations[one].end) =
                (b.start, b.start + (a.end - a.start));
            (schedule.operations[two].start, schedule.operations[two].end) =
                (a.start, a.start + (b.end - b.start));
        }
    }
}

#[test]
fn the_checker_agrees_with_its_twin() {
    let mut stream = Key::new(4, "law").open();
    let (mut accepted, mut refused) = (0, 0);
    for (round, task) in (0..12).flat_map(|round| Task::all().map(move |task| (round, task))) {
        let size = if task.fixed_machines() { task.size() } else { Size { jobs: 4, machines: 3 } };
        let instance = generate(task, size, 3, round).unwrap();
        let dispatcher = Dispatcher { rule: DispatchRule::Random, active: false, samples: 1 };
        let schedule = dispatcher.run(&instance, stream.bits()).unwrap();
        assert!(
            plainly_correct(&instance, &schedule) && verify(&instance, &schedule).is_ok(),
            "{}",
            task.name()
        );
        for _ in 0..30 {
            let mut wrong = schedule.clone();
            disturb(&mut wrong, instance.machines(), &mut stream);
            let verdict = verify(&instance, &wrong);
            let context = format!("{}: {verdict:?}: {wrong:?}", task.name());
            assert_eq!(verdict.is_ok(), plainly_correct(&instance, &wrong), "{context}");
            *if verdict.is_ok() { &mut accepted } else { &mut refused } += 1;
        }
    }
    assert!(accepted > 200 && refused > 2000, "{accepted} accepted, {refused} refused: disturb more evenly");
}
