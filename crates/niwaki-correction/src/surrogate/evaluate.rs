//! The passes over the rows: read, factor, clip, pull back.

use super::batch::{Batch, Packed};
use super::pull_back::route;
use super::{Mean, Surrogate};
use crate::clip::Bounds;
use crate::diagnostics::{Diagnostics, Tally, prefix_ess_in_log_space};
use crate::family::{Form, Reads, Rule};
use crate::log_ratio::{exclusive_prefix, log_ratios, running_minimum, windowed_prefix};
use crate::{Error, Real};

/// What a loss says of a batch.
///
/// Shapes: the slices are `[steps]` of the batch as it was given; masked steps hold 0.
#[derive(Debug)]
pub struct Evaluation<'w, F> {
    /// The value of the objective, to be maximised. Paper: `eq:pcppo-objective`
    pub objective: f64,
    /// `∂objective/∂log_prob`, exact; `own + routed`.
    pub cotangent: &'w [F],
    /// PPO's term, reweighted by the factor and gated by the clip. Paper: `eq:gradient-two-channels`
    pub own: &'w [F],
    /// Credit routed back along the prefix; zero where routing is off. Paper: `eq:gradient-two-channels`
    pub routed: &'w [F],
    /// The member as it acted on this batch: an ESS floor is replaced by the strength it led to.
    pub rule: Rule,
    /// What the batch says of drift, weights and bias.
    pub diagnostics: Diagnostics,
}

/// Buffers that are reused from batch to batch.
#[derive(Debug, Default)]
pub struct Workspace<F> {
    offsets: Vec<usize>,
    packed: Packed<F>,
    ell: Vec<F>,
    reading: Vec<F>,
    attained: Vec<usize>,
    log_factor: Vec<F>,
    slope: Vec<F>,
    normaliser: Vec<F>,
    bounds: Vec<Bounds<F>>,
    own: Vec<F>,
    credit: Vec<F>,
    routed: Vec<F>,
    cotangent: Vec<F>,
    tally: Tally,
}

