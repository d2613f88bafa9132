//! The pointer transformer: an encoder over candidates, and a decoder that points at the next one.
//!
//! | file | what belongs there |
//! |---|---|
//! | `program.rs` | the network, as three programs that share their parameters |
//! | `sampler.rs` | trajectories drawn step by step, or replayed |
//! | `device/` | trajectories built on the device itself, with one kernel for each shop |
//! | `play.rs` | how the one neural player plays it |
//! | `decode.rs` | the best schedule of one instance: greedy, samples, many starts, beam |

mod decode;
mod device;
mod play;
mod program;
mod sampler;

pub use decode::decode;
pub use play::PointerScratch;
pub use program::{PointerPolicy, PointerShape};
pub use sampler::{Observed, Sampler};
