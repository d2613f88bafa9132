//! Members whose factor the prefix (or the choice itself) decides: one term per edge, recursions over the tree.

use super::scores::{BLOCK, Routing, Scores, Terms};
use super::{Moments, Workspace};
use crate::advantage::Returns;
use crate::sum::{dot, sum};
use crate::tree::{Paths, inner_moments, path_moments, row_means, scale_rows};
use crate::{Error, Pair};
use niwaki_correction::clip::Bounds;
use niwaki_correction::family::{Form, Reads};
use niwaki_correction::{Real, Rule, Surrogate};
use std::ops::Range;

impl Pair<'_> {
    /// Moments by recursion over the tree; the terms stay in the workspace for the gradient.
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
        let process = self.process;
        let (rule, factor_at) = match written.reads {
            Reads::Step => (written, self.step_factor_moments(&written)),
            _ => self.prefix_factors(written, work),
        };
        let bounds = self.bounds(surrogate, &rule);
        let terms = match bounds {
            Some(_) => Terms::Live,
            None if rule.reads != Reads::Step && rule.form == Form::Multiply => Terms::Plain,
            None => Terms::Value,
        };
        let in_full = terms != Terms::Plain || self.advantages.returns.is_some();
        work.resize(process, if in_full { process.edges() } else { process.inner_edges() }, bounds.is_some());
        let of_returns = self
            .advantages
            .returns
            .as_ref()
            .map(|returns| self.moments_of_returns(&rule, bounds.as_deref(), returns, work));
        let moments = if terms == Terms::Plain {
            self.plain_terms(work);
            inner_moments
        } else {
            self.each_block(|level, rows| {
                self.ratios(&rule, rows.clone(), work);
                self.terms(bounds.as_ref().map(|bounds| &bounds[level]), rows, work);
            });
            path_moments
        };
        let Workspace { rows, value, future, spread, .. } = work;
        let mean_at: Vec<f64> = (0..process.horizon())
            .map(|level| dot(&self.reach[process.level(level)], &rows[process.level(level)]))
            .collect();
        let paths = Paths { process, prob: self.old.prob(), value, rows, future, spread };
        let (mean, variance) = of_returns.unwrap_or_else(|| moments(paths));
        let routing = if !surrogate.routing || rule.form == Form::Weigh {
            Routing::Off
        } else if rule.reads == Reads::Step {
            self.keep_credit(&rule, bounds.is_some(), work)
        } else {
            self.fill_credit(&rule, bounds.is_some(), work);
            self.route(&rule, work)
        };
        let replaces = rule.form == Form::Replace;
        work.scores = Scores::FromTerms { terms, routing, replaces };
        Ok(Moments { rule, mean, variance, mean_at, factor_at })
    }

    /// The clip at every step.
    pub(super) fn bounds(&self, surrogate: &Surrogate, rule: &Rule) -> Option<Vec<Bounds<f64>>> {
        // Weighted REINFORCE steps have no clip; see `Form::Weigh`.
        let clip = rule.clip(surrogate.clip.filter(|_| rule.form != Form::Weigh));
        clip.map(|clip| (0..self.process.horizon()).map(|t| clip.bounds(t, rule.growing_clip)).collect())
    }

    /// Every stretch of rows of one level that is small enough for the nearest cache.
    pub(super) fn each_block(&self, mut visit: impl FnMut(usize, Range<usize>)) {
        for level in 0..self.process.horizon() {
            let rows = self.process.level(level);
            for start in rows.clone().step_by(BLOCK) {
                visit(level, start..(start + BLOCK).min(rows.end));
            }
        }
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

    /// The ratio inside the clip for a stretch of rows, into `value`. A weight from outside counts as one:
    /// without a clip there is no inside.
    pub(super) fn ratios(&self, rule: &Rule, rows: Range<usize>, work: &mut Workspace) {
        let vocab = self.process.vocab();
        let edges = vocab * rows.start..vocab * rows.end;
        let value = &mut work.value[edges.clone()];
        match (rule.reads, rule.form) {
            (Reads::Step, form) => {
                for (value, &ell) in value.iter_mut().zip(&self.ell[edges]) {
                    let own = if form == Form::Multiply { ell } else { 0.0 };
                    *value = Real::exp(rule.factor(ell).log_factor + own);
                }
            }
            (_, Form::Multiply) => {
                value.copy_from_slice(&self.ratio[edges]);
                scale_rows(vocab, &work.factor[rows], value);
            }
            _ => {
                value.fill(1.0);
                scale_rows(vocab, &work.factor[rows], value);
            }
        }
    }

    /// Turns the ratios of a stretch of rows into terms: their value, with a clip their live part, and the means
    /// of both over each row.
    fn terms(&self, bounds: Option<&Bounds<f64>>, rows: Range<usize>, work: &mut Workspace) {
        let vocab = self.process.vocab();
        let edges = vocab * rows.start..vocab * rows.end;
        let (prob, mean) = (&self.old.prob()[edges.clone()], &self.advantages.mean[edges.clone()]);
        let value = &mut work.value[edges.clone()];
        if let Some(bounds) = bounds {
            let live = &mut work.live[edges.clone()];
            for (index, edge) in edges.enumerate() {
                let ratio = value[index];
                // The sign of the advantage picks the branch; where only the future decides it, each sign
                // contributes its own part.
                let part = |advantage: f64| {
                    let (value, gate) = bounds.term(ratio, advantage);
                    (value, if gate { ratio * advantage } else { 0.0 })
                };
                (value[index], live[index]) = match &self.advantages.returns {
                    None => part(mean[index]),
                    Some(returns) => {
                        let (gain, loss) = (part(returns.gain[edge]), part(-returns.loss[edge]));
                        (gain.0 + loss.0, gain.1 + loss.1)
                    }
                };
            }
            row_means(vocab, prob, live, &mut work.live_rows[rows.clone()]);
        } else {
            value.iter_mut().zip(mean).for_each(|(value, advantage)| *value *= advantage);
        }
        row_means(vocab, prob, value, &mut work.rows[rows]);
    }

    /// Mean and variance where the advantage is one number per sequence: the estimate is then that number times
    /// the sum of the (clipped) ratios along the path.
    fn moments_of_returns(
        &self,
        rule: &Rule,
        bounds: Option<&[Bounds<f64>]>,
        returns: &Returns,
        work: &mut Workspace,
    ) -> (f64, f64) {
        self.each_block(|_, rows| self.ratios(rule, rows, work));
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

    /// Credit of members whose factor the step's own ratio decides: it stays where it arises.
    fn keep_credit(&self, rule: &Rule, clipped: bool, work: &mut Workspace) -> Routing {
        let (vocab, prob) = (self.process.vocab(), self.old.prob());
        let live = if clipped { &work.live } else { &work.value };
        work.routed.clear();
        work.routed.extend((0..self.process.edges()).map(|edge| {
            self.reach[edge / vocab] * prob[edge] * rule.factor(self.ell[edge]).slope * live[edge]
        }));
        Routing::Scattered
    }

    /// `credit[p] = slope · E[live | p]`, less what flows through the normaliser of a self-normalised member.
    ///
    /// With `g = e^{αL} / E[e^{αL}]`, `∂ log g(p) / ∂L(q) = α (1[p = q] − d(q) g(q))`, so each prefix also
    /// loses its share `g` of the credit of its whole level.
    fn fill_credit(&self, rule: &Rule, clipped: bool, work: &mut Workspace) {
        let Workspace { rows, live_rows, slope, credit, total, factor, .. } = work;
        let rows: &[f64] = if clipped { live_rows } else { rows };
        credit.clear();
        total.clear();
        total.resize(self.process.horizon(), 0.0);
        if rule.self_normalised {
            for level in 0..self.process.horizon() {
                let all = sum(self.process.level(level), |row| self.reach[row] * rows[row]);
                total[level] = all;
                credit.extend(
                    self.process.level(level).map(|row| slope[row] * (rows[row] - factor[row] * all)),
                );
            }
        } else {
            credit.extend(slope.iter().zip(rows).map(|(slope, live)| slope * live));
        }
    }
}
