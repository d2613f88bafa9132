//! Tabular policies, in f64, each on its own thread.

use super::neural::earn;
use super::{Games, Loss, Play, Player, Seen, Wanted};
use crate::Error;
use niwaki_exact::Payoff;
use niwaki_nn::{Checkpoint, Graph, Init, Layout, Optimiser, Span};
use niwaki_policies::{Pull, Tabular};
use niwaki_stream::Key;
use niwaki_tasks::{Sequence, payoff};
use rayon::prelude::*;
use std::sync::Arc;

/// A population of tabular policies.
pub struct Tables {
    task: Arc<dyn Sequence>,
    payoff: Payoff,
    layout: Layout,
    critic: bool,
    members: Vec<Member>,
}

struct Member {
    seed: u64,
    policy: Tabular,
    reference: Option<Tabular>,
    /// Rows and choices of the loaded trajectories, `[lane, step]`.
    rows: Vec<u32>,
    actions: Vec<i32>,
    log_prob: Vec<f64>,
    entropy: Vec<f64>,
    value: Vec<f64>,
}

/// How the tables begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Begin {
    /// Spread of the first logits.
    pub scale: f64,
    /// A first token and the probability it starts with.
    pub prime: Option<(usize, f64)>,
    /// Whether there is a value per prefix.
    pub critic: bool,
    /// Whether the first policy is kept.
    pub reference: bool,
}

impl Tables {
    /// A population with logits from its seeds.
    ///
    /// # Errors
    /// If the process is too large to enumerate.
    pub fn new(task: Arc<dyn Sequence>, seeds: &[u64], begin: Begin) -> Result<Self, Error> {
        let payoff = payoff(task.as_ref())?;
        let process = payoff.process();
        let closed = if task.masked() { closed(task.as_ref(), process) } else { Vec::new() };
        let member = |&seed: &u64| {
            let mut policy = Tabular::new(process, seed, begin.scale, closed.clone(), begin.critic);
            if let Some((token, mass)) = begin.prime {
                policy.prime(token, mass);
            }
            let reference = begin.reference.then(|| policy.clone());
            let (rows, actions, log_prob, entropy, value) = Default::default();
            Member { seed, policy, reference, rows, actions, log_prob, entropy, value }
        };
        let members = seeds.iter().map(member).collect();
        let mut graph = Graph::new();
        graph.param("logits", &[process.prefixes(), process.vocab()], Init::Zeros)?;
        if begin.critic {
            graph.param("values", &[process.prefixes()], Init::Zeros)?;
        }
        Ok(Self { task, payoff, layout: graph.layout().clone(), critic: begin.critic, members })
    }

    /// A table's parameters as the layout places them.
    fn spread(&self, from: &[f64]) -> Vec<f64> {
        let mut flat = vec![0.0; self.layout.len()];
        let mut start = 0;
        for slice in self.layout.slices() {
            flat[slice.range()].copy_from_slice(&from[start..start + slice.len()]);
            start += slice.len();
        }
        flat
    }

    /// The way back.
    fn gather(&self, flat: &[f64]) -> Vec<f64> {
        self.layout.slices().iter().flat_map(|slice| flat[slice.range()].iter().copied()).collect()
    }
}

/// Which tokens may not be chosen after each prefix, `[prefixes, vocab]`.
fn closed(task: &dyn Sequence, process: niwaki_exact::Process) -> Vec<bool> {
    let (vocab, mut open) = (process.vocab(), vec![true; process.vocab()]);
    let mut closed = Vec::with_capacity(process.edges());
    for level in 0..process.horizon() {
        for index in 0..process.level(level).len() {
            let digit = |place: usize| index / vocab.pow((level - 1 - place) as u32) % vocab;
            let prefix: Vec<usize> = (0..level).map(digit).collect();
            task.open(&prefix, &mut open);
            closed.extend(open.iter().map(|open| !open));
        }
    }
    closed
}

impl Member {
    fn score(&mut self, critic: bool) {
        let Self { policy, rows, actions, log_prob, entropy, value, .. } = self;
        let visited =
            || rows.iter().zip(actions.iter()).map(|(&row, &action)| (row as usize, action as usize));
        log_prob.clear();
        log_prob.extend(visited().map(|(row, action)| policy.log_prob(row, action)));
        entropy.clear();
        entropy.extend(visited().map(|(row, _)| policy.entropy(row)));
        value.clear();
        if critic {
            value.extend(visited().map(|(row, _)| policy.value(row)));
        }
    }
}

impl Player for Tables {
    type Scalar = f64;

    fn members(&self) -> usize {
        self.members.len()
    }

