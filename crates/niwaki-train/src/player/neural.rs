//! Neural policies over token sequences, on any engine.

use super::{Games, Loss, Play, Player, Seen, Wanted};
use crate::Error;
use niwaki_nn::{Checkpoint, Engine, Layout, Optimiser, initialise};
use niwaki_policies::{Draw, Drawn, TokenPolicy};
use niwaki_tasks::Sequence;
use rayon::prelude::*;
use std::sync::Arc;

/// A population of neural policies on one engine.
pub struct Neural<E> {
    policy: TokenPolicy,
    task: Arc<dyn Sequence>,
    seeds: Vec<u64>,
    engine: E,
    /// The policies that the run began with, where a penalty asks for them.
    reference: Option<E>,
    drawn: Drawn,
    uniforms: Vec<f64>,
}

impl<E: Engine<Scalar = f32>> Neural<E> {
    /// A population with weights from its seeds; `prime` is a first token and the probability it starts with.
    ///
    /// # Errors
    /// If the device fails.
    pub fn new(
        policy: TokenPolicy,
        task: Arc<dyn Sequence>,
        seeds: Vec<u64>,
        prime: Option<(usize, f64)>,
        mut engine: E,
        mut reference: Option<E>,
    ) -> Result<Self, Error> {
        let weights: Vec<Vec<f32>> = seeds
            .par_iter()
            .map(|&seed| {
                let mut weights = initialise(policy.graph.layout(), seed);
                if let Some((token, mass)) = prime {
                    policy.prime(&mut weights, token, mass);
                }
                weights
            })
            .collect();
        for (member, weights) in weights.iter().enumerate() {
            engine.set_parameters(member, weights)?;
            if let Some(reference) = &mut reference {
                reference.set_parameters(member, weights)?;
            }
        }
        Ok(Self { policy, task, seeds, engine, reference, drawn: Drawn::default(), uniforms: Vec::new() })
    }
}

impl<E: Engine<Scalar = f32>> Player for Neural<E> {
    type Scalar = f32;

    fn members(&self) -> usize {
        self.seeds.len()
    }

    fn play(&mut self, play: Play, lanes: usize, games: &mut Games) -> Result<(), Error> {
        let Self { policy, task, seeds, engine, drawn, uniforms, .. } = self;
        engine.set_items(lanes)?;
        let horizon = policy.horizon;
        super::uniforms(seeds, play, lanes, horizon, uniforms);
        let how = if play.greedy { Draw::Greedy } else { Draw::Sampled(uniforms) };
        let open = |prefix: &[i32], open: &mut [bool]| {
            let prefix: Vec<usize> = prefix.iter().map(|&token| token as usize).collect();
            task.open(&prefix, open);
        };
        policy.draw(engine, how, &open, drawn)?;
        games.lanes = lanes;
        (games.horizon, games.vocab) = (policy.horizon, policy.vocab);
        std::mem::swap(&mut games.actions, &mut drawn.actions);
        std::mem::swap(&mut games.open, &mut drawn.open);
        earn(task.as_ref(), games);
        Ok(())
    }

    fn load(&mut self, games: &Games) -> Result<(), Error> {
        self.engine.set_items(games.lanes)?;
        Ok(self.policy.load(&mut self.engine, &games.actions, &games.open)?)
    }

    fn score(&mut self) -> Result<(), Error> {
        Ok(self.engine.forward()?)
    }

    fn pull_back(&mut self, loss: &Loss<'_, f32>) -> Result<(), Error> {
        let surrogate = |span: niwaki_nn::Span, seen: &[&[f32]], wanted: &mut [&mut [f32]]| {
            let (values, cotangents) = (seen.get(3).copied().unwrap_or_default(), wanted);
            let [log_prob, entropy, _, value @ ..] = cotangents else { return };
            let shown = Seen { log_prob: seen[0], entropy: seen[1], value: values };
            let value = value.first_mut().map_or(&mut [][..], |value| &mut **value);
            loss(span, shown, Wanted { log_prob, entropy, value });
        };
        Ok(self.engine.pull_back(&surrogate)?)
    }

    fn seen(&self, member: usize) -> Seen<'_, f32> {
        let value = if self.policy.value.is_some() { self.engine.output(member, 3) } else { &[] };
        Seen { log_prob: self.engine.output(member, 0), entropy: self.engine.output(member, 1), value }
    }

    fn reference(&mut self, games: &Games) -> Result<Vec<f32>, Error> {
        let Some(reference) = &mut self.reference else { return Err(Error::Mixed) };
        reference.set_items(games.lanes)?;
        self.policy.load(reference, &games.actions, &games.open)?;
        reference.forward()?;
        Ok((0..self.seeds.len()).flat_map(|member| reference.output(member, 0).to_vec()).collect())
    }

    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error> {
        Ok(self.engine.step(optimiser, rates)?)
    }

    fn keep(&self, member: usize) -> Result<Checkpoint, Error> {
        keep(&self.engine, member)
    }

    fn put_back(&mut self, member: usize, kept: &Checkpoint) -> Result<(), Error> {
        put_back(&mut self.engine, member, kept)
    }

    fn layout(&self) -> &Layout {
        self.policy.graph.layout()
    }
}

/// A member's parameters and optimiser state.
pub(super) fn keep<E: Engine<Scalar = f32>>(engine: &E, member: usize) -> Result<Checkpoint, Error> {
    let (steps, moments) = engine.state(member)?;
    let state = serde_json::Value::Null;
    Ok(Checkpoint { parameters: engine.parameters(member)?, moments, steps, state })
}

/// Goes back to what was kept.
pub(super) fn put_back<E: Engine<Scalar = f32>>(
    engine: &mut E,
    member: usize,
    kept: &Checkpoint,
) -> Result<(), Error> {
    engine.set_parameters(member, &kept.parameters)?;
    Ok(engine.set_state(member, kept.steps, &kept.moments)?)
}

/// Fills the rewards of finished trajectories.
pub(super) fn earn(task: &dyn Sequence, games: &mut Games) {
    let horizon = games.horizon;
    games.reward.resize(games.actions.len() / horizon, 0.0);
    let lanes = games.reward.par_iter_mut().zip(games.actions.par_chunks(horizon));
    lanes.with_min_len(256).for_each_init(
        || vec![0; horizon],
        |tokens, (reward, actions)| {
            for (token, &action) in tokens.iter_mut().zip(actions) {
                *token = action as usize;
            }
            *reward = task.reward(tokens);
        },
    );
}
