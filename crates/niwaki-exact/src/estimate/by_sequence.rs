//! Members whose factor only the whole sequence decides: one weight per leaf, sums from the leaves up.

use super::scores::Scores;
use super::{Moments, Workspace};
use crate::sum::sum;
use crate::{Error, Pair};
use niwaki_correction::clip::Bounds;
use niwaki_correction::family::{Form, Reads};
use niwaki_correction::{Real, Rule, Surrogate};

/// A quantity for either sign of the advantage, losses as magnitudes.
#[derive(Clone, Copy, Default)]
struct Sides {
    gain: f64,
    loss: f64,
}

impl Sides {
    /// A quantity that has no sign, or carries its own.
    const ONE: Self = Self { gain: 1.0, loss: 0.0 };

    /// The two parts of an advantage.
    fn of(advantage: f64) -> Self {
        Self { gain: advantage.max(0.0), loss: (-advantage).max(0.0) }
    }

    fn plus(self, other: Self) -> Self {
        Self { gain: self.gain + other.gain, loss: self.loss + other.loss }
    }

    fn times(self, by: f64) -> Self {
        Self { gain: self.gain * by, loss: self.loss * by }
    }

    fn squared(self) -> Self {
        Self { gain: self.gain * self.gain, loss: self.loss * self.loss }
    }

    /// The sum of the sides' products.
    fn with(self, other: Self) -> f64 {
        self.gain * other.gain + self.loss * other.loss
    }

    /// What weights do to an advantage: gains by one, losses by the other.
    fn on(self, advantage: Self) -> f64 {
        self.gain * advantage.gain - self.loss * advantage.loss
    }
}

impl Pair<'_> {
    /// Moments and channel weights from the leaves up.
    ///
    /// Paper: `eq:Lhat`
    pub(super) fn by_sequence(
        &self,
        surrogate: &Surrogate,
        rule: Rule,
        work: &mut Workspace,
    ) -> Result<Moments, Error> {
        let coupled = rule.self_normalised || rule.ess_floor.is_some();
        if rule.form == Form::Multiply || rule.growing_clip || coupled {
            return Err(Self::refuse(surrogate, "a sequence's weight in a step-dependent form"));
        }
        let bounds = match rule.clip(surrogate.clip.filter(|_| rule.form != Form::Weigh)) {
            Some(clip) => clip.bounds(0, false),
            None => Bounds::open(),
        };
        let routes = surrogate.routing && rule.form == Form::Replace;
        let mut leaves = self.leaves(&rule, &bounds, routes);
        let (mean, variance) = leaves.moments();
        let factor_at = vec![leaves.factor_moments(); self.process.horizon()];

        work.scores = Scores::Given;
        work.own.resize(self.process.edges(), 0.0);
        work.routed.resize(self.process.edges(), 0.0);
        work.square.resize(self.process.edges(), 0.0);
        let mut mean_at = vec![0.0; self.process.horizon()];
        for level in (0..self.process.horizon()).rev() {
            let edges = self.process.level_edges(level);
            leaves.fold_to(edges.len(), self.process.vocab());
            for (index, edge) in edges.clone().enumerate() {
                let own = leaves.live[index].on(self.factor_of(edge));
                work.own[edge] = own;
                // The step's own ratio is not in the term: all credit comes through the reading.
                work.routed[edge] = if routes { leaves.credit[index] - own } else { 0.0 };
                let squared = if routes { Sides::ONE } else { self.factor_of(edge).squared() };
                work.square[edge] = leaves.square[index].with(squared);
            }
            let value = &leaves.value;
            mean_at[level] =
                sum(0..edges.len(), |index| value[index].on(self.factor_of(edges.start + index)));
        }
        Ok(Moments { rule, mean, variance, mean_at, factor_at })
    }

    /// What an edge multiplies the sums of its leaves by: its advantage, or one where the leaves carry theirs.
    fn factor_of(&self, edge: usize) -> Sides {
        match self.advantages.returns {
            None => Sides::of(self.advantages.mean[edge]),
            Some(_) => Sides::ONE,
        }
    }

    /// The sum of the advantages along the path to each prefix, sign by sign.
    fn advantages_along(&self) -> Vec<Sides> {
        let (vocab, prefixes) = (self.process.vocab(), self.process.prefixes());
        let mut along = vec![Sides::default(); prefixes];
        for edge in 0..prefixes - 1 {
            along[edge + 1] = along[edge / vocab].plus(Sides::of(self.advantages.mean[edge]));
        }
        along
    }

    /// Weight, estimate and credit of every sequence; where its credit `routes`, that is what all its steps carry.
    fn leaves(&self, rule: &Rule, bounds: &Bounds<f64>, routes: bool) -> Leaves {
        let (vocab, horizon) = (self.process.vocab(), self.process.horizon());
        let share = if rule.reads == Reads::SequenceMean { 1.0 / horizon as f64 } else { 1.0 };
        let along = self.advantages_along();
        let mut leaves = Leaves::default();
        for (sequence, edge) in self.process.level_edges(horizon - 1).enumerate() {
            let row = edge / vocab;
            let factor = rule.factor((self.prefix[row] + self.ell[edge]) * share);
            let ratio = Real::exp(factor.log_factor);
            let side = |sign: f64| {
                let (value, gate) = bounds.term(ratio, sign);
                (sign * value, if gate { ratio } else { 0.0 })
            };
            let (gain, loss) = (side(1.0), side(-1.0));
            let (value, live) = (Sides { gain: gain.0, loss: loss.0 }, Sides { gain: gain.1, loss: loss.1 });
            let chance = self.reach[row] * self.old.prob()[edge];
            let (all, value_here, live_here) = match &self.advantages.returns {
                None => (along[row].plus(Sides::of(self.advantages.mean[edge])), value, live),
                Some(returns) => {
                    // One advantage per sequence: it is folded in here, and edges add no factor.
                    let one = Sides::of(returns.terminal[sequence]);
                    let folded = |weight: Sides| Sides { gain: weight.on(one), loss: 0.0 };
                    (one.times(horizon as f64), folded(value), folded(live))
                }
            };
            leaves.chance.push(chance);
            leaves.factor.push(ratio);
            leaves.estimate.push(value.on(all));
            leaves.value.push(value_here.times(chance));
            leaves.live.push(live_here.times(chance));
            let credit = factor.slope * share * live.on(all);
            let carried = if routes { Sides { gain: credit, loss: 0.0 } } else { live_here };
            leaves.credit.push(chance * credit);
            leaves.square.push(carried.squared().times(chance));
        }
        leaves
    }
}

