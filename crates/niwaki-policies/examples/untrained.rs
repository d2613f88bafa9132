//! What Song's network does before it has learned anything: how far its schedules are above the optimum on average, how many are on
//! time at several deadlines, and how that differs between instances (10 × 5, one machine deciding; of shops with resting windows also
//! how many schedules keep them).
//!
//! `cargo run --release -p niwaki-policies --example untrained -- [INSTANCES] [NETWORKS] [SAMPLES] [SECONDS PER OPTIMUM] [DISTRIBUTION]`

#![expect(clippy::print_stdout, reason = "a measurement is printed")]

use niwaki_nn::{Cpu, Graph, Value};
use niwaki_policies::{Draw, DrawRequest, Error, GraphScratch, HgnnShape, Policy, Rollout};
use niwaki_shop::Limits;
use niwaki_shop::generate::{Task, generate};
use niwaki_shop::optimum::solve;
use niwaki_stream::Key;
use niwaki_tasks::GraphTask;
use rayon::prelude::*;
use std::time::Duration;

const DEADLINES: [f64; 8] = [1.15, 1.20, 1.25, 1.30, 1.40, 1.42, 1.43, 1.45];

fn main() -> Result<(), Error> {
    let number = |place: usize, default: usize| {
        std::env::args().nth(place).and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (count, networks, samples) = (number(1, 100), number(2, 16), number(3, 20));
    let patience = Duration::from_secs(number(4, 12) as u64);
    let named = std::env::args().nth(5).unwrap_or_else(|| Task::Sd1Even.name().to_owned());
    let drawn = Task::named(&named).map_err(niwaki_tasks::Error::from)?;
    let draw = |index| generate(drawn, drawn.size(), 0, index);
    let instances =
        (0..count as u64).map(draw).collect::<Result<Vec<_>, _>>().map_err(niwaki_tasks::Error::from)?;
    let bounds: Vec<_> = instances
        .par_iter()
        .map(|instance| solve(instance, Limits::new(patience, 0), &mut |_| {}).bounds())
        .collect();
    let proven = bounds.iter().filter(|bounds| bounds.proven()).count();
    let task = GraphTask::new(instances, bounds.clone(), count, GraphTask::ORDERS[0].1)?;
    let policy = HgnnShape { sizes: task.sizes(), width: 8, hidden: 128, critic: true }.policy()?;
    let make = move |graph: &Graph, outputs: &[Value]| Ok(Cpu::boxed(graph, outputs, networks));
    let mut engine = make(&policy.graph, &policy.heads().outputs())?;
    for member in 0..networks {
        engine.set_parameters(member, &policy.initial_parameters(member as u64))?;
    }
    // Above the optimum, `[instance][sample]`.
    let (mut scratch, mut gaps) = (GraphScratch::default(), vec![Vec::new(); count]);
    let mut kept = 0;
    for sample in 0..samples {
        let each: Vec<u32> = (0..networks).flat_map(|_| 0..count as u32).collect();
        let mut stream = Key::new(0, "untrained").lane(sample as u64).open();
        let uniforms: Vec<f64> = (0..each.len() * policy.horizon()).map(|_| stream.uniform()).collect();
        let request =
            DrawRequest { lanes: count, instances: &each, how: Draw::Sampled(&uniforms), score: false };
        let mut rollout = Rollout::default();
        policy.draw(engine.as_mut(), &mut scratch, &make, &task, request, &mut rollout)?;
        for (outcome, &instance) in rollout.outcome.iter().zip(&each) {
            kept += usize::from(outcome.violation == 0);
            let optimum = f64::from(bounds[instance as usize].upper);
            gaps[instance as usize].push(f64::from(outcome.makespan) / optimum - 1.0);
        }
    }
    let all: Vec<f64> = gaps.concat();
    println!("{count} instances ({proven} optima proven), {networks} networks, {samples} samples each");
    println!("mean gap {:.3}", all.iter().sum::<f64>() / all.len() as f64);
    println!("rests kept {:.3}", kept as f64 / all.len() as f64);
    for deadline in DEADLINES {
        let share = |gaps: &[f64]| {
            gaps.iter().filter(|gap| **gap <= deadline - 1.0 + 1e-9).count() as f64 / gaps.len() as f64
        };
        let (least, most) = gaps
            .iter()
            .map(|gaps| share(gaps))
            .fold((1.0_f64, 0.0_f64), |(least, most), share| (least.min(share), most.max(share)));
        println!("c = {deadline:.2}: {:.3} on time, {least:.2} to {most:.2} of an instance's", share(&all));
    }
    Ok(())
}
