//! Trajectories drawn step by step, or replayed, with what scoring them needs besides their actions.
//!
//! The task says what is open and what the state is; the encoder runs once, the decoder once per step for all
//! trajectories. On the CPU a drawn log-probability has the bits that scoring gives it: the same ops on the same rows.

use super::program::{Decoder, Encoder, PointerPolicy, PointerShape};
use crate::policy::{Draw, MakeEngine};
use crate::{Error, Rollout, RolloutShape};
use niwaki_nn::engine::check_members;
use niwaki_nn::{DynEngine, log_softmax};
use niwaki_stream::{by_log_chance, likeliest};
use niwaki_tasks::{Building, Construction, Outcome};
use rayon::prelude::*;

/// What scoring trajectories needs besides their actions. The axis `lane` runs over instances, then trajectories of each.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Observed {
    /// The instances' features, `[member, instance, candidate, feature]`.
    pub features: Vec<f32>,
    /// The states in which actions were chosen, `[member, lane, step, context]`.
    pub context: Vec<f32>,
    /// Which candidates were open, `[member, lane, step, candidate]`.
    pub open: Vec<u8>,
}

/// Draws `rows` trajectories of each instance.
#[derive(Debug)]
pub struct Sampler {
    shape: PointerShape,
    rows: usize,
    encoder: Encoder,
    decoder: Decoder,
    encode: Box<DynEngine>,
    step: Box<DynEngine>,
}

impl Sampler {
    /// A sampler for a policy; `make` makes an engine for a program and its outputs.
    ///
    /// # Errors
    /// If the device has no room.
    pub fn new(policy: &PointerPolicy, rows: usize, make: &MakeEngine) -> Result<Self, Error> {
        let (shape, layout) = (policy.shape, policy.graph.layout());
        let (encoder, decoder) = (shape.encoder(layout)?, shape.decoder(layout, rows)?);
        let encode = make(&encoder.graph, &encoder.outputs)?;
        let step = make(&decoder.graph, &[decoder.logits])?;
        Ok(Self { shape, rows, encoder, decoder, encode, step })
    }

    /// Draws trajectories of the instances, `[member, instance]`, with the parameters of another engine.
    ///
    /// # Errors
    /// If uniforms or instances are not equally many per member, or the device fails.
    pub fn draw(
        &mut self,
        parameters: &DynEngine,
        task: &dyn Construction,
        instances: &[u32],
        how: Draw<'_>,
        rollout: &mut Rollout,
        observed: &mut Observed,
    ) -> Result<(), Error> {
        let members = parameters.members();
        let (items, horizon) = (instances.len() / members, self.shape.horizon);
        let lanes = instances.len() * self.rows;
        check_members("instances", members * items, instances.len())?;
        if let Draw::Sampled(uniforms) = how {
            check_members("uniforms", lanes * horizon, uniforms.len())?;
        }
        let mut building = observed.begin(task, instances, self.rows)?;
        self.encode(parameters, &observed.features, items)?;
        rollout.shape = RolloutShape::uniform(members, items * self.rows, horizon);
        rollout.choices = self.shape.candidates;
        rollout.actions.resize(lanes * horizon, -1);
        rollout.log_prob.resize(lanes * horizon, 0.0);
        let mut choices = vec![self.shape.candidates as i32; lanes];
        for step in 0..horizon {
            let (context, open) = observed.look(building.as_ref(), lanes, step, horizon);
            self.step.load_indices(self.decoder.steps.last, &choices)?;
            self.step.load_scalars(self.decoder.steps.context, &context)?;
            self.step.load_mask(self.decoder.steps.open, &open)?;
            self.step.forward()?;
            let chosen = self.choose(step, how, &open);
            for (lane, (action, log_prob)) in chosen.into_iter().enumerate() {
                choices[lane] = action;
                rollout.actions[lane * horizon + step] = action;
                rollout.log_prob[lane * horizon + step] = log_prob;
            }
            building.choose(&choices)?;
        }
        rollout.outcome.clear();
        rollout.outcome.extend((0..lanes).map(|lane| building.outcome(lane)));
        Ok(())
    }

    /// Encodes instances, `[member, item, candidate, feature]`, with the parameters of another engine, and hands the
    /// encodings to the decoder.
    pub(super) fn encode(
        &mut self,
        parameters: &DynEngine,
        features: &[f32],
        items: usize,
    ) -> Result<(), Error> {
        self.encode.copy_parameters(parameters)?;
        self.step.copy_parameters(parameters)?;
        self.encode.set_items(items)?;
        self.step.set_items(items)?;
        self.encode.load_scalars(self.encoder.features, features)?;
        self.encode.forward()?;
        for (output, &input) in self.decoder.encoded.iter().enumerate() {
            let all: Vec<f32> = (0..self.encode.members())
                .flat_map(|member| self.encode.output(member, output).iter().copied())
                .collect();
            self.step.load_scalars(input, &all)?;
        }
        Ok(())
    }

