//! How often is the verdict right where the truth is exact? `cargo run --release -p niwaki-advise --example pairs`
//!
//! Pairs of tabular policies on the enumerable testbed: a dump is sampled and judged, and held against the exact bias
//! and variance of PPO's estimate and the exact direction of its update. Prints one line of JSON per pair.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use niwaki_advise::measure::{Measure, Settings};
use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::{Came, Chunk, Record};
use niwaki_advise::verdict::{Action, MATERIAL, Verdict};
use niwaki_correction::{Correction, Surrogate};
use niwaki_exact::{Pair, Process, Reward, Table, Values, Workspace};
use niwaki_stream::Key;

const BATCH: f64 = 256.0;
const LANES: u64 = 4096;
const STRENGTHS: [f64; 6] = [0.0, 0.05, 0.1, 0.25, 0.5, 1.0];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let process = Process::new(4, 5)?;
    for reward in Reward::LADDER {
        let payoff = reward.payoff(process)?;
        for (way, sizes) in [("noise", [0.03, 0.1, 0.3, 0.6, 1.0]), ("gradient", [0.1, 0.5, 1.5, 4.0, 8.0])] {
            for size in sizes {
                for seed in 0..seeds {
                    let mut noise = Key::new(seed, "pairs").open();
                    let logits: Vec<f64> = (0..process.edges()).map(|_| 0.1 * noise.normal()).collect();
                    let old = Table::new(process, &logits)?;
                    let values = Values::new(&old, &payoff)?;
                    // Noise moves every logit; an update moves along the gradient of the return.
                    let mut step = if way == "noise" {
                        (0..process.edges()).map(|_| noise.normal()).collect()
                    } else {
                        values.eta_gradient(&old, &old.visitation())
                    };
                    let norm = step.iter().map(|g| g * g).sum::<f64>().sqrt();
                    let scale = if way == "noise" { size } else { size / norm };
                    step.iter_mut().zip(&logits).for_each(|(step, logit)| *step = logit + scale * *step);
                    let new = Table::new(process, &step)?;
                    let pair = Pair::new(&old, &new, &payoff)?;
                    println!("{}", judge(&pair, &old, &new, way, size, seed, reward)?);
                }
            }
        }
    }
    Ok(())
}

fn judge(
    pair: &Pair<'_>,
    old: &Table,
    new: &Table,
    way: &str,
    size: f64,
    seed: u64,
    reward: Reward,
) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    let process = old.process();
    let mut chunk = Chunk::default();
    let mut noise = Key::new(seed, "trajectories").open();
    for _ in 0..LANES {
        let (mut node, mut record) = (0, Record::default());
        let mut edges = Vec::new();
        for _ in 0..process.horizon() {
            let row = process.vocab() * node;
            let mut left = noise.uniform();
            let token = old.prob()[row..row + process.vocab()].iter().position(|prob| {
                left -= prob;
                left < 0.0
            });
            edges.push(row + token.unwrap_or(process.vocab() - 1));
            node = row + token.unwrap_or(process.vocab() - 1) + 1;
        }
        let mut fill = |field: Field, of: &[f64]| {
            record.fill(field, Came::Many).extend(edges.iter().map(|&edge| of[edge]));
        };
        fill(Field::OldLogProb, old.log_prob());
        fill(Field::NewLogProb, new.log_prob());
        fill(Field::Advantage, pair.old_values().advantage());
        chunk.push(&record, None)?;
    }
    let mut measure = Measure::new(Settings { batch: Some(BATCH), ..Settings::default() });
    measure.add(&chunk);
    let measured = measure.finish();
    let verdict = Verdict::new(&measured);
    let number = |name: &str| measured.numbers.iter().find(|n| n.name == name).map_or(f64::NAN, |n| n.value);

    let mut work = Workspace::default();
    let ppo: Surrogate = "ppo".parse()?;
    let exact = pair.measure(&ppo.without_clip(), &mut work)?;
    let to_noise = exact.bias.abs() * (BATCH / exact.variance).sqrt();
    let mut directions = Vec::new();
    for alpha in STRENGTHS {
        directions.push(direction(pair, old, new, alpha, &mut work)?);
    }
    let advised = match verdict.action {
        Action::ShortWarmup { alpha, .. } => direction(pair, old, new, alpha, &mut work)?,
        _ => directions[0],
    };
    Ok(serde_json::json!({
        "reward": reward.name(), "way": way, "size": size, "seed": seed, "verdict": verdict.action,
        "drift": pair.drift().drift, "contested": number("contested_drift"), "material": to_noise >= MATERIAL,
        "to_noise": to_noise, "directions": directions, "advised": advised, "cosine": exact.cosine,
    }))
}

/// Expected cosine, to first order, between the gradient of a batch's estimate and that of the return.
fn direction(
    pair: &Pair<'_>,
    old: &Table,
    new: &Table,
    alpha: f64,
    work: &mut Workspace,
) -> Result<f64, Box<dyn std::error::Error>> {
    let process = old.process();
    let loss = Surrogate::new(Correction::tempered(alpha)?);
    let mean = pair.gradient(&loss.without_clip(), work)?;
    let along: f64 = mean.iter().zip(pair.eta_gradient()).map(|(g, e)| g * e).sum();
    let mean_square: f64 = mean.iter().map(|g| g * g).sum();
    let (vocab, advantage) = (process.vocab(), pair.old_values().advantage());
    let mut square = 0.0;
    process.each_sequence(|_, tokens| {
        let mut chance = 1.0;
        let mut prefix = 0.0;
        let mut own = Vec::with_capacity(tokens.len());
        let mut lengths = Vec::with_capacity(tokens.len());
        for t in 0..tokens.len() {
            let row = vocab * process.row(&tokens[..t]);
            let edge = row + tokens[t];
            let ell = new.log_prob()[edge] - old.log_prob()[edge];
            own.push((alpha * prefix + ell).exp() * advantage[edge]);
            let probs = &new.prob()[row..row + vocab];
            // ‖e_a − π‖², the squared score of the step in its own row of logits.
            lengths.push(1.0 - 2.0 * new.prob()[edge] + probs.iter().map(|p| p * p).sum::<f64>());
            chance *= old.prob()[edge];
            prefix += ell;
        }
        let mut later = 0.0;
        for t in (0..tokens.len()).rev() {
            let weight: f64 = own[t] + alpha * later;
            square += chance * weight * weight * lengths[t];
            later += own[t];
        }
    });
    let spread = mean_square + (square - mean_square).max(0.0) / BATCH;
    Ok(along / (pair.eta_gradient_norm() * spread.sqrt()))
}
