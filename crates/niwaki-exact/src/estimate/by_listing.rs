//! Losses that are written out step by step: every sequence is listed, and the loss is asked what it says of each.

use super::scores::Scores;
use super::steps::Steps;
use super::{Moments, Workspace};
use crate::sum::sum;
use crate::{Error, Pair};
use niwaki_correction::{Rule, Surrogate};

/// Steps of all sequences that are listed at most: each takes about a hundred bytes.
const STEPS: usize = 1 << 24;

/// Every step of every sequence, sequences contiguous.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    /// `[sequences]`
    chance: Vec<f64>,
    steps: Steps,
}

impl Pair<'_> {
    /// Moments and channel weights of a written-out loss.
    pub(super) fn by_listing(
        &self,
        surrogate: &Surrogate,
        rule: Rule,
        work: &mut Workspace,
    ) -> Result<Moments, Error> {
        let horizon = self.process.horizon();
        if self.process.sequences() > STEPS / horizon {
            return Err(Self::refuse(surrogate, "a loss that is written out, on so many sequences"));
        }
        // All losses of a pair read one list.
        let Listing { chance, steps } = self.listed.get_or_init(|| self.listing());
        let batch = steps.batch(horizon).weighted(chance);
        let overflow = |_| Error::Overflow { loss: surrogate.correction.to_string(), what: "a term" };
        let Some(terms) = surrogate.terms(&batch).map_err(overflow)? else {
            return Err(Self::refuse(surrogate, "a form of its own"));
        };
        work.scores = Scores::Given;
        let Workspace { own, routed, square, .. } = work;
        for weights in [&mut *own, &mut *routed, &mut *square] {
            weights.clear();
            weights.resize(self.process.edges(), 0.0);
        }
        for (index, (&edge, (mine, later))) in
            steps.edges.iter().zip(terms.own.iter().zip(&terms.routed)).enumerate()
        {
            let chance = chance[index / horizon];
            own[edge] += chance * mine;
            routed[edge] += chance * later;
            square[edge] += chance * ((mine + later) * (mine + later));
        }
        let estimate: Vec<f64> = terms.value.chunks_exact(horizon).map(|terms| terms.iter().sum()).collect();
        let estimate = &estimate[..];
        let mean = sum(0..chance.len(), |n| chance[n] * estimate[n]);
        let variance = sum(0..chance.len(), |n| chance[n] * (estimate[n] - mean) * (estimate[n] - mean));
        let at = |t: usize, value: &dyn Fn(usize) -> f64| {
            sum(0..chance.len(), |n| chance[n] * value(n * horizon + t))
        };
        let mean_at = (0..horizon).map(|t| at(t, &|step| terms.value[step])).collect();
        let factor = &terms.factor;
        let factor_at = (0..horizon)
            .map(|t| (at(t, &|step| factor[step]), at(t, &|step| factor[step] * factor[step])))
            .collect();
        Ok(Moments { rule, mean, variance, mean_at, factor_at })
    }

    fn listing(&self) -> Listing {
        let (vocab, horizon) = (self.process.vocab(), self.process.horizon());
        let entropy = self.entropies();
        let mut all = Listing::default();
        let mut path = vec![0; horizon];
        for last in self.process.level_edges(horizon - 1) {
            all.chance.push(self.reach[last / vocab] * self.old.prob()[last]);
            self.process.walk(last, &mut path);
            all.steps.push(self, &path, &entropy);
        }
        all
    }
}
