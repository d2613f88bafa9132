//! `niwaki solve` for the special problems: flow shops, job shops, single machines and their like.

use super::found::Found;
use super::search::{self, STOP, beside_a_bar};
use super::{Args, name};
use crate::commands::policy;
use crate::output::Piece;
use crate::terminal;
use anyhow::{Context, anyhow};
use indicatif::ProgressBar;
use niwaki_policies::Decoded;
use niwaki_shop::gantt::Gantt;
use niwaki_shop::planning::{self, Method, Solved};
use niwaki_shop::{Bounds, Instance, Limits, Optimum, formats, optimum};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

/// Schedules one of the special problems.
pub(super) fn run(args: &Args, instance: Instance) -> anyhow::Result<Found> {
    args.check_threads()?;
    let deadline = args
        .deadline
        .as_deref()
        .map(|text| {
            text.parse::<u32>().map_err(|_| {
                anyhow!("--deadline {text}: this instance has no dates; expected a whole number")
            })
        })
        .transpose()?;
    let searched = if args.policy.is_some() { args.improve } else { args.method.is_timed() };
    let mut found = Found { searched, ..Found::default() };
    found.lines.push(format!(
        "{}: {}, {} jobs, {} machines, {} operations",
        name(&args.file),
        instance.kind(),
        instance.jobs(),
        instance.machines(),
        instance.operations()
    ));
    let (instance, solved, said) = find(args, instance)?;
    found.fact("instance", name(&args.file));
    found.fact("kind", instance.kind());
    found.fact("jobs", instance.jobs());
    found.fact("machines", instance.machines());
    found.fact("operations", instance.operations());
    found.lines.extend(said);
    judge(&mut found, &instance, &solved, deadline);
    found.files.push(Piece::new("schedule.csv", formats::write_schedule_csv(&solved.schedule)));
    found.files.push(Piece::json("schedule.json", &formats::write_schedule_json(&solved.schedule)));
    found.chart = Gantt {
        title: name(&args.file),
        machines: instance.machines(),
        deadline,
        bound: (!solved.makespan.proven()).then_some(solved.makespan.lower),
        details: planning::details(&instance, &solved.schedule),
        ..Gantt::default()
    };
    found.schedule = solved.schedule;
    Ok(found)
}

/// The instance as its method reads it, what was found, and what there is to say of the way.
fn find(args: &Args, instance: Instance) -> anyhow::Result<(Instance, Solved, Option<String>)> {
    let Some(folder) = &args.policy else {
        let limits = Limits::new(args.time, args.seed).on(args.threads()).stopped_by(&STOP);
        let found = look(args.method, &instance, limits)?;
        return Ok((instance, found, None));
    };
    let began = Instant::now();
    let mut trained = policy::open(folder, args.decode)?;
    let accepted = trained.accept(instance.clone()).with_context(|| args.file.display().to_string())?;
    // A job shop is searched as what it is, also where the policy reads it as a flexible one.
    let job_shop = matches!((&instance, &accepted), (Instance::Job(_), Instance::Flexible(_)));
    let instance = if job_shop { instance } else { accepted.clone() };
    let how = args.decode.decoding(args.seed, &trained);
    let mut decode = || {
        let bar = terminal::progress(trained.steps(&accepted, how) as u64, "decoding");
        let found = trained.schedule(&accepted, how, &mut |steps| bar.inc(steps as u64));
        bar.finish_and_clear();
        found
    };
    let (found, decoded) = if args.improve {
        // Two searches, at the same time.
        let limits = Limits::new(args.time.saturating_sub(began.elapsed()), args.seed);
        let limits = limits.on(args.threads().div_ceil(2)).stopped_by(&STOP);
        improve(&instance, limits, decode)?
    } else {
        decode()?
    };
    let said = format!(
        "policy {}, {} iterations: {} schedules tried, the best by {}",
        folder.display(),
        trained.iteration(),
        decoded.tried,
        decoded.way
    );
    let found = planning::judge(&instance, found)?;
    Ok((instance, found, Some(said)))
}

