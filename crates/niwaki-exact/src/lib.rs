//! The enumeration oracle: exact bias, variance, direction and ESS of any policy loss.
//!
//! On a process small enough to enumerate, everything that a policy loss estimates is a finite sum over a tree:
//! values by backward induction, visitation by forward induction, and the moments and gradients of the estimate
//! by one recursion each. No sampling, no autodiff; the formulas of the losses are those of
//! [`niwaki_correction`], called at the edges of the tree.
//!
//! ```text
//! Process + logits → Table ┐
//! Process + Reward → Payoff ┼→ Pair → Measurement (per loss)
//! ```
//!
//! Paper: `sec:experiments`
//!
//! # The rooms
//!
//! | module | what belongs there |
//! |---|---|
//! | `process` | tokens, prefixes and the numbering of the tree; the memory it needs |
//! | `reward` | the paper's ladder, closures and tables |
//! | `table` | the tabular softmax policy |
//! | `values` | Q, V, A, η and the gradient of η |
//! | `advantage` | exact advantages, or returns minus their mean |
//! | `pair` | two policies under one reward: log-ratios, visitation, drift |
//! | `estimate` | any loss measured on a pair |
//! | `channels` | how a loss's gradient differs from PPO's: reweighting and credit routing |
//! | `conditions` | the bias witness, the conditional means, and conditions C1 and C2 |
//! | [`diagnostics`] | many pairs and losses: grids, summaries, the league, the page of a question |
//! | `merging` | histories that share a state: the price of the path weight |
//! | `states` | the same by recursions over states, with chance, for weights of paths and of states |
//! | `tree`, `sum`, `twofold` | recursions, pairwise sums, and numbers of 31 digits |
//! | `wide` | loops compiled for the vectors of the processor |
//!
//! # Example
//!
//! ```
//! use niwaki_correction::Surrogate;
//! use niwaki_exact::{Pair, Process, Reward, Table, Workspace};
//!
//! let process = Process::new(4, 6)?;
//! let logits: Vec<f64> = (0..process.edges()).map(|j| (j as f64).sin()).collect();
//! let (old, new) = (Table::uniform(process), Table::new(process, &logits)?);
//! let pair = Pair::new(&old, &new, &Reward::TwoBranch.payoff(process)?)?;
//! let mut workspace = Workspace::default();
//! let full: Surrogate = "full".parse()?;
//! let measured = pair.measure(&full.without_clip(), &mut workspace)?;
//! assert!(measured.bias.abs() < 1e-15 && measured.cosine > 1.0 - 1e-12);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod advantage;
mod channels;
mod conditions;
pub mod diagnostics;
mod error;
mod estimate;
mod merging;
mod pair;
mod process;
mod reward;
mod spread;
mod states;
mod sum;
mod table;
mod tree;
mod twofold;
mod values;
mod wide;

pub use advantage::AdvantageSource;
pub use channels::{Channel, Channels};
pub use conditions::{ConditionalMeans, Conditions};
pub use error::Error;
pub use estimate::{Batches, Measurement, Workspace};
pub use merging::{Merging, MergingCost};
pub use pair::{Drift, Pair};
pub use process::Process;
pub use reward::{Payoff, Reward};
pub use spread::Spread;
pub use states::{StateGraph, StatePair, Weights, Worth};
pub use table::Table;
pub use values::Values;

/// The README's example is run with the other ones.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
