//! A rollout policy beside the policy being updated, under one reward: what is true of them before any loss.
//!
//! Owns log-ratios, visitation, drift and the return's gradient; knows nothing of the family.

use crate::estimate::{Listing, Plain, score_squares};
use crate::sum::{norm, sum};
use crate::wide::exp_all;
use crate::{AdvantageSource, Error, Payoff, Process, Table, Values, advantage::Advantages};
use std::sync::OnceLock;

/// Two policies and a reward.
///
/// Paper: `sec:exact-diagnostics` (fixed policy pairs)
#[derive(Debug)]
pub struct Pair<'a> {
    pub(crate) process: Process,
    pub(crate) old: &'a Table,
    pub(crate) new: &'a Table,
    pub(crate) old_values: Values,
    pub(crate) new_values: Values,
    pub(crate) advantages: Advantages,
    /// `[prefixes, vocab]`, log-ratio of each choice.
    pub(crate) ell: Vec<f64>,
    /// `[prefixes, vocab]`, ratio of each choice.
    pub(crate) ratio: Vec<f64>,
    /// `[prefixes]`, prefix log-ratio.
    pub(crate) prefix: Vec<f64>,
    /// `[prefixes]`, visitation of the rollout policy.
    pub(crate) reach: Vec<f64>,
    /// What a prefix's factor multiplies.
    pub(crate) plain: Plain,
    /// `[prefixes, vocab]`, square of each choice's score.
    pub(crate) score_square: Vec<f64>,
    /// Every sequence, for losses that are written out; empty until one asks.
    pub(crate) listed: OnceLock<Listing>,
    eta_gradient: Vec<f64>,
    eta_gradient_norm: f64,
}

/// How far the two policies are apart, exactly.
///
/// Shapes: the vectors are `[horizon]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Drift {
    /// KL(old ‖ new) per step, averaged over the states that the old policy visits.
    /// Paper: `sec:exact-diagnostics` (D̄_KL)
    pub mean_kl: f64,
    /// The same at each position.
    pub kl_at: Vec<f64>,
    /// E[Var(ℓ_t | s_t)] averaged over steps (σ²). Paper: `sec:correction`
    pub step_variance: f64,
    /// σ²T. Paper: `sec:correction`
    pub drift: f64,
    /// Root mean square of the prefix log-ratio at each position. Paper: `tab:conditions` (C1)
    pub prefix_rms_at: Vec<f64>,
    /// Normalised ESS of the prefix ratio at each position. Paper: `sec:exact-diagnostics`
    pub prefix_ess_at: Vec<f64>,
    /// χ² of the step ratio, the mean of r² less 1, averaged over steps.
    pub chi2_step: f64,
    /// χ² of the whole sequence's ratio.
    pub chi2_sequence: f64,
}

impl<'a> Pair<'a> {
    /// Pairs two policies under a reward, with exact advantages.
    ///
    /// # Errors
    /// Where the three do not share one process.
    pub fn new(old: &'a Table, new: &'a Table, payoff: &Payoff) -> Result<Self, Error> {
        Self::with_advantages(old, new, payoff, AdvantageSource::Exact)
    }

    /// Pairs two policies under a reward, with the advantages of a given source.
    ///
    /// # Errors
    /// Where the three do not share one process.
    pub fn with_advantages(
        old: &'a Table,
        new: &'a Table,
        payoff: &Payoff,
        source: AdvantageSource,
    ) -> Result<Self, Error> {
        let process = old.process();
        if new.process() != process {
            return Err(Error::Mismatch { what: "new policy", came: new.process(), expected: process });
        }
        let (of_old, of_new) = (|| Values::new(old, payoff), || Values::new(new, payoff));
        let (old_values, new_values) =
            if process.is_worth_threads() { rayon::join(of_old, of_new) } else { (of_old(), of_new()) };
        let (old_values, new_values) = (old_values?, new_values?);
        let advantages = Advantages::new(source, old, payoff, &old_values);
        let ell: Vec<f64> = new.log_prob().iter().zip(old.log_prob()).map(|(new, old)| new - old).collect();
        let vocab = process.vocab();
        let mut prefix = vec![0.0; process.prefixes()];
        for row in 0..process.prefixes() / vocab {
            for edge in vocab * row..vocab * (row + 1) {
                prefix[edge + 1] = prefix[row] + ell[edge];
            }
        }
        let mut ratio = ell.clone();
        exp_all(&mut ratio);
        let eta_gradient = new_values.eta_gradient(new, &new.visitation());
        let plain = Plain::new((old, new), &ratio, &advantages.mean, &eta_gradient);
        Ok(Self {
            process,
            old,
            new,
            old_values,
            new_values,
            advantages,
            ratio,
            plain,
            ell,
            prefix,
            reach: old.visitation(),
            score_square: score_squares(new),
            listed: OnceLock::new(),
            eta_gradient_norm: norm(&eta_gradient),
            eta_gradient,
        })
    }

