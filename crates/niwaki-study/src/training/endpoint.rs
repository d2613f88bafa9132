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
    /// `mean:2-8`: mean of η after these numbers of iterations.
    Mean(Stretch),
    /// `batch:2-8`: mean reward of the batches that were drawn after these numbers of iterations, or after one. Paper: `app:pretrained`
    Batch(Stretch),
    /// `first:2+3@10`: share of these tokens among the first of the batch drawn after so many iterations. Paper: `tab:v2-cell3-fatal-drift`
    First(FirstTokens),
    /// `dose:50`: Σ|b_t| at r_t = 1, mean over so many first iterations. Paper: `sec:sched-win`
    Dose(usize),
    /// `first-drift`: σ²T of the first update. Paper: `tab:sched-null`
    FirstDrift,
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
        if let Some(stretch) = text.strip_prefix("mean:").and_then(Stretch::parse) {
            return Ok(Self::Mean(stretch));
        }
        if let Some(stretch) = text.strip_prefix("batch:").and_then(Stretch::parse) {
            return Ok(Self::Batch(stretch));
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
            format!("unknown endpoint '{text}'; {mend} (or at:N, dose:N, mean:A-B, batch:A-B, first:T+T@N)")
        })
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::At(iteration) => write!(f, "at:{iteration}"),
            Self::Dose(count) => write!(f, "dose:{count}"),
            Self::Mean(stretch) => write!(f, "mean:{stretch}"),
            Self::Batch(stretch) => write!(f, "batch:{stretch}"),
            Self::First(first) => write!(f, "first:{first}"),
            other => {
                let named = Self::NAMED.into_iter().find(|(_, endpoint)| endpoint == other);
                f.write_str(named.map_or("", |(name, _)| name))
            }
        }
    }
}

impl Endpoint {
    const NAMED: [(&'static str, Self); 14] = [
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
        ("first-drift", Self::FirstDrift),
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
            Self::Batch(stretch) => format!("mean of batches, {stretch}"),
            Self::First(first) => {
                let tokens: Vec<String> = first.each().map(|token| token.to_string()).collect();
                format!("{} first, at {}", tokens.join(" or "), first.after)
            }
            Self::Strength => "1/σ²T of the first update".to_owned(),
            Self::Dose(count) => format!("dose over {count} iterations"),
            Self::FirstDrift => "σ²T of the first update".to_owned(),
            Self::Drift => "median σ²T".to_owned(),
            Self::ZeroSignal => "without signal".to_owned(),
        }
    }

    /// Whether less of it is better.
    #[must_use]
    pub fn falls(self) -> bool {
        matches!(self, Self::Solved | Self::BreakThrough)
    }

    /// Whether more or less of it is better at all.
    #[must_use]
    pub fn ranks(self) -> bool {
        !matches!(
            self,
            Self::Dose(_)
                | Self::First(_)
                | Self::FirstDrift
                | Self::Strength
                | Self::Drift
                | Self::ZeroSignal
        )
    }

    /// Whether it counts iterations.
    #[must_use]
    pub fn counts(self) -> bool {
        self.falls()
    }

