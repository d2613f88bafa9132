//! A decoder as policy over a record's slots.
//!
//! An item holds several trajectories that share the prompt: its keys and values are computed once, and the gradient flows
//! back through them. A slot's distribution is the softmax over its candidates; no other logit is computed. Trajectories
//! are drawn from the exact conditionals at all prefixes, which one pass gives.

use super::{Conditionals, RecordTokens, RecordTree};
use crate::{Config, Decoder, Model, Result, Tree, Vocabulary};
use niwaki_nn::{DynEngine, Graph, Index, Mask};
use niwaki_policies::{Draw, DrawRequest, Error, Heads, Item, MakeEngine, Policy, Rollout, RolloutShape};
use niwaki_stream::{by_log_chance, likeliest};
use niwaki_tasks::{Record, Sequence};
use std::sync::Arc;

/// A decoder that fills a record's slots.
#[derive(Clone, Debug)]
pub struct RecordPolicy {
    graph: Graph,
    heads: Heads,
    tokens: Index,
    actions: Index,
    open: Mask,
    group: usize,
    /// What all sizes of groups have in common.
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: Config,
    vocabulary: Vocabulary,
    record: RecordTokens,
    /// Rows of the tables: of the prompt, of what stands between slots, of candidates.
    prompt: Vec<i32>,
    between: Vec<Vec<i32>>,
    candidates: Vec<Vec<i32>>,
    tree: RecordTree,
    /// What logits are divided by.
    temperature: f64,
    /// The model's parameters, with which every run begins.
    start: Vec<f32>,
}

/// What drawing keeps: an engine for all prefixes.
#[derive(Debug, Default)]
pub struct RecordScratch {
    tree: Option<Box<DynEngine>>,
}

impl RecordPolicy {
    /// A model over a record behind one of its primings, with `group` trajectories that share a prompt in each item; its logits
    /// are divided by `temperature`, when it is sampled and when it learns.
    ///
    /// # Errors
    /// If the record does not suit the model's tokenizer, or has too many prefixes.
    pub fn new(
        model: &Model,
        record: &Record,
        prime: Option<&str>,
        group: usize,
        temperature: f64,
    ) -> Result<Self> {
        let tokens = RecordTokens::new(model.text(), record, prime)?;
        let vocabulary = tokens.vocabulary();
        let rows =
            |tokens: &[u32]| tokens.iter().map(|&token| vocabulary.row(token)).collect::<Result<Vec<i32>>>();
        let all = |lists: &[Vec<u32>]| lists.iter().map(|list| rows(list)).collect::<Result<Vec<_>>>();
        let (prompt, between, candidates) =
            (rows(&tokens.prompt)?, all(&tokens.between)?, all(&tokens.candidates)?);
        let tree = RecordTree::new(model.config(), &vocabulary, &tokens, record.path(), temperature)?;
        let start = model.parameters(tree.graph().layout(), &vocabulary)?;
        let shared = Shared {
            config: model.config().clone(),
            vocabulary,
            record: tokens,
            prompt,
            between,
            candidates,
            tree,
            temperature,
            start,
        };
        Self::over(Arc::new(shared), group)
    }

