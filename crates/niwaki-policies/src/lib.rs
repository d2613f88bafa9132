//! One file per policy. A policy says how it samples, scores a trajectory and pulls a cotangent back; it knows views
//! of a task (tokens, candidates, graphs), never a task by name.
//!
//! | file | what belongs there |
//! |---|---|
//! | `rollout.rs` | trajectories of a population, ragged or not, and what they earned |
//! | `policy.rs` | what a neural policy is: program, heads, items, drawing, loading |
//! | `token.rs` | what the neural policies over token sequences share: inputs, outputs, sampling |
//! | `causal.rs` | the causal transformer |
//! | `bag.rs` | a perceptron on the bag of earlier tokens, which must learn what the prefix means |
//! | `graph.rs` | what the neural policies over graphs share: inputs, outputs, sampling |
//! | `hgnn.rs` | the heterogeneous graph network of Song and others |
//! | `dual.rs` | a graph network for quality, whose actor reads numbers of each pair |
//! | `decoding.rs` | the ways in which a trained policy seeks a schedule: greedy, many starts, samples, a beam |
//! | `dispatch.rs` | the best schedule that a policy over graphs finds for one instance |
//! | `pointer/` | the pointer transformer over candidates with features |
//! | `tabular.rs` | one logit per prefix and token, in f64, without a tape |

mod bag;
mod causal;
mod decoding;
mod dispatch;
mod dual;
mod error;
mod graph;
mod hgnn;
mod pointer;
mod policy;
mod rollout;
mod tabular;
mod token;

pub use bag::BagShape;
pub use causal::CausalShape;
pub use decoding::{Decoded, Decoding};
pub use dispatch::Dispatcher;
pub use dual::DualShape;
pub use error::Error;
pub use graph::{GraphPolicy, GraphScratch};
pub use hgnn::HgnnShape;
pub use pointer::{Observed, PointerPolicy, PointerScratch, PointerShape, Sampler, decode};
pub use policy::{Draw, DrawRequest, Heads, Item, MakeEngine, Policy};
pub use rollout::{Rollout, RolloutShape};
pub use tabular::{Pull, Tabular};
pub use token::{Extras, TokenPolicy};
