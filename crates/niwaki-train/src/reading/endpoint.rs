//! What is read off a curve: the one list of endpoints, with their definitions.

use super::course::mean_curve;
use super::{Course, FirstTokens, Judged, Stretch};
use crate::Record;
use crate::record::finite;
use niwaki_correction::schedule::alpha_for_drift;
use serde::Deserialize;

/// η from which the task counts as solved. Paper: `tab:g-detail`
const SOLVED: f64 = 0.95;
/// The iterations at which that is looked at.
const STRIDE: usize = 5;
/// η from which a run has left the plateau at a quarter.
const BROKEN_THROUGH: f64 = 0.3;
/// Final η from which a run has succeeded. Paper: `tab:results-summary`
const SUCCESS: f64 = 0.5;

/// A mean dose from which one of its iterations had overflowed.
const TOO_LARGE: f64 = 1e300;

/// A number read off a run's curve, or off the mean curve of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub enum Endpoint {
    /// `final`: η after the last iteration.
    Final,
    /// `auc`: mean of η over all iterations at which it was measured.
    Auc,
    /// `at:50`: η after so many iterations.
    At(usize),
    /// `solved`: the first multiple of 5 at which the mean curve over seeds is at least 0.95.
    Solved,
    /// `break-through`: the first iteration with η above 0.3.
    BreakThrough,
    /// `reached`: the first iteration with η of at least 0.95.
    Reached,
    /// `success`: whether the final η is above a half.
    Success,
    /// `greedy-final`: the last reward of the likeliest trajectory.
    GreedyFinal,
    /// `greedy-start`: its first one, `evaluate.every` iterations from the beginning. Paper: `app:sched-win`
    GreedyStart,
    /// `greedy-auc`: mean of the likeliest trajectory's reward over all iterations at which it was measured.
    GreedyAuc,
    /// `greedy-first-half`: the same over the first half of them. Paper: `tab:sched-horizon`
    GreedyFirstHalf,
    /// `greedy-second-half`: the same over the rest of them.
    GreedySecondHalf,
    /// `greedy-mean:0-50`: the same over those iterations at which it was measured; 0 is the untrained policy.
    /// Paper: `app:sched-driftdial`
    GreedyMean(Stretch),
    /// `erosion:10-50`: that mean less the last reward of the likeliest trajectory. Paper: `fig:easy-early`
    Erosion(Stretch),
    /// `batch-auc`: mean reward of the batches over the run, where nothing else was measured.
    BatchAuc,
    /// `batch-final`: mean reward of the last batch.
    BatchFinal,
    /// `gap-final`: how far the likeliest schedules are above the optima at the end. Paper: `app:sched-driftdial`
    GapFinal,
    /// `mean:2-8`: mean of η after these numbers of iterations.
    Mean(Stretch),
    /// `batch:2-8`: mean reward of the batches that were drawn after these numbers of iterations, or after one. Paper: `app:pretrained`
    Batch(Stretch),
    /// `first:2+3@10`: share of these tokens among the first of the batch drawn after so many iterations. Paper: `tab:v2-cell3-fatal-drift`
    First(FirstTokens),
    /// `commits:0+1@20`: whether more than half of that batch begins with one of these tokens. Paper: `app:pretrained` (S₁)
    Commits(FirstTokens),
    /// `dose:50`: Σ|b_t| at r_t = 1, mean over so many first iterations. Paper: `sec:sched-win`
    Dose(usize),
    /// `silent:50`: whether no trajectory of so many first batches had an advantage. Paper: `tab:conditions` (C3)
    Silent(usize),
    /// `first-drift`: σ²T of the first update. Paper: `tab:sched-null`
    FirstDrift,
    /// `first-conditional-drift`: the same as `Σ E[Var(ℓ|s)]` over all states, where `evaluate.drift` measured it. Paper: `sec:correction`
    FirstConditionalDrift,
    /// `first-prefix-variance`: variance of the log-ratio of all steps but the last, likewise. Paper: `app:pretrained`
    FirstPrefixVariance,
    /// `strength`: the α that the first update's drift licenses, min(1, 1/σ²T). Paper: `app:pretrained`
    Strength,
    /// `zero-signal`: share of trajectories without any advantage, mean over the run. Paper: `app:sched-win`
    ZeroSignal,
    /// `drift`: median of σ²T over the run, and over runs. Paper: `fig:ktol`
    Drift,
    /// `mean-drift`: mean of σ²T over the run.
    MeanDrift,
}