impl Surrogate {
    /// Objective, cotangent, channels and diagnostics of a batch.
    ///
    /// # Errors
    /// Where lengths disagree, a value is not finite, or no step is the policy's own.
    ///
    /// Paper: `eq:pcppo-objective`, `alg:tempered` (lines 4 to 7), `eq:gradient-two-channels`
    pub fn evaluate<'w, F: Real>(
        &self,
        batch: &Batch<'_, F>,
        workspace: &'w mut Workspace<F>,
    ) -> Result<Evaluation<'w, F>, Error> {
        let work = workspace;
        batch.check(&mut work.offsets)?;
        let mut packed = std::mem::take(&mut work.packed);
        let steps = match batch.mask {
            None => Steps {
                log_prob: batch.log_prob,
                rollout_log_prob: batch.rollout_log_prob,
                advantage: batch.advantage,
                behaviour_log_prob: batch.behaviour_log_prob,
            },
            Some(mask) => {
                packed.pack(batch, mask, &mut work.offsets);
                Steps {
                    log_prob: &packed.log_prob,
                    rollout_log_prob: &packed.rollout_log_prob,
                    advantage: &packed.advantage,
                    behaviour_log_prob: batch
                        .behaviour_log_prob
                        .map(|_| packed.behaviour_log_prob.as_slice()),
                }
            }
        };
        let outcome = self.run(&steps, batch.lane_weight, work);
        if outcome.is_ok() && batch.mask.is_some() {
            for values in [&mut work.own, &mut work.routed, &mut work.cotangent] {
                packed.unpack(values, batch.log_prob.len());
            }
        }
        work.packed = packed;
        let (objective, rule, diagnostics) = outcome?;
        Ok(Evaluation {
            objective,
            cotangent: &work.cotangent,
            own: &work.own,
            routed: &work.routed,
            rule,
            diagnostics,
        })
    }

    /// The passes, on packed steps.
    fn run<F: Real>(
        &self,
        steps: &Steps<'_, F>,
        lane_weight: Option<&[F]>,
        work: &mut Workspace<F>,
    ) -> Result<(f64, Rule, Diagnostics), Error> {
        let count = steps.log_prob.len();
        if count == 0 {
            return Err(Error::NoSteps);
        }
        let longest = work.offsets.windows(2).map(|row| row[1] - row[0]).max().unwrap_or(0);
        work.resize(count, longest);
        let weight = |lane: usize| lane_weight.map_or(F::ONE, |weights| weights[lane]);
        let total: f64 = (work.offsets.windows(2).enumerate())
            .map(|(lane, row)| weight(lane).to_f64() * self.part(row[1] - row[0]))
            .sum();
        let mut rule = self.correction.rule();
        self.fill_bounds(&rule, steps, longest, &mut work.bounds);

        let lanes = work.offsets.len() - 1;
        let coupled = rule.self_normalised || rule.ess_floor.is_some();
        if coupled {
            for lane in 0..lanes {
                work.read(&rule, steps, lane);
            }
            rule = rule.resolve(|strength| work.ess_at(strength, weight));
            work.fill_normaliser(&rule, longest, weight);
        }
        let mut objective = 0.0;
        work.tally.reset(longest);
        for lane in 0..lanes {
            if !coupled {
                work.read(&rule, steps, lane);
            }
            let length = work.offsets[lane + 1] - work.offsets[lane];
            let scale = weight(lane).to_f64() * self.part(length) / (length.max(1) as f64 * total);
            objective += work.terms(&rule, steps, lane, F::from_f64(scale)).to_f64();
            if !rule.self_normalised {
                work.pull_back(&rule, lane, self.routing);
            }
            work.count(steps, lane, weight(lane));
        }
        if rule.self_normalised {
            work.share_credit(&rule, longest, weight);
            for lane in 0..lanes {
                work.pull_back(&rule, lane, self.routing);
            }
        }
        let mut diagnostics = work.tally.finish();
        if work.tally.overflowed() {
            diagnostics.prefix_ess = prefix_ess_in_log_space(&work.ell, &work.offsets, longest, weight);
        }
        Ok((objective, rule, diagnostics))
    }

    /// A trajectory's part in the mean: by its steps, or as one.
    fn part(&self, length: usize) -> f64 {
        match self.mean {
            Mean::Steps => length as f64,
            Mean::Trajectories => length.min(1) as f64,
        }
    }

    /// The clip range at each step; open without a clip, and for weighted REINFORCE steps.
    fn fill_bounds<F: Real>(
        &self,
        rule: &Rule,
        steps: &Steps<'_, F>,
        longest: usize,
        bounds: &mut Vec<Bounds<F>>,
    ) {
        bounds.clear();
        let unclipped = rule.form == Form::Weigh && steps.behaviour_log_prob.is_none();
        bounds.extend((0..longest).map(|step| match self.clip {
            Some(clip) if !unclipped => clip.bounds(step, rule.growing_clip),
            _ => Bounds::open(),
        }));
    }
}

/// The policy's own steps.
struct Steps<'a, F> {
    log_prob: &'a [F],
    rollout_log_prob: &'a [F],
    advantage: &'a [F],
    behaviour_log_prob: Option<&'a [F]>,
}

impl<F: Real> Workspace<F> {
    fn resize(&mut self, count: usize, longest: usize) {
        let buffers = [
            &mut self.ell,
            &mut self.reading,
            &mut self.log_factor,
            &mut self.slope,
            &mut self.own,
            &mut self.credit,
            &mut self.routed,
            &mut self.cotangent,
        ];
        for buffer in buffers {
            buffer.resize(count, F::ZERO);
        }
        self.attained.resize(count, 0);
        self.normaliser.clear();
        self.normaliser.resize(longest, F::ZERO);
    }

