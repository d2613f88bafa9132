//! How much the gradient of one trajectory strays from its mean.
//!
//! Rows of different prefixes are disjoint along a trajectory, so the square of its gradient is a sum over its steps:
//! `|g|² = Σ_t s_t² |e_{y_t} − π_t|²`, with `s_t` the weight of the step's score. What is needed of `s_t` is its mean square
//! given the edge: the step's own term, and the sum of what later factors route back to it.

use super::Workspace;
use super::scores::{Routing, Scores, Terms};
use crate::sum::dot;
use crate::tree::{Paths, path_moments, windowed_moments};
use crate::{Pair, Table};
use niwaki_correction::family::Reads;
use niwaki_correction::{Rule, Surrogate};

/// `|e_a − π(·|p)|²` of every choice: the square of its score in the logits of its row.
///
/// Shapes: `[prefixes, vocab]`
pub(crate) fn score_squares(new: &Table) -> Vec<f64> {
    let mut squares = Vec::with_capacity(new.prob().len());
    for row in new.prob().chunks_exact(new.process().vocab()) {
        let total: f64 = row.iter().map(|prob| prob * prob).sum();
        squares.extend(row.iter().enumerate().map(|(choice, &prob)| {
            if prob <= 0.5 {
                return 1.0 - 2.0 * prob + total;
            }
            // Near 1 nothing may cancel: what is left for the others is summed.
            let others =
                || row.iter().enumerate().filter(|&(other, _)| other != choice).map(|(_, prob)| prob);
            let left: f64 = others().sum();
            left * left + others().map(|prob| prob * prob).sum::<f64>()
        }));
    }
    squares
}

