//! Tabular policies, in f64, each on its own thread.

use super::{Cotangents, Environment, Loss, Player, RolloutRequest, Scores, TokenEnvironment};
use crate::Error;
use niwaki_exact::Payoff;
use niwaki_nn::{Checkpoint, Graph, Init, Layout, Optimiser, Span};
use niwaki_policies::{Pull, Rollout, RolloutShape, Tabular};
use niwaki_stream::Key;
use niwaki_tasks::{Sequence, payoff};
use rayon::prelude::*;
use std::sync::Arc;

/// A population of tabular policies.
pub struct Tables {
    environment: TokenEnvironment,
    payoff: Payoff,
    layout: Layout,
    critic: bool,
    members: Vec<Member>,
    /// Trajectories of each member that are loaded.
    lanes: usize,
}

struct Member {
    seed: u64,
    policy: Tabular,
    reference: Option<Tabular>,
    /// Rows and actions of the loaded trajectories, `[lane, step]`.
    rows: Vec<u32>,
    actions: Vec<i32>,
    log_prob: Vec<f64>,
    entropy: Vec<f64>,
    value: Vec<f64>,
}

/// How the tables init.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TableInit {
    /// Spread of the first logits.
    pub scale: f64,
    /// A first token and the probability it starts with.
    pub prime: Option<(usize, f64)>,
    /// Whether there is a value per prefix.
    pub critic: bool,
    /// Whether the first policy is checkpoint.
    pub reference: bool,
}

