//! What is read off a curve.

use super::Run;
use niwaki_words::nearest;
use serde::Deserialize;
use std::fmt;

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
}

/// Numbers of iterations, from the first to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stretch {
    /// The first.
    pub first: usize,
    /// The last.
    pub last: usize,
}

impl Stretch {
    fn parse(text: &str) -> Option<Self> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let stretch = Self { first: first.parse().ok()?, last: last.parse().ok()? };
        (stretch.first <= stretch.last).then_some(stretch)
    }
}

impl fmt::Display for Stretch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.first)?;
        if self.last > self.first { write!(f, "-{}", self.last) } else { Ok(()) }
    }
}

/// Some tokens in the first place of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTokens {
    /// One bit for each of the first 64 tokens.
    tokens: u64,
    /// Iterations before the batch was drawn.
    after: usize,
}

impl FirstTokens {
    fn parse(text: &str) -> Option<Self> {
        let (tokens, after) = text.split_once('@')?;
        let bits = tokens.split('+').map(|token| 1_u64.checked_shl(token.parse().ok()?));
        let tokens = bits.collect::<Option<Vec<u64>>>()?.into_iter().fold(0, |all, bit| all | bit);
        Some(Self { tokens, after: after.parse().ok()? })
    }

    fn words(self) -> String {
        self.each().map(|token| token.to_string()).collect::<Vec<_>>().join(" or ")
    }

    fn each(self) -> impl Iterator<Item = usize> {
        (0..64).filter(move |token| self.tokens >> token & 1 == 1)
    }
}

impl fmt::Display for FirstTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tokens: Vec<String> = self.each().map(|token| token.to_string()).collect();
        write!(f, "{}@{}", tokens.join("+"), self.after)
    }
}

