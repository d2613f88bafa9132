//! The verdict: what to do, and the numbers that say so.
//!
//! Owns the decision and its thresholds; knows nothing of how the numbers were measured. `docs/advise.md` tells the
//! same story in prose, and the calibration study says how often it is right.

use crate::measure::{IterationRow, Measured, Number};
use niwaki_page::Format;
use serde::Serialize;

/// C1: where the rms prefix log-ratio is below this at the steps that carry the advantage, prefix ratios stay within a
/// tenth of one and there is nothing to correct.
pub const INERT: f64 = 0.1;

/// A bias below this share of the noise of a batch's estimate adds less than a sixteenth to its squared error.
pub const MATERIAL: f64 = 0.25;

/// Where the rule licenses less than this, the data is too stale for a correction to rescue.
pub const FAINT: f64 = 0.1;

/// Where the step ratios alone leave less than this of the batch, PPO's own estimate has collapsed too.
pub const THIN: f64 = 0.5;

/// Where fewer trajectories than this carry the bias, its interval rests on a few rare ones and is not to be trusted.
pub const FEW: f64 = 20.0;

/// Trajectories without which there is no interval worth its name.
const LEAST: u64 = 64;

/// The strongest correction that is ever advised. Routed credit costs a variance that grows with T² and that no weight
/// shows: the paper's best strengths lie about here, and in the calibration study 0.5 loses where 0.1 wins.
pub const STRONGEST: f64 = 0.1;

/// A mean ratio this far from one shows that the update was fitted to the very steps in the dump.
pub const FITTED: f64 = 0.005;

/// C3: a batch that holds no reward this often can trap a run.
pub const SCARCE: f64 = 0.05;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Action {
    /// A correction would add variance and repair nothing.
    CorrectionWasted,
    /// Correct the first iterations at this strength, then hand over to PPO.
    ShortWarmup {
        /// The strength.
        alpha: f64,
    },
    /// The data is too stale: update less often on each batch.
    ReduceReuse,
    /// The data cannot tell.
    NotEnoughData {
        /// Trajectories that are missing, about.
        more: u64,
    },
    /// No advantage differs from zero: there is nothing to estimate.
    NoSignal,
}

/// The verdict with its reasons, each of which names its number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What to do.
    pub action: Action,
    /// The same in a sentence.
    pub says: String,
    /// Why, the deciding reason first.
    pub because: Vec<String>,
}

/// A number and the ends of its interval; endless where the data gives none.
#[derive(Clone, Copy)]
struct Known {
    value: f64,
    low: f64,
    high: f64,
}

impl Known {
    fn of(measured: &Measured, name: &str) -> Self {
        let found = measured.numbers.iter().find(|number| number.name == name);
        let Some(Number { value, low, high, .. }) = found else {
            return Self { value: f64::NAN, low: f64::NAN, high: f64::NAN };
        };
        Self { value: *value, low: low.unwrap_or(f64::NEG_INFINITY), high: high.unwrap_or(f64::INFINITY) }
    }

    /// The same with a digit more.
    fn precisely(self) -> String {
        let text = |value: f64| Format::significant(3).text(value);
        format!("{} (95%: {} to {})", text(self.value), text(self.low), text(self.high))
    }

    /// "0.31 (95%: 0.28 to 0.34)"
    fn text(self) -> String {
        if self.low == self.high || !self.low.is_finite() {
            return text(self.value);
        }
        format!("{} (95%: {} to {})", text(self.value), text(self.low), text(self.high))
    }
}

fn text(value: f64) -> String {
    Format::significant(2).text(value)
}

