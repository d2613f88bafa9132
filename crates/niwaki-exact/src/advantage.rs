//! Where the advantage in the estimate comes from.
//!
//! Owns the source and what of it each edge can know; knows nothing of losses.

use crate::{Payoff, Process, Table, Values};

/// Which advantage the estimate uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AdvantageSource {
    /// The rollout policy's own, by backward induction: zero mean in every state.
    #[default]
    Exact,
    /// The return minus its mean over an infinite batch, constant along the trajectory: centred across the
    /// batch, not within each state. Paper: `sec:mechanism` (imperfect centring)
    Returns,
}

/// Advantages as the recursions need them.
#[derive(Debug)]
pub(crate) struct Advantages {
    /// `[prefixes, vocab]`, the mean given the prefix and the choice.
    pub(crate) mean: Vec<f64>,
    /// What the choice alone does not decide; none where the advantage is exact.
    pub(crate) returns: Option<Returns>,
}

/// Advantages that only the whole sequence decides.
#[derive(Debug)]
pub(crate) struct Returns {
    /// `[sequences]`
    pub(crate) terminal: Vec<f64>,
    /// `[prefixes, vocab]`, the mean of max(Â, 0) given the prefix and the choice.
    pub(crate) gain: Vec<f64>,
    /// `[prefixes, vocab]`, the mean of max(−Â, 0) given the prefix and the choice.
    pub(crate) loss: Vec<f64>,
}

impl Advantages {
    pub(crate) fn new(source: AdvantageSource, old: &Table, payoff: &Payoff, values: &Values) -> Self {
        match source {
            AdvantageSource::Exact => Self { mean: values.advantage().to_vec(), returns: None },
            AdvantageSource::Returns => {
                let process = old.process();
                let terminal: Vec<f64> =
                    payoff.terminal().iter().map(|reward| reward - values.eta()).collect();
                let given = |part: &dyn Fn(f64) -> f64| edge_means(process, old.prob(), &terminal, part);
                let (gain, loss) =
                    (given(&|advantage| advantage.max(0.0)), given(&|advantage| (-advantage).max(0.0)));
                let mean = gain.iter().zip(&loss).map(|(gain, loss)| gain - loss).collect();
                Self { mean, returns: Some(Returns { terminal, gain, loss }) }
            }
        }
    }
}

/// `E[part(terminal) | prefix, choice]` for every edge.
fn edge_means(process: Process, prob: &[f64], terminal: &[f64], part: &dyn Fn(f64) -> f64) -> Vec<f64> {
    let (vocab, prefixes) = (process.vocab(), process.prefixes());
    let mut means = vec![0.0; process.edges()];
    for edge in (0..process.edges()).rev() {
        let node = edge + 1;
        means[edge] = if node < prefixes {
            (vocab * node..vocab * (node + 1)).map(|below| prob[below] * means[below]).sum()
        } else {
            part(terminal[node - prefixes])
        };
    }
    means
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reward;

    #[test]
    fn returns_by_hand() {
        // Two tokens, two steps, uniform, only A then B pays: η = ¼, so Â is ¾ once and −¼ three times.
        let process = Process::new(2, 2).unwrap();
        let (table, payoff) = (Table::uniform(process), Reward::SparseMatch.payoff(process).unwrap());
        let values = Values::new(&table, &payoff).unwrap();
        let advantages = Advantages::new(AdvantageSource::Returns, &table, &payoff, &values);
        // After A: ½·¾ − ½·¼ = ¼ = Q − η. After B: −¼.
        assert_eq!(advantages.mean, [0.25, -0.25, -0.25, 0.75, -0.25, -0.25]);
        let returns = advantages.returns.unwrap();
        assert_eq!(returns.gain, [0.375, 0.0, 0.0, 0.75, 0.0, 0.0]);
        assert_eq!(returns.loss, [0.125, 0.25, 0.25, 0.0, 0.25, 0.25]);
    }
}
