//! Time to a proven optimum on the paper's shapes, beside CP-SAT with one worker on the same instances in one run.
//!
//! `cargo bench -p niwaki-shop --bench optimum [-- INSTANCES SECONDS]`; without a Python that has `ortools` (see
//! `peers`) only our own times are shown.

#![expect(clippy::print_stdout, reason = "a benchmark reports to the terminal")]

mod peers;

use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::{Limits, optimum};
use std::time::{Duration, Instant};

/// Name, distribution, jobs, machines.
const SHAPES: [(&str, Task, usize, usize); 5] = [
    ("F3 × 12", Task::EasyFlow, 12, 3),
    ("F7 × 20", Task::HardFlow, 20, 7),
    ("F7 × 50", Task::HardFlow, 50, 7),
    ("J8 × 5", Task::JobShop, 8, 5),
    ("FJ10 × 5", Task::Sd1, 10, 5),
];

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<f64>().ok());
    let count = numbers.next().unwrap_or(20.0) as u64;
    let seconds = numbers.next().unwrap_or(10.0);
    let limits = Limits::new(Duration::from_secs_f64(seconds), 1);
    println!("{count} instances each, at most {seconds} s; times in ms; CP-SAT with one worker");
    println!("shape      median     worst  proven | CP-SAT median  proven | least ratio  median ratio");
    let mut peer = peers::CpSat::start(seconds);
    if peer.is_none() {
        println!("(no CP-SAT: {})", peers::HOW);
    }
    for (name, task, jobs, machines) in SHAPES {
        let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        let (mut proven, mut peer_proven) = (0, 0);
        for index in 0..count {
            let instance = generate(task, Size { jobs, machines }, 7, index).expect("a valid size");
            let began = Instant::now();
            let optimum = optimum::solve(&instance, limits, &mut |_| {});
            let time = began.elapsed().as_secs_f64();
            ours.push(1e3 * time);
            proven += u32::from(optimum.proven);
            if let Some(peer) = &mut peer {
                let answer = peer.solve(&instance, None);
                assert!(answer.lower <= optimum.upper && optimum.lower <= answer.upper, "{name} {index}");
                peer_proven += u32::from(answer.proven);
                theirs.push(1e3 * answer.seconds);
                ratios.push(answer.seconds / time);
            }
        }
        let (middle, worst) = (median(&mut ours), ours.iter().copied().fold(0.0, f64::max));
        print!("{name:9} {middle:8.3} {worst:9.3} {proven:7} |");
        if !theirs.is_empty() {
            let (peer, ratio) = (median(&mut theirs), median(&mut ratios));
            print!(" {peer:13.1} {peer_proven:7} | {:11.1} {ratio:13.1}", ratios[0]);
        }
        println!();
    }
}
