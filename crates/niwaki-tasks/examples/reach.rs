//! How close to the optimum random constructions of the paper's job shops come, and how many are on time, under each order.
//!
//! `cargo run --release -p niwaki-tasks --example reach -- [INSTANCES] [SAMPLES]`

#![expect(clippy::print_stdout, reason = "a measurement is printed")]

use niwaki_shop::construct::{JobLanes, JobOrder, Lanes, pick};
use niwaki_shop::generate::{Task, generate};
use niwaki_shop::optimum::job_shop::solve;
use niwaki_shop::{Error, Instance, JobShop, Limits};
use niwaki_stream::Key;
use niwaki_tasks::Reading;
use rayon::prelude::*;
use std::time::Duration;

/// Lanes that play at once.
const BATCH: usize = 256;

/// The optimum, the best makespan of all samples, and how many of them meet each deadline.
struct Reached {
    proven: bool,
    best: f64,
    shares: Vec<f64>,
}

const DEADLINES: [f64; 4] = [1.0, 1.05, 1.1, 1.15];

fn main() -> Result<(), Error> {
    let number = |place: usize, default: usize| {
        std::env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (instances, samples) = (number(1, 128), number(2, 16_384));
    println!(
        "{instances} job shops, {samples} samples each; share of instances whose best sample, and share of"
    );
    println!("samples that, meet c·C* with c = {DEADLINES:?}");
    for (name, order) in Reading::ORDERS {
        let reached = (0..instances as u64)
            .into_par_iter()
            .map(|index| match generate(Task::JobShop, Task::JobShop.size(), 0, index)? {
                Instance::Job(shop) => reach(&shop, index, samples, order),
                _ => Err(Error::Choice("task job-shop: expected a job shop".into())),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let mean = |of: &dyn Fn(&Reached) -> f64| reached.iter().map(of).sum::<f64>() / reached.len() as f64;
        let one = |met: bool| f64::from(u8::from(met));
        let best: Vec<f64> =
            DEADLINES.iter().map(|&c| mean(&|here: &Reached| one(here.best <= c + 1e-9))).collect();
        let shares: Vec<f64> =
            (0..DEADLINES.len()).map(|at| mean(&|here: &Reached| here.shares[at])).collect();
        println!(
            "{name:9}: best of {samples} {best:.3?}, a sample {shares:.4?}, mean best / C* {:.4}, C* proven {:.3}",
            mean(&|here: &Reached| here.best),
            mean(&|here: &Reached| one(here.proven)),
        );
    }
    Ok(())
}

fn reach(shop: &JobShop, index: u64, samples: usize, order: JobOrder) -> Result<Reached, Error> {
    let optimum = solve(shop, Limits::new(Duration::from_secs(10), 0), &mut |_| {});
    let pool = std::slice::from_ref(shop);
    let mut lanes = JobLanes::new(pool, BATCH, order)?;
    let mut stream = Key::new(0, "reach").lane(index).open();
    let (mut actions, mut makespans) = (vec![0; BATCH], Vec::with_capacity(samples));
    while makespans.len() < samples {
        lanes.reset(&[0; BATCH])?;
        for _ in 0..lanes.horizon() {
            for (lane, action) in actions.iter_mut().enumerate() {
                *action = pick(lanes.legal(lane), stream.bits()).unwrap_or(0);
            }
            lanes.step(&actions)?;
        }
        makespans.extend((0..BATCH).map(|lane| f64::from(lanes.makespan(lane)) / f64::from(optimum.upper)));
    }
    let met =
        |c: f64| makespans.iter().filter(|&&here| here <= c + 1e-9).count() as f64 / makespans.len() as f64;
    let best = makespans.iter().copied().fold(f64::INFINITY, f64::min);
    Ok(Reached { proven: optimum.proven, best, shares: DEADLINES.map(met).to_vec() })
}
