//! How the log-ratio of two policies spreads, exactly: within states, across trajectories, along the prefix.

use crate::sum::sum;
use crate::{Error, Process, Table};

/// Three variances of the log-ratio under the rollout policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// `Σ_t E[Var(ℓ_t | s_t)]`, the drift σ²T as printed. Paper: `sec:correction`
    pub conditional: f64,
    /// `Σ_t Var(ℓ_t)` across trajectories, which a batch without the policies' other probabilities can estimate: larger by the
    /// variance of `E[ℓ_t | s_t]`.
    pub across: f64,
    /// `Var(L_T)`, of the prefix log-ratio at the last position. Paper: `app:pretrained` (Var log R₅)
    pub prefix: f64,
}

impl Spread {
    /// The spread between the policy that sampled and one after an update.
    ///
    /// # Errors
    /// Where the two do not share one process.
    pub fn between(old: &Table, new: &Table) -> Result<Self, Error> {
        let process = old.process();
        if new.process() != process {
            return Err(Error::Mismatch { what: "new policy", came: new.process(), expected: process });
        }
        let (vocab, reach) = (process.vocab(), old.visitation());
        let ell = |edge: usize| new.log_prob()[edge] - old.log_prob()[edge];
        let moment = |row: usize, power: i32| {
            (vocab * row..vocab * (row + 1)).map(|edge| old.prob()[edge] * ell(edge).powi(power)).sum::<f64>()
        };
        let (mut conditional, mut across) = (0.0, 0.0);
        for level in 0..process.horizon() {
            let mean = sum(process.level(level), |row| reach[row] * moment(row, 1));
            conditional += sum(process.level(level), |row| {
                let own = moment(row, 1);
                let each = |edge: usize| old.prob()[edge] * (ell(edge) - own).powi(2);
                reach[row] * (vocab * row..vocab * (row + 1)).map(each).sum::<f64>()
            });
            across += sum(process.level(level), |row| {
                let each = |edge: usize| old.prob()[edge] * (ell(edge) - mean).powi(2);
                reach[row] * (vocab * row..vocab * (row + 1)).map(each).sum::<f64>()
            });
        }
        Ok(Self { conditional, across, prefix: prefix_variance(process, &reach, ell) })
    }
}

/// The variance of what the log-ratio sums to before the last step.
fn prefix_variance(process: Process, reach: &[f64], ell: impl Fn(usize) -> f64) -> f64 {
    let vocab = process.vocab();
    let mut prefix = vec![0.0; process.prefixes()];
    for edge in 0..process.prefixes() - 1 {
        prefix[edge + 1] = prefix[edge / vocab] + ell(edge);
    }
    let last = process.level(process.horizon() - 1);
    let mean = sum(last.clone(), |row| reach[row] * prefix[row]);
    sum(last, |row| reach[row] * (prefix[row] - mean).powi(2))
}