impl Verdict {
    /// Decides.
    ///
    /// Paper: `tab:conditions`, `sec:disc`
    #[must_use]
    pub fn new(measured: &Measured) -> Self {
        let known = |name: &str| Known::of(measured, name);
        let (contested, drift, total) = (known("contested_drift"), known("drift"), known("bias_total"));
        let (rule, floor, steps) = (known("alpha_rule"), known("alpha_floor"), known("ess_step"));
        let facts = &measured.facts;
        let spread = measured.alphas.first().map_or(f64::NAN, |row| row.variance.sqrt());
        let noise = spread / facts.batch.sqrt();
        let material = MATERIAL * noise;
        let mut because = Vec::new();
        let (action, says) = if known("zero_signal").value == 1.0 {
            because.push("Every advantage in the dump is zero, so no loss has a gradient.".to_owned());
            (Action::NoSignal, "no signal: nothing to correct".to_owned())
        } else if facts.folds < 2 {
            let more = LEAST.saturating_sub(facts.lanes as u64).max(1);
            because.push(format!(
                "All {} trajectories are of one group or there is but one, so that nothing can be said of noise.",
                facts.lanes
            ));
            (Action::NotEnoughData { more }, format!("not enough data: need about {more} more trajectories"))
        } else if contested.high < INERT {
            because.push(format!(
                "C1 fails: at the steps that carry the advantage the prefix log-ratio has an rms of {}, below {INERT}; \
                 every prefix ratio is close to one.",
                contested.text()
            ));
            (Action::CorrectionWasted, "correction wasted: the data is fresh".to_owned())
        } else if rule.high < FAINT || steps.value < THIN {
            because.push(format!(
                "Drift σ²T is {}: the rule licenses α = {} at most, and the step ratios alone keep {} of the batch.",
                drift.text(),
                text(rule.value),
                Format::percent(0).text(steps.value)
            ));
            (Action::ReduceReuse, "reduce reuse: the data is too stale to correct".to_owned())
        } else {
            let alpha = (rule.value.min(floor.value).min(STRONGEST) * 100.0).round() / 100.0;
            let bias = format!(
                "Σ b is {}; a batch of {} estimates its objective to ±{}, and a bias matters from a quarter of that, {}.",
                total.text(),
                text(facts.batch),
                text(noise),
                text(material)
            );
            because.push(bias);
            let certain = total.low > 0.0 || total.high < 0.0;
            let support = known("bias_support").value;
            if support < FEW {
                let more = (facts.lanes as f64 * (FEW / support - 1.0)).ceil() as u64;
                because.push(format!(
                    "Only about {} trajectories carry that bias, too few to trust its interval; {FEW} would take about \
                     {more} more trajectories.",
                    text(support)
                ));
                (
                    Action::NotEnoughData { more },
                    format!("not enough data: need about {more} more trajectories"),
                )
            } else if total.high.abs().max(total.low.abs()) < material {
                (
                    Action::CorrectionWasted,
                    "correction wasted: drift is there, and its bias does not matter".to_owned(),
                )
            } else if certain && total.value.abs() >= material {
                because.push(format!(
                    "α = {} is the smallest of the rule's {}, the {} that keeps the ESS floor, and {STRONGEST}.",
                    text(alpha),
                    text(rule.value),
                    text(floor.value)
                ));
                (
                    Action::ShortWarmup { alpha },
                    format!("short warmup at α ≈ {}, then plain PPO", text(alpha)),
                )
            } else {
                let more = missing(total, material, facts.lanes);
                because.push(format!(
                    "The interval reaches beyond what matters and does not settle it; it narrows with the root of the \
                     data, so about {more} more trajectories would."
                ));
                (
                    Action::NotEnoughData { more },
                    format!("not enough data: need about {more} more trajectories"),
                )
            }
        };
        because.extend(further(measured));
        Self { action, says, because }
    }
}

/// Trajectories after which the interval is no wider than what it has to tell apart.
fn missing(total: Known, material: f64, lanes: usize) -> u64 {
    let half = 0.5 * (total.high - total.low);
    if !half.is_finite() {
        return LEAST.saturating_sub(lanes as u64).max(1);
    }
    // Either the bias itself or its distance from what matters must exceed the half-width.
    let apart = (total.value.abs() - material).abs().max(material - total.value.abs()).max(0.25 * material);
    let needed = lanes as f64 * (half / apart).powi(2);
    (needed - lanes as f64).max(1.0).ceil() as u64
}