impl Pair<'_> {
    /// The mean square of one trajectory's gradient, from what a loss's moments left in the workspace. It takes the values
    /// and the spread there for itself: nothing may read them afterwards.
    pub(super) fn gradient_square(&self, surrogate: &Surrogate, rule: &Rule, work: &mut Workspace) -> f64 {
        if let Scores::FromTerms { terms, routing, replaces } = work.scores {
            work.square.resize(self.process.edges(), 0.0);
            if self.advantages.returns.is_some() {
                self.squares_of_returns(surrogate, rule, routing, replaces, work);
            } else {
                self.squares_of_terms(rule, terms, routing, replaces, work);
            }
        }
        dot(&work.square, &self.score_square)
    }

    /// Chance of every edge times the mean square of its score's weight, where the edge decides the step's own term.
    fn squares_of_terms(
        &self,
        rule: &Rule,
        terms: Terms,
        routing: Routing,
        replaces: bool,
        work: &mut Workspace,
    ) {
        let (process, vocab, prob) = (self.process, self.process.vocab(), self.old.prob());
        let Workspace { value, live, factor, slope, credit, total, attained, future, spread, square, .. } =
            work;
        // The live terms go where the values are, which have done their work.
        match terms {
            Terms::Value => {}
            Terms::Live => value.copy_from_slice(live),
            Terms::Plain => {
                value.clear();
                let rows = self.plain.term.chunks_exact(vocab).zip(&*factor);
                value.extend(rows.flat_map(|(row, factor)| row.iter().map(move |term| factor * term)));
            }
        }
        let own = |live: f64| if replaces && routing != Routing::Off { 0.0 } else { live };
        let chance = |edge: usize| self.reach[edge / vocab] * prob[edge];
        if routing == Routing::Off || rule.reads == Reads::Step {
            for edge in 0..process.edges() {
                let kept = if routing == Routing::Off { 0.0 } else { rule.factor(self.ell[edge]).slope };
                let weight = own(value[edge]) + kept * value[edge];
                square[edge] = chance(edge) * (weight * weight);
            }
            return;
        }
        // What a step routes back to the steps before it: its live term times the slope of its factor, less its share of what
        // flows through the normaliser, which is that of all trajectories.
        square.copy_from_slice(value);
        for level in 0..process.horizon() {
            for row in process.level(level) {
                let share = factor[row] * total[level];
                for value in &mut value[vocab * row..vocab * (row + 1)] {
                    *value = slope[row] * (*value - share);
                }
            }
        }
        let value = &value[..];
        let paths = Paths { process, prob, value, rows: credit, future, spread };
        match rule.reads {
            Reads::Minimum => return self.squares_of_minima(attained, value, own, square),
            Reads::Window(window) if window < process.horizon() - 1 => windowed_moments(paths, window),
            _ => _ = path_moments(paths),
        }
        for edge in 0..process.edges() {
            // After the last choice nothing follows.
            let (mean, spread) =
                if edge < process.prefixes() - 1 { (future[edge + 1], spread[edge + 1]) } else { (0.0, 0.0) };
            let weight = own(square[edge]) + mean;
            square[edge] = chance(edge) * (spread + weight * weight);
        }
    }

    /// The same where a step's credit goes to the edge that attained the minimum before it: that edge collects from the
    /// steps after it until a lower one comes. `square` holds the live terms, `value` what each step routes.
    fn squares_of_minima(
        &self,
        attained: &[usize],
        value: &[f64],
        own: impl Fn(f64) -> f64,
        square: &mut [f64],
    ) {
        let (vocab, prefixes, prob) = (self.process.vocab(), self.process.prefixes(), self.old.prob());
        // Mean and mean square of what is collected from each prefix on.
        let mut collected = vec![(0.0, 0.0); prefixes];
        for row in (0..prefixes).rev() {
            for edge in vocab * row..vocab * (row + 1) {
                let next = edge + 1;
                let later = if next < prefixes { collected[next] } else { (0.0, 0.0) };
                let mine = if next < prefixes && attained[next] == edge { later } else { (0.0, 0.0) };
                let own = own(square[edge]);
                square[edge] = self.reach[row] * prob[edge] * (own * own + 2.0 * own * mine.0 + mine.1);
                // The first row has no step before it.
                if row > 0 {
                    let on =
                        if next < prefixes && attained[next] == attained[row] { later } else { (0.0, 0.0) };
                    let here = value[edge];
                    collected[row].0 += prob[edge] * (here + on.0);
                    collected[row].1 += prob[edge] * (here * here + 2.0 * here * on.0 + on.1);
                }
            }
        }
    }

    /// The same where the whole sequence decides the advantage: every sequence is walked.
    fn squares_of_returns(
        &self,
        surrogate: &Surrogate,
        rule: &Rule,
        routing: Routing,
        replaces: bool,
        work: &mut Workspace,
    ) {
        let (process, vocab, horizon) = (self.process, self.process.vocab(), self.process.horizon());
        let Some(returns) = &self.advantages.returns else { return };
        let bounds = self.bounds(surrogate, rule);
        self.each_block(|_, rows| self.ratios(rule, rows, work));
        let Workspace { value: ratio, factor, slope, total, attained, square, .. } = work;
        square.fill(0.0);
        let (mut path, mut weight) = (vec![0; horizon], vec![0.0; horizon]);
        for (sequence, last) in process.level_edges(horizon - 1).enumerate() {
            let chance = self.reach[last / vocab] * self.old.prob()[last];
            process.walk(last, &mut path);
            let advantage = returns.terminal[sequence];
            weight.fill(0.0);
            for (t, &edge) in path.iter().enumerate() {
                let live = match &bounds {
                    Some(bounds) if !bounds[t].term(ratio[edge], advantage).1 => 0.0,
                    _ => ratio[edge] * advantage,
                };
                if !replaces || routing == Routing::Off {
                    weight[t] += live;
                }
                let row = edge / vocab;
                match (routing, rule.reads) {
                    (Routing::Off, _) => {}
                    (_, Reads::Step) => weight[t] += rule.factor(self.ell[edge]).slope * live,
                    (_, reads) => {
                        let routed = slope[row] * (live - factor[row] * total[t]);
                        match reads {
                            Reads::Minimum => {
                                path[..t].iter().zip(&mut weight).for_each(|(&before, weight)| {
                                    *weight += if attained[row] == before { routed } else { 0.0 };
                                });
                            }
                            Reads::Window(window) => {
                                weight[t.saturating_sub(window)..t]
                                    .iter_mut()
                                    .for_each(|weight| *weight += routed);
                            }
                            _ => weight[..t].iter_mut().for_each(|weight| *weight += routed),
                        }
                    }
                }
            }
            path.iter().zip(&weight).for_each(|(&edge, weight)| square[edge] += chance * (weight * weight));
        }
    }
}
