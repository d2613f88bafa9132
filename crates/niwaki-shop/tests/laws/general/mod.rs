//! General shops: the checker against a slow one, the search against enumeration, bounds below optima.

mod cpsat;
mod dated;
mod draw;
mod slow;

use draw::Features;
use niwaki_shop::general::{Measure, Objective, Past, Shop, solve, verify};
use niwaki_shop::{Limits, Placed, Schedule};
use niwaki_stream::Key;
use std::time::Duration;

const LIMITS: Limits = Limits::new(Duration::from_secs(20), 1);

fn answer(shop: &Shop, milliseconds: u64) -> niwaki_shop::general::Answer {
    let limits = LIMITS.within(Duration::from_millis(milliseconds));
    solve(shop, limits, Past::default(), &mut |_| {}).unwrap()
}

/// Enumerates drawn shops of three jobs; the search must find the same optimum and prove it, and no bound may exceed it.
fn agrees(features: Features, objective: &str, seed: u64, count: u64) {
    for index in 0..count {
        let mut stream = Key::new(seed, "laws/general").iteration(index).open();
        let shop = draw::shop(&mut stream, features, 3, objective);
        let optimum = slow::optimum(&shop);
        let found = answer(&shop, 20_000);
        assert_eq!(found.verdict.values, optimum, "{objective}, instance {index}: {shop:?}");
        assert!(found.proven(), "{objective}, instance {index}: {shop:?}");
        // Without the time for a proof the bounds alone speak.
        let bounds = answer(&shop, 0).bounds;
        assert!(
            bounds[0] <= optimum[0],
            "{objective}, instance {index}: {bounds:?} above {optimum:?}: {shop:?}"
        );
    }
}

#[test]
fn each_feature_reaches_the_enumerated_optimum() {
    let plain = Features::default();
    agrees(Features { modes: true, ..plain }, "makespan", 1, 12);
    agrees(Features { dates: true, ..plain }, "tardiness", 2, 12);
    agrees(Features { dates: true, windows: true, ..plain }, "tardy-jobs, flow-time", 3, 12);
    agrees(Features { waits: true, dates: true, ..plain }, "max-tardiness, makespan", 4, 12);
    agrees(Features { setups: true, ..plain }, "makespan, setup-time", 5, 12);
    agrees(Features { calendars: true, ..plain }, "makespan", 6, 12);
}

#[test]
fn mixtures_reach_the_enumerated_optimum() {
    agrees(Features::ALL, "3*tardiness + setup-time, makespan", 7, 12);
    agrees(Features::ALL, "makespan + flow-time", 8, 12);
}

/// The same with deadlines, latest ends and longest waits, not all of which can be kept.
#[test]
fn longest_waits_reach_the_enumerated_optimum() {
    let plain = Features::default();
    let rows = [
        (Features { waits: true, dates: true, ..plain }, "max-tardiness, makespan"),
        (Features { windows: true, dates: true, ..plain }, "flow-time"),
        (Features { calendars: true, setups: true, waits: true, ..plain }, "makespan + setup-time"),
        (Features { modes: true, waits: true, calendars: true, ..plain }, "makespan"),
    ];
    let (mut possible, mut impossible) = (0, 0);
    for (row, (features, objective)) in rows.into_iter().enumerate() {
        for index in 0..12 {
            let mut stream = Key::new(14 + row as u64, "laws/general").iteration(index).open();
            let shop = draw::shop(&mut stream, features, 3, objective);
            let shop = draw::harden(&mut stream, &shop);
            let limits = LIMITS.within(Duration::from_secs(20));
            let found = solve(&shop, limits, Past::default(), &mut |_| {});
            if let Some(optimum) = slow::optimum_within_waits(&shop) {
                let found = found.unwrap();
                assert_eq!(found.verdict.values, optimum, "{objective}, instance {index}: {shop:?}");
                assert!(found.proven(), "{objective}, instance {index}: {shop:?}");
                possible += 1;
            } else {
                let line = found.unwrap_err().to_string();
                let said = line.contains("there is no schedule") || line.contains("cannot end before");
                assert!(said, "{objective}, instance {index}: {line}");
                impossible += 1;
            }
        }
    }
    assert!(possible > 30 && impossible > 0, "{possible} possible, {impossible} not");
}

