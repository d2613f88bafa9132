//! Values by backward induction, and the exact gradient of the return.
//!
//! Owns what one policy is worth under one reward; knows nothing of a second policy.

use crate::tree::{by_width, width};
use crate::twofold::{ABREAST, Abreast, Twofold};
use crate::wide::wide;
use crate::{Error, Payoff, Process, Table};

/// The value of every prefix and of every choice there, under one policy and reward.
///
/// Paper: `sec:correction` (A, Q, V), `app:testbed-protocol` (backward-induction advantages)
#[derive(Clone, Debug)]
pub struct Values {
    process: Process,
    pub(crate) exact_eta: Twofold,
    value: Vec<f64>,
    advantage: Vec<f64>,
}

impl Values {
    /// Backward induction.
    ///
    /// # Errors
    /// Where table and reward belong to different processes.
    pub fn new(table: &Table, payoff: &Payoff) -> Result<Self, Error> {
        let process = table.process();
        if payoff.process() != process {
            return Err(Error::Mismatch { what: "reward", came: payoff.process(), expected: process });
        }
        let mut exact = vec![Twofold::ZERO; process.prefixes()];
        let mut advantage = vec![0.0; process.edges()];
        induct(table, payoff.terminal(), &mut exact, &mut advantage);
        let value = exact.iter().map(|value| value.value()).collect();
        Ok(Self { process, exact_eta: exact[0], value, advantage })
    }

    /// The expected return from the start. Paper: `eq:trpo-identity` (η), `eq:pd-expanded`
    #[must_use]
    pub fn eta(&self) -> f64 {
        self.exact_eta.value()
    }

    /// V(s). Shapes: `[prefixes]`
    #[must_use]
    pub fn value(&self) -> &[f64] {
        &self.value
    }

    /// A(s, a) = Q(s, a) − V(s). Shapes: `[prefixes, vocab]`
    #[must_use]
    pub fn advantage(&self) -> &[f64] {
        &self.advantage
    }

    /// Q(s, a) = V(s) + A(s, a). Shapes: `[prefixes, vocab]`
    #[must_use]
    pub fn action_value(&self) -> Vec<f64> {
        let vocab = self.process.vocab();
        (0..self.advantage.len()).map(|edge| self.value[edge / vocab] + self.advantage[edge]).collect()
    }

    /// `∂η/∂logits[p,a] = d(p) π(a|p) A(p,a)`, the policy gradient theorem on a table.
    ///
    /// Shapes: `visitation [prefixes]` of the same table, returns `[prefixes, vocab]`.
    ///
    /// Paper: `sec:exact-diagnostics` (exact return gradient)
    #[must_use]
    pub fn eta_gradient(&self, table: &Table, visitation: &[f64]) -> Vec<f64> {
        let vocab = self.process.vocab();
        let mut gradient = self.advantage.clone();
        for (row, (gradient, prob)) in
            gradient.chunks_exact_mut(vocab).zip(table.prob().chunks_exact(vocab)).enumerate()
        {
            for (gradient, &prob) in gradient.iter_mut().zip(prob) {
                *gradient *= visitation[row] * prob;
            }
        }
        gradient
    }
}

wide! {
    /// V and A of every prefix, from the last step to the first.
    fn induct<FUSED>(table: &Table, terminal: &[f64], exact: &mut [Twofold], advantage: &mut [f64]) {
        by_width!(table.process().vocab(), induct_of::<_, FUSED>(table, terminal, exact, advantage));
    }
}

#[inline(always)]
fn induct_of<const V: usize, const FUSED: bool>(
    table: &Table,
    terminal: &[f64],
    exact: &mut [Twofold],
    advantage: &mut [f64],
) {
    let (v, prefixes, process) = (width::<V>(table.process().vocab()), exact.len(), table.process());
    let mut next = vec![Abreast::ZERO; v];
    for level in (0..process.horizon()).rev() {
        for first in process.level(level).step_by(ABREAST) {
            // Rows of one level do not wait for each other.
            let count = ABREAST.min(process.level(level).end - first);
            let (mut value, mut prob) = (Abreast::ZERO, Abreast::ZERO);
            for (a, next) in next.iter_mut().enumerate() {
                for row in 0..count {
                    let edge = v * (first + row) + a;
                    let node = edge + 1;
                    prob.put(row, table.exact_prob(edge));
                    let paid = || Twofold::new(terminal[node - prefixes]);
                    next.put(row, if node < prefixes { exact[node] } else { paid() });
                }
                for row in 0..ABREAST {
                    value.put(row, value.at(row).plus(prob.at(row).times_by::<FUSED>(next.at(row))));
                }
            }
            for (a, next) in next.iter().enumerate() {
                let mut over = [0.0; ABREAST];
                for row in 0..ABREAST {
                    over[row] = next.at(row).minus(value.at(row)).value();
                }
                for row in 0..count {
                    advantage[v * (first + row) + a] = over[row];
                }
            }
            for row in 0..count {
                exact[first + row] = value.at(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reward;

    #[test]
    fn values_by_hand() {
        // Two tokens, two steps, uniform; only A then B pays. V(A) = 1/2, V(B) = 0, η = 1/4.
        let process = Process::new(2, 2).unwrap();
        let values =
            Values::new(&Table::uniform(process), &Reward::SparseMatch.payoff(process).unwrap()).unwrap();
        assert_eq!(values.value(), [0.25, 0.5, 0.0]);
        assert_eq!(values.advantage(), [0.25, -0.25, -0.5, 0.5, 0.0, 0.0]);
        assert_eq!(values.action_value(), [0.5, 0.0, 0.0, 1.0, 0.0, 0.0]);
        // d π A: root ½·(±¼), the visited prefix A ½·½·(∓½).
        let table = Table::uniform(process);
        let gradient = values.eta_gradient(&table, &table.visitation());
        assert_eq!(gradient, [0.125, -0.125, -0.125, 0.125, 0.0, 0.0]);
    }
}
