//! What else a reader should know, each line with its number.

use super::known::{Known, percent, text};
use super::{FITTED, SCARCE};
use crate::measure::{IterationRow, Measured};

/// What else a reader should know, each with its number.
pub(super) fn lines(measured: &Measured) -> Vec<String> {
    let known = |name: &str| Known::of(measured, name);
    let facts = &measured.facts;
    let mut lines = Vec::new();
    let dose = known("dose");
    let loudest = measured.positions.iter().filter(|row| row.bias_witness_error.is_some()).max_by(|a, b| {
        let size = |row: &crate::measure::PositionRow| {
            row.bias_witness.abs() / row.bias_witness_error.unwrap_or(f64::INFINITY).max(f64::MIN_POSITIVE)
        };
        size(a).total_cmp(&size(b))
    });
    if let Some(row) = loudest.filter(|row| row.bias_witness != 0.0) {
        lines.push(format!(
            "Along the trajectory the bias adds up to Σ|b| = {} (the dose, C2); it is clearest at position {} of {}, with b = {} ± {}.",
            text(dose.value),
            row.position,
            facts.longest,
            text(row.bias_witness),
            text(row.bias_witness_error.unwrap_or(f64::NAN)),
        ));
    }
    let (none, empty) = (known("chance_of_none").value, known("zero_reward_batches").value);
    if scarce(measured) {
        lines.push(format!(
            "Rewards are scarce: at the scarcest iteration a batch of {} holds none with chance {}, and {} of the iterations \
             had none. A wrong commitment can starve the run, so a correction may decide whether it succeeds (C3 is active).",
            text(facts.batch),
            percent(none),
            percent(empty)
        ));
    } else if none.is_finite() {
        lines.push(format!(
            "A batch without reward has chance {} at worst: expect speed of a correction, not another endpoint (C3 is quiet).",
            text(none)
        ));
    }
    if known("constant_advantage").value > 0.5 {
        lines.push(
            "The advantage is one number per trajectory, so it does not say where the reward is decided (C1), and it is \
             not centred in each state: the correction acts from the first step."
                .to_owned(),
        );
    }
    if let Some(ratio) = fitted(measured) {
        lines.push(format!(
            "The mean ratio is {} and would be 1 on steps that the update never saw: b holds what was fitted to this \
             batch, too. Trajectories kept out of the update tell the two apart.",
            ratio.precisely()
        ));
    }
    lines.extend(lags(measured));
    lines.extend(course(&measured.iterations));
    lines.push(format!(
        "N/T² is {}; a full correction keeps a tenth of the batch after {} steps, and trajectories have {}.",
        text(known("batch_over_horizon_squared").value),
        text(known("collapse_horizon").value),
        text(facts.mean_length)
    ));
    lines
}

/// Whether a batch may hold no reward at all (C3).
pub(super) fn scarce(measured: &Measured) -> bool {
    let value = |name: &str| Known::of(measured, name).value;
    value("chance_of_none") >= SCARCE || value("zero_reward_batches") > 0.0
}

/// The mean ratio, where it says that the update was fitted to the very steps in the dump.
pub(super) fn fitted(measured: &Measured) -> Option<Known> {
    let ratio = Known::of(measured, "mean_ratio");
    let apart = ratio.high < 1.0 || (ratio.low > 1.0 && ratio.low.is_finite());
    (apart && (ratio.value - 1.0).abs() > FITTED).then_some(ratio)
}

/// Trajectories that a staleness limit must leave to be spoken of.
const LEFT: f64 = 0.75;

/// How old the sampling policies were, and what that did.
fn lags(measured: &Measured) -> Option<String> {
    let (first, last) = (measured.ages.first()?, measured.ages.last()?);
    let oldest = if last.age == first.age {
        format!("All steps are {} versions old.", first.age)
    } else {
        format!("Steps are {} to {} versions old.", first.age, last.age)
    };
    let mut said = vec![oldest];
    if let (Some(young), Some(old)) = (first.sampler, last.sampler) {
        let engines =
            if first.age == 0 { "what the engines differ by" } else { "engines and staleness together" };
        said.push(format!(
            "Per step the old policy is σ² = {} from the engine that sampled at age {} ({engines}){}, and the policy now {} from the \
             old one (reuse).",
            text(young),
            first.age,
            if last.age == first.age {
                String::new()
            } else {
                format!(", {} at age {}", text(old), last.age)
            },
            text(last.reuse),
        ));
    }
    let whole = measured.limits.last()?;
    let tight = measured.limits.iter().find(|row| row.trajectories >= LEFT);
    if let Some(row) = tight.filter(|row| row.limit < whole.limit && row.drift < whole.drift) {
        said.push(format!(
            "A staleness limit of {} would leave {} of the trajectories and take drift σ²T from the engine to the policy now from {} to {}.",
            row.limit,
            percent(row.trajectories),
            text(whole.drift),
            text(row.drift)
        ));
    }
    Some(said.join(" "))
}

/// How drift went over the run.
fn course(iterations: &[IterationRow]) -> Option<String> {
    // A thinned dump may hold an iteration's rewards alone.
    let iterations: Vec<&IterationRow> = iterations.iter().filter(|row| row.lanes > 0).collect();
    let third = iterations.len() / 3;
    if third == 0 {
        return None;
    }
    let mean = |rows: &[&IterationRow]| rows.iter().map(|row| row.drift).sum::<f64>() / rows.len() as f64;
    let (first, last) = (mean(&iterations[..third]), mean(&iterations[iterations.len() - third..]));
    Some(format!(
        "Drift σ²T averages {} over the first third of the iterations and {} over the last.",
        text(first),
        text(last)
    ))
}
