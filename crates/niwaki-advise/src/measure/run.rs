//! The whole run: folds for the intervals, iterations for the course, groups for the signal.

use super::amplification::{AmplificationRow, Cotangents, STRENGTHS, at};
use super::estimates::{Choices, Estimates};
use super::histogram::LogRatios;
use super::jackknife::{FOLDS, half_width, standard_error};
use super::numbers::{Number, SIGNAL, numbers};
use super::part::Part;
use super::scaled::{GRID, strength};
use super::signal::{Groups, Rewards};
use super::steps::Steps;
use crate::trajectory::{Chunk, LeftOut};
use crate::verl;
use niwaki_correction::Clip;
use serde::Serialize;
use std::collections::BTreeMap;

/// Places along the trajectory that the run keeps apart; neighbours share where trajectories are longer, so that the
/// sums of all folds take some 200 MB at most.
const PLACES: usize = 1 << 16;

/// Places along the trajectory that an iteration keeps apart; longer ones share.
const ITERATION_PLACES: usize = 64;

/// Places that all iterations together keep apart: of many iterations each keeps fewer, so that their sums take some 100 MB
/// of places however many there are.
const ALL_ITERATION_PLACES: usize = 1 << 19;

/// Bins of the histogram of log-ratios.
const BINS: usize = 60;

/// What the measurements depend on beside the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The trainer's clip range.
    pub clip: Clip,
    /// ESS that a correction must keep.
    pub ess_floor: f64,
    /// Trajectories per update; the mean of the dump's iterations where it is not given.
    pub batch: Option<f64>,
    /// verl's settings.
    pub verl: verl::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self { clip: Clip::PPO, ess_floor: 0.9, batch: None, verl: verl::Settings::default() }
    }
}

/// Running sums of a run.
#[derive(Clone, Debug)]
pub struct Measure {
    settings: Settings,
    folds: Vec<Part>,
    iterations: BTreeMap<i64, Iteration>,
    /// Places that each iteration keeps apart.
    places: usize,
    groups: Groups,
    log_ratios: LogRatios,
    trajectories: usize,
    left_out: LeftOut,
    engines: bool,
    steps: Steps,
    cotangents: Cotangents,
    /// Log-probs of the trainer and of the engine at the steps that both have scored.
    scored: [Vec<f64>; 2],
}

/// Sums of one iteration.
#[derive(Clone, Debug)]
struct Iteration {
    part: Part,
    rewards: Rewards,
    verl: verl::Tally,
}

/// How much data there is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Facts {
    /// Trajectories read.
    pub trajectories: usize,
    /// Of those, the ones with a step of the policy.
    pub lanes: usize,
    /// Steps of the policy.
    pub steps: usize,
    /// Trajectories that were left aside because their batch was used again later.
    pub earlier_uses: usize,
    /// Steps without a log-prob of the sampling engine, left out of what compares with it.
    pub unscored_steps: usize,
    /// Iterations.
    pub iterations: usize,
    /// Groups; 0 where the dump has none.
    pub groups: usize,
    /// Mean steps per trajectory (T).
    pub mean_length: f64,
    /// Steps of the longest trajectory.
    pub longest: usize,
    /// Trajectories per update (N).
    pub batch: f64,
    /// Folds behind the intervals.
    pub folds: usize,
    /// Fields that the dump has and that were not read.
    pub unread: Vec<String>,
    /// Which log-probs the verl metrics compare.
    pub verl_pair: &'static str,
}

/// What is measured at a position.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PositionRow {
    /// Steps of the policy before it.
    pub position: usize,
    /// Weight of the trajectories that reach it.
    pub mass: f64,
    /// ESS of the prefix ratio, raw.
    pub prefix_ess: f64,
    /// Half-width of its 95% interval.
    pub prefix_ess_error: Option<f64>,
    /// The same with ratios clamped at 2.
    pub prefix_ess_clamped: f64,
    /// b_t. Paper: `eq:bias-witness`
    pub bias_witness: f64,
    /// Half-width of its 95% interval.
    pub bias_witness_error: Option<f64>,
    /// Cov(R_t, r_t A_t). Paper: `eq:bias-witness`
    pub witness_covariance: f64,
    /// The same as a correlation.
    pub content_correlation: f64,
    /// Root mean square of the advantage.
    pub advantage_rms: f64,
    /// Root mean square of the prefix log-ratio.
    pub prefix_rms: f64,
}

