//! The whole run: folds for the intervals, iterations for the course, groups for the signal.

use super::amplification::{AmplificationRow, Cotangents, STRENGTHS};
use super::estimates::{Choices, Estimates};
use super::exact::Range;
use super::folds::Folds;
use super::histogram::LogRatios;
use super::jackknife::{FOLDS, Leaving};
use super::lags::{self, Lags};
use super::numbers::{Number, SIGNAL, numbers};
use super::part::{Cell, Part};
use super::rows::{Bin, Facts, IterationRow, Measured, Ranks, alpha_row, position_rows};
use super::scaled::GRID;
use super::settings::Settings;
use super::signal::{Groups, Rewards};
use super::steps::Steps;
use crate::trajectory::{Chunk, Clock, Lane, LeftOut};
use crate::verl;
use std::collections::{BTreeMap, BTreeSet};

/// Places along the trajectory that are kept apart; neighbours share where trajectories are longer. It decides how large a
/// tally is: 20 folds of so many places.
pub(crate) const PLACES: usize = 64;

/// Places that all iterations together keep apart: of many iterations each keeps fewer, so that their sums take some 100 MB
/// of places however many there are.
const ALL_ITERATION_PLACES: usize = 1 << 17;

/// Bins of the histogram of log-ratios.
const BINS: usize = 60;

/// Running sums of a run, or of a rank's share of it: a tally. Those of shares add up to those of the whole to the last bit.
#[derive(Clone, Debug)]
pub struct Measure {
    pub(super) sums: Sums,
    folding: Folds,
    steps: Steps,
    cotangents: Cotangents,
    /// Log-probs of the trainer and of the engine at the steps that both have scored.
    scored: [Vec<f64>; 2],
}

/// What is kept of a run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sums {
    pub(super) settings: Settings,
    /// The rank whose trajectories are added.
    pub(super) rank: Option<u32>,
    /// Ranks that share a batch.
    pub(super) world: Option<u32>,
    /// Ranks that are in it.
    pub(super) ranks: BTreeSet<u32>,
    pub(super) folds: Vec<Cell>,
    pub(super) iterations: BTreeMap<i64, Iteration>,
    /// Places that each iteration keeps apart.
    pub(super) places: usize,
    pub(super) groups: Groups,
    pub(super) log_ratios: LogRatios,
    pub(super) trajectories: usize,
    /// Of those, the ones whose steps a thinned dump left out.
    pub(super) thinned: usize,
    pub(super) left_out: LeftOut,
    pub(super) engines: bool,
    /// What tells how old steps are.
    pub(super) clock: Option<Clock>,
}

/// Sums of one iteration.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Iteration {
    pub(super) cell: Cell,
    pub(super) rewards: Rewards,
    pub(super) verl: verl::Tally,
    pub(super) lags: Lags,
    /// The ranks that said so.
    pub(super) ranks: BTreeSet<u32>,
}

impl Iteration {
    pub(super) fn new(places: usize, settings: verl::Settings) -> Self {
        Self {
            cell: Cell::limited(places),
            rewards: Rewards::default(),
            verl: verl::Tally::new(settings),
            lags: Lags::default(),
            ranks: BTreeSet::new(),
        }
    }
}

impl Sums {
    pub(super) fn new(settings: Settings) -> Self {
        Self {
            settings,
            rank: None,
            world: None,
            ranks: BTreeSet::new(),
            folds: vec![Cell::limited(PLACES); FOLDS],
            iterations: BTreeMap::new(),
            places: PLACES,
            groups: Groups::default(),
            log_ratios: LogRatios::default(),
            trajectories: 0,
            thinned: 0,
            left_out: LeftOut::default(),
            engines: false,
            clock: None,
        }
    }

    /// Whether a step was added.
    pub(super) fn has_steps(&self) -> bool {
        self.folds.iter().any(|fold| fold.lanes > 0)
    }

    /// The sums of a trajectory's iteration.
    fn own(&mut self, lane: &Lane) -> &mut Iteration {
        let (places, verl) = (self.places, self.settings.verl);
        let own = self.iterations.entry(lane.iteration).or_insert_with(|| Iteration::new(places, verl));
        own.ranks.extend(self.rank);
        own
    }