    /// Log-ratios of one trajectory and what the member reads off them.
    fn read(&mut self, rule: &Rule, steps: &Steps<'_, F>, lane: usize) {
        let row = self.offsets[lane]..self.offsets[lane + 1];
        let (ell, reading) = (&mut self.ell[row.clone()], &mut self.reading[row.clone()]);
        let rollout = &steps.rollout_log_prob[row.clone()];
        // A weight from outside compares rollout with behaviour where the batch knows both.
        match steps.behaviour_log_prob {
            Some(behaviour) if rule.form == Form::Weigh => log_ratios(rollout, &behaviour[row.clone()], ell),
            _ => log_ratios(&steps.log_prob[row.clone()], rollout, ell),
        }
        match rule.reads {
            Reads::Prefix => {
                exclusive_prefix(ell, reading);
            }
            Reads::Window(window) => windowed_prefix(ell, window, reading),
            Reads::Minimum => running_minimum(ell, reading, &mut self.attained[row.clone()]),
            Reads::Step => reading.copy_from_slice(ell),
            Reads::SequenceMean => {
                let length = F::from_f64(ell.len() as f64);
                let sum = ell.iter().fold(F::ZERO, |sum, &ell| sum + ell);
                reading.fill(sum / length);
            }
            Reads::SequenceSum => {
                let sum = ell.iter().fold(F::ZERO, |sum, &ell| sum + ell);
                reading.fill(sum);
            }
        }
        if rule.form == Form::Weigh && steps.behaviour_log_prob.is_some() {
            log_ratios(&steps.log_prob[row.clone()], rollout, ell);
        }
    }

    /// Factors, clip and terms of one trajectory; returns its share of the objective.
    fn terms(&mut self, rule: &Rule, steps: &Steps<'_, F>, lane: usize, scale: F) -> F {
        let row = self.offsets[lane]..self.offsets[lane + 1];
        let length = row.len();
        let ell = &self.ell[row.clone()][..length];
        let reading = &self.reading[row.clone()][..length];
        let advantage = &steps.advantage[row.clone()][..length];
        let log_factor = &mut self.log_factor[row.clone()][..length];
        let slope = &mut self.slope[row.clone()][..length];
        let own = &mut self.own[row.clone()][..length];
        let credit = &mut self.credit[row][..length];
        let (bounds, normaliser) = (&self.bounds[..length], &self.normaliser[..length]);
        for t in 0..length {
            let factor = rule.factor(reading[t]);
            log_factor[t] = factor.log_factor - normaliser[t];
            slope[t] = factor.slope;
        }
        // Per form: the log of the ratio inside the clip, and the weight outside it.
        let mut sum = F::ZERO;
        let with_behaviour = steps.behaviour_log_prob.is_some();
        for t in 0..length {
            let (inside, outside) = match rule.form {
                Form::Multiply => (log_factor[t] + ell[t], F::ONE),
                Form::Replace => (log_factor[t], F::ONE),
                Form::Weigh if with_behaviour => (ell[t], log_factor[t].exp()),
                Form::Weigh => (F::ZERO, log_factor[t].exp()),
            };
            let ratio = inside.exp();
            let (value, gate) = bounds[t].term(ratio, advantage[t]);
            sum += outside * value;
            // Where the ratio is infinite the gate is 0 and their product would not be a number.
            let live = if gate == F::ZERO { F::ZERO } else { outside * ratio * advantage[t] };
            own[t] = live * scale;
            credit[t] = slope[t] * own[t];
        }
        sum * scale
    }