/// What else a reader should know, each with its number.
fn further(measured: &Measured) -> Vec<String> {
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
            "C2: the dose Σ|b| is {}; the clearest witness is b = {} ± {} at position {} of {}.",
            text(dose.value),
            text(row.bias_witness),
            text(row.bias_witness_error.unwrap_or(f64::NAN)),
            row.position,
            facts.longest
        ));
    }
    let (none, empty) = (known("chance_of_none").value, known("zero_reward_batches").value);
    if none >= SCARCE || empty > 0.0 {
        lines.push(format!(
            "C3 is active: at the scarcest iteration a batch of {} holds no reward with chance {}, and {} of the \
             iterations had none; a wrong commitment can starve the run, so a correction may decide whether it succeeds.",
            text(facts.batch),
            Format::percent(0).text(none),
            Format::percent(0).text(empty)
        ));
    } else if none.is_finite() {
        lines.push(format!(
            "C3 is quiet: a batch without reward has chance {} at worst; expect speed, not another endpoint.",
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
    let ratio = known("mean_ratio");
    let apart = ratio.high < 1.0 || (ratio.low > 1.0 && ratio.low.is_finite());
    if apart && (ratio.value - 1.0).abs() > FITTED {
        lines.push(format!(
            "The mean ratio is {} and would be 1 on steps that the update never saw: b holds what was fitted to this \
             batch, too. Trajectories kept out of the update tell the two apart.",
            ratio.precisely()
        ));
    }
    lines.extend(course(&measured.iterations));
    lines.push(format!(
        "N/T² is {}; a full correction keeps a tenth of the batch after {} steps, and trajectories have {}.",
        text(known("batch_over_horizon_squared").value),
        text(known("collapse_horizon").value),
        text(facts.mean_length)
    ));
    lines
}

/// How drift went over the run.
fn course(iterations: &[IterationRow]) -> Option<String> {
    let third = iterations.len() / 3;
    if third == 0 {
        return None;
    }
    let mean = |rows: &[IterationRow]| rows.iter().map(|row| row.drift).sum::<f64>() / rows.len() as f64;
    let (first, last) = (mean(&iterations[..third]), mean(&iterations[iterations.len() - third..]));
    Some(format!(
        "Drift σ²T averages {} over the first third of the iterations and {} over the last.",
        text(first),
        text(last)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::{Measure, Settings};
    use crate::schema::Field;
    use crate::trajectory::{Came, Chunk, Record};

    fn judged(advantage: f64) -> Verdict {
        let (mut chunk, mut record) = (Chunk::default(), Record::default());
        record.fill(Field::OldLogProb, Came::Many).extend([-1.0, -2.0]);
        record.fill(Field::NewLogProb, Came::Many).extend([-0.5, -1.0]);
        record.fill(Field::Advantage, Came::One).push(advantage);
        chunk.push(&record, None).unwrap();
        let mut measure = Measure::new(Settings::default());
        measure.add(&chunk);
        Verdict::new(&measure.finish())
    }

    #[test]
    fn one_trajectory_settles_nothing() {
        assert_eq!(judged(1.0).action, Action::NotEnoughData { more: 63 });
        assert_eq!(judged(0.0).action, Action::NoSignal);
    }

    #[test]
    fn missing_data_follows_the_root() {
        // Half-width 4 about 0, material 1: the half-width must fall to 1, so 16 times the data, 15 times more.
        let total = Known { value: 0.0, low: -4.0, high: 4.0 };
        assert_eq!(missing(total, 1.0, 100), 1500);
        // Without an interval, what a first one takes.
        let none = Known { value: 1.0, low: f64::NEG_INFINITY, high: f64::INFINITY };
        assert_eq!(missing(none, 1.0, 1), 63);
        // 3 ± 4 against 1: two apart, so four times the data.
        let total = Known { value: 3.0, low: -1.0, high: 7.0 };
        assert_eq!(missing(total, 1.0, 100), 300);
    }
}
