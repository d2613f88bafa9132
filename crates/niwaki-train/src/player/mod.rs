//! Who plays: a population of policies on a task, with their optimiser.
//!
//! A player can draw trajectories, score them, pull a cotangent back into its parameters and take a step. The trainer
//! knows nothing else of policies, tasks or devices. A new policy for a view that has a player needs no new one.

mod neural;
mod pointer;
mod tabular;

pub use neural::Neural;
pub use pointer::Pointer;
pub use tabular::{Begin, Tables};

use crate::Error;
use niwaki_correction::Real;
use niwaki_nn::{Checkpoint, Layout, Optimiser, Span, Stored};
use niwaki_stream::Key;
use rayon::prelude::*;
use std::path::Path;

/// Which trajectories to draw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Play {
    /// The stream's purpose.
    pub purpose: &'static str,
    /// The iteration.
    pub iteration: usize,
    /// The number of the first lane: the streams are those of lanes `first..first + lanes`.
    pub first: usize,
    /// Whether to take the likeliest choices instead of drawing.
    pub greedy: bool,
    /// Whether to play what is held out to be judged on, where a task has several instances.
    pub trial: bool,
}

/// Trajectories and what they earned.
#[derive(Clone, Debug, Default)]
pub struct Games {
    /// Trajectories per member.
    pub lanes: usize,
    /// Steps of each.
    pub horizon: usize,
    /// Choices per step.
    pub vocab: usize,
    /// `[member, lane, step]`
    pub actions: Vec<i32>,
    /// Which choices were open, `[member, lane, step, vocab]`; empty where all always are.
    pub open: Vec<u8>,
    /// `[member, lane]`
    pub reward: Vec<f64>,
    /// The instance of each group of lanes, `[member, group]`; empty where a task has only one.
    pub instances: Vec<u32>,
}

impl Games {
    /// One member's rewards, `[lane]`.
    #[must_use]
    pub fn reward_of(&self, member: usize) -> &[f64] {
        &self.reward[member * self.lanes..(member + 1) * self.lanes]
    }

    /// One member's choices, `[lane, step]`.
    #[must_use]
    pub fn actions_of(&self, member: usize) -> &[i32] {
        let size = self.lanes * self.horizon;
        &self.actions[member * size..(member + 1) * size]
    }

    /// Lanes that belong to one instance and stay together.
    #[must_use]
    pub fn bundle(&self) -> usize {
        self.reward.len().checked_div(self.instances.len()).unwrap_or(1)
    }

    /// Some lanes of each member, in the order given; bundles must be whole.
    #[must_use]
    pub fn part(&self, lanes: &[Vec<usize>]) -> Self {
        let count = lanes.first().map_or(0, Vec::len);
        let mut part = Self { lanes: count, horizon: self.horizon, vocab: self.vocab, ..Self::default() };
        for (member, lanes) in lanes.iter().enumerate() {
            for lane in lanes.iter().map(|lane| member * self.lanes + lane) {
                part.reward.push(self.reward[lane]);
                part.actions.extend_from_slice(&self.actions[lane * self.horizon..(lane + 1) * self.horizon]);
                let width = self.horizon * self.vocab;
                part.open
                    .extend_from_slice(self.open.get(lane * width..(lane + 1) * width).unwrap_or_default());
                if lane.is_multiple_of(self.bundle()) {
                    part.instances.extend(self.instances.get(lane / self.bundle()));
                }
            }
        }
        part
    }
}

/// What a policy says of some lanes of one member, `[lane, step]` each; `value` is empty without a critic.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a, F> {
    /// Log-probabilities of the choices taken.
    pub log_prob: &'a [F],
    /// Entropies of the distributions they were taken from.
    pub entropy: &'a [F],
    /// The critic's estimates.
    pub value: &'a [F],
}

/// The cotangents of what was seen, to be filled whole.
#[derive(Debug)]
pub struct Wanted<'a, F> {
    /// Of the log-probabilities.
    pub log_prob: &'a mut [F],
    /// Of the entropies.
    pub entropy: &'a mut [F],
    /// Of the critic's estimates.
    pub value: &'a mut [F],
}