    /// The routed channel and the cotangent of one trajectory.
    fn pull_back(&mut self, rule: &Rule, lane: usize, routing: bool) {
        let row = self.offsets[lane]..self.offsets[lane + 1];
        let (own, credit) = (&self.own[row.clone()], &self.credit[row.clone()]);
        let routed = &mut self.routed[row.clone()];
        let cotangent = &mut self.cotangent[row.clone()];
        if routing && rule.form != Form::Weigh {
            route(rule.reads, credit, &self.attained[row], routed);
            if rule.form == Form::Replace {
                // The step's own ratio is not in the term: all credit comes through the reading.
                for (routed, &own) in routed.iter_mut().zip(own) {
                    *routed -= own;
                }
            }
        } else {
            routed.fill(F::ZERO);
        }
        for ((cotangent, &own), &routed) in cotangent.iter_mut().zip(own).zip(&*routed) {
            *cotangent = own + routed;
        }
    }

    /// Adds one trajectory to the diagnostics.
    fn count(&mut self, steps: &Steps<'_, F>, lane: usize, weight: F) {
        let row = self.offsets[lane]..self.offsets[lane + 1];
        let (ell, log_factor) = (&self.ell[row.clone()], &self.log_factor[row.clone()]);
        self.tally.add(ell, log_factor, &steps.advantage[row.clone()], &self.own[row], weight.to_f64());
    }

    /// Normalised ESS of `exp(strength · reading)` over all (trajectory, step) pairs.
    ///
    /// Paper: `app:diagnostics` (normalised ESS over the joint distribution)
    fn ess_at(&self, strength: f64, weight: impl Fn(usize) -> F) -> f64 {
        let highest = self.reading.iter().map(|reading| strength * reading.to_f64()).fold(0.0, f64::max);
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        for (lane, row) in self.offsets.windows(2).enumerate() {
            let weight = weight(lane).to_f64();
            for &reading in &self.reading[row[0]..row[1]] {
                let value = Real::exp(strength * reading.to_f64() - highest);
                mass += weight;
                first += weight * value;
                second += weight * value * value;
            }
        }
        first * first / (second * mass)
    }

    /// `normaliser[t] = log(weighted mean of the factors at t)` for self-normalised members, else 0.
    fn fill_normaliser(&mut self, rule: &Rule, longest: usize, weight: impl Fn(usize) -> F) {
        if !rule.self_normalised {
            return;
        }
        for t in 0..longest {
            let (mut highest, mut mass, mut sum) = (f64::NEG_INFINITY, 0.0, 0.0);
            let present = |row: &[usize]| row[0] + t < row[1];
            for row in self.offsets.windows(2).filter(|row| present(row)) {
                highest = highest.max(rule.factor(self.reading[row[0] + t]).log_factor.to_f64());
            }
            for (lane, row) in self.offsets.windows(2).enumerate().filter(|(_, row)| present(row)) {
                let log_factor = rule.factor(self.reading[row[0] + t]).log_factor.to_f64();
                mass += weight(lane).to_f64();
                sum += weight(lane).to_f64() * Real::exp(log_factor - highest);
            }
            self.normaliser[t] = F::from_f64(highest + (sum / mass).ln());
        }
    }

    /// Takes back, at each step, the credit that flows through the batch mean of the factors.
    ///
    /// With `ω` the trajectory weights, `log g_n = αL_n − log mean(ω e^{αL})` gives
    /// `Σ_n own_n ∂log g_n/∂L_m = α (own_m − ω_m g_m / Σω · Σ_n own_n)`.
    fn share_credit(&mut self, rule: &Rule, longest: usize, weight: impl Fn(usize) -> F) {
        for t in 0..longest {
            let (mut total, mut mass) = (F::ZERO, F::ZERO);
            for (lane, row) in self.offsets.windows(2).enumerate().filter(|(_, row)| row[0] + t < row[1]) {
                total += self.own[row[0] + t];
                mass += weight(lane);
            }
            for (lane, row) in self.offsets.windows(2).enumerate().filter(|(_, row)| row[0] + t < row[1]) {
                let at = row[0] + t;
                let share = weight(lane) * self.log_factor[at].exp() / mass;
                self.credit[at] -= rule.factor(self.reading[at]).slope * share * total;
            }
        }
    }
}
