//! What the policies over token sequences have in common: their inputs and outputs, and how they sample.
//!
//! An item is one lane, its rows are the steps. Nothing here knows rewards or advantages, nor a task beyond which
//! tokens it leaves open.

use niwaki_nn::engine::check_members;
use niwaki_nn::{Engine, Graph, Index, Mask, Real, Result, Value, log_softmax};
use niwaki_stream::Stream;
use rayon::prelude::*;

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
}

/// How a program reads what was chosen before a step.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Prefix {
    /// `[horizon]`: entry 0 is the beginning, `vocab`, and entry `t` the token chosen at `t − 1`.
    Tokens(Index),
    /// `[horizon, vocab]`: how often each token was chosen before the step, over the horizon.
    Counts(Value),
}

/// How a token is chosen.
#[derive(Debug)]
pub enum Draw<'a> {
    /// By its probability, one uniform per step from each lane's stream, `[member, lane]`.
    Sampled(&'a mut [Stream]),
    /// The likeliest; of equals the first.
    Greedy,
}

/// Which tokens a task leaves open after a prefix: `(prefix, open [vocab])`.
pub type Open<'a> = dyn Fn(&[i32], &mut [bool]) + Sync + 'a;

/// Trajectories that a policy has drawn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// The tokens chosen, `[member, lane, step]`.
    pub actions: Vec<i32>,
    /// Their log-probabilities, as sampling saw them, `[member, lane, step]`.
    pub log_prob: Vec<f32>,
    /// Which tokens were open, `[member, lane, step, vocab]`; empty where all always are.
    pub open: Vec<u8>,
}

impl TokenPolicy {
    /// The token that stands before the first choice.
    #[must_use]
    pub fn beginning(&self) -> i32 {
        self.vocab as i32
    }

    /// The outputs that an engine for this policy is made with: log-probabilities, entropies, logits, and values
    /// where there is a critic. Sampling reads the logits; a surrogate leaves their cotangent zero.
    #[must_use]
    pub fn outputs(&self) -> Vec<Value> {
        [self.log_prob, self.entropy, self.logits].into_iter().chain(self.value).collect()
    }

    /// Loads trajectories to be scored: `actions` is `[member, lane, step]`, negative where a trajectory has ended;
    /// `open` is `[member, lane, step, vocab]` for a masked policy and empty for another.
    ///
    /// # Errors
    /// If a length is wrong or an action is no token.
    pub fn load<E: Engine>(&self, engine: &mut E, actions: &[i32], open: &[u8]) -> Result<()>
    where
        E::Scalar: Real,
    {
        self.load_prefixes(engine, actions)?;
        if let Some(mask) = self.open {
            engine.load_mask(mask, open)?;
        }
        engine.load_indices(self.actions, actions)
    }

    fn load_prefixes<E: Engine>(&self, engine: &mut E, actions: &[i32]) -> Result<()>
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

    /// Draws one trajectory for each lane of each member, token by token with cached keys and values.
    ///
    /// The engine was made with [`TokenPolicy::outputs`]. On the CPU the log-probabilities have the bits that scoring
    /// the trajectories gives.
    ///
    /// # Errors
    /// If the streams are not one per lane of each member, or the device fails.
    pub fn draw<E: Engine<Scalar = f32>>(
        &self,
        engine: &mut E,
        mut how: Draw<'_>,
        open: &Open<'_>,
        drawn: &mut Drawn,
    ) -> Result<()> {
        let (vocab, horizon) = (self.vocab, self.horizon);
        let (members, lanes) = (engine.members(), engine.items());
        if let Draw::Sampled(streams) = &how {
            check_members("streams", members * lanes, streams.len())?;
        }
        let count = members * lanes * horizon;
        drawn.actions.clear();
        drawn.actions.resize(count, -1);
        drawn.log_prob.clear();
        drawn.log_prob.resize(count, 0.0);
        drawn.open.clear();
        drawn.open.resize(if self.open.is_some() { count * vocab } else { 0 }, 1);
        engine.load_indices(self.actions, &drawn.actions)?;
        for step in 0..horizon {
            self.load_prefixes(engine, &drawn.actions)?;
            if let Some(mask) = self.open {
                drawn.open.par_chunks_mut(horizon * vocab).zip(drawn.actions.par_chunks(horizon)).for_each(
                    |(mask, actions)| {
                        let mut allowed = vec![true; vocab];
                        open(&actions[..step], &mut allowed);
                        for (to, from) in mask[step * vocab..][..vocab].iter_mut().zip(allowed) {
                            *to = u8::from(from);
                        }
                    },
                );
                engine.load_mask(mask, &drawn.open)?;
            }
            engine.forward_row(step)?;
            self.choose(engine, step, &mut how, drawn);
        }
        Ok(())
    }

    /// Chooses each lane's token of one step from the logits that the engine has.
    fn choose<E: Engine<Scalar = f32>>(
        &self,
        engine: &E,
        step: usize,
        how: &mut Draw<'_>,
        drawn: &mut Drawn,
    ) {
        let (vocab, horizon, lanes) = (self.vocab, self.horizon, engine.items());
        let Drawn { actions, log_prob, open } = drawn;
        let size = lanes * horizon;
        let logits: Vec<&[f32]> = (0..engine.members()).map(|member| engine.output(member, 2)).collect();
        let one =
            |member: usize, actions: &mut [i32], log_prob: &mut [f32], streams: Option<&mut [Stream]>| {
                let mut log_probs = vec![0.0; vocab];
                let logits = logits[member];
                let mut streams = streams;
                for lane in 0..lanes {
                    let place = lane * horizon + step;
                    let mask = open.get((member * size + place) * vocab..).and_then(|open| open.get(..vocab));
                    log_softmax(&logits[place * vocab..][..vocab], mask, &mut log_probs);
                    let action = match streams.as_deref_mut() {
                        Some(streams) => by_chance(&log_probs, streams[lane].uniform()),
                        None => likeliest(&log_probs),
                    };
                    actions[place] = action as i32;
                    log_prob[place] = log_probs[action];
                }
            };
        let members = actions.par_chunks_mut(size).zip(log_prob.par_chunks_mut(size)).enumerate();
        match how {
            Draw::Sampled(streams) => {
                members.zip(streams.par_chunks_mut(lanes)).for_each(
                    |((member, (actions, log_prob)), streams)| {
                        one(member, actions, log_prob, Some(streams));
                    },
                );
            }
            Draw::Greedy => {
                members.for_each(|(member, (actions, log_prob))| one(member, actions, log_prob, None));
            }
        }
    }
}

/// The first choice at which the running sum of probabilities exceeds `uniform`; the likeliest if rounding leaves none.
fn by_chance(log_probs: &[f32], uniform: f64) -> usize {
    let mut total = 0.0;
    for (choice, &log_prob) in log_probs.iter().enumerate() {
        total += libm::exp(f64::from(log_prob));
        if uniform < total {
            return choice;
        }
    }
    likeliest(log_probs)
}

/// The likeliest choice, of equals the first.
fn likeliest(log_probs: &[f32]) -> usize {
    let mut likeliest = 0;
    for (choice, &log_prob) in log_probs.iter().enumerate() {
        if log_prob > log_probs[likeliest] {
            likeliest = choice;
        }
    }
    likeliest
}
