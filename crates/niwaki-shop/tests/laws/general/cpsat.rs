//! The search reaches CP-SAT's optimum, feature by feature and in mixtures, and proves it where its exact part applies. Runs where `NIWAKI_CPSAT_PYTHON` names a Python
//! with `ortools`; `NIWAKI_CPSAT_COUNT` changes the number of shops per row (200).

use super::draw::{self, Features};
use crate::optimum::peers::{HOW, PYTHON};
use niwaki_shop::Limits;
use niwaki_shop::general::{Past, Precedence, Progress, Shop, solve};
use niwaki_stream::Key;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Name, features, longest waits and deadlines, objective.
const ROWS: [(&str, Features, bool, &str); 9] = [
    ("modes", Features { modes: true, ..NONE }, false, "makespan"),
    ("dates", Features { dates: true, ..NONE }, false, "tardiness"),
    ("tardy jobs", Features { dates: true, windows: true, ..NONE }, false, "tardy-jobs, flow-time"),
    ("waits", Features { waits: true, dates: true, ..NONE }, true, "max-tardiness, makespan"),
    ("setups", Features { setups: true, ..NONE }, false, "makespan, setup-time"),
    ("calendars", Features { calendars: true, ..NONE }, false, "makespan"),
    ("windows", Features { windows: true, dates: true, ..NONE }, true, "flow-time"),
    ("mixture", Features::ALL, false, "3*tardiness + setup-time, makespan"),
    ("mixture, hard", Features::ALL, true, "tardiness, makespan"),
];

/// Raised once the search has reached what CP-SAT has proven.
static ENOUGH: AtomicBool = AtomicBool::new(false);

const NONE: Features =
    Features { modes: false, dates: false, windows: false, waits: false, setups: false, calendars: false };

#[test]
fn optima_equal_cpsat() {
    let Ok(python) = std::env::var(PYTHON) else {
        println!("skipped: {HOW}");
        return;
    };
    let count = std::env::var("NIWAKI_CPSAT_COUNT").map_or(200, |text| text.parse().unwrap());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/cpsat_general.py");
    let mut process = Command::new(python)
        .args([script, "20"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = process.stdin.take().unwrap();
    let mut output = BufReader::new(process.stdout.take().unwrap());
    println!("feature,objective,shops,equal,proven here too,infeasible,unproven by CP-SAT");
    for (row, (name, features, hard, objective)) in ROWS.into_iter().enumerate() {
        let (mut equal, mut proven, mut infeasible, mut unproven) = (0, 0, 0, 0);
        for index in 0..count {
            let mut stream = Key::new(20 + row as u64, "laws/cpsat").iteration(index).open();
            let mut shop = draw::shop(&mut stream, features, 4, objective);
            if hard {
                shop = draw::harden(&mut stream, &shop);
            }
            writeln!(input, "{}", describe(&shop)).unwrap();
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            let answer: Value =
                serde_json::from_str(&line).expect("an answer in JSON: is `ortools` installed?");
            // Where the exact part gives up, the annealing does not know when it is done: it is told.
            ENOUGH.store(false, Ordering::Relaxed);
            let mut told = |progress: &Progress<'_>| {
                let reached = hard && progress.violation == 0 && json!(progress.values) == answer["values"];
                ENOUGH.store(reached, Ordering::Relaxed);
            };
            let hopeless = answer["values"].is_null();
            let time = if hopeless { Duration::from_millis(100) } else { Duration::from_secs(20) };
            let limits = Limits::new(time, 1).stopped_by(&ENOUGH);
            let ours = solve(&shop, limits, Past::default(), &mut told);
            if answer["proven"] != json!(true) {
                unproven += 1;
                continue;
            }
            if answer["values"].is_null() {
                assert!(ours.is_err(), "{name} {index}: CP-SAT finds no schedule, we do");
                infeasible += 1;
                continue;
            }
            let ours = ours.unwrap_or_else(|error| panic!("{name} {index}: {error}: {shop:?}"));
            assert_eq!(json!(ours.verdict.values), answer["values"], "{name} {index}: {shop:?}");
            assert!(ours.proven() || hard, "{name} {index}: not proven: {shop:?}");
            equal += 1;
            proven += u32::from(ours.proven());
        }
        let objective = objective.replace(',', " >");
        println!("{name},{objective},{count},{equal},{proven},{infeasible},{unproven}");
    }
    drop(input);
    process.wait().unwrap();
}

/// The shop as the script reads it.
fn describe(shop: &Shop) -> Value {
    let families = shop.setups().families.len() as u32;
    let machine = |(number, machine): (usize, &niwaki_shop::general::Machine)| {
        let row = |from| {
            (0..families).map(|to| shop.setups().time(number, Some(from), Some(to))).collect::<Vec<_>>()
        };
        let needed = shop.setups().of_machine.get(number).copied().flatten().is_some();
        let setups = needed.then(|| (0..families).map(row).collect::<Vec<_>>());
        json!({"available": machine.available, "family": machine.family, "closed": machine.calendar.closed(), "setups": setups})
    };
    let operation = |number: usize| {
        let operation = shop.operation(number);
        let modes: Vec<_> = operation.modes.iter().map(|mode| json!([mode.machine, mode.time])).collect();
        json!({
            "job": shop.place_of(number).0, "modes": modes, "earliest": operation.earliest, "latest": operation.latest,
            "interruptible": operation.interruptible, "family": operation.family
        })
    };
    let job = |job: &niwaki_shop::general::Job| json!({"release": job.release, "due": job.due, "deadline": job.deadline, "weight": job.weight});
    let link = |link: &Precedence| json!([link.before, link.after, link.min, link.max]);
    let sum = |sum: &niwaki_shop::general::Sum| {
        sum.terms.iter().map(|(factor, measure)| json!([factor, measure.name()])).collect::<Vec<_>>()
    };
    json!({
        "horizon": 90,
        "machines": shop.machines().iter().enumerate().map(machine).collect::<Vec<_>>(),
        "jobs": shop.jobs().iter().map(job).collect::<Vec<_>>(),
        "operations": (0..shop.operations()).map(operation).collect::<Vec<_>>(),
        "precedences": shop.precedences().iter().map(link).collect::<Vec<_>>(),
        "sums": shop.objective().sums.iter().map(sum).collect::<Vec<_>>()
    })
}