    /// The process.
    #[must_use]
    pub const fn process(&self) -> Process {
        self.process
    }

    /// Values of the rollout policy.
    #[must_use]
    pub const fn old_values(&self) -> &Values {
        &self.old_values
    }

    /// Values of the policy being updated.
    #[must_use]
    pub const fn new_values(&self) -> &Values {
        &self.new_values
    }

    /// η(new) − η(old), what every loss tries to estimate.
    ///
    /// Paper: `eq:improvement-trajectory`
    #[must_use]
    pub fn improvement(&self) -> f64 {
        self.new_values.exact_eta.minus(self.old_values.exact_eta).value()
    }

    /// The exact gradient of η at the new policy.
    ///
    /// Shapes: `[prefixes, vocab]`. Paper: `sec:exact-diagnostics`
    #[must_use]
    pub fn eta_gradient(&self) -> &[f64] {
        &self.eta_gradient
    }

    /// Its Euclidean norm.
    #[must_use]
    pub const fn eta_gradient_norm(&self) -> f64 {
        self.eta_gradient_norm
    }

    /// The prefix log-ratio of every prefix.
    ///
    /// Shapes: `[prefixes]`. Paper: `sec:family` (L^s_t)
    #[must_use]
    pub fn prefix_log_ratio(&self) -> &[f64] {
        &self.prefix
    }

    /// How far the policies are apart.
    #[must_use]
    pub fn drift(&self) -> Drift {
        let (vocab, horizon) = (self.process.vocab(), self.process.horizon());
        let prob = self.old.prob();
        let edges = |row: usize| vocab * row..vocab * (row + 1);
        // Expectations at a position, over states or over choices, under the rollout policy.
        let at = |of_row: &dyn Fn(usize) -> f64| -> Vec<f64> {
            (0..horizon)
                .map(|level| sum(self.process.level(level), |row| self.reach[row] * of_row(row)))
                .collect()
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / horizon as f64;
        let over_row = |row: usize, term: &dyn Fn(f64) -> f64| -> f64 {
            edges(row).map(|edge| prob[edge] * term(self.ell[edge])).sum()
        };
        // KL as E[r − 1 − ℓ]: equal to E[−ℓ], and no term is negative, so nothing cancels at small drift.
        let kl_at = at(&|row| over_row(row, &|ell| ell.exp_m1() - ell));
        let variance_at = at(&|row| {
            let mean = over_row(row, &|ell| ell);
            over_row(row, &|ell| (ell - mean) * (ell - mean))
        });
        let square_at = at(&|row| over_row(row, &|ell| (2.0 * ell).exp()));
        let prefix_square_at = at(&|row| (2.0 * self.prefix[row]).exp());
        let prefix_at = at(&|row| self.prefix[row].exp());
        let rms_at = at(&|row| self.prefix[row] * self.prefix[row]);
        let last = self.process.level(horizon - 1);
        let sequence =
            sum(last, |row| self.reach[row] * over_row(row, &|ell| (2.0 * (self.prefix[row] + ell)).exp()));
        Drift {
            mean_kl: mean(&kl_at),
            kl_at,
            step_variance: mean(&variance_at),
            drift: mean(&variance_at) * horizon as f64,
            prefix_rms_at: rms_at.iter().map(|square| square.sqrt()).collect(),
            prefix_ess_at: (0..horizon).map(|t| prefix_at[t] * prefix_at[t] / prefix_square_at[t]).collect(),
            chi2_step: mean(&square_at) - 1.0,
            chi2_sequence: sequence - 1.0,
        }
    }
}