/// What is measured in an iteration.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct IterationRow {
    /// Its number.
    pub iteration: i64,
    /// Trajectories with a step of the policy.
    pub lanes: usize,
    /// σ²T.
    pub drift: f64,
    /// KL(old ‖ new) per step, never negative.
    pub kl_k3: f64,
    /// ESS of the full correction's weights over all steps.
    pub ess: f64,
    /// ESS of the prefix ratio at its worst place.
    pub prefix_ess: f64,
    /// Σ |b|.
    pub dose: f64,
    /// Share of steps on the flat side of the clip.
    pub clip_fraction: f64,
    /// Share of trajectories with zero advantage throughout.
    pub zero_signal: f64,
    /// Mean reward, where there are rewards.
    pub mean_reward: Option<f64>,
    /// Share of trajectories with a reward other than zero.
    pub rewarded: Option<f64>,
    /// verl's metrics, names without `rollout_corr/`.
    #[serde(serialize_with = "as_map")]
    pub verl: Vec<(String, f64)>,
}

/// What a correction of one strength would do to a batch's estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AlphaRow {
    /// The strength.
    pub alpha: f64,
    /// Bias, taking the full correction as the truth. Paper: `eq:bias-def`
    pub bias: f64,
    /// Variance of a single trajectory's estimate. Paper: `eq:var-def`
    pub variance: f64,
    /// Squared error of a batch's mean: squared bias, less its noise, plus variance over N. Paper: `eq:mse-def`
    pub error: f64,
    /// ESS of the weights over all steps.
    pub ess: f64,
}

/// A bin of the histogram of log-ratios.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Bin {
    /// Lower end.
    pub from: f64,
    /// Upper end.
    pub to: f64,
    /// Share of the steps.
    pub share: f64,
}

/// Everything measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measured {
    /// How much data there is.
    pub facts: Facts,
    /// The scalars, with intervals.
    pub numbers: Vec<Number>,
    /// By strength of the correction.
    pub alphas: Vec<AlphaRow>,
    /// How much longer than PPO's the gradient is, by strength of the correction.
    pub amplifications: Vec<AmplificationRow>,
    /// By iteration.
    pub iterations: Vec<IterationRow>,
    /// By position.
    pub positions: Vec<PositionRow>,
    /// Log-ratios; all but a thousandth on either side.
    pub log_ratios: Vec<Bin>,
    /// verl's metrics over all of the data, names without `rollout_corr/`.
    #[serde(serialize_with = "as_map")]
    pub verl: Vec<(String, f64)>,
}

