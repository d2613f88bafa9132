//! What goes in: trajectories as plain slices, and how steps that the environment took are left out.

use crate::{Correction, Error, Real, Rows};

/// A batch of trajectories.
///
/// Shapes: every slice is `[steps]`, trajectories contiguous as `rows` says; `lane_weight` is `[lanes]`.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a, F> {
    pub(super) rows: Rows<'a>,
    pub(super) log_prob: &'a [F],
    pub(super) rollout_log_prob: &'a [F],
    pub(super) advantage: &'a [F],
    pub(super) behaviour_log_prob: Option<&'a [F]>,
    pub(super) mask: Option<&'a [bool]>,
    pub(super) lane_weight: Option<&'a [F]>,
    pub(super) reference_log_prob: Option<&'a [F]>,
    pub(super) entropy: Option<&'a [F]>,
    pub(super) decoupled: Option<Correction>,
}

impl<'a, F: Real> Batch<'a, F> {
    /// A batch in which the policy took every step and all trajectories count alike.
    pub const fn new(
        rows: Rows<'a>,
        log_prob: &'a [F],
        rollout_log_prob: &'a [F],
        advantage: &'a [F],
    ) -> Self {
        Self {
            rows,
            log_prob,
            rollout_log_prob,
            advantage,
            behaviour_log_prob: None,
            mask: None,
            lane_weight: None,
            reference_log_prob: None,
            entropy: None,
            decoupled: None,
        }
    }

    /// Marks the steps that the policy took. At the others (tool outputs, padding) the log-ratio counts as 0,
    /// there is no term, and neither windows nor positions count them.
    ///
    /// Paper: `sec:mechanism` (positions where the environment moves)
    #[must_use]
    pub const fn masked(self, mask: &'a [bool]) -> Self {
        Self { mask: Some(mask), ..self }
    }

    /// Adds the log-probs of the engine that sampled, where it differs from the one that recomputed them.
    #[must_use]
    pub const fn sampled_by(self, behaviour_log_prob: &'a [F]) -> Self {
        Self { behaviour_log_prob: Some(behaviour_log_prob), ..self }
    }

    /// Weighs each step by a constant factor from the engine that sampled to the rollout policy, beside a loss that leads from there
    /// to the trainable one: three policies, as asynchronous trainers have them (decoupled PPO). The weight is a member that
    /// weighs from outside, of steps or of whole trajectories.
    #[must_use]
    pub const fn decoupled_by(self, weight: Correction) -> Self {
        Self { decoupled: Some(weight), ..self }
    }

    /// Adds the log-probs of the policy that a penalty holds on to; without them it is the rollout policy.
    #[must_use]
    pub const fn held_to(self, reference_log_prob: &'a [F]) -> Self {
        Self { reference_log_prob: Some(reference_log_prob), ..self }
    }

    /// Adds the entropy of the trainable policy at each step, for losses that look at it.
    #[must_use]
    pub const fn with_entropy(self, entropy: &'a [F]) -> Self {
        Self { entropy: Some(entropy), ..self }
    }

    /// Weighs trajectories, e.g. by their probability when all of them are listed.
    #[must_use]
    pub const fn weighted(self, lane_weight: &'a [F]) -> Self {
        Self { lane_weight: Some(lane_weight), ..self }
    }

    /// Checks lengths and weights, and writes the row offsets.
    pub(super) fn check(&self, offsets: &mut Vec<usize>) -> Result<(), Error> {
        let steps = self.log_prob.len();
        let length = |what, came| {
            if came == steps { Ok(()) } else { Err(Error::Length { what, came, expected: steps }) }
        };
        length("rollout_log_prob", self.rollout_log_prob.len())?;
        length("advantage", self.advantage.len())?;
        length("mask", self.mask.map_or(steps, <[bool]>::len))?;
        length("behaviour_log_prob", self.behaviour_log_prob.map_or(steps, <[F]>::len))?;
        length("reference_log_prob", self.reference_log_prob.map_or(steps, <[F]>::len))?;
        length("entropy", self.entropy.map_or(steps, <[F]>::len))?;
        self.rows.offsets_into(steps, offsets)?;
        let Some(weights) = self.lane_weight else { return Ok(()) };
        let lanes = offsets.len() - 1;
        if weights.len() != lanes {
            return Err(Error::Length { what: "lane_weight", came: weights.len(), expected: lanes });
        }
        let usable = weights.iter().all(|&weight| weight.is_finite() && weight >= F::ZERO);
        if !usable || weights.iter().all(|&weight| weight == F::ZERO) {
            return Err(Error::Weights);
        }
        Ok(())
    }

    /// Refuses the first value that is not finite at a step that counts.
    pub(super) fn check_values(&self) -> Result<(), Error> {
        let counts = |index: usize| self.mask.is_none_or(|mask| mask[index]);
        let arrays = [
            ("log_prob", Some(self.log_prob)),
            ("rollout_log_prob", Some(self.rollout_log_prob)),
            ("advantage", Some(self.advantage)),
            ("behaviour_log_prob", self.behaviour_log_prob),
            ("reference_log_prob", self.reference_log_prob),
            ("entropy", self.entropy),
        ];
        for (what, values) in arrays {
            let mut values = values.unwrap_or_default().iter().enumerate();
            if let Some((index, _)) = values.find(|&(index, value)| counts(index) && !value.is_finite()) {
                return Err(Error::NotFinite { what, index });
            }
        }
        Ok(())
    }
}

/// A masked batch packed to the policy's own steps, and the way back.
#[derive(Debug, Default)]
pub(super) struct Packed<F> {
    pub(super) log_prob: Vec<F>,
    pub(super) rollout_log_prob: Vec<F>,
    pub(super) advantage: Vec<F>,
    pub(super) behaviour_log_prob: Vec<F>,
    offsets: Vec<usize>,
    kept: Vec<usize>,
}

impl<F: Real> Packed<F> {
    /// Keeps the steps that the policy took and rewrites `offsets` to match.
    pub(super) fn pack(&mut self, batch: &Batch<'_, F>, mask: &[bool], offsets: &mut Vec<usize>) {
        self.kept.clear();
        self.offsets.clear();
        self.offsets.push(0);
        for row in offsets.windows(2) {
            self.kept.extend((row[0]..row[1]).filter(|&step| mask[step]));
            self.offsets.push(self.kept.len());
        }
        std::mem::swap(offsets, &mut self.offsets);
        let gather = |from: &[F], to: &mut Vec<F>| {
            to.clear();
            to.extend(self.kept.iter().map(|&step| from[step]));
        };
        gather(batch.log_prob, &mut self.log_prob);
        gather(batch.rollout_log_prob, &mut self.rollout_log_prob);
        gather(batch.advantage, &mut self.advantage);
        if let Some(behaviour) = batch.behaviour_log_prob {
            gather(behaviour, &mut self.behaviour_log_prob);
        }
    }

    /// Values at the policy's own steps, in double precision; all of them where nothing was packed.
    pub(super) fn own(&self, values: &[F], packed: bool) -> Vec<f64> {
        if packed {
            self.kept.iter().map(|&step| values[step].to_f64()).collect()
        } else {
            values.iter().map(|value| value.to_f64()).collect()
        }
    }

    /// Puts packed values back where they came from, zeros elsewhere.
    pub(super) fn unpack(&self, values: &mut Vec<F>, steps: usize) {
        let packed = std::mem::take(values);
        values.resize(steps, F::ZERO);
        for (&step, value) in self.kept.iter().zip(packed) {
            values[step] = value;
        }
    }
}
