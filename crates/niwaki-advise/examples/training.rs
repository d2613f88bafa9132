//! How often does the verdict agree with what training shows? `cargo run --release -p niwaki-advise --example training`
//!
//! For each setting of a tabular policy on the enumerable testbed, PPO is trained, the first iterations are dumped and
//! judged, and the same seeds are trained with a short corrected warmup. Prints one line of JSON per setting, with the verdict on
//! the first seed's dump and what was measured there, and every seed's own verdict, headroom and gain.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

#[path = "tabular/mod.rs"]
mod tabular;

use niwaki_advise::measure::{Measure, Measured, Settings};
use niwaki_advise::trajectory::Chunk;
use niwaki_advise::verdict::Verdict;
use niwaki_correction::Correction;
use niwaki_exact::Reward;
use niwaki_stats::SignTest;
use tabular::Run;

const DUMPED: usize = 8;
const WARMUP: usize = 25;
const ALPHA: f64 = 0.1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(8), |text| text.parse())?;
    let alpha: f64 = std::env::args().nth(2).map_or(Ok(ALPHA), |text| text.parse())?;
    let mut settings = Vec::new();
    for reward in Reward::LADDER {
        for (reuse, rate) in [(1, 0.03), (4, 0.03), (4, 0.3), (12, 0.3), (12, 1.0)] {
            for lanes in [32, 256] {
                settings.push((reward, reuse, rate, lanes, 0.0));
            }
        }
    }
    settings.push((Reward::TwoBranch, 4, 0.3, 64, 3.0));
    settings.push((Reward::TwoBranch, 12, 0.3, 64, 3.0));
    for (reward, reuse, rate, lanes, priming) in settings {
        let run = Run {
            reward,
            horizon: 5,
            lanes,
            reuse,
            rate,
            clip: Some(0.2),
            iterations: 60,
            priming,
            warmup: None,
            seed: 0,
        };
        let tempered = Correction::tempered(alpha)?;
        let (mut warmed, mut plain) = (Vec::new(), Vec::new());
        let (mut judged, mut first) = (Vec::new(), None);
        for seed in 0..seeds {
            let ppo = Run { seed, ..run }.train(DUMPED)?;
            let corrected = Run { seed, warmup: Some((tempered, WARMUP)), ..run }.train(0)?;
            let auc = |eta: &[f64]| eta.iter().sum::<f64>() / eta.len() as f64;
            warmed.push(auc(&corrected.eta));
            plain.push(auc(&ppo.eta));
            let (mut chunk, mut measure) = (Chunk::default(), Measure::new(Settings::default()));
            for record in &ppo.dump {
                chunk.push(record, None)?;
            }
            measure.add(&chunk);
            let measured = measure.finish();
            let verdict = Verdict::new(&measured);
            judged.push(serde_json::json!({
                "says": verdict.says, "headroom": value(&measured, "headroom"), "ahead": value(&measured, "headroom_ahead"),
                "gain": auc(&corrected.eta) - auc(&ppo.eta),
            }));
            first.get_or_insert((measured, verdict));
        }
        let Some((measured, verdict)) = first else {
            return Err("no seed, no verdict: give at least 1".into());
        };
        let number = |name: &str| value(&measured, name);
        let mean =
            warmed.iter().zip(&plain).map(|(warmed, plain)| warmed - plain).sum::<f64>() / plain.len() as f64;
        let signs = SignTest::of_pairs(&warmed, &plain)?;
        println!(
            "{}",
            serde_json::json!({
                "reward": reward.name(), "reuse": reuse, "rate": rate, "lanes": lanes, "priming": priming, "alpha": alpha,
                "verdict": verdict.says, "ppo": plain.iter().sum::<f64>() / plain.len() as f64,
                "gain": mean, "wins": signs.wins, "losses": signs.losses,
                "drift": number("drift"), "contested": number("contested_drift"), "ess": number("ess"),
                "bias": number("bias_total"), "to_noise": number("bias_to_noise"), "dose": number("dose"),
                "alpha_rule": number("alpha_rule"), "alpha_floor": number("alpha_floor"),
                "alpha_error": number("alpha_error"), "error_ratio": number("error_ratio"),
                "alpha_star": number("alpha_star"), "peak": number("peak"), "none": number("chance_of_none"),
                "clip": number("clip_fraction"), "ess_step": number("ess_step"), "judged": judged,
            })
        );
    }
    Ok(())
}

fn value(measured: &Measured, name: &str) -> f64 {
    measured.numbers.iter().find(|number| number.name == name).map_or(f64::NAN, |number| number.value)
}
