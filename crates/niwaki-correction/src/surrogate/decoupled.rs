//! Three policies: a constant weight leads from the engine that sampled to the rollout policy, the loss from there to the trainable
//! one. The weight is not negative and has no gradient, so that it is one on the advantages.

use super::batch::Batch;
use super::evaluate::Workspace;
use super::{Mean, Surrogate};
use crate::family::Form;
use crate::{Correction, Error, Real};

impl Surrogate {
    /// The advantages with the weight on them, `[steps]`.
    pub(super) fn decoupled<F: Real>(
        &self,
        batch: &Batch<'_, F>,
        weight: Correction,
    ) -> Result<Vec<F>, Error> {
        let (own, outside) = (self.correction.rule(), weight.rule());
        if outside.form != Form::Weigh || outside.written.is_some() {
            return Err(Error::Decoupled { why: "the weight must be a constant one, such as token-tis:2" });
        }
        if own.form == Form::Weigh || own.written.is_some() {
            return Err(Error::Decoupled { why: "the loss reads the sampling engine's log-probs itself" });
        }
        let behaviour = batch
            .behaviour_log_prob
            .ok_or(Error::Decoupled { why: "the batch has no behaviour_log_prob, which the weight reads" })?;
        let mut offsets = Vec::new();
        batch.check(&mut offsets)?;
        batch.check_values()?;
        // The weight's own score step, of an advantage of one, is its factor over what the mean divides by.
        let ones = vec![F::ONE; batch.log_prob.len()];
        let scored = Batch {
            log_prob: batch.rollout_log_prob,
            rollout_log_prob: behaviour,
            advantage: &ones,
            behaviour_log_prob: None,
            reference_log_prob: None,
            entropy: None,
            decoupled: None,
            ..*batch
        };
        let score = Self { correction: weight, clip: None, routing: false, mean: Mean::Steps };
        let mut workspace = Workspace::default();
        let factors = score.cotangent(&scored, &mut workspace)?;
        let counts = |step: usize| batch.mask.is_none_or(|mask| mask[step]);
        let rows = || offsets.windows(2).map(|row| row[0]..row[1]).enumerate();
        let each = |lane: usize| batch.lane_weight.map_or(1.0, |weights| weights[lane].to_f64());
        let whole: f64 =
            rows().map(|(lane, row)| each(lane) * row.filter(|&step| counts(step)).count() as f64).sum();
        let mut weighed = batch.advantage.to_vec();
        for (lane, row) in rows() {
            let scale = if each(lane) > 0.0 { F::from_f64(whole / each(lane)) } else { F::ZERO };
            for step in row.filter(|&step| counts(step)) {
                weighed[step] *= factors[step] * scale;
            }
        }
        Ok(weighed)
    }
}
