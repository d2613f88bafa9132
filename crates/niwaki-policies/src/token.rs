//! What the policies over token sequences have in common: their inputs and outputs, and how they sample.
//!
//! An item is one trajectory, its rows are the steps. Nothing here knows rewards or advantages, nor a task beyond which
//! tokens it leaves open and which one ends a sequence.

use crate::policy::{Draw, DrawRequest, Heads, Item, MakeEngine, Policy};
use crate::{Error, Rollout, RolloutShape};
use niwaki_nn::engine::check_members;
use niwaki_nn::{Choosing, DynEngine, Engine, Graph, Index, Mask, Real, Value, initialise, log_softmax};
use niwaki_stream::{by_log_chance, likeliest};
use niwaki_tasks::Sequence;
use rayon::prelude::*;
use std::ops::Range;

/// What a token policy can have besides logits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extras {
    /// Some tokens may be closed: the program reads a mask of open ones.
    pub masked: bool,
    /// A value head, for a critic.
    pub critic: bool,
}

/// A policy over token sequences: its program and the handles to it.
#[derive(Clone, Debug)]
pub struct TokenPolicy {
    /// Tokens to choose from.
    pub vocab: usize,
    /// Steps of a trajectory.
    pub horizon: usize,
    /// The program.
    pub graph: Graph,
    pub(crate) prefix: Prefix,
    /// Input: `[horizon]` tokens chosen; negative where the trajectory has ended.
    pub actions: Index,
    /// Input: `[horizon, vocab]`, nonzero where a token is open.
    pub open: Option<Mask>,
    /// `[horizon, vocab]`.
    pub logits: Value,
    /// `[horizon, 1]`: log-probabilities of the chosen tokens.
    pub log_prob: Value,
    /// `[horizon, 1]`.
    pub entropy: Value,
    /// `[horizon, 1]`: the critic's estimates.
    pub value: Option<Value>,
    /// A token and the probability with which an untrained policy chooses it first.
    pub prime: Option<(usize, f64)>,
}

/// How a program reads what was chosen before a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prefix {
    /// `[horizon]`: entry 0 is the beginning, `vocab`, and entry `t` the token chosen at `t − 1`.
    Tokens(Index),
    /// `[horizon, vocab]`: how often each token was chosen before the step, over the horizon.
    Counts(Value),
}

impl TokenPolicy {
    /// The token that stands before the first choice.
    #[must_use]
    pub fn beginning(&self) -> i32 {
        self.vocab as i32
    }

    /// The outputs that an engine for this policy is made with.
    #[must_use]
    pub fn outputs(&self) -> Vec<Value> {
        self.heads().outputs()
    }

    /// How the program can choose its own tokens; `None` where more than earlier tokens decides.
    #[must_use]
    pub fn choosing(&self) -> Option<Choosing> {
        let (Prefix::Tokens(tokens), None) = (self.prefix, self.open) else { return None };
        Some(Choosing { logits: self.logits, actions: self.actions, tokens })
    }

    /// Loads trajectories to be scored: `actions` is `[member, lane, horizon]`, negative where a trajectory has ended;
    /// `open` is `[member, lane, horizon, vocab]` for a masked policy and empty for another.
    ///
    /// # Errors
    /// If a length is wrong or an action is no token.
    pub fn load_actions<E: Engine + ?Sized>(
        &self,
        engine: &mut E,
        actions: &[i32],
        open: &[u8],
    ) -> niwaki_nn::Result<()>
    where
        E::Scalar: Real,
    {
        self.load_prefixes(engine, actions)?;
        if let Some(mask) = self.open {
            engine.load_mask(mask, open)?;
        }
        engine.load_indices(self.actions, actions)
    }

