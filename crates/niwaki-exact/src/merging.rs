//! Histories that merge: the path's weight beside the ratio of visitations that it stands in for.
//!
//! Owns the map from histories to states and what merging costs; the tree of histories is the process's own,
//! and policies have one row of logits per state.

use crate::sum::sum;
use crate::tree::{Paths, path_moments, row_means};
use crate::{Error, Payoff, Process, Table, Values};
use niwaki_correction::Real;
use std::collections::BTreeMap;

/// A process whose state is a function of the history, such as the multiset of tokens so far.
///
/// Paper: `app:derivation`
#[derive(Clone, Debug)]
pub struct Merging {
    process: Process,
    /// `[histories]`, complete ones included: the state of each, numbered densely level by level.
    state: Vec<usize>,
    /// Number of states in which a token is chosen.
    states: usize,
    /// Number of all states, the final ones included.
    all: usize,
}

/// What the path weight is worth against the visitation ratio.
///
/// Shapes: the vectors are `[horizon]`.
///
/// Paper: `app:derivation`, `sec:correction`
#[derive(Clone, Debug, PartialEq)]
pub struct MergingCost {
    /// Largest `|E[W_t | s_t] − R_t|` over the states of each position: zero in exact arithmetic.
    pub conditional_bias_at: Vec<f64>,
    /// `E[Var(W_t | s_t)]`, the Rao–Blackwell gap at each position.
    pub gap_at: Vec<f64>,
    /// η(new) − η(old).
    pub improvement: f64,
    /// Expected estimate with the path weight; equals the improvement.
    pub path_mean: f64,
    /// Expected estimate with the visitation ratio; equals the improvement too.
    pub ratio_mean: f64,
    /// Variance of the estimate with the path weight, what a trainer can compute.
    pub path_variance: f64,
    /// Variance of the estimate with the visitation ratio, what only the oracle can.
    pub ratio_variance: f64,
}