fn as_map<S: serde::Serializer>(pairs: &[(String, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(pairs.iter().map(|(name, value)| (format!("rollout_corr/{name}"), value)))
}

impl Measured {
    /// How much longer than PPO's the gradient is at a strength: the norm of the corrected surrogate's cotangent over that
    /// of PPO's, over all trajectories of the dump.
    #[must_use]
    pub fn amplification(&self, alpha: f64) -> f64 {
        let known = |k: usize| self.amplifications.get(k).map_or(f64::NAN, |row| row.amplification);
        at(&std::array::from_fn(known), alpha)
    }
}

impl Measure {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            folds: vec![Part::limited(PLACES); FOLDS],
            iterations: BTreeMap::new(),
            places: ITERATION_PLACES,
            groups: Groups::default(),
            log_ratios: LogRatios::default(),
            trajectories: 0,
            left_out: LeftOut::default(),
            engines: false,
            steps: Steps::default(),
            cotangents: Cotangents::default(),
            scored: [Vec::new(), Vec::new()],
        }
    }

    /// Adds trajectories.
    pub fn add(&mut self, chunk: &Chunk) {
        let settings = self.settings;
        self.engines |= !chunk.behaviour.is_empty();
        self.left_out.earlier_uses += chunk.left_out.earlier_uses;
        self.left_out.unscored_steps += chunk.left_out.unscored_steps;
        self.cotangents.fill(chunk, settings.clip);
        for (number, (lane, row)) in chunk.lanes.iter().zip(chunk.offsets.windows(2)).enumerate() {
            let row = row[0]..row[1];
            let squares = self.cotangents.of(number);
            let (old, new) = (&chunk.old[row.clone()], &chunk.new[row.clone()]);
            let steps = &mut self.steps;
            steps.fill(old, new, &chunk.advantage[row.clone()], settings.clip);
            let fold = self.groups.fold(lane, steps.whole.silent, FOLDS);
            self.folds[fold].add(steps, &squares, lane.weight);
            let places = self.places;
            let iteration = self.iterations.entry(lane.iteration).or_insert_with(|| Iteration {
                part: Part::limited(places),
                rewards: Rewards::default(),
                verl: verl::Tally::new(settings.verl),
            });
            iteration.part.add(steps, &squares, lane.weight);
            iteration.rewards.add(lane);
            match chunk.behaviour.get(row) {
                Some(behaviour) if !chunk.behaviour.is_empty() => {
                    let [trained, sampled] = &mut self.scored;
                    trained.clear();
                    sampled.clear();
                    for (old, engine) in old.iter().zip(behaviour).filter(|(_, engine)| !engine.is_nan()) {
                        trained.push(*old);
                        sampled.push(*engine);
                    }
                    iteration.verl.add(trained, sampled);
                }
                _ => iteration.verl.add(new, old),
            }
            self.log_ratios.add(&steps.ell, lane.weight);
            self.trajectories += 1;
            self.thin();
        }
    }

    /// Lets every iteration keep fewer places where there are many.
    fn thin(&mut self) {
        let mut places = self.places;
        while places > 1 && self.iterations.len().saturating_mul(places) > ALL_ITERATION_PLACES {
            places /= 2;
        }
        if places < self.places {
            self.places = places;
            self.iterations.values_mut().for_each(|iteration| iteration.part.positions.limit_to(places));
        }
    }

    /// Adds the sums of other trajectories, measured with the same settings. Groups keep the folds that they had there, so
    /// that intervals are those of as many folds as the larger of the two has.
    pub fn merge(&mut self, other: &Self) {
        self.folds.iter_mut().zip(&other.folds).for_each(|(own, other)| own.merge(other));
        for (number, iteration) in &other.iterations {
            match self.iterations.get_mut(number) {
                None => {
                    self.iterations.insert(*number, iteration.clone());
                }
                Some(own) => {
                    own.part.merge(&iteration.part);
                    own.rewards.merge(&iteration.rewards);
                    own.verl.merge(&iteration.verl);
                }
            }
        }
        // A place more than the other keeps would be coarser than its limit says.
        if other.places < self.places {
            self.places = other.places;
            let places = self.places;
            self.iterations.values_mut().for_each(|iteration| iteration.part.positions.limit_to(places));
        }
        self.thin();
        self.groups.merge(&other.groups);
        self.log_ratios.merge(&other.log_ratios);
        self.trajectories += other.trajectories;
        self.left_out.earlier_uses += other.left_out.earlier_uses;
        self.left_out.unscored_steps += other.left_out.unscored_steps;
        self.engines |= other.engines;
    }

    /// Whether there is anything to say: a step of the policy with a weight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.folds.iter().all(|fold| fold.lanes == 0)
    }

    /// What the sums say; nothing sensible where [`Measure::is_empty`].
    #[must_use]
    pub fn finish(&self) -> Measured {
        let used: Vec<&Part> = self.folds.iter().filter(|fold| fold.lanes > 0).collect();
        // All of them keep the same places apart, whichever fold holds the longest trajectory.
        let shared = used.iter().map(|fold| fold.positions.shift()).max().unwrap_or(0);
        let merged = |left_out: Option<usize>| {
            let mut sum = Part::limited(PLACES);
            sum.positions.share(shared);
            let kept = used.iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
            kept.for_each(|(_, part)| sum.merge(part));
            sum
        };
        let all = merged(None);
        let batch = self.settings.batch.unwrap_or(all.lanes as f64 / self.iterations.len() as f64);
        let choices = Choices { ess_floor: self.settings.ess_floor, batch };
        let estimates = Estimates::new(&all, choices);
        let without: Vec<Estimates> = match used.len() {
            0 | 1 => Vec::new(),
            folds => (0..folds).map(|fold| Estimates::new(&merged(Some(fold)), choices)).collect(),
        };
        let mut numbers = numbers(&estimates, &without);
        numbers.extend(self.signal(batch));
        let mut verl = verl::Tally::new(self.settings.verl);
        self.iterations.values().for_each(|iteration| verl.merge(&iteration.verl));
        Measured {
            facts: Facts {
                trajectories: self.trajectories,
                lanes: all.lanes,
                steps: all.steps,
                earlier_uses: self.left_out.earlier_uses,
                unscored_steps: self.left_out.unscored_steps,
                iterations: self.iterations.len(),
                groups: self.groups.count(),
                mean_length: all.step_mass / all.lane_mass,
                longest: all.positions.longest(),
                batch,
                folds: used.len(),
                unread: Vec::new(),
                verl_pair: if self.engines { "old against behaviour" } else { "new against old" },
            },
            numbers,
            alphas: (0..GRID).map(|k| alpha_row(&estimates, k)).collect(),
            amplifications: (STRENGTHS.iter().zip(estimates.amplification))
                .map(|(&alpha, amplification)| AmplificationRow { alpha, amplification })
                .collect(),
            iterations: self.iterations.iter().map(|(number, own)| own.row(*number, choices)).collect(),
            positions: position_rows(&all, &estimates, &without),
            log_ratios: (self.log_ratios.bins(BINS).into_iter())
                .map(|(from, to, share)| Bin { from, to, share })
                .collect(),
            verl: verl.metrics(),
        }
    }

    /// Whether batches carry a signal. Paper: `tab:conditions` (C3)
    fn signal(&self, batch: f64) -> impl Iterator<Item = Number> {
        let known: Vec<&Rewards> = self
            .iterations
            .values()
            .map(|iteration| &iteration.rewards)
            .filter(|own| own.known > 0)
            .collect();
        let share = |of: fn(&Rewards) -> bool| {
            known.iter().filter(|rewards| of(rewards)).count() as f64 / known.len() as f64
        };
        let worst = known.iter().map(|rewards| rewards.chance_of_none(batch)).fold(f64::NAN, f64::max);
        let (headroom, headroom_ahead) = headroom(&known);
        let values = [
            share(Rewards::all_zero),
            share(Rewards::all_alike),
            self.groups.without_signal(),
            worst,
            headroom,
            headroom_ahead,
        ];
        SIGNAL.into_iter().zip(values).map(|((name, about), value)| Number::plain(name, value, about))
    }
}