    fn over(shared: Arc<Shared>, group: usize) -> Result<Self> {
        let mut tree = Tree::default();
        let prompt = tree.grow(None, shared.prompt.len());
        let mut asked = Vec::new();
        for _ in 0..group {
            let mut end = prompt;
            asked.extend(end);
            for between in &shared.between {
                end = tree.grow(end, 1 + between.len());
                asked.extend(end);
            }
        }
        let asked: Vec<i32> = asked.into_iter().map(|row| row as i32).collect();
        let mut graph = Graph::new();
        let tokens = graph.indices("tokens", tree.rows(), shared.vocabulary.entries());
        let decoder = Decoder::new(&mut graph, &shared.config, &shared.vocabulary, tokens, &tree)?;
        let candidates = shared.candidates.concat();
        let asked_rows = graph.constant(&asked);
        let logits = decoder.candidates_at(&mut graph, asked_rows, &candidates, 1.0 / shared.temperature)?;
        let actions = graph.indices("actions", asked.len(), candidates.len());
        let open = graph.mask("open", asked.len(), candidates.len());
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, Some(open))?;
        let heads = Heads { log_prob, entropy, logits: None, value: None };
        Ok(Self { graph, heads, tokens, actions, open, group, shared })
    }

    /// The tokens that its tables have rows for.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.shared.vocabulary
    }

    /// The record's tokens.
    #[must_use]
    pub fn record(&self) -> &RecordTokens {
        &self.shared.record
    }

    /// What each member says at every prefix.
    ///
    /// # Errors
    /// If the device fails.
    pub fn conditionals(
        &self,
        engine: &DynEngine,
        scratch: &mut RecordScratch,
        make: &MakeEngine,
    ) -> niwaki_nn::Result<Vec<Conditionals>> {
        let tree = &self.shared.tree;
        let own = match &mut scratch.tree {
            Some(own) => own,
            none => none.insert(make(tree.graph(), &tree.outputs())?),
        };
        own.copy_parameters(engine)?;
        tree.conditionals(own.as_mut())
    }

    /// Loads trajectories, `[member, lane, slot]`, to be scored.
    fn load_choices(&self, engine: &mut DynEngine, lanes: usize, choices: &[i32]) -> niwaki_nn::Result<()> {
        let Shared { prompt, between, candidates, .. } = &*self.shared;
        let (slots, group) = (candidates.len(), self.group);
        if lanes == 0 || !lanes.is_multiple_of(group) {
            let reason = format!("{lanes} trajectories do not divide into groups of {group}");
            return Err(niwaki_nn::Error::Unsupported { op: "record", reason });
        }
        engine.set_items(lanes / group)?;
        let starts: Vec<usize> =
            candidates.iter().scan(0, |next, of| Some(std::mem::replace(next, *next + of.len()))).collect();
        let (mut tokens, mut actions) = (Vec::new(), Vec::with_capacity(choices.len()));
        for item in choices.chunks_exact(group * slots) {
            tokens.extend_from_slice(prompt);
            for lane in item.chunks_exact(slots) {
                for (slot, &choice) in lane.iter().enumerate() {
                    actions.push((starts[slot] as i32) + choice);
                    // What the last slot was filled with is never read.
                    if let Some(between) = between.get(slot) {
                        tokens.push(candidates[slot][choice as usize]);
                        tokens.extend_from_slice(between);
                    }
                }
            }
        }
        let all: usize = candidates.iter().map(Vec::len).sum();
        let mut row = vec![0_u8; slots * all];
        for (slot, of) in candidates.iter().enumerate() {
            row[slot * all + starts[slot]..][..of.len()].fill(1);
        }
        engine.load_indices(self.tokens, &tokens)?;
        engine.load_indices(self.actions, &actions)?;
        engine.load_mask(self.open, &row.repeat(choices.len() / slots))
    }
}

impl Policy for RecordPolicy {
    type View = dyn Sequence;
    type Scratch = RecordScratch;

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn heads(&self) -> Heads {
        self.heads
    }

    fn item(&self) -> Item {
        Item::Trajectories(self.group)
    }

    fn horizon(&self) -> usize {
        self.shared.candidates.len()
    }

    fn initial_parameters(&self, _: u64) -> Vec<f32> {
        self.shared.start.clone()
    }

    fn single(&self) -> std::result::Result<Self, Error> {
        Ok(Self::over(self.shared.clone(), 1)?)
    }

    fn draw(
        &self,
        engine: &mut DynEngine,
        scratch: &mut RecordScratch,
        make: &MakeEngine,
        _: &dyn Sequence,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> std::result::Result<(), Error> {
        let (lanes, slots) = (request.lanes, self.horizon());
        let conditionals = self.conditionals(engine, scratch, make)?;
        rollout.actions.clear();
        // Scoring gives them: those of the pass over all prefixes need not have the same bits on every device.
        rollout.log_prob.clear();
        rollout.outcome.clear();
        rollout.choices = self.shared.candidates.iter().map(Vec::len).max().unwrap_or(0);
        for (member, conditionals) in conditionals.iter().enumerate() {
            for lane in 0..lanes {
                let mut prefix = Vec::with_capacity(slots);
                for slot in 0..slots {
                    let log_probs = conditionals.after(&prefix);
                    prefix.push(match request.how {
                        Draw::Sampled(uniforms) => {
                            by_log_chance(log_probs, uniforms[(member * lanes + lane) * slots + slot])
                        }
                        Draw::Greedy => likeliest(log_probs),
                    });
                }
                rollout.actions.extend(prefix.iter().map(|&choice| choice as i32));
            }
        }
        rollout.shape = RolloutShape::uniform(conditionals.len(), lanes, slots);
        Ok(self.load_choices(engine, lanes, &rollout.actions)?)
    }

    fn load(
        &self,
        engine: &mut DynEngine,
        _: &dyn Sequence,
        rollout: &Rollout,
    ) -> std::result::Result<(), Error> {
        Ok(self.load_choices(engine, rollout.shape.lanes(), &rollout.actions)?)
    }

    fn exact_returns(
        &self,
        engine: &DynEngine,
        scratch: &mut RecordScratch,
        make: &MakeEngine,
        task: &dyn Sequence,
    ) -> std::result::Result<Option<Vec<f64>>, Error> {
        let conditionals = self.conditionals(engine, scratch, make)?;
        Ok(Some(conditionals.iter().map(|own| own.expected(|choices| task.reward(choices))).collect()))
    }

    fn tables(
        &self,
        engine: &DynEngine,
        scratch: &mut RecordScratch,
        make: &MakeEngine,
    ) -> std::result::Result<Option<Vec<Vec<f64>>>, Error> {
        Ok(self.conditionals(engine, scratch, make)?.iter().map(Conditionals::table).collect())
    }
}
