//! The correction that PPO drops, written once, on plain slices.
//!
//! For one trajectory, with `ell[t]` the log-ratio of the trainable to the rollout policy and
//! `prefix[t] = Σ_{i<t} ell[i]`, every loss of the family multiplies the step's own ratio by a factor that it
//! reads off the earlier log-ratios:
//!
//! ```text
//! corrected[t] = exp(log_factor[t] + ell[t])
//! own[t]       = gate[t] · corrected[t] · advantage[t] / count      PPO's term, reweighted
//! routed[i]    = Σ_{t>i} slope[t] · own[t]                           credit routed back along the prefix
//! ∂objective/∂log_prob[i] = own[i] + routed[i]
//! ```
//!
//! So one function over slices returns the objective, its exact cotangent with respect to the log-probs, and
//! every diagnostic. A policy only has to compute log-probs and pull a cotangent back: the same code serves a
//! table in `f64`, a network on a GPU and a language model.
//!
//! Paper: `sec:intro`, `sec:method`, `eq:corrected-general`
//!
//! # The rooms
//!
//! | module | what belongs there |
//! |---|---|
//! | [`family`] | one file per member: name, formula, normal form, worked test |
//! | [`clip`] | the clip-min of the objective and its gate |
//! | [`log_ratio`] | log-ratios, exclusive and windowed prefix sums, running minima |
//! | [`surrogate`] | objective, cotangent and channels of a batch |
//! | [`diagnostics`] | drift, ESS, KL, χ², bias witness and dose |
//! | [`schedule`] | warmup, held, reuse, and the rule that sizes α |
//!
//! # Example
//!
//! ```
//! use niwaki_correction::{Batch, Rows, Surrogate, Workspace};
//!
//! let rollout = [-1.2, -0.7, -0.3, -0.9, -1.1, -0.4]; // two trajectories of three steps
//! let current = [-1.1, -0.8, -0.2, -1.0, -1.0, -0.5];
//! let advantage = [0.5, 0.5, 0.5, -0.5, -0.5, -0.5];
//! let surrogate: Surrogate = "tempered:0.25".parse()?;
//! let mut workspace = Workspace::default();
//! let batch = Batch::new(Rows::uniform(3), &current, &rollout, &advantage);
//! let evaluation = surrogate.evaluate(&batch, &mut workspace)?;
//! assert_eq!(evaluation.cotangent.len(), 6);
//! # Ok::<(), niwaki_correction::Error>(())
//! ```

pub mod clip;
pub mod diagnostics;
mod error;
pub mod family;
pub mod log_ratio;
mod real;
mod rows;
pub mod schedule;
pub mod surrogate;

pub use clip::Clip;
pub use diagnostics::Diagnostics;
pub use error::Error;
pub use family::{Correction, Rule};
pub use real::Real;
pub use rows::Rows;
pub use schedule::{Phase, ReuseSchedule};
pub use surrogate::{Batch, Evaluation, Surrogate, Workspace};
