//! What the policies over token sequences have in common: their inputs and outputs, and how they sample.
//!
//! An item is one lane, its rows are the steps. Nothing here knows rewards or advantages, nor a task beyond which
//! tokens it leaves open.

use niwaki_nn::engine::check_members;
use niwaki_nn::{Choosing, Engine, Graph, Index, Mask, Real, Result, Value, log_softmax};
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
#[derive(Clone, Copy, Debug)]
pub enum Draw<'a> {
    /// By its probability: the first at which the running sum exceeds the step's uniform, `[member, lane, step]`.
    Sampled(&'a [f64]),
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
    /// Their log-probabilities, as sampling saw them, `[member, lane, step]`; empty where the device chose.
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
    /// where there is a critic. Sampling reads the logits; nothing flows back from them.
    #[must_use]
    pub fn outputs(&self) -> Vec<Value> {
        [self.log_prob, self.entropy, self.logits].into_iter().chain(self.value).collect()
    }

    /// How the program can choose its own tokens; `None` where more than earlier tokens decides.
    #[must_use]
    pub fn choosing(&self) -> Option<Choosing> {
        let (Prefix::Tokens(tokens), None) = (self.prefix, self.open) else { return None };
        Some(Choosing { logits: self.logits, actions: self.actions, tokens })
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

    /// Draws one trajectory for each lane of each member, token by token with cached keys and values, and leaves them
    /// loaded, ready to be scored.
    ///
    /// The engine was made with [`TokenPolicy::outputs`]. On the CPU the log-probabilities have the bits that scoring
    /// the trajectories gives.
    ///
    /// # Errors
    /// If the uniforms are not one per step of each lane, or the device fails.
    pub fn draw<E: Engine<Scalar = f32>>(
        &self,
        engine: &mut E,
        how: Draw<'_>,
        open: &Open<'_>,
        drawn: &mut Drawn,
    ) -> Result<()> {
        let (vocab, horizon) = (self.vocab, self.horizon);
        let (members, lanes) = (engine.members(), engine.items());
        let count = members * lanes * horizon;
        if let Draw::Sampled(uniforms) = how {
            check_members("uniforms", count, uniforms.len())?;
            if self.draw_on_device(engine, uniforms, drawn)? {
                return Ok(());
            }
        }
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
            self.choose(engine, step, how, drawn);
        }
        // Prefixes and open tokens were loaded on the way.
        engine.load_indices(self.actions, &drawn.actions)
    }

    /// Lets the device choose all tokens, where it can.
    fn draw_on_device<E: Engine<Scalar = f32>>(
        &self,
        engine: &mut E,
        uniforms: &[f64],
        drawn: &mut Drawn,
    ) -> Result<bool> {
        let Some(choosing) = self.choosing() else { return Ok(false) };
        let Some(actions) = engine.choose_rows(choosing, self.beginning(), uniforms)? else {
            return Ok(false);
        };
        drawn.actions = actions;
        drawn.log_prob.clear();
        drawn.open.clear();
        Ok(true)
    }

    /// Chooses each lane's token of one step from the logits that the engine has.
    fn choose<E: Engine<Scalar = f32>>(&self, engine: &E, step: usize, how: Draw<'_>, drawn: &mut Drawn) {
        let (vocab, horizon, lanes) = (self.vocab, self.horizon, engine.items());
        let Drawn { actions, log_prob, open } = drawn;
        let size = lanes * horizon;
        let logits: Vec<&[f32]> = (0..engine.members()).map(|member| engine.output(member, 2)).collect();
        let one = |member: usize, actions: &mut [i32], log_prob: &mut [f32]| {
            let mut log_probs = vec![0.0; vocab];
            for lane in 0..lanes {
                let place = lane * horizon + step;
                let whole = member * size + place;
                let mask = open.get(whole * vocab..).and_then(|open| open.get(..vocab));
                log_softmax(&logits[member][place * vocab..][..vocab], mask, &mut log_probs);
                let action = match how {
                    Draw::Sampled(uniforms) => by_chance(&log_probs, uniforms[whole]),
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

/// The first choice at which the running sum of probabilities exceeds `uniform`; the likeliest if rounding leaves none.
pub(crate) fn by_chance(log_probs: &[f32], uniform: f64) -> usize {
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
pub(crate) fn likeliest(log_probs: &[f32]) -> usize {
    let mut likeliest = 0;
    for (choice, &log_prob) in log_probs.iter().enumerate() {
        if log_prob > log_probs[likeliest] {
            likeliest = choice;
        }
    }
    likeliest
}