impl TryFrom<String> for Endpoint {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(iteration) = text.strip_prefix("at:").and_then(|count| count.parse().ok()) {
            return Ok(Self::At(iteration));
        }
        if let Some(count) = text.strip_prefix("dose:").and_then(|count| count.parse().ok()) {
            return Ok(Self::Dose(count));
        }
        if let Some(count) = text.strip_prefix("silent:").and_then(|count| count.parse().ok()) {
            return Ok(Self::Silent(count));
        }
        if let Some(stretch) = text.strip_prefix("greedy-mean:").and_then(Stretch::parse) {
            return Ok(Self::GreedyMean(stretch));
        }
        if let Some(stretch) = text.strip_prefix("erosion:").and_then(Stretch::parse) {
            return Ok(Self::Erosion(stretch));
        }
        if let Some(stretch) = text.strip_prefix("mean:").and_then(Stretch::parse) {
            return Ok(Self::Mean(stretch));
        }
        if let Some(stretch) = text.strip_prefix("batch:").and_then(Stretch::parse) {
            return Ok(Self::Batch(stretch));
        }
        if let Some(first) = text.strip_prefix("commits:").and_then(FirstTokens::parse) {
            return Ok(Self::Commits(first));
        }
        if let Some(first) = text.strip_prefix("first:").and_then(FirstTokens::parse) {
            return Ok(Self::First(first));
        }
        let named = Self::NAMED.into_iter().find(|(name, _)| *name == text);
        named.map(|(_, endpoint)| endpoint).ok_or_else(|| {
            let known = Self::NAMED.map(|(name, _)| name);
            let mend = match nearest(&text, known) {
                Some(near) => format!("the nearest valid one is '{near}'"),
                None => format!("the valid ones are {}", known.join(", ")),
            };
            let more =
                "at:N, dose:N, silent:N, mean:A-B, greedy-mean:A-B, erosion:A-B, batch:A-B, first:T+T@N, commits:T+T@N";
            format!("unknown endpoint '{text}'; {mend} (or {more})")
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(iteration) => write!(f, "at:{iteration}"),
            Self::Dose(count) => write!(f, "dose:{count}"),
            Self::Silent(count) => write!(f, "silent:{count}"),
            Self::Mean(stretch) => write!(f, "mean:{stretch}"),
            Self::GreedyMean(stretch) => write!(f, "greedy-mean:{stretch}"),
            Self::Erosion(stretch) => write!(f, "erosion:{stretch}"),
            Self::Batch(stretch) => write!(f, "batch:{stretch}"),
            Self::First(first) => write!(f, "first:{first}"),
            Self::Commits(first) => write!(f, "commits:{first}"),
            other => {
                let named = Self::NAMED.into_iter().find(|(_, endpoint)| endpoint == other);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl Endpoint {
    const NAMED: [(&'static str, Self); 17] = [
        ("final", Self::Final),
        ("auc", Self::Auc),
        ("solved", Self::Solved),
        ("break-through", Self::BreakThrough),
        ("success", Self::Success),
        ("greedy-final", Self::GreedyFinal),
        ("greedy-start", Self::GreedyStart),
        ("greedy-auc", Self::GreedyAuc),
        ("greedy-first-half", Self::GreedyFirstHalf),
        ("greedy-second-half", Self::GreedySecondHalf),
        ("gap-final", Self::GapFinal),
        ("first-drift", Self::FirstDrift),
        ("first-conditional-drift", Self::FirstConditionalDrift),
        ("first-prefix-variance", Self::FirstPrefixVariance),
        ("drift", Self::Drift),
        ("strength", Self::Strength),
        ("zero-signal", Self::ZeroSignal),
    ];

    /// What a table's column calls it.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Final => "final η".to_owned(),
            Self::Auc => "AUC of η".to_owned(),
            Self::At(iteration) => format!("η at {iteration}"),
            Self::Solved => "iteration to η = 1".to_owned(),
            Self::BreakThrough => "break-through".to_owned(),
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
                | Self::ZeroSignal
        )
    }

    /// Whether it counts iterations.
    #[must_use]
    pub fn counts(self) -> bool {
        matches!(self, Self::Solved | Self::BreakThrough)
    }

    /// The endpoint of one run; nothing where its curve does not have it. What never happens counts as one
    /// iteration after the last.
    #[must_use]
    pub fn of(self, run: &Run) -> Option<f64> {
        if let Some(kept) = &run.kept {
            return kept.iter().find(|(endpoint, _)| *endpoint == self).map(|(_, value)| *value);
        }
        let points = |greedy: bool| run.points(greedy);
        match self {
            Self::Final => points(false).last().map(|point| point.1),
            Self::GreedyFinal => points(true).last().map(|point| point.1),
            Self::GreedyStart => points(true).first().map(|point| point.1),
            Self::Auc => mean(&points(false)),
            Self::GreedyAuc => mean(&points(true)),
            Self::At(iteration) => points(false).into_iter().find(|point| point.0 == iteration).map(|p| p.1),
            Self::Success => Self::Final.of(run).map(|eta| f64::from(u8::from(eta > SUCCESS))),
            Self::Solved => solved(&points(false)),
            Self::BreakThrough => first(&points(false), |_, eta| eta > BROKEN_THROUGH),
            Self::GreedyFirstHalf => halves(&points(true)).map(|halves| halves.first),
            Self::GreedySecondHalf => halves(&points(true)).map(|halves| halves.second),
            Self::Mean(Stretch { first, last }) => {
                let inside = points(false).into_iter().filter(|point| (first..=last).contains(&point.0));
                let values: Vec<f64> = inside.map(|point| point.1).collect();
                niwaki_stats::mean(&values).ok().filter(|_| values.len() == last - first + 1)
            }
            Self::GreedyMean(Stretch { first, last }) => {
                let points = run.points_from_start(true).into_iter();
                let inside = points.filter(|point| (first..=last).contains(&point.0));
                mean(&inside.collect::<Vec<_>>())
            }
            Self::Erosion(stretch) => Self::GreedyMean(stretch)
                .of(run)
                .zip(Self::GreedyFinal.of(run))
                .map(|(early, last)| early - last),
            Self::GapFinal => run.curve.last().and_then(|record| record.gap),
            Self::Batch(Stretch { first, last }) => {
                let values = (first..=last).map(|done| after(run, done, |record| record.batch_reward));
                values.collect::<Option<Vec<f64>>>().and_then(|values| niwaki_stats::mean(&values).ok())
            }
            Self::First(tokens) => after(run, tokens.after, |record| {
                tokens.each().filter_map(|token| record.first.get(token)).sum()
            }),
            Self::Commits(tokens) => {
                Self::First(tokens).of(run).map(|share| f64::from(u8::from(share > 0.5)))
            }
            Self::Strength => {
                let drift = run.curve.first().map(|record| record.drift);
                drift.map(|drift| if drift > 1.0 { 1.0 / drift } else { 1.0 })
            }
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
            Self::Drift => {
                let drifts: Vec<f64> = run.curve.iter().map(|record| record.drift).collect();
                niwaki_stats::median(&drifts).ok()
            }
        }
    }

    /// The endpoint of some runs together: of their mean curve for `solved`, else the mean over runs.
    #[must_use]
    pub fn over(self, runs: &[&Run]) -> Option<f64> {
        if self == Self::Solved {
            return solved(&mean_curve(runs, false));
        }
        let values: Vec<f64> = runs.iter().filter_map(|run| self.of(run)).collect();
        self.centre(&values)
    }

    /// What stands for some seeds: their median for a drift, whose spread is over orders of magnitude, else their mean.
    pub(super) fn centre(self, seeds: &[f64]) -> Option<f64> {
        if self == Self::Drift { niwaki_stats::median(seeds).ok() } else { niwaki_stats::mean(seeds).ok() }
    }
}

/// What the batch says that was drawn after so many iterations: that of the next one. A run that diverged before it counts as
/// nothing there; one that was shorter has none.
fn after(run: &Run, done: usize, read: impl Fn(&niwaki_train::Record) -> f64) -> Option<f64> {
    let drawn = run.curve.get(done).map(read);
    drawn.or((done < run.iterations).then_some(0.0))
}

fn halves(points: &[(usize, f64)]) -> Option<niwaki_stats::Halves> {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    niwaki_stats::half_means(&values).ok()
}

fn mean(points: &[(usize, f64)]) -> Option<f64> {
    let values: Vec<f64> = points.iter().map(|point| point.1).collect();
    niwaki_stats::auc(&values).ok()
}

fn solved(points: &[(usize, f64)]) -> Option<f64> {
    first(points, |iteration, eta| iteration.is_multiple_of(STRIDE) && eta >= SOLVED)
}

fn first(points: &[(usize, f64)], holds: impl Fn(usize, f64) -> bool) -> Option<f64> {
    let last = points.last()?.0;
    let found = points.iter().find(|&&(iteration, eta)| holds(iteration, eta));
    Some(found.map_or(last + 1, |point| point.0) as f64)
}

/// The mean over runs at every iteration that all of them measured.
pub(super) fn mean_curve(runs: &[&Run], greedy: bool) -> Vec<(usize, f64)> {
    mean_of(&runs.iter().map(|run| run.points(greedy)).collect::<Vec<_>>())
}

/// The mean of some curves wherever all of them have a point.
pub(super) fn mean_of(curves: &[Vec<(usize, f64)>]) -> Vec<(usize, f64)> {
    let Some(head) = curves.first() else { return Vec::new() };
    let at = |curve: &[(usize, f64)], iteration: usize| {
        curve.binary_search_by_key(&iteration, |point| point.0).ok().map(|place| curve[place].1)
    };
    head.iter()
        .filter_map(|&(iteration, _)| {
            let values: Option<Vec<f64>> = curves.iter().map(|curve| at(curve, iteration)).collect();
            Some((iteration, niwaki_stats::mean(&values?).ok()?))
        })
        .collect()
}

#[cfg(test)]
mod tests;
