//! A task, a policy, a reward and a loss of one's own, without a change to Niwaki.
//!
//! The task is a lock of six dials. The policy has one table of logits per dial. It is trained with a loss of the family, whose
//! exact gradient with respect to log-probs is pulled back into the policy by one line; then a loss of our own is held against it on
//! every sequence at once.

#![expect(clippy::print_stdout, reason = "an example tells what it found")]

mod loss;
mod policy;
mod reward;
mod task;

use niwaki_correction::{Batch, Rows, Surrogate, Workspace};
use policy::Dials;
use task::{DIALS, Draws};

/// Trajectories of a batch, epochs on each, batches.
const LANES: usize = 64;
const REUSE: usize = 8;
const ITERATIONS: usize = 60;
const RATE: f64 = 0.5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut policy = Dials::new();
    println!("before training the policy earns {:.3}", reward::expected(&policy)?);
    train(&mut policy, "tempered:0.25", 7)?;
    println!("after {ITERATIONS} batches, each used {REUSE} times, {:.3}", reward::expected(&policy)?);
    for (name, cosine) in loss::league()? {
        println!("{name}: the cosine of its gradient with that of the return is {cosine:.3}");
    }
    Ok(())
}

/// Samples, judges, and takes epochs with a loss of the family.
fn train(policy: &mut Dials, loss: &str, seed: u64) -> Result<(), Box<dyn std::error::Error>> {
    let surrogate: Surrogate = loss.parse()?;
    let mut workspace = Workspace::default();
    let mut draws = Draws::new(seed);
    for _ in 0..ITERATIONS {
        let lanes: Vec<[usize; DIALS]> = (0..LANES).map(|_| policy.sample(&mut draws)).collect();
        let rewards: Vec<f64> = lanes.iter().map(|lane| task::reward(lane)).collect();
        let mean = rewards.iter().sum::<f64>() / LANES as f64;
        let advantage: Vec<f64> = rewards.iter().flat_map(|reward| [reward - mean; DIALS]).collect();
        let rollout = policy.log_probs(&lanes);
        for _ in 0..REUSE {
            let log_prob = policy.log_probs(&lanes);
            let batch = Batch::new(Rows::uniform(DIALS), &log_prob, &rollout, &advantage);
            let evaluation = surrogate.evaluate(&batch, &mut workspace)?;
            policy.climb(&lanes, evaluation.cotangent, RATE);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::FACES;

    #[test]
    fn training_opens_the_lock() {
        let mut policy = Dials::new();
        let before = reward::expected(&policy).unwrap();
        train(&mut policy, "tempered:0.25", 7).unwrap();
        let after = reward::expected(&policy).unwrap();
        // Faces match by chance in one of three; training must do far better.
        assert!((before - 1.0 / FACES as f64).abs() < 1e-12, "{before}");
        assert!(after > 0.8, "{after}");
    }
}