    fn play(&mut self, play: Play, lanes: usize, games: &mut Games) -> Result<(), Error> {
        let process = self.payoff.process();
        let horizon = process.horizon();
        (games.lanes, games.horizon, games.vocab) = (lanes, horizon, process.vocab());
        games.actions.resize(self.members.len() * lanes * horizon, 0);
        games.open.clear();
        self.members.par_iter().zip(games.actions.par_chunks_mut(lanes * horizon)).for_each(
            |(member, actions)| {
                let mut rows = vec![0; horizon];
                let key = Key::new(member.seed, play.purpose).iteration(play.iteration as u64);
                for (lane, actions) in actions.chunks_exact_mut(horizon).enumerate() {
                    let mut stream = key.lane((play.first + lane) as u64).open();
                    let mut uniform = || stream.uniform();
                    let uniform: Option<&mut dyn FnMut() -> f64> =
                        if play.greedy { None } else { Some(&mut uniform) };
                    member.policy.draw(uniform, actions, &mut rows);
                }
            },
        );
        earn(self.task.as_ref(), games);
        self.load(games)
    }

    fn load(&mut self, games: &Games) -> Result<(), Error> {
        let vocab = games.vocab as u32;
        for (index, member) in self.members.iter_mut().enumerate() {
            member.actions.clear();
            member.actions.extend_from_slice(games.actions_of(index));
            member.rows.clear();
            for lane in member.actions.chunks_exact(games.horizon) {
                let mut row = 0;
                for &action in lane {
                    member.rows.push(row);
                    row = vocab * row + 1 + action as u32;
                }
            }
        }
        Ok(())
    }

    fn score(&mut self) -> Result<(), Error> {
        let critic = self.critic;
        self.members.par_iter_mut().for_each(|member| member.score(critic));
        Ok(())
    }

    fn pull_back(&mut self, loss: &Loss<'_, f64>) -> Result<(), Error> {
        let (critic, horizon) = (self.critic, self.payoff.process().horizon());
        self.members.par_iter_mut().enumerate().for_each(|(index, member)| {
            member.score(critic);
            let steps = member.rows.len();
            let mut cotangents =
                [vec![0.0; steps], vec![0.0; steps], vec![0.0; if critic { steps } else { 0 }]];
            let [log_prob, entropy, value] = &mut cotangents;
            let span = Span { member: index, items: 0..steps / horizon };
            let seen = Seen { log_prob: &member.log_prob, entropy: &member.entropy, value: &member.value };
            loss(span, seen, Wanted { log_prob, entropy, value });
            for step in 0..steps {
                let pull = Pull {
                    log_prob: log_prob[step],
                    entropy: entropy[step],
                    value: value.get(step).copied().unwrap_or(0.0),
                };
                member.policy.pull(member.rows[step] as usize, member.actions[step] as usize, pull);
            }
        });
        Ok(())
    }

    fn seen(&self, member: usize) -> Seen<'_, f64> {
        let Member { log_prob, entropy, value, .. } = &self.members[member];
        Seen { log_prob, entropy, value }
    }

    fn reference(&mut self, games: &Games) -> Result<Vec<f64>, Error> {
        let mut log_prob = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let Some(reference) = &member.reference else { return Err(Error::Mixed) };
            for lane in games.actions_of(index).chunks_exact(games.horizon) {
                let mut row = 0;
                for &action in lane {
                    log_prob.push(reference.log_prob(row, action as usize));
                    row = games.vocab * row + 1 + action as usize;
                }
            }
        }
        Ok(log_prob)
    }

    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error> {
        let members = self.members.par_iter_mut().zip(rates);
        Ok(members.map(|(member, &rate)| member.policy.step(optimiser, rate)).collect())
    }

    fn eta(&self, member: usize) -> Option<f64> {
        Some(self.members[member].policy.eta(self.payoff.terminal()))
    }

    fn exact_advantage(&self, member: usize, games: &Games) -> Option<Vec<f64>> {
        let advantages = self.members[member].policy.advantages(self.payoff.terminal());
        let mut taken = Vec::with_capacity(games.lanes * games.horizon);
        for lane in games.actions_of(member).chunks_exact(games.horizon) {
            let mut row = 0;
            for &action in lane {
                let edge = games.vocab * row + action as usize;
                taken.push(advantages[edge]);
                row = edge + 1;
            }
        }
        Some(taken)
    }

    fn keep(&self, member: usize) -> Result<Checkpoint<f64>, Error> {
        let policy = &self.members[member].policy;
        let (steps, moments) = policy.state();
        let moments = moments.iter().map(|moment| self.spread(moment)).collect();
        let state = serde_json::Value::Null;
        Ok(Checkpoint { parameters: self.spread(policy.parameters()), moments, steps, state })
    }

    fn put_back(&mut self, member: usize, kept: &Checkpoint<f64>) -> Result<(), Error> {
        let moments = kept.moments.iter().map(|moment| self.gather(moment)).collect();
        let parameters = self.gather(&kept.parameters);
        self.members[member].policy.restore(parameters, kept.steps, moments);
        Ok(())
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }
}
