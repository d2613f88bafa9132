//! The surrogate: objective, exact cotangent and the two channels of a batch.
//!
//! | file | what belongs there |
//! |---|---|
//! | `batch.rs` | what goes in: trajectories, masks, weights; how a masked batch is packed |
//! | `evaluate.rs` | what comes out, and the order of the passes |
//! | `tile.rs` | how trajectories lie side by side while they are worked on |
//! | `column.rs` | the memory that they lie in |
//! | `turn.rs` | squares of steps turned over, which brings them there |
//! | `passes.rs` | the passes over a tile of trajectories |
//! | `coupled.rs` | the passes over a whole batch, for members that look at all of it |
//! | `pull_back.rs` | how credit flows from a step's term to the log-probs it was read from |
//! | `decoupled.rs` | the weight from the engine that sampled to the rollout policy, beside a loss |
//! | `written.rs` | losses that are written out step by step |

mod batch;
mod column;
mod coupled;
mod decoupled;
mod evaluate;
mod passes;
mod pull_back;
pub(crate) mod tile;
pub(crate) mod turn;
mod written;

pub use batch::Batch;
pub use evaluate::{Evaluation, Workspace};

use crate::{Clip, Correction, Error};
use std::str::FromStr;

/// A policy loss: a member of the family with the switches of the objective.
///
/// Parse one from a name (`"tempered:0.25"`) to get the paper's defaults: clip 0.2, routing on, the mean over
/// steps.
///
/// Paper: `eq:pcppo-objective`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surrogate {
    /// The member of the family.
    pub correction: Correction,
    /// The clip range; none gives the unclipped surrogate of the paper's analysis.
    pub clip: Option<Clip>,
    /// Whether gradients flow through the factor to earlier log-probs. Several public trainers detach the
    /// prefix; that is `false`.
    pub routing: bool,
    /// What the objective averages over.
    pub mean: Mean,
}

/// What the objective averages over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// All steps alike. Paper: `eq:pcppo-objective` (E_t)
    Steps,
    /// All trajectories alike, each the mean of its own steps.
    Trajectories,
}

impl Surrogate {
    /// The paper's defaults around a member.
    #[must_use]
    pub const fn new(correction: Correction) -> Self {
        Self { correction, clip: Some(Clip::PPO), routing: true, mean: Mean::Steps }
    }

    /// The same loss without its clip.
    #[must_use]
    pub const fn without_clip(self) -> Self {
        Self { clip: None, ..self }
    }

    /// The same loss with the prefix detached.
    #[must_use]
    pub const fn without_routing(self) -> Self {
        Self { routing: false, ..self }
    }
}

impl FromStr for Surrogate {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        name.parse().map(Self::new)
    }
}