    /// Log-probabilities of every candidate as the next choice of the instances encoded last, `[member, lane, candidate]`.
    ///
    /// Shapes: `last [member, lane]`, which is `candidates` before the first choice, `context [member, lane, context]`, `open [member, lane, candidate]`
    pub(super) fn look_ahead(
        &mut self,
        last: &[i32],
        context: &[f32],
        open: &[u8],
    ) -> Result<Vec<f32>, Error> {
        self.step.load_indices(self.decoder.steps.last, last)?;
        self.step.load_scalars(self.decoder.steps.context, context)?;
        self.step.load_mask(self.decoder.steps.open, open)?;
        self.step.forward()?;
        let mut log_probs = vec![0.0; open.len()];
        let candidates = self.shape.candidates;
        let logits =
            (0..self.step.members()).flat_map(|member| self.step.output(member, 0).chunks(candidates));
        let lanes = log_probs.chunks_exact_mut(candidates).zip(open.chunks_exact(candidates));
        logits.zip(lanes).for_each(|(logits, (log_probs, open))| log_softmax(logits, Some(open), log_probs));
        Ok(log_probs)
    }

    /// Each lane's choice of a step and its log-probability.
    fn choose(&self, step: usize, how: Draw<'_>, open: &[u8]) -> Vec<(i32, f32)> {
        let (candidates, horizon) = (self.shape.candidates, self.shape.horizon);
        let logits: Vec<&[f32]> = (0..self.step.members())
            .flat_map(|member| self.step.output(member, 0).chunks(candidates))
            .collect();
        let choose = |(lane, (logits, open)): (usize, (&&[f32], &[u8]))| {
            let mut log_probs = vec![0.0; candidates];
            log_softmax(logits, Some(open), &mut log_probs);
            let action = match how {
                Draw::Sampled(uniforms) => by_log_chance(&log_probs, uniforms[lane * horizon + step]),
                Draw::Greedy => likeliest(&log_probs),
            };
            (action as i32, log_probs[action])
        };
        let lanes = logits.par_iter().zip(open.par_chunks(candidates)).enumerate();
        lanes.with_min_len(64).map(choose).collect()
    }
}

impl Observed {
    /// What is needed to score given actions, `[member, lane, step]`, of `rows` trajectories per instance, and how these
    /// turned out, `[member, lane]`.
    ///
    /// # Errors
    /// If an action was closed.
    pub fn replay(
        task: &dyn Construction,
        instances: &[u32],
        rows: usize,
        actions: &[i32],
    ) -> Result<(Self, Vec<Outcome>), Error> {
        let (mut observed, horizon, lanes) = (Self::default(), task.horizon(), instances.len() * rows);
        let mut building = observed.begin(task, instances, rows)?;
        check_members("choices", lanes * horizon, actions.len())?;
        for step in 0..horizon {
            observed.look(building.as_ref(), lanes, step, horizon);
            let choices: Vec<i32> = actions.iter().skip(step).step_by(horizon).copied().collect();
            building.choose(&choices)?;
        }
        let outcome = (0..lanes).map(|lane| building.outcome(lane)).collect();
        Ok((observed, outcome))
    }

    /// Makes room, writes the instances' features, and begins their constructions.
    fn begin(
        &mut self,
        task: &dyn Construction,
        instances: &[u32],
        rows: usize,
    ) -> Result<Box<dyn Building>, Error> {
        let each = instances.iter().flat_map(|&instance| std::iter::repeat_n(instance, rows));
        let lanes: Vec<u32> = each.collect();
        let building = task.begin(&lanes)?;
        let size = task.candidates() * task.features();
        self.features.resize(instances.len() * size, 0.0);
        for (&instance, to) in instances.iter().zip(self.features.chunks_exact_mut(size)) {
            task.describe(instance as usize, to);
        }
        let steps = lanes.len() * task.horizon();
        self.context.resize(steps * task.context(), 0.0);
        self.open.resize(steps * task.candidates(), 0);
        Ok(building)
    }

    /// Keeps what the lanes show before a step; returns it, `[lane, context]` and `[lane, candidate]`.
    fn look(
        &mut self,
        building: &dyn Building,
        lanes: usize,
        step: usize,
        horizon: usize,
    ) -> (Vec<f32>, Vec<u8>) {
        let (width, candidates) =
            (self.context.len() / (lanes * horizon), self.open.len() / (lanes * horizon));
        let (mut context, mut open) = (vec![0.0; lanes * width], vec![0; lanes * candidates]);
        for lane in 0..lanes {
            let (now, place) = (&mut context[lane * width..(lane + 1) * width], lane * horizon + step);
            building.context(lane, now);
            self.context[place * width..(place + 1) * width].copy_from_slice(now);
            let now = &mut open[lane * candidates..(lane + 1) * candidates];
            building.open(lane, now);
            self.open[place * candidates..(place + 1) * candidates].copy_from_slice(now);
        }
        (context, open)
    }
}
