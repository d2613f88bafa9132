//! Who plays: a population of policies on a task, with their optimiser.
//!
//! A player can draw a rollout, score it, pull a cotangent back into its parameters and take a step. The trainer knows
//! nothing else of policies, tasks or devices. One player trains every neural policy; a table has its own, in f64.
//!
//! | file | what belongs there |
//! |---|---|
//! | `neural.rs` | the player of every neural policy, on any engine |
//! | `environment.rs` | the task's side: which instances, what trajectories earn |
//! | `tabular.rs` | tables, in f64 |

mod environment;
mod neural;
mod tabular;

pub use environment::{Environment, GraphEnvironment, ShopEnvironment, TextEnvironment, TokenEnvironment};
pub use neural::Neural;
pub(crate) use tabular::table_layout;
pub use tabular::{TableInit, Tables};

use crate::Error;
use niwaki_correction::Real;
use niwaki_nn::{Checkpoint, Layout, Optimiser, Span, Stored};
use niwaki_policies::Rollout;
use std::path::Path;

/// Which trajectories to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RolloutRequest {
    /// The stream's purpose.
    pub purpose: &'static str,
    /// The iteration.
    pub iteration: usize,
    /// The number of the first lane: the streams are those of lanes `first..first + lanes`.
    pub first: usize,
    /// Whether to take the likeliest actions instead of drawing.
    pub greedy: bool,
    /// Whether to play held-out instances, where a task has several.
    pub held_out: bool,
    /// Whether all of them are to be scored next; where not, they need not be left loaded.
    pub scored: bool,
}

impl RolloutRequest {
    /// The batch that an iteration learns from, left loaded to be scored.
    #[must_use]
    pub const fn batch(iteration: usize) -> Self {
        Self { purpose: "actions", iteration, first: 0, greedy: false, held_out: false, scored: true }
    }
}

/// What a policy says of some trajectories of one member, `[lane, step]` each; `value` is empty without a critic.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a, F> {
    /// Log-probabilities of the actions taken.
    pub log_prob: &'a [F],
    /// Entropies of the distributions they were taken from.
    pub entropy: &'a [F],
    /// The critic's estimates.
    pub value: &'a [F],
}

/// The cotangents of [`Scores`], to be filled whole.
#[derive(Debug)]
pub struct Cotangents<'a, F> {
    /// Of the log-probabilities.
    pub log_prob: &'a mut [F],
    /// Of the entropies.
    pub entropy: &'a mut [F],
    /// Of the critic's estimates.
    pub value: &'a mut [F],
}

/// Turns the scores of some trajectories into cotangents. The span's items are lanes. Called once per member or per block
/// of lanes, from several threads; a trajectory is never cut.
pub type Loss<'a, F> = dyn Fn(Span, Scores<'_, F>, Cotangents<'_, F>) + Sync + 'a;

/// A population of policies on a task.
pub trait Player {
    /// The scalar of log-probabilities.
    type Scalar: Real + Stored;

    /// Members of the population.
    fn members(&self) -> usize;

    /// Draws `lanes` trajectories for each member, says what they earned, and leaves them loaded.
    ///
    /// # Errors
    /// If the device fails.
    fn roll_out(&mut self, request: RolloutRequest, lanes: usize, rollout: &mut Rollout)
    -> Result<(), Error>;

    /// The reward of each member's likeliest trajectory; the mean over all held-out instances, where a task has several.
    ///
    /// # Errors
    /// If the device fails.
    fn greedy_reward(
        &mut self,
        request: RolloutRequest,
        lanes: usize,
        rollout: &mut Rollout,
    ) -> Result<Vec<f64>, Error> {
        self.roll_out(request, lanes, rollout)?;
        Ok(first_rewards(rollout))
    }

    /// How far each member's makespans are above the optima, over those, on average; none where there are no optima to be
    /// told of.
    fn gaps(&self, rollout: &Rollout) -> Vec<f64> {
        let _ = rollout;
        Vec::new()
    }

    /// Puts better trajectories in the place of some, by so many moves of a search from each, where a task knows one.
    ///
    /// # Errors
    /// If the trajectories are none of the task's.
    fn improve(&self, iteration: usize, moves: u64, rollout: &mut Rollout) -> Result<(), Error> {
        let _ = (iteration, moves, rollout);
        Ok(())
    }

