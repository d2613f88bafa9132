//! How often is the verdict right on sampled regimes? `cargo run --release -p niwaki-advise --example regimes`
//!
//! Pairs of policies over 4 and 24 independent steps, drifted by 0.02 to 12 along noise or towards what pays. A dump of 1,024
//! trajectories is judged, and held against the bias of PPO's estimate. That truth needs no weights: the mean of (R − 1) r A
//! at a step is what A averages where the new policy plays up to that step, less what it averages where it plays that step
//! alone. Prints one line of JSON per regime.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

mod regime;

use niwaki_advise::measure::{Measure, Settings};
use niwaki_advise::verdict::Verdict;
use niwaki_stream::Key;
use regime::{Regime, Way};

const BATCH: f64 = 256.0;
const LANES: usize = 1024;
const DRAWS: u64 = 65_536;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(5), |text| text.parse())?;
    for horizon in [4, 24] {
        for drift in [0.02, 0.2, 0.8, 2.0, 4.0, 7.0, 12.0] {
            for way in [Way::Noise, Way::Reward] {
                for seed in 0..seeds {
                    let regime = Regime::new(horizon, drift, way, seed);
                    let mut measure = Measure::new(Settings { batch: Some(BATCH), ..Settings::default() });
                    let mut noise = Key::new(seed, "dump").open();
                    regime.add(LANES, &mut noise, &mut measure)?;
                    let verdict = Verdict::new(&measure.finish());
                    let (bias, error, spread) = truth(&regime, seed);
                    let unit = spread / BATCH.sqrt();
                    println!(
                        "{}",
                        serde_json::json!({
                            "horizon": horizon, "drift": drift, "way": format!("{way:?}").to_lowercase(), "seed": seed,
                            "verdict": verdict.action, "says": verdict.says,
                            "to_noise": bias.abs() / unit, "error": error / unit,
                        })
                    );
                }
            }
        }
    }
    Ok(())
}

/// Σ b with its standard error, and the spread of a trajectory's Σ r A.
fn truth(regime: &Regime, seed: u64) -> (f64, f64, f64) {
    let (mut first, mut second) = ([0.0; 2], [0.0; 2]);
    let mut add = |at: usize, value: f64| {
        first[at] += value;
        second[at] += value * value;
    };
    for lane in 0..DRAWS {
        // The same uniforms for every mixture, so that differences are of policies alone.
        let noise = || Key::new(seed, "truth").lane(lane).open();
        let pays = |moved: &dyn Fn(usize) -> bool| regime.draw(&mut noise(), moved).1;
        let steps = 1..regime.old.len();
        add(0, steps.map(|t| pays(&|step| step <= t) - pays(&|step| step == t)).sum());
        let (tokens, reward) = regime.draw(&mut noise(), |_| false);
        let ratio = |(t, &a): (usize, &usize)| (regime.new[t][a] - regime.old[t][a]).exp();
        add(1, tokens.iter().enumerate().map(ratio).sum::<f64>() * (reward - regime.mean));
    }
    let count = DRAWS as f64;
    let deviation = |at: usize| (second[at] / count - (first[at] / count).powi(2)).max(0.0).sqrt();
    (first[0] / count, deviation(0) / count.sqrt(), deviation(1))
}
