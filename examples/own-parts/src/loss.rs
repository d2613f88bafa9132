//! A loss of our own beside the family's: where do their gradients point?
//!
//! A loss is a function of log-probs. Its gradient with respect to them, averaged over all sequences by their probability, is pulled
//! back into a table of logits and compared with the gradient of the return, which is known exactly.

use crate::policy::Dials;
use crate::task::{DIALS, Draws, FACES};
use crate::{reward, task};
use niwaki_correction::{Batch, Rows, Surrogate, Workspace};
use niwaki_exact::{Pair, Process, Table};

/// The loss: ratios above the cap count as the cap, so that no single step can dominate. `log_prob`, `rollout` and `advantage` are
/// `[steps]`; gives the gradient of the objective.
fn capped(log_prob: &[f64], rollout: &[f64], advantage: &[f64], cap: f64) -> Vec<f64> {
    let steps = log_prob.iter().zip(rollout).zip(advantage);
    let gradient = steps.map(|((new, old), advantage)| {
        let ratio = (new - old).exp();
        if ratio < cap { ratio * advantage } else { 0.0 }
    });
    gradient.map(|value| value / log_prob.len() as f64).collect()
}

/// Every loss with the cosine of its mean gradient with the gradient of the return.
pub(crate) fn league() -> Result<Vec<(String, f64)>, Box<dyn std::error::Error>> {
    let process = reward::process()?;
    // Two policies that are some epochs apart.
    let (mut new, mut draws) = (Dials::new(), Draws::new(3));
    let lanes: Vec<[usize; DIALS]> = (0..32).map(|_| new.sample(&mut draws)).collect();
    let rewards: Vec<f64> = lanes.iter().flat_map(|lane| [task::reward(lane) - 0.3; DIALS]).collect();
    (0..4).for_each(|_| new.climb(&lanes, &rewards, 0.8));
    let (old, new) = (reward::table(process, &Dials::new())?, reward::table(process, &new)?);
    let pair = Pair::new(&old, &new, &reward::payoff(process)?)?;
    let advantage = niwaki_exact::Values::new(&old, &reward::payoff(process)?)?.advantage().to_vec();
    let mut found = Vec::new();
    for name in ["ppo", "tempered:0.25", "full"] {
        let surrogate: Surrogate = name.parse()?;
        let surrogate = surrogate.without_clip();
        let mut workspace = Workspace::default();
        let gradient = mean(process, &old, &new, &advantage, |log_prob, rollout, advantage| {
            let batch = Batch::new(Rows::uniform(DIALS), log_prob, rollout, advantage);
            Ok(surrogate.evaluate(&batch, &mut workspace)?.cotangent.to_vec())
        })?;
        found.push((name.to_owned(), cosine(&gradient, pair.eta_gradient())));
    }
    let gradient =
        mean(process, &old, &new, &advantage, |new, old, advantage| Ok(capped(new, old, advantage, 1.5)))?;
    found.push(("ours, capped at 1.5".to_owned(), cosine(&gradient, pair.eta_gradient())));
    Ok(found)
}

/// The mean gradient of a loss over all sequences, with respect to the new policy's logits.
fn mean(
    process: Process,
    old: &Table,
    new: &Table,
    advantage: &[f64],
    mut loss: impl FnMut(&[f64], &[f64], &[f64]) -> Result<Vec<f64>, Box<dyn std::error::Error>>,
) -> Result<Vec<f64>, Box<dyn std::error::Error>> {
    let mut weight = vec![0.0; process.edges()];
    let mut failed = None;
    process.each_sequence(|_, lane| {
        let edges: Vec<usize> =
            (0..DIALS).map(|dial| FACES * process.row(&lane[..dial]) + lane[dial]).collect();
        let pick = |of: &[f64]| -> Vec<f64> { edges.iter().map(|&edge| of[edge]).collect() };
        let chance: f64 = pick(old.prob()).iter().product();
        match loss(&pick(new.log_prob()), &pick(old.log_prob()), &pick(advantage)) {
            Ok(gradient) => {
                edges.iter().zip(gradient).for_each(|(&edge, value)| weight[edge] += chance * value)
            }
            Err(error) => failed = Some(error),
        }
    });
    failed.map_or(Ok(()), Err)?;
    new.pull_back(&mut weight);
    Ok(weight)
}

fn cosine(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_correction_points_exactly_uphill_and_ours_does_not() {
        let league = league().unwrap();
        let of = |name: &str| league.iter().find(|(known, _)| known.starts_with(name)).unwrap().1;
        assert!(of("full") > 1.0 - 1e-9, "{league:?}");
        assert!(of("ours") < of("full") && of("ours") > 0.0, "{league:?}");
    }
}
