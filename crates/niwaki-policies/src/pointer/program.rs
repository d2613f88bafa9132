//! The network, as programs that share their parameters.
//!
//! An item is one instance with the `group` trajectories that were built on it, so that they share its encoding.
//! The encoder reads the candidates' features: pre-norm blocks in which every candidate sees all others. The decoder's
//! query for a step is `W_mean · mean embedding + W_last · last choice's embedding + W_context · context + b` (no last
//! choice counts as zero); a glimpse attends from it to the candidates still open; the glimpse, or the sum of glimpse and
//! query, scores them, and `bound · tanh(score / √width)` are the logits, or `score / √width` where there is no bound.
//! What does not depend on the step is computed once per instance:
//! `W_last` of every candidate, keys and values, and the product of the pointer's keys with the glimpse's output matrix
//! (`(W_out g) · k = g · (W_outᵀ k)`, so no step multiplies by that matrix).
//! Scoring runs encoder and decoder for all steps at once; sampling runs the encoder, then the decoder for one step of
//! all trajectories at a time. This file must not know tasks, rewards or advantages.

use super::device::{Pointing, Tables};
use super::sampler::Observed;
use crate::causal::{BlockShape, add_block, add_matrix, add_norm};
use crate::policy::{Draw, Policy};
use crate::{Rollout, RolloutShape};
use niwaki_nn::{
    Activation, DynEngine, Graph, Index, Init, Layout, Mask, Param, Point, Pooling, Result, Value, Visible,
};
use niwaki_tasks::{Construction, Outcome};
use rayon::prelude::*;

/// The sizes of a pointer transformer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointerShape {
    /// Candidates of an instance.
    pub candidates: usize,
    /// Steps of a trajectory.
    pub horizon: usize,
    /// Numbers that describe a candidate.
    pub features: usize,
    /// Numbers that describe the state before a step.
    pub context: usize,
    /// Trajectories per instance that are scored together.
    pub group: usize,
    /// Width of the embeddings.
    pub width: usize,
    /// Heads of attention; divides the width.
    pub heads: usize,
    /// Blocks of the encoder.
    pub blocks: usize,
    /// Width inside a block's perceptron.
    pub hidden: usize,
    /// Whether the query is added to its glimpse before that scores the candidates.
    pub residual: bool,
    /// Bound on the logits; none where it is zero.
    pub bound: f64,
}

/// What the decoder reads of an instance.
#[derive(Clone, Copy, Debug)]
pub(super) struct Encoded {
    /// `[candidates + 1, width]`: the part of the query that the mean embedding and the last choice give.
    known: Value,
    /// `[candidates, 2 · width]`: keys and values of the glimpse.
    glimpse: Value,
    /// `[candidates, width]`: what the glimpse is compared with.
    key: Value,
}

/// What the decoder reads of a step, a row each.
#[derive(Clone, Copy, Debug)]
pub(super) struct Steps {
    /// The last choice; `candidates` before the first.
    pub(super) last: Index,
    /// `[rows, context]`.
    pub(super) context: Value,
    /// `[rows, candidates]`, nonzero where a candidate is open.
    pub(super) open: Mask,
}

/// How the decoder reads: its pointer, and what it makes of a context.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    point: Point,
    weight: Param,
    bias: Param,
}

/// A pointer transformer: the program that scores trajectories, and the handles to it.
#[derive(Clone, Debug)]
pub struct PointerPolicy {
    /// The sizes.
    pub shape: PointerShape,
    /// The program; its rows are `[trajectory, step]`.
    pub graph: Graph,
    features: Value,
    steps: Steps,
    actions: Index,
    encoded: Encoded,
    reading: Reading,
    /// `[group · horizon, 1]`: log-probabilities of the choices.
    pub log_prob: Value,
    /// `[group · horizon, 1]`.
    pub entropy: Value,
}

/// The program that encodes an instance.
#[derive(Clone, Debug)]
pub(super) struct Encoder {
    pub(super) graph: Graph,
    pub(super) features: Value,
    pub(super) outputs: [Value; 3],
}

/// The program that takes one step of some trajectories of an instance.
#[derive(Clone, Debug)]
pub(super) struct Decoder {
    pub(super) graph: Graph,
    /// In the order of [`Encoder::outputs`].
    pub(super) encoded: [Value; 3],
    pub(super) steps: Steps,
    pub(super) logits: Value,
}

impl Encoded {
    fn all(self) -> [Value; 3] {
        [self.known, self.glimpse, self.key]
    }
}

