//! Every optimum equals CP-SAT's on the paper's shapes. Runs where `NIWAKI_CPSAT_PYTHON` names a Python with
//! `ortools`. `NIWAKI_CPSAT_COUNT` changes the number of instances per shape (200), `NIWAKI_CPSAT_SECONDS` the seconds
//! that each search has for each instance (20), and `NIWAKI_CPSAT_SHAPES` names some of the shapes, with commas between;
//! `NIWAKI_CPSAT_FIRST` skips instances, so that several processes can share the work.
//!
//! CP-SAT first solves the instance unaided. Where it proves nothing, it is told our schedule and asked whether there
//! is a shorter one: what it then proves is the lower bound, by itself. `NIWAKI_CPSAT_UNAIDED=no` leaves out the first
//! question.

use super::peers::{CpSat, HOW};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::optimum;
use niwaki_shop::{Limits, verify};
use std::time::{Duration, Instant};

/// Name, distribution, jobs, machines.
const SHAPES: [(&str, Task, usize, usize); 6] = [
    ("F3x12", Task::EasyFlow, 12, 3),
    ("J8x5", Task::JobShop, 8, 5),
    ("F7x20", Task::HardFlow, 20, 7),
    ("FJ10x5", Task::Flexible, 10, 5),
    ("FJW10x5", Task::Windows, 10, 5),
    ("F7x50", Task::HardFlow, 50, 7),
];

#[test]
fn optima_equal_cpsat() {
    let setting = |name: &str, usual: u64| std::env::var(name).map_or(usual, |text| text.parse().unwrap());
    let (count, seconds) = (setting("NIWAKI_CPSAT_COUNT", 200), setting("NIWAKI_CPSAT_SECONDS", 20));
    let first = setting("NIWAKI_CPSAT_FIRST", 0);
    let wanted = std::env::var("NIWAKI_CPSAT_SHAPES").ok();
    let Some(mut peer) = CpSat::start(seconds as f64) else {
        println!("skipped: {HOW}");
        return;
    };
    let skip = std::env::var("NIWAKI_CPSAT_UNAIDED").is_ok_and(|answer| answer == "no");
    let limits = Limits::new(Duration::from_secs(seconds), 1);
    println!("shape,index,lower,upper,seconds,cpsat_lower,cpsat_upper,cpsat_seconds,told_lower,told_seconds");
    for (name, task, jobs, machines) in SHAPES {
        if wanted.as_ref().is_some_and(|wanted| wanted.split(',').all(|one| one != name)) {
            continue;
        }
        let (mut ours, mut unaided, mut aided, mut equal) = (0, 0, 0, 0);
        for index in first..first + count {
            let instance = generate(task, Size { jobs, machines }, 5, index).unwrap();
            let began = Instant::now();
            let optimum = optimum::solve(&instance, limits, &mut |_| {});
            let spent = began.elapsed().as_secs_f64();
            assert_eq!(
                verify(&instance, &optimum.schedule).unwrap().makespan,
                optimum.upper,
                "{name} {index}"
            );
            let alone = (!skip).then(|| peer.solve(&instance, None));
            let settled = alone.is_some_and(|alone| alone.proven);
            let second = (!settled).then(|| peer.solve(&instance, Some(&optimum.schedule)));
            for answer in [alone, second].into_iter().flatten() {
                assert!(answer.lower <= optimum.upper && optimum.lower <= answer.upper, "{name} {index}");
                if optimum.proven && answer.proven {
                    assert_eq!(optimum.upper, answer.upper, "{name} {index}");
                    equal += 1;
                }
            }
            ours += u32::from(optimum.proven);
            unaided += u32::from(settled);
            aided += u32::from(second.is_some_and(|second| second.proven));
            let alone = alone
                .map_or(",,".to_owned(), |one| format!("{},{},{:.3}", one.lower, one.upper, one.seconds));
            let told = second.map_or(",".to_owned(), |one| format!("{},{:.3}", one.lower, one.seconds));
            println!("{name},{index},{},{},{spent:.4},{alone},{told}", optimum.lower, optimum.upper);
        }
        println!(
            "{name}: of {count}, proven here {ours}, by CP-SAT unaided {unaided}, by CP-SAT told our schedule \
             {aided} more; by both and equal {equal}"
        );
    }
}
