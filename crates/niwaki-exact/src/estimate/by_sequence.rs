//! Members whose factor only the whole sequence decides: one weight per leaf, sums from the leaves up.

use super::scores::Scores;
use super::{Moments, Workspace};
use crate::sum::sum;
use crate::{Error, Pair};
use niwaki_correction::clip::Bounds;
use niwaki_correction::family::{Form, Reads};
use niwaki_correction::{Real, Rule, Surrogate};

/// What one sequence's weight does to a unit of advantage of either sign.
#[derive(Clone, Copy, Default)]
struct Sides {
    gain: f64,
    loss: f64,
}

impl Sides {
    /// On advantages that sum to `gain` where positive and `loss` (a magnitude) where not.
    fn on(self, gain: f64, loss: f64) -> f64 {
        self.gain * gain - self.loss * loss
    }
}

impl Pair<'_> {
    /// Moments and channel weights from the leaves up.
    pub(super) fn by_sequence(
        &self,
        surrogate: &Surrogate,
        rule: Rule,
        work: &mut Workspace,
    ) -> Result<Moments, Error> {
        if rule.form == Form::Multiply
            || rule.growing_clip
            || rule.self_normalised
            || rule.ess_floor.is_some()
        {
            return Err(Self::refuse(surrogate, "a sequence's weight in a step-dependent form"));
        }
        let (process, vocab, prob) = (self.process, self.process.vocab(), self.old.prob());
        let (horizon, prefixes) = (process.horizon(), process.prefixes());
        let last = process.level_edges(horizon - 1).start;
        let share = if rule.reads == Reads::SequenceMean { 1.0 / horizon as f64 } else { 1.0 };
        let bounds = match surrogate.clip.filter(|_| rule.form != Form::Weigh) {
            Some(clip) => clip.bounds(0, false),
            None => Bounds::open(),
        };
        // Sums of either sign of the advantage along the path to each prefix.
        let signs = |edge: usize| {
            let advantage = self.advantages.mean[edge];
            (advantage.max(0.0), (-advantage).max(0.0))
        };
        let mut along = vec![(0.0, 0.0); prefixes];
        for row in 0..prefixes / vocab {
            for edge in vocab * row..vocab * (row + 1) {
                let (before, here) = (along[row], signs(edge));
                along[edge + 1] = (before.0 + here.0, before.1 + here.1);
            }
        }
        let leaves = process.sequences();
        let mut leaf = Leaves::new(leaves);
        for sequence in 0..leaves {
            let edge = last + sequence;
            let row = edge / vocab;
            let reading = (self.prefix[row] + self.ell[edge]) * share;
            let factor = rule.factor(reading);
            let ratio = Real::exp(factor.log_factor);
            let side = |sign: f64| {
                let (value, gate) = bounds.term(ratio, sign);
                (sign * value, if gate == 0.0 { 0.0 } else { ratio })
            };
            let ((gain, live_gain), (loss, live_loss)) = (side(1.0), side(-1.0));
            let value = Sides { gain, loss };
            let live = Sides { gain: live_gain, loss: live_loss };
            let (gains, losses) = match &self.advantages.returns {
                None => {
                    let (before, here) = (along[row], signs(edge));
                    (before.0 + here.0, before.1 + here.1)
                }
                Some(returns) => {
                    let all = returns.terminal[sequence] * horizon as f64;
                    (all.max(0.0), (-all).max(0.0))
                }
            };
            let chance = self.reach[row] * prob[edge];
            leaf.chance[sequence] = chance;
            leaf.factor[sequence] = ratio;
            leaf.estimate[sequence] = value.on(gains, losses);
            leaf.value[sequence] = Sides { gain: chance * value.gain, loss: chance * value.loss };
            leaf.live[sequence] = Sides { gain: chance * live.gain, loss: chance * live.loss };
            leaf.credit[sequence] = chance * factor.slope * live.on(gains, losses) * share;
            if let Some(returns) = &self.advantages.returns {
                // One advantage per sequence: fold it in here, so that edges need no further factor.
                let (gain, loss) =
                    (returns.terminal[sequence].max(0.0), (-returns.terminal[sequence]).max(0.0));
                leaf.value[sequence] = Sides { gain: chance * value.on(gain, loss), loss: 0.0 };
                leaf.live[sequence] = Sides { gain: chance * live.on(gain, loss), loss: 0.0 };
            }
        }
        let mean = sum(0..leaves, |n| leaf.chance[n] * leaf.estimate[n]);
        let variance = sum(0..leaves, |n| {
            let away = leaf.estimate[n] - mean;
            leaf.chance[n] * away * away
        });
        let moment = |power: f64| sum(0..leaves, |n| leaf.chance[n] * leaf.factor[n].powf(power));
        let factor_at = vec![(moment(1.0), moment(2.0)); horizon];

        let returns = self.advantages.returns.is_some();
        let weigh = |edge: usize, side: Sides| {
            let (gain, loss) = if returns { (1.0, 0.0) } else { signs(edge) };
            side.on(gain, loss)
        };
        work.scores = Scores::Given;
        work.own.resize(process.edges(), 0.0);
        work.routed.resize(process.edges(), 0.0);
        let routes = surrogate.routing && rule.form == Form::Replace;
        let mut mean_at = vec![0.0; horizon];
        for level in (0..horizon).rev() {
            let edges = process.level_edges(level);
            if level + 1 < horizon {
                leaf.fold(vocab);
            }
            for (index, edge) in edges.clone().enumerate() {
                work.own[edge] = weigh(edge, leaf.live[index]);
                // The step's own ratio is not in the term: all credit comes through the reading.
                work.routed[edge] = if routes { leaf.credit[index] - work.own[edge] } else { 0.0 };
            }
            mean_at[level] = sum(0..edges.len(), |index| weigh(edges.start + index, leaf.value[index]));
        }
        Ok(Moments { rule, mean, variance, mean_at, factor_at })
    }
}

/// Quantities of the leaves, summed level by level towards the root; the last three already weighted by chance.
struct Leaves {
    chance: Vec<f64>,
    factor: Vec<f64>,
    estimate: Vec<f64>,
    value: Vec<Sides>,
    live: Vec<Sides>,
    credit: Vec<f64>,
}

impl Leaves {
    fn new(leaves: usize) -> Self {
        Self {
            chance: vec![0.0; leaves],
            factor: vec![0.0; leaves],
            estimate: vec![0.0; leaves],
            value: vec![Sides::default(); leaves],
            live: vec![Sides::default(); leaves],
            credit: vec![0.0; leaves],
        }
    }

    /// Sums each group of siblings into their parent, in place.
    fn fold(&mut self, vocab: usize) {
        let parents = self.credit.len() / vocab;
        for parent in 0..parents {
            let children = vocab * parent..vocab * (parent + 1);
            let total = |sides: &[Sides]| {
                sides.iter().fold(Sides::default(), |sum, side| Sides {
                    gain: sum.gain + side.gain,
                    loss: sum.loss + side.loss,
                })
            };
            self.value[parent] = total(&self.value[children.clone()]);
            self.live[parent] = total(&self.live[children.clone()]);
            self.credit[parent] = self.credit[children].iter().sum();
        }
        self.value.truncate(parents);
        self.live.truncate(parents);
        self.credit.truncate(parents);
    }
}