impl PointerShape {
    /// The program that scores whole trajectories.
    ///
    /// # Errors
    /// If the sizes do not fit together.
    ///
    /// Paper: `app:sched-transformer`
    pub fn policy(self) -> Result<PointerPolicy> {
        let rows = self.group * self.horizon;
        let mut graph = Graph::new();
        let (features, encoded) = self.encode(&mut graph)?;
        let (steps, reading, logits) = self.decode(&mut graph, encoded, rows)?;
        let actions = graph.indices("actions", rows, self.candidates);
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, Some(steps.open))?;
        Ok(PointerPolicy {
            shape: self,
            graph,
            features,
            steps,
            actions,
            encoded,
            reading,
            log_prob,
            entropy,
        })
    }

    pub(super) fn encoder(self, layout: &Layout) -> Result<Encoder> {
        let mut graph = Graph::sharing(layout);
        let (features, encoded) = self.encode(&mut graph)?;
        Ok(Encoder { graph, features, outputs: encoded.all() })
    }

    /// The program of one step of `rows` trajectories.
    pub(super) fn decoder(self, layout: &Layout, rows: usize) -> Result<Decoder> {
        let mut graph = Graph::sharing(layout);
        let encoded = Encoded {
            known: graph.scalars("known", self.candidates + 1, self.width),
            glimpse: graph.scalars("glimpse", self.candidates, 2 * self.width),
            key: graph.scalars("key", self.candidates, self.width),
        };
        let (steps, _, logits) = self.decode(&mut graph, encoded, rows)?;
        Ok(Decoder { graph, encoded: encoded.all(), steps, logits })
    }

    fn encode(self, graph: &mut Graph) -> Result<(Value, Encoded)> {
        let Self { width, heads, hidden, .. } = self;
        let features = graph.scalars("features", self.candidates, self.features);
        let weight = add_matrix(graph, "features.weight", self.features, width)?;
        let bias = graph.param("features.bias", &[width], Init::Linear { fan_in: self.features })?;
        let mut stream = graph.linear(features, weight, Some(bias), Activation::None)?;
        for block in 0..self.blocks {
            let shape = BlockShape { width, heads, hidden, visible: Visible::All };
            stream = add_block(graph, &format!("blocks.{block}"), stream, shape)?;
        }
        let embedded = add_norm(graph, "norm", stream, width)?;
        let mean = graph.pool(embedded, self.candidates, None, Pooling::Mean)?;
        let mut project = |name: &str, from: Value, to: usize| {
            let weight = add_matrix(graph, name, width, to)?;
            graph.linear(from, weight, None, Activation::None)
        };
        let mean = project("mean.weight", mean, width)?;
        let last = project("last.weight", embedded, width)?;
        // Row `s` is the part of the query after candidate `s` was chosen, the last row that before the first choice.
        let every = graph.constant(&vec![0; self.candidates + 1]);
        let each: Vec<i32> = (0..self.candidates as i32).chain([-1]).collect();
        let each = graph.constant(&each);
        let (mean, last) = (graph.gather(mean, every)?, graph.gather(last, each)?);
        let known = graph.add(mean, last)?;
        let mut project = |name: &str, to: usize| {
            let weight = add_matrix(graph, name, width, to)?;
            graph.linear(embedded, weight, None, Activation::None)
        };
        let glimpse = project("glimpse.in.weight", 2 * width)?;
        let pointer = project("pointer.weight", width)?;
        let weight = add_matrix(graph, "glimpse.out.weight", width, width)?;
        let key = graph.linear_tied(pointer, weight)?;
        Ok((features, Encoded { known, glimpse, key }))
    }

    fn decode(self, graph: &mut Graph, encoded: Encoded, rows: usize) -> Result<(Steps, Reading, Value)> {
        let Self { width, heads, .. } = self;
        let steps = Steps {
            last: graph.indices("last", rows, self.candidates + 1),
            context: graph.scalars("context", rows, self.context),
            open: graph.mask("open", rows, self.candidates),
        };
        let known = graph.gather(encoded.known, steps.last)?;
        let weight = add_matrix(graph, "context.weight", self.context, width)?;
        let bias = graph.param("context.bias", &[width], Init::Linear { fan_in: self.context })?;
        let query = graph.linear_onto(known, steps.context, weight, Some(bias))?;
        let Encoded { glimpse, key, .. } = encoded;
        let Self { residual, bound, .. } = self;
        let point = Point { query, glimpse, key, heads, residual, bound, open: steps.open };
        let logits = graph.point(point)?;
        Ok((steps, Reading { point, weight, bias }, logits))
    }
}