    /// Lets every iteration keep fewer places where there are many.
    pub(super) fn thin(&mut self) {
        let mut places = self.places;
        while places > 1 && self.iterations.len().saturating_mul(places) > ALL_ITERATION_PLACES {
            places /= 2;
        }
        if places < self.places {
            self.places = places;
            self.iterations.values_mut().for_each(|own| own.cell.places().limit_to(places));
        }
    }
}

impl Measure {
    /// Nothing measured yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self::of(Sums::new(settings))
    }

    pub(super) fn of(sums: Sums) -> Self {
        Self {
            sums,
            folding: Folds::default(),
            steps: Steps::default(),
            cotangents: Cotangents::default(),
            scored: [Vec::new(), Vec::new()],
        }
    }

    /// Says that what is added is one rank's share of each batch, of so many.
    #[must_use]
    pub fn of_rank(mut self, rank: u32, world: u32) -> Self {
        (self.sums.rank, self.sums.world) = (Some(rank), Some(world));
        self.sums.ranks.insert(rank);
        self
    }

    /// What it is measured under.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.sums.settings
    }

    /// Sets the trajectories of an update, on which no sum depends.
    pub fn set_batch(&mut self, batch: f64) {
        self.sums.settings.batch = Some(batch);
    }

    /// Adds trajectories.
    pub fn add(&mut self, chunk: &Chunk) {
        let Self { sums, folding, steps, cotangents, scored } = self;
        let settings = sums.settings;
        sums.engines |= !chunk.behaviour.is_empty();
        sums.clock = sums.clock.or(chunk.clock);
        sums.left_out.earlier_uses += chunk.left_out.earlier_uses;
        sums.left_out.unscored_steps += chunk.left_out.unscored_steps;
        cotangents.fill(chunk, settings.clip);
        for (number, (lane, row)) in chunk.lanes.iter().zip(chunk.offsets.windows(2)).enumerate() {
            let row = row[0]..row[1];
            sums.trajectories += 1;
            if lane.kept == 0.0 {
                sums.thinned += 1;
                sums.own(lane).rewards.add(lane);
                sums.thin();
                continue;
            }
            // What was kept counts for what was left out, too. Squares of weights hold that once, as sums of squares do.
            let weight = lane.weight / lane.kept;
            let squares = cotangents.of(number).map(|square| square * lane.kept);
            let (old, new) = (&chunk.old[row.clone()], &chunk.new[row.clone()]);
            steps.fill(old, new, &chunk.advantage[row.clone()], settings.clip);
            let engine = chunk.behaviour.get(row.clone()).unwrap_or_default();
            steps.compare(old, engine);
            sums.groups.add(lane, steps.whole.silent);
            sums.folds[folding.of(lane, old, new)].add(steps, &squares, weight);
            let iteration = sums.own(lane);
            iteration.cell.add(steps, &squares, weight);
            iteration.rewards.add(lane);
            if let Some(versions) = chunk.versions.get(row) {
                let (ell, trainer) = (&steps.ell[..], lane.trainer_version);
                iteration.lags.add(&lags::Lane { versions, engine, old, ell, weight, trainer });
            }
            match engine {
                [] => iteration.verl.add(new, old),
                behaviour => {
                    let [trained, sampled] = scored;
                    trained.clear();
                    sampled.clear();
                    for (old, engine) in old.iter().zip(behaviour).filter(|(_, engine)| !engine.is_nan()) {
                        trained.push(*old);
                        sampled.push(*engine);
                    }
                    iteration.verl.add(trained, sampled);
                }
            }
            sums.log_ratios.add(&steps.ell, weight);
            sums.thin();
        }
    }

    /// Whether there is anything to say: a step of the policy with a weight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.sums.has_steps()
    }

    /// What the sums say; nothing sensible where [`Measure::is_empty`].
    #[must_use]
    pub fn finish(&self) -> Measured {
        let sums = &self.sums;
        let used: Vec<&Cell> = sums.folds.iter().filter(|fold| fold.lanes > 0).collect();
        // All of them keep the same places apart, whichever fold holds the longest trajectory.
        let shared = used.iter().map(|fold| fold.places.shift()).max().unwrap_or(0);
        let merged = |left_out: Option<usize>| {
            let mut sum = Cell::limited(PLACES);
            sum.places().share(shared);
            let kept = used.iter().enumerate().filter(|(at, _)| Some(*at) != left_out);
            kept.for_each(|(_, cell)| sum.merge(cell));
            sum.read()
        };
        let all: Part = merged(None);
        let batch = sums.settings.batch.unwrap_or_else(|| self.batch(all.lanes));
        let choices = Choices { ess_floor: sums.settings.ess_floor, batch };
        let estimates = Estimates::new(&all, choices);
        let leaving = Leaving::new(&used.iter().map(|fold| fold.mass()).collect::<Vec<_>>());
        let without: Vec<Estimates> = match used.len() {
            0 | 1 => Vec::new(),
            folds => (0..folds).map(|fold| Estimates::new(&merged(Some(fold)), choices)).collect(),
        };
        let mut numbers = numbers(&estimates, &without, &leaving);
        numbers.extend(self.signal(batch));
        let mut verl = verl::Tally::new(sums.settings.verl);
        sums.iterations.values().for_each(|iteration| verl.merge(&iteration.verl));
        let (ages, limits) = lags::rows(sums.iterations.values().map(|own| &own.lags));
        Measured {
            facts: Facts {
                trajectories: sums.trajectories,
                lanes: all.lanes,
                thinned: sums.thinned,
                steps: all.steps,
                earlier_uses: sums.left_out.earlier_uses,
                unscored_steps: sums.left_out.unscored_steps,
                iterations: sums.iterations.len(),
                groups: sums.groups.count(),
                mean_length: all.step_mass / all.lane_mass,
                longest: all.positions.longest(),
                batch,
                folds: used.len(),
                ranks: sums.world.map(|world| Ranks { seen: sums.ranks.iter().copied().collect(), world }),
                unread: Vec::new(),
                verl_pair: if sums.engines { "old against behaviour" } else { "new against old" },
            },
            numbers,
            alphas: (0..GRID).map(|k| alpha_row(&estimates, k)).collect(),
            amplifications: (STRENGTHS.iter().zip(estimates.amplification))
                .map(|(&alpha, amplification)| AmplificationRow { alpha, amplification })
                .collect(),
            iterations: sums.iterations.iter().map(|(number, own)| own.row(*number, choices)).collect(),
            positions: position_rows(&all.positions, &estimates, &without, &leaving),
            log_ratios: (sums.log_ratios.bins(BINS).into_iter())
                .map(|(from, to, share)| Bin { from, to, share })
                .collect(),
            verl: verl.metrics(),
            ages,
            limits,
        }
    }

    /// Trajectories per iteration, of all ranks where some are missing.
    fn batch(&self, lanes: usize) -> f64 {
        let missing = match self.sums.world {
            Some(world) if !self.sums.ranks.is_empty() => f64::from(world) / self.sums.ranks.len() as f64,
            _ => 1.0,
        };
        missing * (lanes + self.sums.thinned) as f64 / self.sums.iterations.len() as f64
    }

    /// Whether batches carry a signal. Paper: `tab:conditions` (C3)
    fn signal(&self, batch: f64) -> impl Iterator<Item = Number> {
        let known: Vec<&Rewards> = (self.sums.iterations.values())
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
            self.sums.groups.without_signal(),
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
    let Range { low, high } = all.range;
    let gap = |part: &Rewards| (high - part.mean()) / (high - low);
    let pace = if known.len() < 3 { 1.0 } else { (gap(&last) / gap(&first)).min(1.0) };
    (gap(&last), gap(&last) * pace.powi(3))
}

impl Iteration {
    fn row(&self, iteration: i64, choices: Choices) -> IterationRow {
        let known = self.rewards.known > 0;
        let estimates = Estimates::new(&self.cell.read(), choices);
        IterationRow {
            iteration,
            lanes: self.cell.lanes,
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