/// Quantities of the leaves. The last four are weighted by chance and summed level by level towards the root.
#[derive(Default)]
struct Leaves {
    chance: Vec<f64>,
    factor: Vec<f64>,
    estimate: Vec<f64>,
    value: Vec<Sides>,
    live: Vec<Sides>,
    credit: Vec<f64>,
    /// Of what a step's score is weighed by, but for its advantage.
    square: Vec<Sides>,
}

impl Leaves {
    /// Mean and variance of the estimate.
    fn moments(&self) -> (f64, f64) {
        let Self { chance, estimate, .. } = self;
        let mean = sum(0..chance.len(), |n| chance[n] * estimate[n]);
        let variance = sum(0..chance.len(), |n| chance[n] * (estimate[n] - mean) * (estimate[n] - mean));
        (mean, variance)
    }

    /// E[g] and E[g²], the same at every position.
    fn factor_moments(&self) -> (f64, f64) {
        let Self { chance, factor, .. } = self;
        let first = sum(0..chance.len(), |n| chance[n] * factor[n]);
        (first, sum(0..chance.len(), |n| chance[n] * factor[n] * factor[n]))
    }

    /// Sums siblings into their parents, in place, unless there are `count` already.
    fn fold_to(&mut self, count: usize, vocab: usize) {
        if self.credit.len() == count {
            return;
        }
        for parent in 0..count {
            let children = vocab * parent..vocab * (parent + 1);
            let total = |sides: &[Sides]| sides.iter().fold(Sides::default(), |sum, &side| sum.plus(side));
            self.value[parent] = total(&self.value[children.clone()]);
            self.live[parent] = total(&self.live[children.clone()]);
            self.square[parent] = total(&self.square[children.clone()]);
            self.credit[parent] = self.credit[children].iter().sum();
        }
        self.value.truncate(count);
        self.live.truncate(count);
        self.square.truncate(count);
        self.credit.truncate(count);
    }
}
