//! Policies out of their runs' folders, to be used without training.
//!
//! | file | what |
//! |---|---|
//! | `saved.rs` | what a folder says of its policy, and which kind it is |
//! | `shops.rs` | a pointer: schedules and log-probs of constructions |
//! | `graphs.rs` | a graph network: schedules |
//! | `sequences.rs` | a policy over tokens: log-probs of sequences |

mod graphs;
mod saved;
mod sequences;
mod shops;

pub use graphs::{GraphScheduler, TrainedGraph};
pub use saved::{Tensor, TrainedPolicy};
pub use sequences::TrainedSequences;
pub use shops::{Scored, Trained};