impl Endpoint {
    /// What a table's column calls it.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Final => "final η".to_owned(),
            Self::Auc => "AUC of η".to_owned(),
            Self::At(iteration) => format!("η at {iteration}"),
            Self::Solved => "iteration to η = 1".to_owned(),
            Self::BreakThrough => "break-through".to_owned(),
            Self::Reached => "reached 0.95".to_owned(),
            Self::BatchAuc => "mean reward of the batches".to_owned(),
            Self::BatchFinal => "reward of the last batch".to_owned(),
            Self::MeanDrift => "mean σ²T".to_owned(),
            Self::Success => "success".to_owned(),
            Self::GreedyFinal => "final, greedy".to_owned(),
            Self::GreedyStart => "first, greedy".to_owned(),
            Self::GreedyAuc => "greedy AUC".to_owned(),
            Self::GreedyFirstHalf => "greedy, first half".to_owned(),
            Self::GreedySecondHalf => "greedy, second half".to_owned(),
            Self::Mean(stretch) => format!("mean η, {stretch}"),
            Self::GreedyMean(stretch) => format!("greedy, mean of {stretch}"),
            Self::Erosion(stretch) => format!("greedy, mean of {stretch} less the last"),
            Self::GapFinal => "final gap".to_owned(),
            Self::Batch(stretch) => format!("mean of batches, {stretch}"),
            Self::First(first) => {
                format!("{} first, at {}", first.words(), first.after)
            }
            Self::Commits(first) => format!("committed to {} first, at {}", first.words(), first.after),
            Self::Strength => "1/σ²T of the first update".to_owned(),
            Self::Dose(count) => format!("dose over {count} iterations"),
            Self::Silent(count) => format!("silent for {count} iterations"),
            Self::FirstDrift => "σ²T of the first update".to_owned(),
            Self::FirstConditionalDrift => "Σ E[Var(ℓ|s)] of the first update".to_owned(),
            Self::FirstPrefixVariance => "Var log R of the first update".to_owned(),
            Self::Drift => "median σ²T".to_owned(),
            Self::ZeroSignal => "without signal".to_owned(),
        }
    }

    /// What it is, in a sentence, where runs are compared by it.
    #[must_use]
    pub const fn definition(self) -> &'static str {
        match self {
            Self::Auc => "mean of η over all iterations at which it was measured",
            Self::Final => "η when it was measured last",
            Self::GreedyAuc => {
                "mean of the likeliest trajectory's reward over all iterations at which it was measured"
            }
            Self::GreedyFinal => "the last reward of the likeliest trajectory",
            Self::BatchAuc => "mean reward of all batches",
            Self::BatchFinal => "mean reward of the last batch",
            _ => "see `docs/numbers.md`",
        }
    }

    /// Whether less of it is better.
    #[must_use]
    pub fn falls(self) -> bool {
        self.counts() || self == Self::GapFinal
    }

    /// Whether more or less of it is better at all.
    #[must_use]
    pub fn ranks(self) -> bool {
        !matches!(
            self,
            Self::Dose(_)
                | Self::Silent(_)
                | Self::First(_)
                | Self::Commits(_)
                | Self::FirstDrift
                | Self::FirstConditionalDrift
                | Self::FirstPrefixVariance
                | Self::Strength
                | Self::Erosion(_)
                | Self::Drift
                | Self::MeanDrift
                | Self::ZeroSignal
        )
    }

    /// Whether it counts iterations.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::Solved | Self::Reached | Self::BreakThrough)
    }

    /// The endpoint of one run; nothing where its curve does not have it. What never happens counts as one
    /// iteration after the last.
    #[must_use]
    pub fn of(self, run: &Course) -> Option<f64> {
        if let Some(kept) = &run.kept {
            return kept.iter().find(|(endpoint, _)| *endpoint == self).map(|(_, value)| *value);
        }
        let points = |judged: Judged| run.points(judged);
        match self {
            Self::Final => points(Judged::Eta).last().map(|point| point.1),
            Self::GreedyFinal => points(Judged::Likeliest).last().map(|point| point.1),
            Self::GreedyStart => points(Judged::Likeliest).first().map(|point| point.1),
            Self::Auc => mean(&points(Judged::Eta)),
            Self::GreedyAuc => mean(&points(Judged::Likeliest)),
            Self::At(iteration) => {
                points(Judged::Eta).into_iter().find(|point| point.0 == iteration).map(|p| p.1)
            }
            Self::Success => Self::Final.of(run).map(|eta| f64::from(u8::from(eta > SUCCESS))),
            Self::BatchAuc => mean(&points(Judged::Batch)),
            Self::BatchFinal => points(Judged::Batch).last().map(|point| point.1),
            Self::Solved | Self::Reached | Self::BreakThrough => {
                let last = points(Judged::Eta).last()?.0;
                Some(self.iteration(run).unwrap_or(last + 1) as f64)
            }
            Self::GreedyFirstHalf => halves(&points(Judged::Likeliest)).map(|halves| halves.first),
            Self::GreedySecondHalf => halves(&points(Judged::Likeliest)).map(|halves| halves.second),
            Self::Mean(Stretch { first, last }) => {
                let inside =
                    points(Judged::Eta).into_iter().filter(|point| (first..=last).contains(&point.0));
                let values: Vec<f64> = inside.map(|point| point.1).collect();
                niwaki_stats::mean(&values).ok().filter(|_| values.len() == last - first + 1)
            }
            Self::GreedyMean(Stretch { first, last }) => {
                let points = run.points_from_start(Judged::Likeliest).into_iter();
                let inside = points.filter(|point| (first..=last).contains(&point.0));
                mean(&inside.collect::<Vec<_>>())
            }
            Self::Erosion(stretch) => Self::GreedyMean(stretch)
                .of(run)
                .zip(Self::GreedyFinal.of(run))
                .map(|(early, last)| early - last),
            Self::GapFinal => run.curve.last().and_then(|record| record.gap),
            Self::Batch(Stretch { first, last }) => {
                let lost = run.lost(Judged::Batch);
                let values = (first..=last).map(|done| after(run, done, lost, |record| record.batch_reward));
                values.collect::<Option<Vec<f64>>>().and_then(|values| niwaki_stats::mean(&values).ok())
            }
            Self::First(tokens) => after(run, tokens.after, 0.0, |record| {
                tokens.each().filter_map(|token| record.first.get(token)).sum()
            }),
            Self::Commits(tokens) => {
                Self::First(tokens).of(run).map(|share| f64::from(u8::from(share > 0.5)))
            }
            Self::Strength => run.curve.first().map(|record| alpha_for_drift(record.drift)),
            Self::Dose(count) => {
                let doses: Vec<f64> =
                    run.curve.iter().take(count).map(|record| record.rollout_dose).collect();
                niwaki_stats::mean(&doses).ok().filter(|dose| *dose < TOO_LARGE)
            }
            Self::Silent(count) => {
                let silent = run.curve.iter().take(count).all(|record| record.zero_signal == 1.0);
                (run.iterations >= count).then_some(f64::from(u8::from(silent)))
            }
            Self::FirstDrift => run.curve.first().map(|record| record.drift),
            Self::FirstConditionalDrift => run.curve.first().and_then(|record| record.conditional_drift),
            Self::FirstPrefixVariance => run.curve.first().and_then(|record| record.prefix_variance),
            Self::ZeroSignal => {
                let shares: Vec<f64> = run.curve.iter().map(|record| record.zero_signal).collect();
                niwaki_stats::mean(&shares).ok()
            }
            Self::MeanDrift => mean_of_all(run, |record| record.drift),
            Self::Drift => {
                let drifts: Vec<f64> = run.curve.iter().map(|record| record.drift).collect();
                niwaki_stats::median(&drifts).ok()
            }
        }
    }

    /// The endpoint of some runs together: of their mean curve for `solved`, else the mean over runs.
    #[must_use]
    pub fn over(self, runs: &[&Course]) -> Option<f64> {
        if self == Self::Solved {
            let points = mean_curve(runs, Judged::Eta);
            let last = points.last()?.0;
            return Some(self.first(&points).unwrap_or(last + 1) as f64);
        }
        let values: Vec<f64> = runs.iter().filter_map(|run| self.of(run)).collect();
        self.centre(&values)
    }

    /// The iteration that an endpoint counts to; nothing where that never happened, and of endpoints that count nothing.
    #[must_use]
    pub fn iteration(self, run: &Course) -> Option<usize> {
        self.first(&run.points(Judged::Eta))
    }

    fn first(self, points: &[(usize, f64)]) -> Option<usize> {
        let holds = |&&(iteration, eta): &&(usize, f64)| match self {
            Self::Solved => iteration.is_multiple_of(STRIDE) && eta >= SOLVED,
            Self::Reached => eta >= SOLVED,
            Self::BreakThrough => eta > BROKEN_THROUGH,
            _ => false,
        };
        points.iter().find(holds).map(|point| point.0)
    }

    /// What stands for some seeds: their median for a drift, whose spread is over orders of magnitude, else their mean.
    #[must_use]
    pub fn centre(self, seeds: &[f64]) -> Option<f64> {
        if self == Self::Drift { niwaki_stats::median(seeds).ok() } else { niwaki_stats::mean(seeds).ok() }
    }
}

/// What the batch says that was drawn after so many iterations: that of the next one. A run that diverged before it has `lost`
/// there; one that was shorter has none.
fn after(run: &Course, done: usize, lost: f64, read: impl Fn(&Record) -> f64) -> Option<f64> {
    let drawn = run.curve.get(done).map(read);
    drawn.or((done < run.iterations).then_some(lost))
}

fn halves(points: &[(usize, f64)]) -> Option<niwaki_stats::Halves> {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    niwaki_stats::half_means(&values).ok()
}

fn mean(points: &[(usize, f64)]) -> Option<f64> {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    niwaki_stats::auc(&values).ok()
}

/// The mean over all iterations; what overflowed is stored as the largest number, and several of them overflow again.
pub(crate) fn mean_of_all(run: &Course, value: impl Fn(&Record) -> f64) -> Option<f64> {
    let sum: f64 = run.curve.iter().map(value).sum();
    (!run.curve.is_empty()).then(|| finite(sum / run.curve.len() as f64))
}

#[cfg(test)]
mod tests;