/// The better of two searches at the same time, on a thread each: one from the policy's schedule, and the one that is made without a
/// policy. So a policy costs nothing where the search needs none.
fn improve(
    instance: &Instance,
    limits: Limits,
    decode: impl FnOnce() -> Result<(Optimum, Decoded), niwaki_train::Error>,
) -> anyhow::Result<(Optimum, Decoded)> {
    /// Raised by the search that has proven its schedule.
    static OVER: AtomicBool = AtomicBool::new(false);
    let done = |found: Optimum| {
        OVER.fetch_or(found.proven, Ordering::Relaxed);
        found
    };
    OVER.store(false, Ordering::Relaxed);
    let (began, limits) = (Instant::now(), limits.stopped_by(&OVER));
    thread::scope(|scope| {
        let alone = scope.spawn(|| done(optimum::solve(instance, limits, &mut |_| {})));
        let decoded = decode();
        OVER.fetch_or(decoded.is_err(), Ordering::Relaxed);
        let left = limits.within(limits.time.saturating_sub(began.elapsed()));
        let found = decoded.map(|(found, decoded)| {
            let found = beside_a_bar(Some(left.time), |bar| {
                done(optimum::solve_from(instance, &found.schedule, left, &mut |bounds| show(bar, bounds)))
            });
            (found, decoded)
        });
        let alone = alone.join().map_err(|_| anyhow!("the search without the policy failed"))?;
        let (found, decoded) = found?;
        Ok((better(found, alone), decoded))
    })
}

/// The shorter of two schedules, the first of two alike, with the better of their bounds.
fn better(one: Optimum, other: Optimum) -> Optimum {
    let lower = one.lower.max(other.lower);
    Optimum::new(lower, if other.upper < one.upper { other.schedule } else { one.schedule })
}

/// Searches, beside a bar where that takes time.
fn look(method: Method, instance: &Instance, limits: Limits) -> anyhow::Result<Solved> {
    if !method.is_timed() {
        return Ok(planning::solve(instance, method, limits, &mut |_| {})?);
    }
    Ok(beside_a_bar(Some(limits.time), |bar| {
        planning::solve(instance, method, limits, &mut |bounds| show(bar, bounds))
    })?)
}

fn show(bar: &ProgressBar, bounds: Bounds) {
    search::found();
    let gap = 100.0 * bounds.gap();
    bar.set_message(format!("makespan {}, bound {}, gap {gap:.1}%", bounds.upper, bounds.lower));
}

/// What a schedule is worth, line by line; the last five speak of what was minimised.
fn judge(found: &mut Found, instance: &Instance, solved: &Solved, deadline: Option<u32>) {
    let (verdict, score) = (&solved.verdict, &solved.score);
    if matches!(instance, Instance::Flexible(shop) if shop.has_windows()) {
        found.lines.push(format!("violation {}", verdict.violation));
        found.fact("violation", verdict.violation);
    }
    if matches!(instance, Instance::Lags(_) | Instance::Single(_)) {
        found.lines.push(format!("late {} of {} jobs", verdict.late, instance.jobs()));
        found.fact("late", verdict.late);
    }
    if let Some(deadline) = deadline {
        found.hold(verdict.makespan, deadline, &deadline.to_string());
    }
    if score.objective != "makespan" {
        found.lines.push(format!("makespan {}", verdict.makespan));
    }
    found.fact("makespan", verdict.makespan);
    found.lines.push(format!("objective {}", score.objective));
    found.fact("objective", score.objective);
    found.lines.push(format!("{} {}", score.objective, score.value));
    found.fact("value", score.value);
    found.lines.push(format!("bound {}", score.bound));
    found.fact("bound", score.bound);
    found.lines.push(format!("proven {}", if score.proven() { "yes" } else { "no" }));
    found.fact("proven", score.proven());
    found.lines.push(format!("gap {:.1}%", 100.0 * score.gap()));
    found.fact("gap", score.gap());
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_shop::generate::{Size, Task, generate};
    use std::time::Duration;

    #[test]
    fn a_policy_takes_nothing_from_the_search() {
        let instance = generate(Task::L2d, Size { jobs: 5, machines: 4 }, 3, 0).unwrap();
        let limits = Limits::new(Duration::from_secs(5), 1);
        let known = optimum::solve(&instance, limits, &mut |_| {});
        assert!(known.proven);
        // A poor schedule to start from: the rule's.
        let poor = planning::solve(&instance, "rule:lwkr".parse().unwrap(), limits, &mut |_| {}).unwrap();
        let began = Instant::now();
        let decode = || {
            let (schedule, outcome) = (poor.schedule.clone(), niwaki_tasks::Outcome::default());
            Ok((Optimum::new(0, schedule.clone()), Decoded { schedule, outcome, way: "rule", tried: 1 }))
        };
        let (found, _) = improve(&instance, limits, decode).unwrap();
        assert_eq!((found.lower, found.upper, found.proven), (known.lower, known.upper, true));
        assert!(began.elapsed() < Duration::from_secs(5), "what one has proven ends the other");
        // The shorter one counts, with the better of the bounds.
        let short = Optimum::new(1, known.schedule.clone());
        let long = Optimum::new(2, poor.schedule.clone());
        for both in [better(short.clone(), long.clone()), better(long, short)] {
            assert_eq!((both.lower, both.upper), (2, known.upper));
        }
    }
}
