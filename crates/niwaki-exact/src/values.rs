//! Values by backward induction, and the exact gradient of the return.
//!
//! Owns what one policy is worth under one reward; knows nothing of a second policy.

use crate::tree::{by_width, width};
use crate::twofold::Twofold;
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

/// V and A of every prefix, from the last to the first; fused where the processor can, with the same bits.
fn induct(table: &Table, terminal: &[f64], exact: &mut [Twofold], advantage: &mut [f64]) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        // SAFETY: the processor has the features that the function is compiled for.
        return unsafe { induct_fused(table, terminal, exact, advantage) };
    }
    induct_by::<false>(table, terminal, exact, advantage);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn induct_fused(table: &Table, terminal: &[f64], exact: &mut [Twofold], advantage: &mut [f64]) {
    induct_by::<true>(table, terminal, exact, advantage);
}

#[inline(always)]
fn induct_by<const FUSED: bool>(
    table: &Table,
    terminal: &[f64],
    exact: &mut [Twofold],
    advantage: &mut [f64],
) {
    by_width!(table.process().vocab(), induct_of::<_, FUSED>(table, terminal, exact, advantage));
}

#[inline(always)]
fn induct_of<const V: usize, const FUSED: bool>(
    table: &Table,
    terminal: &[f64],
    exact: &mut [Twofold],
    advantage: &mut [f64],
) {
    let (v, prefixes) = (width::<V>(table.process().vocab()), exact.len());
    for row in (0..prefixes).rev() {
        let next = |edge: usize| {
            let node = edge + 1;
            if node < prefixes { exact[node] } else { Twofold::new(terminal[node - prefixes]) }
        };
        let edges = v * row..v * row + v;
        let value = edges
            .clone()
            .fold(Twofold::ZERO, |sum, edge| sum.plus(table.exact_prob(edge).times_by::<FUSED>(next(edge))));
        for edge in edges {
            advantage[edge] = next(edge).minus(value).value();
        }
        exact[row] = value;
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