impl Merging {
    /// Merges histories to which `key` gives the same value at the same step.
    ///
    /// # Errors
    /// Where two histories share a state but the same token leads them to different ones: then the map drops
    /// something that the future needs.
    pub fn new<K: Ord>(process: Process, mut key: impl FnMut(&[usize]) -> K) -> Result<Self, Error> {
        let vocab = process.vocab();
        let mut state = vec![0; process.edges() + 1];
        let (mut states, mut next) = (0, 0);
        let mut tokens = Vec::with_capacity(process.horizon());
        for level in 0..=process.horizon() {
            if level == process.horizon() {
                states = next;
            }
            let mut seen: BTreeMap<K, usize> = BTreeMap::new();
            for node in process.level(level) {
                history(vocab, node, &mut tokens);
                state[node] = *seen.entry(key(&tokens)).or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
        }
        let merging = Self { process, state, states, all: next };
        merging.check_transitions()?;
        Ok(merging)
    }

    /// The multiset of tokens so far: the order in which they came is forgotten.
    ///
    /// # Errors
    /// None in practice; the signature is that of [`Merging::new`].
    pub fn multiset(process: Process) -> Result<Self, Error> {
        Self::new(process, |tokens| {
            let mut sorted = tokens.to_vec();
            sorted.sort_unstable();
            sorted
        })
    }

    /// Number of states in which a token is chosen, the rows of a table of logits.
    #[must_use]
    pub const fn states(&self) -> usize {
        self.states
    }

    /// The state of each history in which a token is chosen. Shapes: `[prefixes]`
    #[must_use]
    pub fn state(&self) -> &[usize] {
        &self.state[..self.process.prefixes()]
    }

    /// The policy over histories that a policy over states is.
    ///
    /// Shapes: `logits [states, vocab]`
    ///
    /// # Errors
    /// Where the length is wrong or a logit is refused by [`Table::new`].
    pub fn table(&self, logits: &[f64]) -> Result<Table, Error> {
        let vocab = self.process.vocab();
        if logits.len() != self.states * vocab {
            return Err(Error::Length {
                what: "logits",
                came: logits.len(),
                expected: self.states * vocab,
                axes: "states × vocab",
                process: self.process,
            });
        }
        let rows = self.state().iter().flat_map(|&state| &logits[vocab * state..vocab * (state + 1)]);
        Table::new(self.process, &rows.copied().collect::<Vec<_>>())
    }

    /// What merging costs a pair of policies over states.
    ///
    /// Shapes: both logits `[states, vocab]`.
    ///
    /// # Errors
    /// Where a table is refused, or complete histories that share a state pay differently.
    ///
    /// Paper: `app:derivation`, `eq:path-sum`
    pub fn cost(&self, old: &[f64], new: &[f64], payoff: &Payoff) -> Result<MergingCost, Error> {
        let (old, new) = (self.table(old)?, self.table(new)?);
        let (old_values, new_values) = (Values::new(&old, payoff)?, Values::new(&new, payoff)?);
        self.check_payoff(payoff)?;
        let (process, vocab) = (self.process, self.process.vocab());
        let (reach_old, reach_new) = (old.visitation(), new.visitation());
        // d(s) = Σ over the histories that end in s.
        let visit = |reach: &[f64]| {
            let mut visit = vec![0.0; self.states];
            self.state().iter().zip(reach).for_each(|(&state, reach)| visit[state] += reach);
            visit
        };
        let (visit_old, visit_new) = (visit(&reach_old), visit(&reach_new));
        let ell: Vec<f64> = new.log_prob().iter().zip(old.log_prob()).map(|(new, old)| new - old).collect();
        let mut weight = vec![1.0; process.prefixes()];
        for row in 0..process.prefixes() / vocab {
            for edge in vocab * row..vocab * (row + 1) {
                weight[edge + 1] = weight[row] * Real::exp(ell[edge]);
            }
        }
        let ratio: Vec<f64> = self.state().iter().map(|&state| visit_new[state] / visit_old[state]).collect();
        let mut mean_weight = vec![0.0; self.states];
        for (row, &state) in self.state().iter().enumerate() {
            mean_weight[state] += reach_old[row] * weight[row] / visit_old[state];
        }
        let levels = 0..process.horizon();
        let conditional_bias_at = levels
            .clone()
            .map(|level| {
                let rows = process.level(level);
                rows.map(|row| (mean_weight[self.state[row]] - ratio[row]).abs()).fold(0.0, f64::max)
            })
            .collect();
        let gap_at = levels
            .map(|level| {
                sum(process.level(level), |row| {
                    let away = weight[row] - ratio[row];
                    reach_old[row] * away * away
                })
            })
            .collect();
        let estimate = |factor: &[f64]| {
            let value: Vec<f64> = (0..process.edges())
                .map(|edge| factor[edge / vocab] * Real::exp(ell[edge]) * old_values.advantage()[edge])
                .collect();
            let mut rows = vec![0.0; process.prefixes()];
            let (mut future, mut spread) = (rows.clone(), rows.clone());
            row_means(vocab, old.prob(), &value, &mut rows);
            let (prob, future, spread) = (old.prob(), &mut future[..], &mut spread[..]);
            path_moments(Paths { process, prob, value: &value, rows: &rows, future, spread })
        };
        let ((path_mean, path_variance), (ratio_mean, ratio_variance)) =
            (estimate(&weight), estimate(&ratio));
        Ok(MergingCost {
            conditional_bias_at,
            gap_at,
            improvement: new_values.exact_eta.minus(old_values.exact_eta).value(),
            path_mean,
            ratio_mean,
            path_variance,
            ratio_variance,
        })
    }

    /// Every history of a state must be led to the same state by the same token.
    fn check_transitions(&self) -> Result<(), Error> {
        let vocab = self.process.vocab();
        let mut first = vec![usize::MAX; self.states];
        for row in 0..self.process.prefixes() {
            let known = &mut first[self.state[row]];
            if *known == usize::MAX {
                *known = row;
            }
            let next = |row: usize| &self.state[vocab * row + 1..=vocab * (row + 1)];
            if next(*known) != next(row) {
                return Err(self.not_a_state(*known, row, "the states that follow"));
            }
        }
        Ok(())
    }

    /// Complete histories that share a state must pay alike.
    fn check_payoff(&self, payoff: &Payoff) -> Result<(), Error> {
        let prefixes = self.process.prefixes();
        let mut first = vec![usize::MAX; self.all];
        for (sequence, &reward) in payoff.terminal().iter().enumerate() {
            let known = &mut first[self.state[prefixes + sequence]];
            if *known == usize::MAX {
                *known = sequence;
            }
            if payoff.terminal()[*known].to_bits() != reward.to_bits() {
                return Err(self.not_a_state(prefixes + *known, prefixes + sequence, "their rewards"));
            }
        }
        Ok(())
    }

    fn not_a_state(&self, first: usize, second: usize, what: &'static str) -> Error {
        let tokens = |node| {
            let mut tokens = vec![];
            history(self.process.vocab(), node, &mut tokens);
            tokens
        };
        Error::NotAState { first: tokens(first), second: tokens(second), what }
    }
}

/// The tokens of a node.
fn history(vocab: usize, mut node: usize, tokens: &mut Vec<usize>) {
    tokens.clear();
    while node > 0 {
        tokens.push((node - 1) % vocab);
        node = (node - 1) / vocab;
    }
    tokens.reverse();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_orders_of_two_tokens_by_hand() {
        // Two tokens, three steps; AB and BA share a state. Old: uniform. New: P(A) = p at the start, q after
        // A, s after B. Weights into {A, B}: 2p·2(1 − q) and 2(1 − p)·2s, each path as likely under old.
        let process = Process::new(2, 3).unwrap();
        let merging = Merging::multiset(process).unwrap();
        assert_eq!((merging.states(), merging.state()), (6, [0, 1, 2, 3, 4, 4, 5].as_slice()));
        let (p, q, s) = (0.7_f64, 0.4_f64, 0.3_f64);
        let logits = |p: f64| [p.ln(), (1.0 - p).ln()];
        let new: Vec<f64> = [p, q, s, 0.5, 0.5, 0.5].into_iter().flat_map(logits).collect();
        let payoff = Payoff::from_fn(process, |tokens| tokens.iter().sum::<usize>() as f64).unwrap();
        let cost = merging.cost(&[0.0; 12], &new, &payoff).unwrap();
        let (one, two) = (4.0 * p * (1.0 - q), 4.0 * (1.0 - p) * s);
        // Half of the histories reach {A, B}; within it the weights differ by (one − two)/2 from their mean.
        let gap = 0.5 * ((one - two) / 2.0).powi(2);
        assert!((cost.gap_at[2] - gap).abs() < 1e-15 && gap > 0.1);
        assert_eq!(&cost.gap_at[..2], [0.0, 0.0]);
    }

    #[test]
    fn a_map_that_forgets_too_much_is_refused() {
        let process = Process::new(2, 3).unwrap();
        // Knows the first token at the end but forgets it in the middle.
        let forgets =
            Merging::new(
                process,
                |tokens| if tokens.len() == 2 { 0 } else { tokens.first().map_or(0, |&t| t) },
            );
        assert_eq!(
            forgets.unwrap_err().to_string(),
            "histories [0, 0] and [1, 0] share a state but the states that follow differ; the map must keep \
             what the future needs"
        );
        let merging = Merging::multiset(process).unwrap();
        let payoff = Payoff::from_fn(process, |tokens| tokens[0] as f64).unwrap();
        assert!(merging.cost(&[0.0; 12], &[0.0; 12], &payoff).is_err());
    }
}
