//! Paired comparisons, exact sign tests, bootstrap intervals, IQM and friends on plain slices.
//!
//! The step `Curve → Comparison` of the flow. Everything here takes numbers and returns numbers: no function knows
//! of a run, a policy or a file, the crate depends on nothing, and each item's first line is its shape. All input is
//! checked; a wrong slice is an [`Error`] that names it.
//!
//! | room | what is there |
//! |---|---|
//! | `describe` | mean, variance, standard error, quantiles, with compensated sums |
//! | `sign_test` | wins, losses, ties and their exact p-values |
//! | `paired` | differences of two arms that share seeds |
//! | `decision` | which of the two is ahead: the verdict, its p-value and its interval |
//! | `bootstrap` | percentile and BCa intervals of any one-sample statistic |
//! | `scores` | the runs × tasks matrix: mean, median, IQM, optimality gap, stratified bootstrap |
//! | `improvement` | probability of improvement, unpaired and paired |
//! | `profile` | performance profiles and their bands |
//! | `curve` | AUC, leads by half of training, iterations to a threshold |
//! | `correlation` | Pearson, Spearman, within-group correlation, Fisher's interval, least squares |
//! | `silence` | the chance that a batch or a warmup carries no signal |
//! | `normal`, `student` | Φ and Φ⁻¹; Student's t |
//!
//! # Seeds
//! A bootstrap is a pure function of its data and of [`Bootstrap::seed`]: replicate `i` reads stream (seed, i) of a
//! SplitMix64 generator that lives in this crate, so that results do not depend on order or threads.
//!
//! # Checked against
//! `tests/fixtures/make.py` computes every statistic by other code and writes `tests/fixtures/reference.txt`, which
//! the tests read: Python 3.11.7 (exact binomial tails by integer arithmetic), NumPy 2.4.6, SciPy 1.17.1 (intervals,
//! `bootstrap`, correlations), mpmath 1.4.1 (Φ and Φ⁻¹ to 40 digits), rliable 1.2.0 with arch 7.2.0 (aggregates,
//! probability of improvement, profiles and their stratified intervals).

mod bootstrap;
mod correlation;
mod curve;
mod decision;
mod describe;
mod double;
mod draws;
mod error;
mod improvement;
mod interval;
mod normal;
mod paired;
mod profile;
mod scores;
mod sign_test;
mod silence;
mod student;

pub use bootstrap::Bootstrap;
pub use correlation::{Line, fisher_interval, pearson, pearson_within, spearman, z_scores_within};
pub use curve::{
    Halves, auc, auc_over, first_multiple_reaching, first_reaching, half_leads, half_means, mean_curve,
    trapezoid,
};
pub use decision::{Decision, Verdict};
pub use describe::{mean, median, quantile, quantiles, sem, standard_deviation, variance};
pub use error::Error;
pub use improvement::{
    paired_probability_of_improvement, paired_probability_of_improvement_interval,
    probability_of_improvement, probability_of_improvement_interval,
};
pub use interval::Interval;
pub use normal::{normal_cdf, normal_quantile};
pub use paired::Paired;
pub use profile::Profile;
pub use scores::Scores;
pub use sign_test::SignTest;
pub use silence::silence;

/// The README's example is run with the other ones.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
