//! Members whose factor the prefix (or the choice itself) decides: one term per edge, recursions over the tree.

use super::{Moments, Workspace};
use crate::Error;
use crate::Pair;
use crate::advantage::Returns;
use crate::sum::sum;
use crate::tree::{expected_sum, path_variance, row_means, windowed_sum};
use niwaki_correction::clip::Bounds;
use niwaki_correction::family::{Form, Reads};
use niwaki_correction::{Real, Rule, Surrogate};

impl Pair<'_> {
    /// Moments and channel weights by recursion over the tree.
    ///
    /// Paper: `eq:Lhat`, `eq:gradient-two-channels`
    pub(super) fn by_choice(
        &self,
        surrogate: &Surrogate,
        written: Rule,
        work: &mut Workspace,
    ) -> Result<Moments, Error> {
        if written.reads == Reads::Step && (written.self_normalised || written.ess_floor.is_some()) {
            return Err(Self::refuse(surrogate, "a step's own ratio coupled across the batch"));
        }
        let (process, vocab) = (self.process, self.process.vocab());
        let (rule, factor_at) = match written.reads {
            Reads::Step => (written, self.step_factor_moments(&written)),
            _ => self.prefix_factors(written, work),
        };
        self.ratios(&rule, work);
        // Weighted REINFORCE steps have no clip; see `Form::Weigh`.
        let clip = surrogate.clip.filter(|_| rule.form != Form::Weigh);
        let bounds: Option<Vec<Bounds<f64>>> =
            clip.map(|clip| (0..process.horizon()).map(|t| clip.bounds(t, rule.growing_clip)).collect());
        let (mean, variance) = match &self.advantages.returns {
            None => (None, None),
            Some(returns) => {
                let (mean, variance) = self.moments_of_returns(bounds.as_deref(), returns, work);
                (Some(mean), Some(variance))
            }
        };
        self.terms(bounds.as_deref(), work);

        let prob = self.old.prob();
        let Workspace { rows, value, live, future, spread, .. } = work;
        rows.resize(process.prefixes(), 0.0);
        future.resize(process.prefixes(), 0.0);
        row_means(vocab, prob, value, rows);
        let mean_at: Vec<f64> = (0..process.horizon())
            .map(|level| sum(process.level(level), |row| self.reach[row] * rows[row]))
            .collect();
        expected_sum(process, prob, rows, future);
        spread.resize(process.prefixes(), 0.0);
        let mean = mean.unwrap_or(future[0]);
        let variance = variance.unwrap_or_else(|| path_variance(process, prob, value, future, spread));
        if bounds.is_some() {
            row_means(vocab, prob, live, rows);
        }
        self.weigh_scores(surrogate, &rule, bounds.is_some(), work);
        Ok(Moments { rule, mean, variance, mean_at, factor_at })
    }

    /// E[w] and E[w²] of weights that the choice itself decides.
    fn step_factor_moments(&self, rule: &Rule) -> Vec<(f64, f64)> {
        let (vocab, prob) = (self.process.vocab(), self.old.prob());
        let moment = |level: usize, power: f64| {
            sum(self.process.level_edges(level), |edge| {
                let factor = rule.factor(self.ell[edge]).log_factor;
                self.reach[edge / vocab] * prob[edge] * Real::exp(power * factor)
            })
        };
        (0..self.process.horizon()).map(|level| (moment(level, 1.0), moment(level, 2.0))).collect()
    }

    /// The ratio inside the clip at every edge, into `value`. A weight from outside counts as one: without a
    /// clip there is no inside.
    fn ratios(&self, rule: &Rule, work: &mut Workspace) {
        let vocab = self.process.vocab();
        let multiplies = rule.form == Form::Multiply;
        let Workspace { value, log_factor, .. } = work;
        value.clear();
        if rule.reads == Reads::Step {
            value.extend(
                self.ell.iter().map(|&ell| rule.factor(ell).log_factor + if multiplies { ell } else { 0.0 }),
            );
        } else if multiplies {
            value.extend_from_slice(&self.ell);
            for (value, &log_factor) in value.chunks_exact_mut(vocab).zip(&*log_factor) {
                value.iter_mut().for_each(|value| *value += log_factor);
            }
        } else {
            value.extend((0..self.process.edges()).map(|edge| log_factor[edge / vocab]));
        }
        value.iter_mut().for_each(|value| *value = Real::exp(*value));
    }

    /// Turns ratios into terms: their value, and with a clip their live part.
    fn terms(&self, bounds: Option<&[Bounds<f64>]>, work: &mut Workspace) {
        let Workspace { value, live, .. } = work;
        let mean = &self.advantages.mean;
        let Some(bounds) = bounds else {
            value.iter_mut().zip(mean).for_each(|(value, advantage)| *value *= advantage);
            return;
        };
        live.resize(value.len(), 0.0);
        for (level, bounds) in bounds.iter().enumerate() {
            for edge in self.process.level_edges(level) {
                let ratio = value[edge];
                // The sign of the advantage picks the branch; where only the future decides it, each sign
                // contributes its own part.
                let part = |advantage: f64| {
                    let (value, gate) = bounds.term(ratio, advantage);
                    (value, if gate { ratio * advantage } else { 0.0 })
                };
                (value[edge], live[edge]) = match &self.advantages.returns {
                    None => part(mean[edge]),
                    Some(returns) => {
                        let (gain, loss) = (part(returns.gain[edge]), part(-returns.loss[edge]));
                        (gain.0 + loss.0, gain.1 + loss.1)
                    }
                };
            }
        }
    }

    /// Mean and variance where the advantage is one number per sequence: the estimate is then that number times
    /// the sum of the (clipped) ratios along the path.
    fn moments_of_returns(
        &self,
        bounds: Option<&[Bounds<f64>]>,
        returns: &Returns,
        work: &mut Workspace,
    ) -> (f64, f64) {
        let (process, vocab) = (self.process, self.process.vocab());
        let (prefixes, prob, ratio) = (process.prefixes(), self.old.prob(), &work.value);
        // Sums along the path for either sign of the advantage, at every node, leaves included.
        let mut sums = vec![(0.0, 0.0); process.edges() + 1];
        let mut chance = vec![1.0; process.edges() + 1];
        for level in 0..process.horizon() {
            for edge in process.level_edges(level) {
                let (gain, loss) = match bounds {
                    None => (ratio[edge], ratio[edge]),
                    Some(bounds) => {
                        (bounds[level].term(ratio[edge], 1.0).0, -bounds[level].term(ratio[edge], -1.0).0)
                    }
                };
                let before = sums[edge / vocab];
                sums[edge + 1] = (before.0 + gain, before.1 + loss);
                chance[edge + 1] = chance[edge / vocab] * prob[edge];
            }
        }
        let (sums, chance) = (&sums[prefixes..], &chance[prefixes..]);
        let estimate = |sequence: usize| {
            let advantage = returns.terminal[sequence];
            advantage * if advantage > 0.0 { sums[sequence].0 } else { sums[sequence].1 }
        };
        let mean = sum(0..process.sequences(), |sequence| chance[sequence] * estimate(sequence));
        let variance = sum(0..process.sequences(), |sequence| {
            let away = estimate(sequence) - mean;
            chance[sequence] * away * away
        });
        (mean, variance)
    }

    /// The weight of each choice's score through its own ratio and through later factors; `rows` holds the mean
    /// live term of each prefix.
    ///
    /// Paper: `eq:gradient-two-channels`
    fn weigh_scores(&self, surrogate: &Surrogate, rule: &Rule, clipped: bool, work: &mut Workspace) {
        let (process, vocab, prob) = (self.process, self.process.vocab(), self.old.prob());
        let Workspace { value, live, own, routed, .. } = work;
        let live: &[f64] = if clipped { live } else { value };
        own.clear();
        own.extend(live.iter().zip(prob).map(|(live, prob)| live * prob));
        for (own, &reach) in own.chunks_exact_mut(vocab).zip(&self.reach) {
            own.iter_mut().for_each(|own| *own *= reach);
        }
        routed.clear();
        routed.resize(process.edges(), 0.0);
        if !surrogate.routing || rule.form == Form::Weigh {
            return;
        }
        if rule.reads == Reads::Step {
            for edge in 0..process.edges() {
                routed[edge] = rule.factor(self.ell[edge]).slope * own[edge];
            }
        } else {
            self.route(rule, work);
        }
        if rule.form == Form::Replace {
            let Workspace { own, routed, .. } = work;
            routed.iter_mut().zip(own).for_each(|(routed, own)| *routed -= *own);
        }
    }

    /// Routes each prefix's credit back to the choices that its factor was read from.
    fn route(&self, rule: &Rule, work: &mut Workspace) {
        let (process, vocab, prob) = (self.process, self.process.vocab(), self.old.prob());
        self.fill_credit(rule, work);
        let Workspace { attained, future, credit, routed, .. } = work;
        match rule.reads {
            Reads::Minimum => {
                for row in 1..process.prefixes() {
                    routed[attained[row]] += self.reach[row] * credit[row];
                }
                return;
            }
            Reads::Window(window) if window + 1 < process.horizon() => {
                windowed_sum(process, prob, credit, window, future);
            }
            _ => expected_sum(process, prob, credit, future),
        }
        for row in 0..process.prefixes() / vocab {
            for edge in vocab * row..vocab * (row + 1) {
                routed[edge] = self.reach[row] * prob[edge] * future[edge + 1];
            }
        }
    }

    /// `credit[p] = slope · E[live | p]`, less what flows through the normaliser of a self-normalised member.
    ///
    /// With `g = e^{αL} / E[e^{αL}]`, `∂ log g(p) / ∂L(q) = α (1[p = q] − d(q) g(q))`, so each prefix also
    /// loses its share `g` of the credit of its whole level.
    pub(crate) fn fill_credit(&self, rule: &Rule, work: &mut Workspace) {
        let Workspace { rows, slope, credit, log_factor, .. } = work;
        credit.clear();
        if rule.self_normalised {
            for level in 0..self.process.horizon() {
                let total = sum(self.process.level(level), |row| self.reach[row] * rows[row]);
                credit.extend(
                    self.process
                        .level(level)
                        .map(|row| slope[row] * (rows[row] - Real::exp(log_factor[row]) * total)),
                );
            }
        } else {
            credit.extend(slope.iter().zip(&*rows).map(|(slope, live)| slope * live));
        }
    }
}
