//! What written-out losses say of a batch: their terms, scaled to the mean.

use super::batch::{Batch, Packed};
use super::evaluate::Workspace;
use super::passes::Passes;
use super::{Mean, Surrogate};
use crate::family::written::{Steps, Terms, Written};
use crate::{Diagnostics, Error, Real};

impl Surrogate {
    /// The terms of a written-out loss at every step of the policy's own, before any mean; nothing for a loss of the normal form.
    ///
    /// # Errors
    /// As [`Surrogate::evaluate`].
    pub fn terms<F: Real>(&self, batch: &Batch<'_, F>) -> Result<Option<Terms>, Error> {
        let Some(written) = self.correction.rule().written else { return Ok(None) };
        let Workspace { mut packed, mut passes } = Workspace::default();
        batch.check(&mut passes.offsets)?;
        if let Some(mask) = batch.mask {
            packed.pack(batch, mask, &mut passes.offsets);
        }
        self.written_terms(&written, batch, &packed, &passes.offsets).map(Some)
    }

    fn written_terms<F: Real>(
        &self,
        written: &Written,
        batch: &Batch<'_, F>,
        packed: &Packed<F>,
        offsets: &[usize],
    ) -> Result<Terms, Error> {
        batch.check_values()?;
        if written.needs_entropy() && batch.entropy.is_none() {
            return Err(Error::Missing { loss: self.correction.name(), what: "entropy" });
        }
        let own = |values: &[F]| packed.own(values, batch.mask.is_some());
        let mass: Vec<f64> = (offsets.windows(2).enumerate())
            .flat_map(|(lane, row)| {
                let weight = batch.lane_weight.map_or(1.0, |weights| weights[lane].to_f64());
                std::iter::repeat_n(weight, row[1] - row[0])
            })
            .collect();
        let [behaviour, reference, entropy] =
            [batch.behaviour_log_prob, batch.reference_log_prob, batch.entropy].map(|values| values.map(own));
        Ok(written.terms(&Steps {
            offsets,
            log_prob: &own(batch.log_prob),
            rollout_log_prob: &own(batch.rollout_log_prob),
            behaviour_log_prob: behaviour.as_deref(),
            reference_log_prob: reference.as_deref(),
            entropy: entropy.as_deref(),
            advantage: &own(batch.advantage),
            mass: &mass,
            weighted: batch.lane_weight.is_some(),
            clip: self.correction.rule().clip(self.clip),
            routing: self.routing,
        }))
    }

    /// Fills the channels; returns the objective, and puts right what the diagnostics say of the member itself.
    pub(super) fn write_out<F: Real>(
        &self,
        written: &Written,
        batch: &Batch<'_, F>,
        packed: &Packed<F>,
        passes: &mut Passes<F>,
        diagnostics: &mut Diagnostics,
    ) -> Result<f64, Error> {
        let Passes { offsets, own, routed, cotangent, .. } = passes;
        if offsets.last() == Some(&0) {
            return Err(Error::NoSteps);
        }
        let terms = self.written_terms(written, batch, packed, offsets)?;
        for channel in [&mut *own, &mut *routed, &mut *cotangent] {
            channel.resize(terms.value.len(), F::ZERO);
        }
        let advantage = packed.own(batch.advantage, batch.mask.is_some());
        let weight = |lane: usize| batch.lane_weight.map_or(1.0, |weights| weights[lane].to_f64());
        let lanes = || offsets.windows(2).enumerate().map(|(lane, row)| (weight(lane), row[0]..row[1]));
        let part = |steps: usize| match self.mean {
            Mean::Steps => steps as f64,
            Mean::Trajectories => steps.min(1) as f64,
        };
        let whole: f64 = lanes().map(|(weight, row)| weight * part(row.len())).sum();
        let (mut objective, mut flat, mut mass, mut first, mut second) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for (weight, row) in lanes().filter(|(_, row)| !row.is_empty()) {
            let scale = weight * part(row.len()) / (row.len() as f64 * whole);
            for step in row {
                objective += scale * terms.value[step];
                own[step] = F::from_f64(scale * terms.own[step]);
                routed[step] = F::from_f64(scale * terms.routed[step]);
                cotangent[step] = own[step] + routed[step];
                mass += weight;
                first += weight * terms.factor[step];
                second += weight * terms.factor[step] * terms.factor[step];
                flat += if terms.own[step] == 0.0 && advantage[step] != 0.0 { weight } else { 0.0 };
            }
        }
        diagnostics.clip_fraction = flat / mass;
        diagnostics.ess = if second > 0.0 { first * first / (mass * second) } else { 0.0 };
        Ok(objective)
    }
}
