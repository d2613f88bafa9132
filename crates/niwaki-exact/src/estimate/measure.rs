//! What comes out: bias, variance, direction and ESS of any loss.

use super::scores::Scores;
use crate::{Error, Pair, Process};
use niwaki_correction::family::Reads;
use niwaki_correction::{Rule, Surrogate};
use rayon::prelude::*;

/// What the single-trajectory estimate of a loss is worth on a pair of policies.
///
/// The estimate is the sum over steps of the loss's terms, before any average: a loss's `mean` does not matter.
///
/// Paper: `eq:Lhat`, `sec:exact-diagnostics`
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The member as it acted: an ESS floor is replaced by the strength it led to.
    pub rule: Rule,
    /// The expected estimate.
    pub mean: f64,
    /// Expected estimate minus η(new) − η(old). Paper: `eq:bias-def`
    pub bias: f64,
    /// Paper: `eq:var-def`
    pub variance: f64,
    /// Bias² + variance. Paper: `eq:mse-def`
    pub mse: f64,
    /// Cosine between the gradients of the expected estimate and of η; not a number where one is zero.
    pub cosine: f64,
    /// Euclidean norm of the gradient of the expected estimate.
    pub gradient_norm: f64,
    /// Trace of the covariance of one trajectory's gradient: the mean square of its distance from `gradient_norm`'s gradient.
    pub gradient_variance: f64,
    /// Normalised ESS of the member's factors over the joint (sequence, position) distribution; 0 where it drops
    /// every step.
    pub ess: f64,
    /// The same at each position. Shapes: `[horizon]`
    pub ess_at: Vec<f64>,
    /// Expected term of each position; their sum is `mean`. Shapes: `[horizon]`
    pub mean_at: Vec<f64>,
}

impl Measurement {
    /// Alignment at a batch of a given size: the signal of its gradient along the gradient of η, over the root mean
    /// square of its size, `⟨∇η, E g⟩ / (|∇η| √(|E g|² + tr Cov(g) / N))`.
    ///
    /// It grows with the batch, up to the cosine. A loss without a gradient has none, and neither has a return without one.
    /// It is not the mean of the cosines of batches; [`Pair::batches`] draws that one.
    ///
    /// # Errors
    /// Below two trajectories.
    pub fn alignment(&self, batch: u64) -> Result<f64, Error> {
        if batch < 2 {
            return Err(Error::Batch(batch));
        }
        let along = if self.cosine.is_nan() { 0.0 } else { self.cosine * self.gradient_norm };
        let size = self.gradient_norm.hypot((self.gradient_variance / batch as f64).sqrt());
        Ok(if along == 0.0 { 0.0 } else { along / size })
    }
}

/// First and second moments that either way of measuring leaves behind, beside the weights in the workspace.
pub(crate) struct Moments {
    pub(crate) rule: Rule,
    pub(crate) mean: f64,
    pub(crate) variance: f64,
    pub(crate) mean_at: Vec<f64>,
    /// E[g] and E[g²] at each position, all on one scale.
    pub(crate) factor_at: Vec<(f64, f64)>,
}

/// Buffers that are reused from loss to loss.
///
/// Shapes: `[prefixes]`, and `[prefixes, vocab]` where it says so.
#[derive(Debug, Default)]
pub struct Workspace {
    pub(crate) reading: Vec<f64>,
    pub(crate) factor: Vec<f64>,
    pub(crate) slope: Vec<f64>,
    /// The edge at which the running minimum is attained.
    pub(crate) attained: Vec<usize>,
    /// Mean value of each prefix's terms.
    pub(crate) rows: Vec<f64>,
    /// Mean live part of each prefix's terms; unused without a clip.
    pub(crate) live_rows: Vec<f64>,
    pub(crate) future: Vec<f64>,
    pub(crate) spread: Vec<f64>,
    pub(crate) credit: Vec<f64>,
    /// `[horizon]`: mean live part of all terms of a position, where the batch normalises factors; else 0.
    pub(crate) total: Vec<f64>,
    /// `[prefixes, vocab]`: ratio inside the clip, then the term's value. Where a factor multiplies PPO's terms the
    /// last step's are not made.
    pub(crate) value: Vec<f64>,
    /// `[prefixes, vocab]`: the part of the term that carries a gradient; unused without a clip.
    pub(crate) live: Vec<f64>,
    /// Where the weights of the scores come from.
    pub(crate) scores: Scores,
    /// `[prefixes, vocab]`: weight of each score through the step's own ratio, where it is given.
    pub(crate) own: Vec<f64>,
    /// `[prefixes, vocab]`: weight of each score through later factors, where it is given.
    pub(crate) routed: Vec<f64>,
    /// `[prefixes, vocab]`: mean square of the weight of each score, times the chance of its edge, where it is given.
    pub(crate) square: Vec<f64>,
}

