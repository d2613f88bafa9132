//! Steps of trajectories as the correction takes them.

use crate::Pair;
use niwaki_correction::{Batch, Rows};

/// Steps, trajectories contiguous. Shapes: `[trajectories, horizon]` each
#[derive(Debug, Default)]
pub(crate) struct Steps {
    pub(super) edges: Vec<usize>,
    new: Vec<f64>,
    old: Vec<f64>,
    advantage: Vec<f64>,
    entropy: Vec<f64>,
}

impl Steps {
    pub(super) fn clear(&mut self) {
        self.edges.clear();
        for values in [&mut self.new, &mut self.old, &mut self.advantage, &mut self.entropy] {
            values.clear();
        }
    }

    /// Adds a whole trajectory, by the edges of its steps; `entropy` is the new policy's at every prefix.
    pub(super) fn push(&mut self, pair: &Pair<'_>, path: &[usize], entropy: &[f64]) {
        let (process, vocab) = (pair.process(), pair.process().vocab());
        let Some(last) = path.last() else { return };
        let outcome = pair.advantages.returns.as_ref().map(|all| all.terminal[last + 1 - process.prefixes()]);
        for &edge in path {
            self.new.push(pair.new.log_prob()[edge]);
            self.old.push(pair.old.log_prob()[edge]);
            self.entropy.push(entropy[edge / vocab]);
            self.advantage.push(outcome.unwrap_or(pair.advantages.mean[edge]));
        }
        self.edges.extend_from_slice(path);
    }

    pub(super) fn batch(&self, horizon: usize) -> Batch<'_, f64> {
        Batch::new(Rows::uniform(horizon), &self.new, &self.old, &self.advantage).with_entropy(&self.entropy)
    }
}

impl Pair<'_> {
    /// Entropy of the new policy at every prefix.
    pub(super) fn entropies(&self) -> Vec<f64> {
        let vocab = self.process().vocab();
        let rows = self.new.prob().chunks_exact(vocab).zip(self.new.log_prob().chunks_exact(vocab));
        rows.map(|(prob, log_prob)| -prob.iter().zip(log_prob).map(|(p, log)| p * log).sum::<f64>()).collect()
    }
}
