//! One file per policy. A policy writes its program once for the population engine and says how it samples; it
//! knows views of a task (tokens, candidates, graphs), never a task by name.

mod causal;

pub use causal::{Causal, CausalShape, Sampled};