impl Workspace {
    /// Makes room for the terms, and the values of as many edges.
    pub(super) fn resize(&mut self, process: Process, values: usize, clipped: bool) {
        for buffer in [&mut self.rows, &mut self.future, &mut self.spread] {
            buffer.resize(process.prefixes(), 0.0);
        }
        self.value.resize(values, 0.0);
        if clipped {
            self.live_rows.resize(process.prefixes(), 0.0);
            self.live.resize(process.edges(), 0.0);
        }
    }
}

impl Pair<'_> {
    /// Measures many losses, in parallel where the process is large enough to be worth waking threads for; the results
    /// do not depend on them.
    ///
    /// # Errors
    /// As [`Pair::measure`], for the first loss that is refused.
    pub fn measure_all(&self, surrogates: &[Surrogate]) -> Result<Vec<Measurement>, Error> {
        let share = |share: &[Surrogate]| -> Result<Vec<Measurement>, Error> {
            let mut work = Workspace::default();
            share.iter().map(|surrogate| self.measure(surrogate, &mut work)).collect()
        };
        if !self.process.is_worth_threads() {
            return share(surrogates);
        }
        // One workspace per thread: fresh memory costs more than uneven shares.
        let length = surrogates.len().div_ceil(rayon::current_num_threads()).max(1);
        let measured: Result<Vec<_>, Error> = surrogates.par_chunks(length).map(share).collect();
        Ok(measured?.into_iter().flatten().collect())
    }

    /// Measures one loss. The clip and the routing of the loss are honoured; for the paper's diagnostics give it
    /// `without_clip()`.
    ///
    /// # Errors
    /// Where the member's form is not covered, or a ratio overflows.
    ///
    /// Paper: `eq:Lhat`, `eq:bias-def`, `eq:var-def`, `eq:mse-def`, `app:diagnostics`
    pub fn measure(&self, surrogate: &Surrogate, work: &mut Workspace) -> Result<Measurement, Error> {
        let moments = self.moments(surrogate, self.rule(surrogate), work)?;
        let (gradient_norm, cosine) = self.direction(work);
        let gradient_square = self.gradient_square(surrogate, &moments.rule, work);
        let bias = moments.mean - self.improvement();
        // Where every weight is zero no sample counts.
        let ess = |first: f64, second: f64, mass: f64| {
            if second == 0.0 { 0.0 } else { first * first / (mass * second) }
        };
        let (first, second) =
            moments.factor_at.iter().fold((0.0, 0.0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
        let measurement = Measurement {
            rule: moments.rule,
            mean: moments.mean,
            bias,
            variance: moments.variance,
            mse: bias * bias + moments.variance,
            cosine,
            gradient_norm,
            // The larger of the two is never the smaller but by rounding.
            gradient_variance: (gradient_square - gradient_norm * gradient_norm).max(0.0),
            ess: ess(first, second, moments.factor_at.len() as f64),
            ess_at: moments.factor_at.iter().map(|at| ess(at.0, at.1, 1.0)).collect(),
            mean_at: moments.mean_at,
        };
        let finite = [
            ("the mean", measurement.mean),
            ("the variance", measurement.variance),
            ("the gradient", measurement.gradient_norm),
            ("the gradient's variance", gradient_square),
            ("the ESS", measurement.ess),
        ];
        match finite.into_iter().find(|(_, value)| !value.is_finite()) {
            Some((what, _)) => Err(Error::Overflow { loss: surrogate.correction.to_string(), what }),
            None => Ok(measurement),
        }
    }

    /// The gradient of the expected estimate with respect to the new policy's logits; advantages and rollout
    /// probabilities are constants.
    ///
    /// Shapes: `[prefixes, vocab]`
    ///
    /// # Errors
    /// As [`Pair::measure`].
    pub fn gradient(&self, surrogate: &Surrogate, work: &mut Workspace) -> Result<Vec<f64>, Error> {
        self.moments(surrogate, self.rule(surrogate), work)?;
        let mut gradient = vec![0.0; self.process.edges()];
        self.each_gradient(self.process.prefixes(), work, |edges, block| {
            gradient[edges].copy_from_slice(block)
        });
        Ok(gradient)
    }

    /// A loss's rule on trajectories of the process's length.
    pub(crate) fn rule(&self, surrogate: &Surrogate) -> Rule {
        surrogate.correction.rule().at_lengths(std::iter::once(self.process.horizon()))
    }

    /// Moments of a rule under a loss's clip and routing; the workspace is left ready for [`Pair::weights`].
    pub(crate) fn moments(
        &self,
        surrogate: &Surrogate,
        rule: Rule,
        work: &mut Workspace,
    ) -> Result<Moments, Error> {
        match rule.reads {
            _ if rule.written.is_some() => self.by_listing(surrogate, rule, work),
            Reads::SequenceMean | Reads::SequenceSum => self.by_sequence(surrogate, rule, work),
            _ => self.by_choice(surrogate, rule, work),
        }
    }
}