impl Tables {
    /// A population with logits from its seeds.
    ///
    /// # Errors
    /// If the process is too large to enumerate.
    pub fn new(task: Arc<dyn Sequence>, seeds: &[u64], init: TableInit) -> Result<Self, Error> {
        let payoff = payoff(task.as_ref())?;
        let process = payoff.process();
        let closed = if task.masked() { closed(task.as_ref(), process) } else { Vec::new() };
        let member = |&seed: &u64| {
            let mut policy = Tabular::new(process, seed, init.scale, closed.clone(), init.critic);
            if let Some((token, mass)) = init.prime {
                policy.prime(token, mass);
            }
            let reference = init.reference.then(|| policy.clone());
            let (rows, actions, log_prob, entropy, value) = Default::default();
            Member { seed, policy, reference, rows, actions, log_prob, entropy, value }
        };
        let members = seeds.iter().map(member).collect();
        Ok(Self {
            environment: TokenEnvironment(task),
            payoff,
            layout: table_layout(process, init.critic)?,
            critic: init.critic,
            members,
            lanes: 0,
        })
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

/// How a table's parameters lie in its checkpoint: logits, then a critic's values.
pub(crate) fn table_layout(process: niwaki_exact::Process, critic: bool) -> Result<Layout, Error> {
    let mut graph = Graph::new();
    graph.param("logits", &[process.prefixes(), process.vocab()], Init::Zeros)?;
    if critic {
        graph.param("values", &[process.prefixes()], Init::Zeros)?;
    }
    Ok(graph.layout().clone())
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

/// The row and the action of every step of a member's trajectories.
fn edges(rollout: &Rollout, member: usize) -> impl Iterator<Item = (usize, usize)> {
    let choices = rollout.choices;
    rollout.trajectories(member).flat_map(move |actions| {
        let mut next = 0;
        actions.iter().map(move |&action| {
            let row = next;
            next = choices * row + 1 + action as usize;
            (row, action as usize)
        })
    })
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

    fn roll_out(
        &mut self,
        request: RolloutRequest,
        lanes: usize,
        rollout: &mut Rollout,
    ) -> Result<(), Error> {
        let process = self.payoff.process();
        let horizon = process.horizon();
        rollout.shape = RolloutShape::uniform(self.members.len(), lanes, horizon);
        rollout.choices = process.vocab();
        rollout.actions.resize(self.members.len() * lanes * horizon, 0);
        self.members.par_iter().zip(rollout.actions.par_chunks_mut(lanes * horizon)).for_each(
            |(member, actions)| {
                let mut rows = vec![0; horizon];
                let key = Key::new(member.seed, request.purpose).iteration(request.iteration as u64);
                for (lane, actions) in actions.chunks_exact_mut(horizon).enumerate() {
                    let mut stream = key.lane((request.first + lane) as u64).open();
                    let mut uniform = || stream.uniform();
                    let uniform: Option<&mut dyn FnMut() -> f64> =
                        if request.greedy { None } else { Some(&mut uniform) };
                    member.policy.draw(uniform, actions, &mut rows);
                }
            },
        );
        if let Some(end) = self.environment.view().end() {
            // Tables draw to the horizon, like a device.
            rollout.cut(lanes, horizon, Some(end as i32));
        }
        self.environment.fill_rewards(rollout);
        self.load(rollout)
    }

    fn load(&mut self, rollout: &Rollout) -> Result<(), Error> {
        for (index, member) in self.members.iter_mut().enumerate() {
            member.actions.clear();
            member.actions.extend_from_slice(&rollout.actions[rollout.shape.member(index)]);
            member.rows.clear();
            member.rows.extend(edges(rollout, index).map(|(row, _)| row as u32));
        }
        self.lanes = rollout.shape.lanes();
        Ok(())
    }

    fn score(&mut self) -> Result<(), Error> {
        let critic = self.critic;
        self.members.par_iter_mut().for_each(|member| member.score(critic));
        Ok(())
    }

    fn pull_back(&mut self, loss: &Loss<'_, f64>) -> Result<(), Error> {
        let (critic, lanes) = (self.critic, self.lanes);
        self.members.par_iter_mut().enumerate().for_each(|(index, member)| {
            member.score(critic);
            let steps = member.rows.len();
            let mut cotangents =
                [vec![0.0; steps], vec![0.0; steps], vec![0.0; if critic { steps } else { 0 }]];
            let [log_prob, entropy, value] = &mut cotangents;
            let span = Span { member: index, items: 0..lanes };
            let scores =
                Scores { log_prob: &member.log_prob, entropy: &member.entropy, value: &member.value };
            loss(span, scores, Cotangents { log_prob, entropy, value });
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

    fn scores(&self, member: usize) -> Scores<'_, f64> {
        let Member { log_prob, entropy, value, .. } = &self.members[member];
        Scores { log_prob, entropy, value }
    }

    fn reference(&mut self, rollout: &Rollout) -> Result<Vec<f64>, Error> {
        let mut log_prob = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let Some(reference) = &member.reference else { return Err(Error::Mixed) };
            log_prob.extend(edges(rollout, index).map(|(row, action)| reference.log_prob(row, action)));
        }
        Ok(log_prob)
    }

    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error> {
        let members = self.members.par_iter_mut().zip(rates);
        Ok(members.map(|(member, &rate)| member.policy.step(optimiser, rate)).collect())
    }

    fn exact_returns(&mut self) -> Result<Option<Vec<f64>>, Error> {
        let terminal = self.payoff.terminal();
        Ok(Some(self.members.iter().map(|member| member.policy.eta(terminal)).collect()))
    }

    fn tables(&mut self) -> Result<Option<Vec<Vec<f64>>>, Error> {
        let edges = self.payoff.process().edges();
        Ok(Some(self.members.iter().map(|member| member.policy.parameters()[..edges].to_vec()).collect()))
    }

    fn exact_advantage(&self, member: usize, rollout: &Rollout) -> Option<Vec<f64>> {
        let advantages = self.members[member].policy.advantages(self.payoff.terminal());
        let taken = edges(rollout, member).map(|(row, action)| advantages[rollout.choices * row + action]);
        Some(taken.collect())
    }

    fn checkpoint(&self, member: usize) -> Result<Checkpoint<f64>, Error> {
        let policy = &self.members[member].policy;
        let (steps, moments) = policy.state();
        let moments = moments.iter().map(|moment| self.spread(moment)).collect();
        let state = serde_json::Value::Null;
        Ok(Checkpoint { parameters: self.spread(policy.parameters()), moments, steps, state })
    }

    fn set_checkpoint(&mut self, member: usize, checkpoint: &Checkpoint<f64>) -> Result<(), Error> {
        let moments = checkpoint.moments.iter().map(|moment| self.gather(moment)).collect();
        let parameters = self.gather(&checkpoint.parameters);
        self.members[member].policy.restore(parameters, checkpoint.steps, moments);
        Ok(())
    }

    fn layout(&self) -> &Layout {
        &self.layout
    }
}