    /// Loads other trajectories to be scored.
    ///
    /// # Errors
    /// If the device fails.
    fn load(&mut self, rollout: &Rollout) -> Result<(), Error>;

    /// Loads some trajectories of each member of the rollout that was drawn last, whole.
    ///
    /// # Errors
    /// If the device fails.
    fn load_part(&mut self, rollout: &Rollout, lanes: &[Vec<usize>]) -> Result<(), Error> {
        self.load(&rollout.part(lanes))
    }

    /// Scores the loaded trajectories.
    ///
    /// # Errors
    /// If the device fails.
    fn score(&mut self) -> Result<(), Error>;

    /// Says which loaded trajectories have no cotangents, `[member][lane]`: until others are loaded, they may be left out of
    /// [`Player::pull_back`], which then leaves no scores behind.
    ///
    /// # Errors
    /// If the device fails.
    fn leave_out(&mut self, silent: &[Vec<bool>]) -> Result<(), Error> {
        let _ = silent;
        Ok(())
    }

    /// Scores the loaded trajectories, asks the loss for cotangents and pulls them back.
    ///
    /// # Errors
    /// If the device fails.
    fn pull_back(&mut self, loss: &Loss<'_, Self::Scalar>) -> Result<(), Error>;

    /// What the last pass said of a member.
    fn scores(&self, member: usize) -> Scores<'_, Self::Scalar>;

    /// Log-probabilities of trajectories under the policies that the run began with, `[member, lane, step]`.
    ///
    /// # Errors
    /// If the player was made without a reference, or the device fails.
    fn reference(&mut self, rollout: &Rollout) -> Result<Vec<Self::Scalar>, Error>;

    /// One step of every member; returns the norm of each one's gradient.
    ///
    /// # Errors
    /// If the device fails.
    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error>;

    /// Every member's exact return, where the process can be enumerated; `None` where not.
    ///
    /// # Errors
    /// If the device fails.
    fn exact_returns(&mut self) -> Result<Option<Vec<f64>>, Error> {
        Ok(None)
    }

    /// What every member says at all prefixes, `[prefixes, vocab]` logits each, prefixes breadth first, where the process can
    /// be enumerated; `None` where not.
    ///
    /// # Errors
    /// If the device fails.
    fn tables(&mut self) -> Result<Option<Vec<Vec<f64>>>, Error> {
        Ok(None)
    }

    /// The exact advantages of a member's trajectories, `[lane, step]`, where the process can be enumerated.
    fn exact_advantage(&self, member: usize, rollout: &Rollout) -> Option<Vec<f64>> {
        let _ = (member, rollout);
        None
    }

    /// How a member's parameters are laid out.
    fn layout(&self) -> &Layout;

    /// A member's parameters and optimiser state.
    ///
    /// # Errors
    /// If the device fails.
    fn checkpoint(&self, member: usize) -> Result<Checkpoint<Self::Scalar>, Error>;

    /// Goes back to a member's checkpoint.
    ///
    /// # Errors
    /// If the device fails.
    fn set_checkpoint(&mut self, member: usize, checkpoint: &Checkpoint<Self::Scalar>) -> Result<(), Error>;

    /// Writes a member's parameters and optimiser state, with whatever else the caller wants back.
    ///
    /// # Errors
    /// If the device or the disk refuses.
    fn save(&self, member: usize, path: &Path, state: serde_json::Value) -> Result<(), Error> {
        let checkpoint = Checkpoint { state, ..self.checkpoint(member)? };
        Ok(checkpoint.save(self.layout(), path)?)
    }

    /// Reads a member back; returns what the caller stored with it.
    ///
    /// # Errors
    /// If the file is damaged or of another policy.
    fn restore(&mut self, member: usize, path: &Path) -> Result<serde_json::Value, Error> {
        let checkpoint = Checkpoint::load(self.layout(), path)?;
        self.set_checkpoint(member, &checkpoint)?;
        Ok(checkpoint.state)
    }
}

/// The reward of each member's first lane; where the likeliest actions are taken, all lanes are alike.
fn first_rewards(rollout: &Rollout) -> Vec<f64> {
    rollout.reward.iter().step_by(rollout.shape.lanes()).copied().collect()
}