    /// The endpoint of one run; nothing where its curve does not have it. What never happens counts as one
    /// iteration after the last.
    #[must_use]
    pub fn of(self, run: &Run) -> Option<f64> {
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
            Self::Batch(Stretch { first, last }) => {
                let values = (first..=last).map(|done| after(run, done, |record| record.batch_reward));
                values.collect::<Option<Vec<f64>>>().and_then(|values| niwaki_stats::mean(&values).ok())
            }
            Self::First(tokens) => after(run, tokens.after, |record| {
                tokens.each().filter_map(|token| record.first.get(token)).sum()
            }),
            Self::Strength => {
                let drift = run.curve.first().map(|record| record.drift);
                drift.map(|drift| if drift > 1.0 { 1.0 / drift } else { 1.0 })
            }
            Self::Dose(count) => {
                let doses: Vec<f64> =
                    run.curve.iter().take(count).map(|record| record.rollout_dose).collect();
                niwaki_stats::mean(&doses).ok().filter(|dose| *dose < TOO_LARGE)
            }
            Self::FirstDrift => run.curve.first().map(|record| record.drift),
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
    let curves: Vec<Vec<(usize, f64)>> = runs.iter().map(|run| run.points(greedy)).collect();
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
mod tests {
    use super::*;
    use niwaki_train::Record;

    fn run(etas: &[f64]) -> Run {
        let record = |(place, &eta): (usize, &f64)| Record {
            iteration: place + 1,
            eta: Some(eta),
            ..Record::default()
        };
        Run { iterations: etas.len(), curve: etas.iter().enumerate().map(record).collect(), ..Run::default() }
    }

    #[test]
    fn endpoints_of_a_small_curve() {
        let run = run(&[0.2, 0.3, 0.4, 0.96, 0.94, 0.97, 0.97, 0.98, 0.99, 1.0]);
        // 0.3 is not above 0.3. At iteration 4 it is high but 4 is no multiple of 5, at 5 it is low: 10.
        assert_eq!(Endpoint::BreakThrough.of(&run), Some(3.0));
        assert_eq!(Endpoint::Solved.of(&run), Some(10.0));
        assert_eq!(Endpoint::At(4).of(&run), Some(0.96));
        assert_eq!(Endpoint::At(11).of(&run), None);
        assert_eq!((Endpoint::Final.of(&run), Endpoint::Success.of(&run)), (Some(1.0), Some(1.0)));
        // 0.2 + 0.3 + 0.4 + 0.96 + 0.94 + 0.97 + 0.97 + 0.98 + 0.99 + 1 = 7.71
        assert!((Endpoint::Auc.of(&run).unwrap() - 0.771).abs() < 1e-12);
        assert_eq!(Endpoint::GreedyAuc.of(&run), None);
    }

    #[test]
    fn what_never_happens_counts_as_one_after_the_last() {
        let low = run(&[0.25; 7]);
        assert_eq!((Endpoint::Solved.of(&low), Endpoint::BreakThrough.of(&low)), (Some(8.0), Some(8.0)));
    }

    #[test]
    fn the_mean_curve_decides_when_a_cell_is_solved() {
        // Alone: 5 and 10. The mean at 5 is (1 + 0.8)/2 = 0.9, at 10 it is 1.
        let (early, late) = (run(&[1.0; 10]), run(&[0.8, 0.8, 0.8, 0.8, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0]));
        assert_eq!(Endpoint::Solved.over(&[&early, &late]), Some(10.0));
        assert_eq!(Endpoint::Final.over(&[&early, &late]), Some(1.0));
    }

    #[test]
    fn a_run_that_diverged_counts_as_nothing_from_there_on() {
        let mut run = run(&[0.5, 0.6]);
        run.iterations = 4;
        assert_eq!(run.points(false), [(1, 0.5), (2, 0.6), (3, 0.0), (4, 0.0)]);
    }

    #[test]
    fn halves_doses_and_drifts() {
        let record = |place: usize, greedy: Option<f64>, drift: f64| Record {
            iteration: place,
            greedy,
            drift,
            rollout_dose: place as f64,
            zero_signal: if place > 3 { 1.0 } else { 0.0 },
            ..Record::default()
        };
        let curve = vec![
            record(1, None, 4.0),
            record(2, Some(0.2), 1.0),
            record(3, None, 9.0),
            record(4, Some(0.4), 2.0),
            record(5, None, 3.0),
            record(6, Some(0.9), 5.0),
        ];
        let mut run = Run { iterations: 6, curve, ..Run::default() };
        // Three points: the first half is 0.2, the rest (0.4 + 0.9)/2.
        assert_eq!(Endpoint::GreedyFirstHalf.of(&run), Some(0.2));
        assert!((Endpoint::GreedySecondHalf.of(&run).unwrap() - 0.65).abs() < 1e-12);
        // (1 + 2 + 3 + 4)/4; drifts sorted 1, 2, 3, 4, 5, 9.
        assert_eq!(Endpoint::Dose(4).of(&run), Some(2.5));
        assert_eq!((Endpoint::FirstDrift.of(&run), Endpoint::Drift.of(&run)), (Some(4.0), Some(3.5)));
        // Iterations 4 to 6 of 6.
        assert_eq!(Endpoint::ZeroSignal.of(&run), Some(0.5));
        // Over runs the drift is a median, too: of 3.5, 3.5 and 1000.
        let wild = Run { curve: vec![record(1, None, 1000.0)], ..run.clone() };
        assert_eq!(Endpoint::Drift.over(&[&run, &wild, &run]), Some(3.5));
        run.curve[0].rollout_dose = f64::MAX;
        assert_eq!(Endpoint::Dose(4).of(&run), None, "an overflow is no dose");
        assert!(!Endpoint::Drift.ranks() && Endpoint::GreedyAuc.ranks());
    }

    #[test]
    fn batches_are_those_of_the_policy_after_so_many_iterations() {
        let record = |place: usize, reward: f64, first: [f64; 3]| Record {
            iteration: place,
            batch_reward: reward,
            eta: Some(place as f64),
            drift: 4.0 / place as f64,
            first: first.to_vec(),
            ..Record::default()
        };
        let curve = vec![
            record(1, 0.5, [1.0, 0.0, 0.0]),
            record(2, 0.25, [0.5, 0.25, 0.25]),
            record(3, 0.75, [0.0, 0.5, 0.5]),
        ];
        let run = Run { iterations: 4, curve, ..Run::default() };
        let of = |name: &str| Endpoint::try_from(name.to_owned()).unwrap().of(&run);
        // After one iteration the second batch is drawn; the run diverged in its fourth, and there is no fifth.
        assert_eq!((of("batch:0"), of("batch:1"), of("batch:1-2")), (Some(0.5), Some(0.25), Some(0.5)));
        assert_eq!((of("batch:3"), of("batch:4"), of("batch:3-4")), (Some(0.0), None, None));
        assert_eq!((of("first:1+2@1"), of("first:0@2")), (Some(0.5), Some(0.0)));
        assert_eq!((of("mean:2-3"), of("mean:3-5")), (Some(2.5), None));
        // The first update's drift is 4.
        assert_eq!((of("strength"), of("first-drift")), (Some(0.25), Some(4.0)));
        for wrong in ["batch:", "batch:3-2", "first:2", "first:64@1", "mean:a"] {
            assert!(Endpoint::try_from(wrong.to_owned()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_go_round() {
        for name in [
            "final",
            "auc",
            "at:50",
            "solved",
            "break-through",
            "success",
            "greedy-auc",
            "dose:50",
            "drift",
            "mean:2-8",
            "batch:2-8",
            "batch:5",
            "first:2+3@10",
            "strength",
        ] {
            assert_eq!(Endpoint::try_from(name.to_owned()).unwrap().to_string(), name);
        }
        let refusal = Endpoint::try_from("sucess".to_owned()).unwrap_err();
        assert_eq!(
            refusal,
            "unknown endpoint 'sucess'; the nearest valid one is 'success' (or at:N, dose:N, mean:A-B, batch:A-B, first:T+T@N)"
        );
    }
}