    fn load_prefixes<E: Engine + ?Sized>(&self, engine: &mut E, actions: &[i32]) -> niwaki_nn::Result<()>
    where
        E::Scalar: Real,
    {
        match self.prefix {
            Prefix::Tokens(tokens) => {
                let before = |place: usize| match place % self.horizon {
                    0 => self.beginning(),
                    _ => actions[place - 1],
                };
                let before: Vec<i32> = (0..actions.len()).map(before).collect();
                engine.load_indices(tokens, &before)
            }
            Prefix::Counts(counts) => {
                let (vocab, share) = (self.vocab, E::Scalar::from_f64(1.0 / self.horizon as f64));
                let mut seen = vec![E::Scalar::ZERO; actions.len() * vocab];
                for (lane, actions) in
                    seen.chunks_exact_mut(self.horizon * vocab).zip(actions.chunks_exact(self.horizon))
                {
                    for step in 1..self.horizon {
                        let (earlier, now) = lane.split_at_mut(step * vocab);
                        now[..vocab].copy_from_slice(&earlier[(step - 1) * vocab..]);
                        if let Ok(token) = usize::try_from(actions[step - 1]) {
                            now[token] += share;
                        }
                    }
                }
                engine.load_scalars(counts, &seen)
            }
        }
    }

    /// Draws `lanes` trajectories of each member, token by token with cached keys and values, and leaves them loaded,
    /// ready to be scored.
    ///
    /// The engine was made with [`TokenPolicy::outputs`]. On the CPU the log-probabilities have the bits that scoring
    /// the trajectories gives.
    ///
    /// # Errors
    /// If the uniforms are not one per step of each lane, or the device fails.
    pub fn sample(
        &self,
        engine: &mut DynEngine,
        task: &dyn Sequence,
        lanes: usize,
        how: Draw<'_>,
        rollout: &mut Rollout,
    ) -> niwaki_nn::Result<()> {
        engine.set_items(lanes)?;
        rollout.choices = self.vocab;
        rollout.outcome.clear();
        let end = task.end().map(|end| end as i32);
        let chosen = match how {
            Draw::Sampled(uniforms) => {
                check_members("uniforms", engine.members() * lanes * self.horizon, uniforms.len())?;
                self.sample_on_device(engine, uniforms, rollout)?
            }
            Draw::Greedy => false,
        };
        if !chosen {
            self.sample_on_host(engine, task, how, rollout)?;
        }
        rollout.shape = RolloutShape::uniform(engine.members(), lanes, self.horizon);
        // The device drew every trajectory to the horizon.
        if end.is_some() && rollout.cut(lanes, self.horizon, end) && chosen {
            self.load_actions(engine, &rollout.padded_actions(), &[])?;
        }
        Ok(())
    }

    /// Chooses on this side, one step of all lanes after the other.
    fn sample_on_host(
        &self,
        engine: &mut DynEngine,
        task: &dyn Sequence,
        how: Draw<'_>,
        rollout: &mut Rollout,
    ) -> niwaki_nn::Result<()> {
        let (horizon, end) = (self.horizon, task.end().map(|end| end as i32));
        let count = engine.members() * engine.items() * horizon;
        rollout.actions.clear();
        rollout.actions.resize(count, -1);
        rollout.log_prob.clear();
        rollout.log_prob.resize(count, 0.0);
        let mut open = vec![1; if self.open.is_some() { count * self.vocab } else { 0 }];
        engine.load_indices(self.actions, &rollout.actions)?;
        for step in 0..horizon {
            self.load_prefixes(engine, &rollout.actions)?;
            if let Some(mask) = self.open {
                self.open_tokens(task, &rollout.actions, step..step + 1, &mut open);
                engine.load_mask(mask, &open)?;
            }
            engine.forward_row(step)?;
            self.choose(engine, step, how, end, &open, rollout);
        }
        // Prefixes and open tokens were loaded on the way.
        engine.load_indices(self.actions, &rollout.actions)
    }

    /// Writes which tokens are open at some steps of every lane that has not ended before.
    ///
    /// Shapes: `actions [member, lane, horizon]`, `open [member, lane, horizon, vocab]`
    fn open_tokens(&self, task: &dyn Sequence, actions: &[i32], steps: Range<usize>, open: &mut [u8]) {
        let (vocab, horizon) = (self.vocab, self.horizon);
        open.par_chunks_mut(horizon * vocab).zip(actions.par_chunks(horizon)).for_each(|(open, actions)| {
            let mut allowed = vec![true; vocab];
            let mut prefix = Vec::with_capacity(horizon);
            for step in 0..steps.end {
                if step >= steps.start {
                    task.open(&prefix, &mut allowed);
                    for (to, &from) in open[step * vocab..][..vocab].iter_mut().zip(&allowed) {
                        *to = u8::from(from);
                    }
                }
                match usize::try_from(actions[step]) {
                    Ok(token) if Some(token) != task.end() => prefix.push(token),
                    _ => break,
                }
            }
        });
    }

