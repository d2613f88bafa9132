//! The pointer transformer: an encoder over candidates, and a decoder that points at the next one.
//!
//! | file | what belongs there |
//! |---|---|
//! | `program.rs` | the network, as three programs that share their parameters |
//! | `sampler.rs` | trajectories drawn step by step, or replayed |

mod program;
mod sampler;

pub use program::{PointerPolicy, PointerShape};
pub use sampler::{Built, Sampler};
