//! The oracle beside a straightforward NumPy implementation, in one run: values must agree, and the ratios of the
//! times are printed, best on the wall and mean on the processor (a busy machine stretches the first).
//!
//! `cargo run --release -p niwaki-exact --example oracle_peer` (set `PYTHON` to an interpreter with NumPy)

#![expect(clippy::print_stdout, reason = "an example that reports on the terminal")]

use niwaki_correction::Surrogate;
use niwaki_correction::family::TESTBED;
use niwaki_exact::{Measurement, Pair, Process, Reward, Table, Workspace};
use serde_json::Value;
use std::error::Error;
use std::process::Command;
use std::time::Instant;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/oracle_numpy.py");

fn main() -> Result<(), Box<dyn Error>> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    for horizon in [6, 8] {
        let output = Command::new(&python).args([SCRIPT, "--horizon", &horizon.to_string()]).output()?;
        if !output.status.success() {
            return Err(format!("{python}: {}", String::from_utf8_lossy(&output.stderr)).into());
        }
        let peer: Value = serde_json::from_slice(&output.stdout)?;
        let (ours, wall, cpu) = measure(Process::new(4, horizon)?)?;
        for (loss, came) in TESTBED.iter().zip(&ours) {
            for (field, came) in [
                ("bias", came.bias),
                ("variance", came.variance),
                ("mse", came.mse),
                ("cosine", came.cosine),
                ("ess", came.ess),
            ] {
                let theirs = peer["values"][loss][field].as_f64().ok_or(format!("no {loss} {field}"))?;
                // The peer sums in plain f64: a bias of zero comes out as rounding.
                if (came - theirs).abs() > 1e-9 * theirs.abs() + 1e-14 {
                    return Err(format!("{loss} {field}: {came:e} here, {theirs:e} there").into());
                }
            }
        }
        let theirs = |clock: &str| peer[clock].as_f64().ok_or(format!("no {clock} time"));
        println!(
            "V = 4, T = {horizon}, 12 variants with gradients, values agree; NumPy {}",
            peer["numpy"].as_str().unwrap_or("of unknown version")
        );
        for (clock, ours, theirs) in [("wall", wall, theirs("wall")?), ("cpu", cpu, theirs("cpu")?)] {
            println!(
                "  {clock:4} niwaki {:8.2} ms   NumPy {:8.1} ms   ratio {:.1}",
                1e3 * ours,
                1e3 * theirs,
                theirs / ours
            );
        }
    }
    Ok(())
}

/// The twelve variants on the fixture's pair, and the best wall and mean processor time of forty from logits
/// to cosines.
fn measure(process: Process) -> Result<(Vec<Measurement>, f64, f64), Box<dyn Error>> {
    let index = |edge: usize| (4 * (edge / process.vocab()) + edge % process.vocab()) as f64;
    let old: Vec<f64> = (0..process.edges()).map(|edge| 0.1 * (1.0 + index(edge)).sin()).collect();
    let new: Vec<f64> =
        (0..process.edges()).map(|edge| old[edge] + 0.7 * (2.0 + 3.0 * index(edge)).cos()).collect();
    let losses: Vec<Surrogate> = TESTBED.iter().map(|name| name.parse()).collect::<Result<_, _>>()?;
    let (mut wall, mut measured) = (f64::INFINITY, vec![]);
    // The scheduler counts in ticks: a mean over many runs is finer than any one of them.
    let (runs, start_cpu) = (40, cpu_seconds()?);
    for _ in 0..runs {
        let start = Instant::now();
        let (old, new) = (Table::new(process, &old)?, Table::new(process, &new)?);
        let pair = Pair::new(&old, &new, &Reward::TwoBranch.payoff(process)?)?;
        let mut workspace = Workspace::default();
        measured = losses
            .iter()
            .map(|loss| pair.measure(&loss.without_clip(), &mut workspace))
            .collect::<Result<_, _>>()?;
        wall = wall.min(start.elapsed().as_secs_f64());
    }
    Ok((measured, wall, (cpu_seconds()? - start_cpu) / f64::from(runs)))
}

/// Time that this thread has spent on a processor, from the scheduler's own count.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let counts = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    let nanoseconds: f64 = counts.split_whitespace().next().ok_or("an empty schedstat")?.parse()?;
    Ok(nanoseconds * 1e-9)
}