/// Turns what a policy says of some lanes into cotangents; called once per member or per block of lanes, from several
/// threads.
pub type Loss<'a, F> = dyn Fn(Span, Seen<'_, F>, Wanted<'_, F>) + Sync + 'a;

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
    fn play(&mut self, play: Play, lanes: usize, games: &mut Games) -> Result<(), Error>;

    /// The reward of each member's likeliest trajectory; the mean over all instances that are held out, where a task
    /// has several.
    ///
    /// # Errors
    /// If the device fails.
    fn likeliest(&mut self, play: Play, lanes: usize, games: &mut Games) -> Result<Vec<f64>, Error> {
        self.play(play, lanes, games)?;
        // All lanes are alike.
        Ok((0..self.members()).map(|member| games.reward_of(member)[0]).collect())
    }

    /// Loads other trajectories to be scored.
    ///
    /// # Errors
    /// If the device fails.
    fn load(&mut self, games: &Games) -> Result<(), Error>;

    /// Scores the loaded trajectories.
    ///
    /// # Errors
    /// If the device fails.
    fn score(&mut self) -> Result<(), Error>;

    /// Scores the loaded trajectories, asks the loss for cotangents and pulls them back.
    ///
    /// # Errors
    /// If the device fails.
    fn pull_back(&mut self, loss: &Loss<'_, Self::Scalar>) -> Result<(), Error>;

    /// What the last pass said of a member.
    fn seen(&self, member: usize) -> Seen<'_, Self::Scalar>;

    /// Log-probabilities of trajectories under the policies that the run began with, `[member, lane, step]`.
    ///
    /// # Errors
    /// If the player was made without a reference, or the device fails.
    fn reference(&mut self, games: &Games) -> Result<Vec<Self::Scalar>, Error>;

    /// One step of every member; returns the norm of each one's gradient.
    ///
    /// # Errors
    /// If the device fails.
    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error>;

    /// A member's exact return, where the process can be enumerated.
    fn eta(&self, member: usize) -> Option<f64> {
        let _ = member;
        None
    }

    /// The exact advantages of a member's trajectories, `[lane, step]`, where the process can be enumerated.
    fn exact_advantage(&self, member: usize, games: &Games) -> Option<Vec<f64>> {
        let _ = (member, games);
        None
    }

    /// How a member's parameters are laid out.
    fn layout(&self) -> &Layout;

    /// A member's parameters and optimiser state.
    ///
    /// # Errors
    /// If the device fails.
    fn keep(&self, member: usize) -> Result<Checkpoint<Self::Scalar>, Error>;

    /// Goes back to what was kept of a member.
    ///
    /// # Errors
    /// If the device fails.
    fn put_back(&mut self, member: usize, kept: &Checkpoint<Self::Scalar>) -> Result<(), Error>;

    /// Writes a member's parameters and optimiser state, with whatever else the caller wants back.
    ///
    /// # Errors
    /// If the device or the disk refuses.
    fn save(&self, member: usize, path: &Path, state: serde_json::Value) -> Result<(), Error> {
        let kept = Checkpoint { state, ..self.keep(member)? };
        Ok(kept.save(self.layout(), path)?)
    }

    /// Reads a member back; returns what the caller stored with it.
    ///
    /// # Errors
    /// If the file is damaged or of another policy.
    fn restore(&mut self, member: usize, path: &Path) -> Result<serde_json::Value, Error> {
        let kept = Checkpoint::load(self.layout(), path)?;
        self.put_back(member, &kept)?;
        Ok(kept.state)
    }
}

/// Fills the uniforms of some lanes of every member, `[member, lane, step]`; none where nothing is drawn.
fn uniforms(seeds: &[u64], play: Play, lanes: usize, horizon: usize, uniforms: &mut Vec<f64>) {
    uniforms.resize(if play.greedy { 0 } else { seeds.len() * lanes * horizon }, 0.0);
    uniforms.par_chunks_mut(horizon).enumerate().with_min_len(64).for_each(|(lane, uniforms)| {
        let key = Key::new(seeds[lane / lanes], play.purpose).iteration(play.iteration as u64);
        let mut stream = key.lane((play.first + lane % lanes) as u64).open();
        uniforms.iter_mut().for_each(|uniform| *uniform = stream.uniform());
    });
}
