//! The oracle beside a straightforward NumPy implementation, in one run, each on as many cores as it takes:
//! values must agree, and the ratio of the best times on the wall, of as many tries, is printed.
//!
//! `cargo run --release -p niwaki-exact --example oracle_peer` (set `PYTHON` to an interpreter with NumPy)

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "an example that reports on the terminal")]

use mimalloc::MiMalloc;
use niwaki_correction::Surrogate;
use niwaki_correction::family::TESTBED;
use niwaki_exact::{Measurement, Pair, Process, Reward, Table};
use serde_json::Value;
use std::error::Error;
use std::process::{Command, ExitCode};
use std::time::Instant;

/// The command's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// What to do where Python fails.
const MEND: &str = "set PYTHON to an interpreter with NumPy (python3 -m pip install numpy)";

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../benches/peers/oracle_numpy.py");

fn main() -> ExitCode {
    match compare() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn compare() -> Result<(), Box<dyn Error>> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    for (horizon, repeats) in [(6, 40), (8, 10), (10, 2)] {
        let output = Command::new(&python)
            .args([SCRIPT, "--horizon", &horizon.to_string(), "--repeat", &repeats.to_string()])
            .output()
            .map_err(|error| format!("{python}: {error}; {MEND}"))?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            return Err(format!("{python}: {}; {MEND}", told.lines().last().unwrap_or("failed")).into());
        }
        let peer: Value = serde_json::from_slice(&output.stdout)?;
        let (ours, wall) = measure(Process::new(4, horizon)?, repeats)?;
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
        println!(
            "V = 4, T = {horizon}, 12 variants with gradients, values agree; NumPy {}",
            peer["numpy"].as_str().unwrap_or("of unknown version")
        );
        let theirs = peer["wall"].as_f64().ok_or("no wall time")?;
        println!(
            "  niwaki {:8.2} ms   NumPy {:8.1} ms   ratio {:.1}",
            1e3 * wall,
            1e3 * theirs,
            theirs / wall
        );
    }
    Ok(())
}

/// The twelve variants on the fixture's pair, and the best time from logits to cosines.
fn measure(process: Process, repeats: usize) -> Result<(Vec<Measurement>, f64), Box<dyn Error>> {
    let index = |edge: usize| (4 * (edge / process.vocab()) + edge % process.vocab()) as f64;
    let old: Vec<f64> = (0..process.edges()).map(|edge| 0.1 * (1.0 + index(edge)).sin()).collect();
    let new: Vec<f64> =
        (0..process.edges()).map(|edge| old[edge] + 0.7 * (2.0 + 3.0 * index(edge)).cos()).collect();
    let losses: Vec<Surrogate> = TESTBED
        .iter()
        .map(|name| Ok(name.parse::<Surrogate>()?.without_clip()))
        .collect::<Result<_, Box<dyn Error>>>()?;
    let (mut wall, mut measured) = (f64::INFINITY, vec![]);
    for _ in 0..repeats {
        let start = Instant::now();
        let (old, new) = (Table::new(process, &old)?, Table::new(process, &new)?);
        let pair = Pair::new(&old, &new, &Reward::TwoBranch.payoff(process)?)?;
        measured = pair.measure_all(&losses)?;
        wall = wall.min(start.elapsed().as_secs_f64());
    }
    Ok((measured, wall))
}