/// How much of the range of all rewards lies above the mean of the last third of the iterations, and how much will after two
/// more dumps of this length if the gap goes on closing by the same factor.
///
/// The middles of the first and the last third are two thirds of a dump apart, so that two dumps are three such stretches.
fn headroom(known: &[&Rewards]) -> (f64, f64) {
    let total = |of: &[&Rewards]| {
        let mut sum = Rewards::default();
        of.iter().for_each(|rewards| sum.merge(rewards));
        sum
    };
    let third = known.len().div_ceil(3);
    let (all, first, last) = (total(known), total(&known[..third]), total(&known[known.len() - third..]));
    let gap = |part: &Rewards| (all.highest - part.mean()) / (all.highest - all.lowest);
    let pace = if known.len() < 3 { 1.0 } else { (gap(&last) / gap(&first)).min(1.0) };
    (gap(&last), gap(&last) * pace.powi(3))
}

impl Iteration {
    fn row(&self, iteration: i64, choices: Choices) -> IterationRow {
        let known = self.rewards.known > 0;
        let estimates = Estimates::new(&self.part, choices);
        IterationRow {
            iteration,
            lanes: self.part.lanes,
            drift: estimates.drift,
            kl_k3: estimates.kl_k3,
            ess: estimates.ess,
            prefix_ess: estimates.worst_prefix_ess,
            dose: estimates.dose,
            clip_fraction: estimates.clip_fraction,
            zero_signal: estimates.zero_signal,
            mean_reward: known.then(|| self.rewards.mean()),
            rewarded: known.then(|| self.rewards.rewarded_share()),
            verl: self.verl.metrics(),
        }
    }
}

fn alpha_row(estimates: &Estimates, k: usize) -> AlphaRow {
    AlphaRow {
        alpha: strength(k),
        bias: estimates.bias_at[k],
        variance: estimates.variance_at[k],
        error: estimates.error_at[k],
        ess: estimates.ess_at[k],
    }
}

fn position_rows(all: &Part, estimates: &Estimates, without: &[Estimates]) -> Vec<PositionRow> {
    let reach = |of: &dyn Fn(&Estimates) -> Option<f64>| {
        // A fold left out may hold the only trajectories of this length.
        let values: Option<Vec<f64>> = without.iter().map(of).collect();
        let values = values?;
        standard_error(&values).map(|error| error * half_width(values.len()))
    };
    let row = |at: usize| PositionRow {
        position: all.positions.start(at),
        mass: all.positions.get(at, super::position::Sum::Mass) / all.positions.width(at) as f64,
        prefix_ess: estimates.prefix_ess[at],
        prefix_ess_error: reach(&|own| own.prefix_ess.get(at).copied()),
        prefix_ess_clamped: estimates.prefix_ess_clamped[at],
        bias_witness: estimates.bias_witness[at],
        bias_witness_error: reach(&|own| own.bias_witness.get(at).copied()),
        witness_covariance: estimates.witness_covariance[at],
        content_correlation: estimates.content_correlation[at],
        advantage_rms: estimates.advantage_rms[at],
        prefix_rms: estimates.prefix_rms[at],
    };
    (0..all.positions.len()).map(row).collect()
}