impl PointerPolicy {
    /// The outputs that an engine for this policy is made with: log-probabilities and entropies.
    #[must_use]
    pub fn outputs(&self) -> Vec<Value> {
        self.heads().outputs()
    }

    /// Draws `group` trajectories of each instance, `[member, instance]`, on the device itself and leaves them loaded;
    /// `false` where the device or the task leaves that to a [`super::Sampler`]. Of the rollout only actions and outcomes
    /// come back to this side.
    ///
    /// # Errors
    /// If lengths do not fit, or the device fails.
    pub fn construct(
        &self,
        engine: &mut DynEngine,
        task: &dyn Construction,
        instances: &[u32],
        how: Draw<'_>,
        rollout: &mut Rollout,
    ) -> Result<bool> {
        let Some(tables) = Tables::of(task, instances) else { return Ok(false) };
        let Some(shop) = tables.dynamics() else { return Ok(false) };
        let items = instances.len() / engine.members();
        engine.set_items(items)?;
        let features = task.candidates() * task.features();
        let mut described = vec![0.0; instances.len() * features];
        let rows = described.par_chunks_mut(features).zip(instances).with_min_len(64);
        rows.for_each(|(features, &instance)| task.describe(instance as usize, features));
        engine.load_scalars(self.features, &described)?;
        let uniforms = match how {
            Draw::Sampled(uniforms) => Some(uniforms),
            Draw::Greedy => None,
        };
        let extension = self.pointing().extension(&shop, uniforms.is_some());
        let mut answers = [std::mem::take(&mut rollout.actions), Vec::new()];
        if !engine.extend(&extension, &shop.given(uniforms), &mut answers)? {
            return Ok(false);
        }
        let [actions, ends] = answers;
        rollout.shape = RolloutShape::uniform(engine.members(), items * self.shape.group, self.shape.horizon);
        rollout.choices = self.shape.candidates;
        rollout.actions = actions;
        rollout.log_prob.clear();
        rollout.outcome.clear();
        rollout
            .outcome
            .extend(ends.iter().map(|&end| Outcome { makespan: end as u32, ..Outcome::default() }));
        Ok(true)
    }

    /// What a kernel needs to know of the pointer.
    pub(super) fn pointing(&self) -> Pointing {
        Pointing {
            shape: self.shape,
            known: self.encoded.known,
            point: self.reading.point,
            weight: self.reading.weight,
            bias: self.reading.bias,
            last: self.steps.last,
            context: self.steps.context,
            actions: self.actions,
        }
    }

    /// Loads trajectories to be scored: `group` for each instance, one instance after the other.
    ///
    /// # Errors
    /// If there are not whole groups, or the device fails.
    pub fn load_observed(&self, engine: &mut DynEngine, actions: &[i32], observed: &Observed) -> Result<()> {
        let horizon = self.shape.horizon;
        engine.set_items(actions.len() / (engine.members() * self.shape.group * horizon))?;
        engine.load_scalars(self.features, &observed.features)?;
        engine.load_scalars(self.steps.context, &observed.context)?;
        engine.load_mask(self.steps.open, &observed.open)?;
        let beginning = self.shape.candidates as i32;
        let before =
            |place: usize| if place.is_multiple_of(horizon) { beginning } else { actions[place - 1] };
        let last: Vec<i32> = (0..actions.len()).map(before).collect();
        engine.load_indices(self.steps.last, &last)?;
        engine.load_indices(self.actions, actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hard_flow_shop_has_about_93_thousand_parameters() {
        // Features 7·64 + 64 = 512; a block 4·64 + 4·64² + 2·64·128 + 128 + 64 = 33,216, two of them 66,432; norm 128;
        // mean, last and pointer 3·64², glimpse in 2·64² and out 64²: 24,576; context 14·64 + 64 = 960: in all 92,608.
        let shape = PointerShape {
            candidates: 20,
            horizon: 20,
            features: 7,
            context: 14,
            group: 16,
            width: 64,
            heads: 4,
            blocks: 2,
            hidden: 128,
            residual: false,
            bound: 10.0,
        };
        let policy = shape.policy().unwrap();
        assert_eq!(policy.graph.layout().parameters(), 92_608);
        let layout = policy.graph.layout();
        assert_eq!(shape.encoder(layout).unwrap().graph.layout(), layout);
        assert_eq!(shape.decoder(layout, 3).unwrap().graph.layout(), layout);
    }
}