    /// Lets the device choose all tokens, where it can.
    fn sample_on_device(
        &self,
        engine: &mut DynEngine,
        uniforms: &[f64],
        rollout: &mut Rollout,
    ) -> niwaki_nn::Result<bool> {
        let Some(choosing) = self.choosing() else { return Ok(false) };
        let Some(actions) = engine.choose_rows(choosing, self.beginning(), uniforms)? else {
            return Ok(false);
        };
        rollout.actions = actions;
        rollout.log_prob.clear();
        Ok(true)
    }

    /// Chooses each lane's token of one step from the logits that the engine has; a lane that has ended takes none.
    fn choose(
        &self,
        engine: &DynEngine,
        step: usize,
        how: Draw<'_>,
        end: Option<i32>,
        open: &[u8],
        rollout: &mut Rollout,
    ) {
        let (vocab, horizon, lanes) = (self.vocab, self.horizon, engine.items());
        let Rollout { actions, log_prob, .. } = rollout;
        let size = lanes * horizon;
        let logits: Vec<&[f32]> = (0..engine.members()).map(|member| engine.output(member, 2)).collect();
        let one = |member: usize, actions: &mut [i32], log_prob: &mut [f32]| {
            let mut log_probs = vec![0.0; vocab];
            for lane in 0..lanes {
                let place = lane * horizon + step;
                if step > 0 && (actions[place - 1] < 0 || Some(actions[place - 1]) == end) {
                    continue;
                }
                let whole = member * size + place;
                let mask = open.get(whole * vocab..).and_then(|open| open.get(..vocab));
                log_softmax(&logits[member][place * vocab..][..vocab], mask, &mut log_probs);
                let action = match how {
                    Draw::Sampled(uniforms) => by_log_chance(&log_probs, uniforms[whole]),
                    Draw::Greedy => likeliest(&log_probs),
                };
                actions[place] = action as i32;
                log_prob[place] = log_probs[action];
            }
        };
        let members = actions.par_chunks_mut(size).zip(log_prob.par_chunks_mut(size)).enumerate();
        members.for_each(|(member, (actions, log_prob))| one(member, actions, log_prob));
    }
}

impl Policy for TokenPolicy {
    type View = dyn Sequence;
    type Scratch = ();

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn heads(&self) -> Heads {
        let Self { log_prob, entropy, logits, value, .. } = *self;
        Heads { log_prob, entropy, logits: Some(logits), value }
    }

    fn item(&self) -> Item {
        Item::Trajectories(1)
    }

    fn horizon(&self) -> usize {
        self.horizon
    }

    fn steps(&self) -> bool {
        true
    }

    fn initial_parameters(&self, seed: u64) -> Vec<f32> {
        let mut parameters = initialise(self.graph.layout(), seed);
        if let Some((token, mass)) = self.prime {
            self.raise(&mut parameters, token, mass);
        }
        parameters
    }

    fn single(&self) -> Result<Self, Error> {
        Ok(self.clone())
    }

    fn draw(
        &self,
        engine: &mut DynEngine,
        (): &mut (),
        _make: &MakeEngine,
        task: &dyn Sequence,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> Result<(), Error> {
        rollout.instances.clear();
        Ok(self.sample(engine, task, request.lanes, request.how, rollout)?)
    }

    fn load(&self, engine: &mut DynEngine, task: &dyn Sequence, rollout: &Rollout) -> Result<(), Error> {
        engine.set_items(rollout.shape.lanes())?;
        let actions = rollout.padded_actions();
        let mut open = vec![1; if self.open.is_some() { actions.len() * self.vocab } else { 0 }];
        if self.open.is_some() {
            self.open_tokens(task, &actions, 0..self.horizon, &mut open);
        }
        Ok(self.load_actions(engine, &actions, &open)?)
    }
}
