//! Trajectories on their way in: what a reader found, and what the measurements take.
//!
//! Owns every check of a trajectory's values and the packing to the policy's own steps; knows nothing of files.
//!
//! | file | what belongs there |
//! |---|---|
//! | `record.rs` | one trajectory as a reader found it |
//! | `uses.rs` | what is known only once all trajectories were seen: mean rewards, last uses |
//! | `chunk.rs` | trajectories checked and packed |

mod chunk;
mod record;
mod uses;

pub use chunk::{Chunk, Lane, LeftOut};
pub use record::{Against, Came, Clock, Record};
pub use uses::{Baselines, LastUses};
