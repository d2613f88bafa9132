//! What comes out, and the order of the passes over the rows.

use super::batch::{Batch, Packed};
use super::passes::{Passes, Placed, Steps, When};
use super::tile::{LANES, Tile, sum};
use super::turn::PLAIN;
#[cfg(target_arch = "x86_64")]
use super::turn::{AVX2, AVX512};
use super::{Mean, Surrogate};
use crate::clip::Bounds;
use crate::diagnostics::{Diagnostics, prefix_ess_in_log_space};
use crate::family::{Form, Rule};
use crate::log_ratio::add;
use crate::real::sealed::Sealed;
use crate::{Correction, Error, Real};

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
    /// The member as it acted on this batch: an ESS floor or an amplification is replaced by the strength it led to.
    pub rule: Rule,
    /// What the batch says of drift, weights and bias.
    pub diagnostics: Diagnostics,
}

/// Buffers that are reused from batch to batch.
#[derive(Debug, Default)]
pub struct Workspace<F> {
    pub(super) packed: Packed<F>,
    pub(super) passes: Passes<F>,
}

/// The passes over one float type.
macro_rules! compiled {
    ($float:ty) => {
        impl Sealed for $float {
            fn pass(
                surrogate: &Surrogate,
                batch: &Batch<'_, Self>,
                workspace: &mut Workspace<Self>,
                measured: bool,
            ) -> Result<(f64, Rule, Diagnostics), Error> {
                if measured {
                    surrogate.pass::<Self, true>(batch, workspace)
                } else {
                    surrogate.pass::<Self, false>(batch, workspace)
                }
            }
        }
    };
}
compiled!(f32);
compiled!(f64);

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
        let (objective, rule, diagnostics) = F::pass(self, batch, workspace, true)?;
        let Passes { cotangent, own, routed, .. } = &workspace.passes;
        Ok(Evaluation { objective, cotangent, own, routed, rule, diagnostics })
    }

    /// The cotangent alone, `[steps]`: that of [`Surrogate::evaluate`] bit for bit, without the diagnostics, which cost
    /// about as much again.
    ///
    /// # Errors
    /// As [`Surrogate::evaluate`].
    ///
    /// Paper: `alg:tempered` (lines 4 to 7)
    pub fn cotangent<'w, F: Real>(
        &self,
        batch: &Batch<'_, F>,
        workspace: &'w mut Workspace<F>,
    ) -> Result<&'w [F], Error> {
        F::pass(self, batch, workspace, false)?;
        Ok(&workspace.passes.cotangent)
    }

    /// Leaves cotangent and channels in the workspace; diagnostics are empty unless they are `MEASURED`.
    fn pass<F: Real, const MEASURED: bool>(
        &self,
        batch: &Batch<'_, F>,
        workspace: &mut Workspace<F>,
    ) -> Result<(f64, Rule, Diagnostics), Error> {
        if let Some(weight) = batch.decoupled {
            let advantage = self.decoupled(batch, weight)?;
            let weighed =
                Batch { advantage: &advantage, behaviour_log_prob: None, decoupled: None, ..*batch };
            return self.pass::<F, MEASURED>(&weighed, workspace);
        }
        let Workspace { packed, passes } = workspace;
        batch.check(&mut passes.offsets)?;
        let steps = match batch.mask {
            None => Steps {
                log_prob: batch.log_prob,
                rollout_log_prob: batch.rollout_log_prob,
                advantage: batch.advantage,
                behaviour_log_prob: batch.behaviour_log_prob,
            },
            Some(mask) => {
                packed.pack(batch, mask, &mut passes.offsets);
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
        let found = match self.correction.rule().written {
            None => self.on_widest_vectors::<F, MEASURED>(&steps, batch.lane_weight, passes)?,
            Some(written) => {
                let mut diagnostics = Diagnostics::default();
                if MEASURED {
                    // Drift, ratios and bias are PPO's own; what the member makes of them is its affair.
                    let plain = Self { correction: Correction::ppo(), ..*self };
                    diagnostics = plain.on_widest_vectors::<F, true>(&steps, batch.lane_weight, passes)?.2;
                }
                let objective = self.write_out(&written, batch, packed, passes, &mut diagnostics)?;
                passes.probe = [F::ZERO; LANES];
                (objective, self.correction.rule(), diagnostics)
            }
        };
        if batch.behaviour_log_prob.is_some() || !passes.probe.iter().all(|probe| probe.is_finite()) {
            batch.check_values()?;
        }
        if batch.mask.is_some() {
            for values in [&mut passes.own, &mut passes.routed, &mut passes.cotangent] {
                packed.unpack(values, batch.log_prob.len());
            }
        }
        Ok(found)
    }

    /// Runs the passes compiled for the widest vectors that the processor has. Exponentials are fused where the
    /// processor can: kinds of processors may differ in the last digit, runs on one never do.
    fn on_widest_vectors<F: Real, const MEASURED: bool>(
        &self,
        steps: &Steps<'_, F>,
        lane_weight: Option<&[F]>,
        passes: &mut Passes<F>,
    ) -> Result<(f64, Rule, Diagnostics), Error> {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl")
                && is_x86_feature_detected!("fma")
            {
                // SAFETY: the processor has the features that the function is compiled for.
                return unsafe { self.run_avx512::<F, MEASURED>(steps, lane_weight, passes) };
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                // SAFETY: as above.
                return unsafe { self.run_avx2::<F, MEASURED>(steps, lane_weight, passes) };
            }
        }
        self.run::<F, PLAIN, MEASURED>(steps, lane_weight, passes)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
    fn run_avx512<F: Real, const MEASURED: bool>(
        &self,
        steps: &Steps<'_, F>,
        lane_weight: Option<&[F]>,
        passes: &mut Passes<F>,
    ) -> Result<(f64, Rule, Diagnostics), Error> {
        self.run::<F, AVX512, MEASURED>(steps, lane_weight, passes)
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma")]
    fn run_avx2<F: Real, const MEASURED: bool>(
        &self,
        steps: &Steps<'_, F>,
        lane_weight: Option<&[F]>,
        passes: &mut Passes<F>,
    ) -> Result<(f64, Rule, Diagnostics), Error> {
        self.run::<F, AVX2, MEASURED>(steps, lane_weight, passes)
    }

    /// The passes, on packed steps. Inlined, like all it calls, into the versions above.
    #[inline(always)]
    fn run<F: Real, const LEVEL: u8, const MEASURED: bool>(
        &self,
        steps: &Steps<'_, F>,
        lane_weight: Option<&[F]>,
        passes: &mut Passes<F>,
    ) -> Result<(f64, Rule, Diagnostics), Error> {
        if steps.log_prob.is_empty() {
            return Err(Error::NoSteps);
        }
        let mut rule =
            self.correction.rule().at_lengths(passes.offsets.windows(2).map(|row| row[1] - row[0]));
        let longest = passes.offsets.windows(2).map(|row| row[1] - row[0]).max().unwrap_or(0);
        self.fill_bounds(&rule, steps, longest, passes);
        let whole = match (lane_weight, self.mean) {
            (None, Mean::Steps) => steps.log_prob.len() as f64,
            _ => (passes.offsets.windows(2).enumerate())
                .map(|(lane, row)| weight_of(lane_weight, lane).to_f64() * self.part(row[1] - row[0]))
                .sum(),
        };
        let offsets = std::mem::take(&mut passes.offsets);
        let lanes = offsets.len() - 1;
        let firsts = (0..lanes).step_by(LANES);
        let mut objective = [0.0; LANES];
        if MEASURED {
            passes.tally.reset(longest);
        }
        let when = When::of(&rule);
        if when == When::Before {
            let mut tiles: Vec<_> =
                firsts.map(|lane| self.place(&offsets, lane, lane_weight, whole)).collect();
            let mut rows = 0;
            for placed in &mut tiles {
                placed.rows = rows..rows + placed.tile.horizon;
                rows = placed.rows.end;
            }
            passes.resize(steps.log_prob.len(), longest, rows, when);
            tiles.iter().for_each(|placed| passes.read::<LEVEL>(&rule, steps, placed));
            rule = rule.resolve(|strength| passes.ess_at(strength, &tiles));
            if rule.self_normalised {
                passes.fill_normaliser(&rule, &tiles);
            }
            for placed in &tiles {
                add(&mut objective, &passes.terms::<LEVEL, MEASURED>(&rule, steps, placed, when));
            }
            if rule.self_normalised {
                passes.share_credit(&rule, &tiles);
            }
            tiles.iter().for_each(|placed| passes.pull_back::<LEVEL>(&rule, placed, self.routing, when));
        } else {
            passes.resize(steps.log_prob.len(), longest, longest, when);
            let mut placed = self.place(&offsets, 0, lane_weight, whole);
            for lane in firsts {
                if lane > 0 && (lane_weight.is_some() || !placed.tile.follow(&offsets[lane..])) {
                    placed = self.place(&offsets, lane, lane_weight, whole);
                }
                add(&mut objective, &passes.terms::<LEVEL, MEASURED>(&rule, steps, &placed, when));
                passes.pull_back::<LEVEL>(&rule, &placed, self.routing, when);
            }
        }
        let mut diagnostics = Diagnostics::default();
        if MEASURED {
            diagnostics = passes.tally.finish::<LEVEL>();
            if passes.tally.overflowed() {
                let ell = |step: usize| steps.log_prob[step].to_f64() - steps.rollout_log_prob[step].to_f64();
                let weight = |lane| weight_of(lane_weight, lane);
                diagnostics.prefix_ess = prefix_ess_in_log_space(ell, &offsets, longest, weight);
            }
        }
        passes.offsets = offsets;
        Ok((sum(&objective), rule, diagnostics))
    }

    /// The tile from a trajectory on, at the buffers' start, with its trajectories' weights and scales.
    #[inline(always)]
    fn place<F: Real>(
        &self,
        offsets: &[usize],
        lane: usize,
        lane_weight: Option<&[F]>,
        whole: f64,
    ) -> Placed<F> {
        let tile = Tile::new(&offsets[lane..=(lane + LANES).min(offsets.len() - 1)]);
        let (mut weight, mut scale) = ([F::ONE; LANES], [F::ZERO; LANES]);
        if let Some(weights) = lane_weight {
            let weights = &weights[lane..(lane + LANES).min(weights.len())];
            weight[..weights.len()].copy_from_slice(weights);
        }
        for at in 0..LANES {
            let length = tile.lengths[at];
            weight[at] = if length > 0 { weight[at] } else { F::ZERO };
            let share = match self.mean {
                Mean::Steps => 1.0,
                Mean::Trajectories => 1.0 / (length.max(1) as f64),
            };
            scale[at] = F::from_f64(weight[at].to_f64() * share / whole);
        }
        Placed { rows: 0..tile.horizon, tile, weight, scale }
    }

    /// A trajectory's part in the mean: by its steps, or as one.
    #[inline(always)]
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
        passes: &mut Passes<F>,
    ) {
        let unclipped = rule.form == Form::Weigh && steps.behaviour_log_prob.is_none();
        let clip = rule.clip(self.clip.filter(|_| !unclipped));
        passes.low.clear();
        passes.high.clear();
        let bounds = |step| clip.map_or_else(Bounds::open, |clip| clip.bounds(step, rule.growing_clip));
        let Bounds { low, high, dual } = bounds(0);
        passes.dual = dual;
        if rule.growing_clip {
            passes.low.extend((0..longest).map(|step| bounds(step).low));
            passes.high.extend((0..longest).map(|step| bounds(step).high));
        } else {
            passes.low.resize(longest, low);
            passes.high.resize(longest, high);
        }
    }
}

#[inline(always)]
fn weight_of<F: Real>(lane_weight: Option<&[F]>, lane: usize) -> F {
    lane_weight.map_or(F::ONE, |weights| weights[lane])
}