/// Moves parts of a correct schedule about; the two checkers must agree on every result.
#[test]
fn the_checker_agrees_with_the_slow_one() {
    let (mut accepted, mut refused) = (0, 0);
    for index in 0..60 {
        let mut stream = Key::new(9, "laws/general").iteration(index).open();
        let mut shop = draw::shop(&mut stream, Features::ALL, 3, "tardiness, makespan");
        if index % 3 == 0 {
            shop = shop.with_objective("2*earliness + tardiness, setup-time".parse().unwrap()).unwrap();
        }
        let right = answer(&shop, 5).schedule;
        assert_eq!(verify(&shop, &right).ok().map(|verdict| verdict.values), slow::judge(&shop, &right));
        for _ in 0..40 {
            let mut wrong = Schedule { operations: right.operations.clone() };
            let place = stream.below(wrong.operations.len() as u64) as usize;
            let shift = stream.below(4) as u32;
            let here: &mut Placed = &mut wrong.operations[place];
            match stream.below(5) {
                0 => (here.start, here.end) = (here.start + shift, here.end + shift),
                1 => here.end += shift,
                2 => {
                    (here.start, here.end) =
                        (here.start.saturating_sub(shift), here.end.saturating_sub(shift))
                }
                3 => here.machine = 1 - here.machine,
                _ => here.start = here.start.saturating_sub(shift),
            }
            let (fast, slow) = (verify(&shop, &wrong), slow::judge(&shop, &wrong));
            assert_eq!(
                fast.as_ref().ok().map(|verdict| verdict.values.clone()),
                slow,
                "{fast:?}: {wrong:?} of {shop:?}"
            );
            if slow.is_some() { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(accepted > 100 && refused > 500, "{accepted} accepted, {refused} refused");
}

#[test]
fn what_has_started_stays() {
    for index in 0..20 {
        let mut stream = Key::new(11, "laws/general").iteration(index).open();
        let shop = draw::shop(&mut stream, Features::ALL, 4, "makespan");
        let first = answer(&shop, 5);
        let now = first.verdict.of(Measure::Makespan) as u32 / 2;
        let past = Past { schedule: Some(&first.schedule), fixed_until: Some(now) };
        let other = shop.clone().with_objective("flow-time".parse().unwrap()).unwrap();
        let second = solve(&other, LIMITS.within(Duration::from_millis(20)), past, &mut |_| {}).unwrap();
        for (one, two) in first.schedule.operations.iter().zip(&second.schedule.operations) {
            if one.start < now {
                assert_eq!(one, two, "instance {index}");
            } else {
                assert!(two.start >= now, "instance {index}: {two:?} before {now}");
            }
        }
    }
}

#[test]
fn rounds_give_one_schedule_on_any_number_of_threads() {
    let mut stream = Key::new(12, "laws/general").open();
    let limits = LIMITS.within(Duration::MAX).for_rounds(3);
    // One that is annealed, and one whose job shop is searched.
    for (features, objective) in [
        (Features::ALL, "tardiness, makespan"),
        (Features { modes: true, ..Features::default() }, "makespan"),
    ] {
        let shop = draw::shop(&mut stream, features, 40, objective);
        let run = |threads| solve(&shop, limits.on(threads), Past::default(), &mut |_| {}).unwrap();
        let first = run(1);
        for threads in [1, 2, 3, 8] {
            let other = run(threads);
            assert_eq!(
                first.schedule.operations, other.schedule.operations,
                "{objective}, {threads} threads"
            );
            assert_eq!(first.bounds, other.bounds, "{objective}, {threads} threads");
        }
        assert!(objective == "makespan" || !first.proven(), "what is optimal is the same in any case");
    }
}

/// By the clock, what is proven is the same again with the same number of threads, and as good with any.
#[test]
fn threads_prove_what_one_proves() {
    for index in 0..8 {
        let mut stream = Key::new(31, "laws/general").iteration(index).open();
        let features =
            if index % 2 == 0 { Features::ALL } else { Features { modes: true, ..Features::default() } };
        let shop = draw::shop(&mut stream, features, 4 + index as usize, "makespan");
        let run = |threads| solve(&shop, LIMITS.on(threads), Past::default(), &mut |_| {}).unwrap();
        let alone = run(1);
        assert!(alone.proven(), "instance {index}");
        for threads in [2, 3, 5] {
            let (one, other) = (run(threads), run(threads));
            assert_eq!(one.verdict.values, alone.verdict.values, "instance {index}, {threads} threads");
            assert!(one.proven(), "instance {index}, {threads} threads");
            assert_eq!(
                one.schedule.operations, other.schedule.operations,
                "instance {index}, {threads} threads"
            );
        }
    }
}

/// More operations than are enumerated: the bounds of a long proof stay below every schedule that another seed finds.
#[test]
fn bounds_by_refutation_are_below_every_schedule() {
    let mut raised = 0;
    for index in 0..6 {
        let mut stream = Key::new(30, "laws/general").iteration(index).open();
        let shop = draw::shop(&mut stream, Features::ALL, 20, "tardiness");
        let run = |seed, rounds| {
            let limits = Limits::new(Duration::MAX, seed).for_rounds(rounds);
            solve(&shop, limits, Past::default(), &mut |_| {}).unwrap()
        };
        let first = answer(&shop, 0).bounds;
        let (proven, other) = (run(1, 4), run(2, 4));
        assert!(proven.bounds[0] <= other.verdict.values[0], "instance {index}: {shop:?}");
        assert!(first[0] <= proven.bounds[0], "instance {index}: {shop:?}");
        raised += u32::from(first[0] < proven.bounds[0]);
    }
    assert!(raised >= 3, "raised {raised} of 6");
}

#[test]
fn impossible_deadlines_are_named() {
    let mut stream = Key::new(13, "laws/general").open();
    let shop = draw::shop(&mut stream, Features::default(), 2, "makespan");
    let mut jobs = shop.jobs().to_vec();
    jobs[1].deadline = Some(0);
    let parts = niwaki_shop::general::Parts {
        jobs,
        machines: shop.machines().to_vec(),
        precedences: shop.precedences().to_vec(),
        setups: shop.setups().clone(),
        objective: Objective::only(Measure::Makespan),
        horizon: shop.horizon(),
    };
    let shop = Shop::new(parts).unwrap();
    let line = solve(&shop, LIMITS, Past::default(), &mut |_| {}).unwrap_err().to_string();
    assert!(line.starts_with("job j1: its deadline is 0, but it cannot end before "), "{line}");
}
