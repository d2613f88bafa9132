//! The task's side of a player: which instances are played, and what finished trajectories earn.

use super::RolloutRequest;
use crate::Error;
use niwaki_lm::Choices;
use niwaki_policies::Rollout;
use niwaki_stream::Key;
use niwaki_tasks::{Construction, GraphTask, Numbers, Outcome, Payment, Sequence, TextTask};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::Arc;

/// What a population plays.
pub trait Environment {
    /// The view that the policy has of it.
    type View: ?Sized;

    /// That view.
    fn view(&self) -> &Self::View;

    /// The instances of some groups of lanes, for the member with this seed; empty where there is only one instance.
    fn instances(&self, seed: u64, request: RolloutRequest, groups: Range<usize>) -> Vec<u32> {
        let _ = (seed, request, groups);
        Vec::new()
    }

    /// The instances that are held out to be judged on, where there are several.
    fn held_out(&self) -> Option<Range<u32>> {
        None
    }

    /// Fills the rewards of finished trajectories.
    fn fill_rewards(&self, rollout: &mut Rollout);

    /// Puts better trajectories in the place of some, by so many moves of a search from each with its seed, where a task knows one.
    ///
    /// Shapes: `seeds [member, lane]`
    ///
    /// # Errors
    /// If the trajectories are none of the task's.
    fn improve(&self, moves: u64, seeds: &[u64], rollout: &mut Rollout) -> Result<(), Error> {
        let _ = (moves, seeds, rollout);
        Ok(())
    }

    /// How far each member's makespans are above the optima, over those, on average; none where that is not told.
    fn gaps(&self, rollout: &Rollout) -> Vec<f64> {
        let _ = rollout;
        Vec::new()
    }
}

/// A process over token sequences.
#[derive(Clone, Debug)]
pub struct TokenEnvironment(pub Arc<dyn Sequence>);

impl Environment for TokenEnvironment {
    type View = dyn Sequence;

    fn view(&self) -> &Self::View {
        self.0.as_ref()
    }

    fn fill_rewards(&self, rollout: &mut Rollout) {
        let Rollout { shape, actions, reward, .. } = rollout;
        reward.resize(shape.members() * shape.lanes(), 0.0);
        let lanes = reward.par_iter_mut().enumerate().with_min_len(256);
        lanes.for_each_init(Vec::new, |tokens, (lane, reward)| {
            tokens.clear();
            // Lanes are numbered through all members.
            let actions = &actions[shape.steps(0, lane..lane + 1)];
            tokens.extend(actions.iter().map(|&action| action as usize));
            *reward = self.0.reward(tokens);
        });
    }
}

/// A pool of shops. Each iteration draws its instances from those to learn from, one for each group of lanes. Members may
/// be paid differently for the same schedules.
#[derive(Clone, Debug)]
pub struct ShopEnvironment {
    /// The shops.
    pub task: Arc<dyn Construction>,
    /// What each member is paid for.
    pub payments: Vec<Payment>,
    /// Iterations for which a set of instances is played; drawn anew in each where absent.
    pub hold: Option<usize>,
}

impl Environment for ShopEnvironment {
    type View = dyn Construction;

    fn view(&self) -> &Self::View {
        self.task.as_ref()
    }

    fn instances(&self, seed: u64, request: RolloutRequest, groups: Range<usize>) -> Vec<u32> {
        drawn(self.task.numbers(), self.hold, seed, request, groups)
    }

    fn held_out(&self) -> Option<Range<u32>> {
        Some(held_out(self.task.numbers()))
    }

    fn fill_rewards(&self, rollout: &mut Rollout) {
        pay(self.task.numbers(), &self.payments, rollout);
    }
}

/// A pool of shops that are shown as graphs. As [`ShopEnvironment`], but a group's lanes each name their instance.
#[derive(Clone, Debug)]
pub struct GraphEnvironment {
    /// The shops.
    pub task: Arc<GraphTask>,
    /// What each member is paid for.
    pub payments: Vec<Payment>,
    /// Lanes that share an instance.
    pub group: usize,
    /// Iterations for which a set of instances is played; drawn anew in each where absent.
    pub hold: Option<usize>,
}

impl Environment for GraphEnvironment {
    type View = GraphTask;

    fn view(&self) -> &GraphTask {
        &self.task
    }

    fn instances(&self, seed: u64, request: RolloutRequest, lanes: Range<usize>) -> Vec<u32> {
        let groups = lanes.start / self.group..lanes.end.div_ceil(self.group);
        let drawn = drawn(self.task.numbers(), self.hold, seed, request, groups.clone());
        lanes.map(|lane| drawn[lane / self.group - groups.start]).collect()
    }

    fn held_out(&self) -> Option<Range<u32>> {
        Some(held_out(self.task.numbers()))
    }

    fn fill_rewards(&self, rollout: &mut Rollout) {
        pay(self.task.numbers(), &self.payments, rollout);
    }

    fn improve(&self, moves: u64, seeds: &[u64], rollout: &mut Rollout) -> Result<(), Error> {
        let better = |(lane, &seed): (usize, &u64)| {
            // Lanes are numbered through all members.
            let pairs = &rollout.actions[rollout.shape.steps(0, lane..lane + 1)];
            self.task.improved(rollout.instances[lane], pairs, moves, seed)
        };
        let better = seeds.par_iter().enumerate().map(better).collect::<Result<Vec<_>, _>>()?;
        for (lane, better) in better.into_iter().enumerate() {
            if let Some(better) = better {
                // As many steps as before, since a shop has as many operations.
                rollout.actions[rollout.shape.steps(0, lane..lane + 1)].copy_from_slice(&better);
            }
        }
        Ok(())
    }

    fn gaps(&self, rollout: &Rollout) -> Vec<f64> {
        let gap = |(outcome, &instance): (&Outcome, &u32)| {
            let optimum = f64::from(self.task.numbers().bounds[instance as usize].upper.max(1));
            f64::from(outcome.makespan) / optimum - 1.0
        };
        let gaps: Vec<f64> = rollout.outcome.iter().zip(&rollout.instances).map(gap).collect();
        gaps.chunks(rollout.shape.lanes()).map(|gaps| gaps.iter().sum::<f64>() / gaps.len() as f64).collect()
    }
}

/// The instances of some groups of lanes, for the member with this seed.
///
/// Held instances come in sets, one for each group of a batch: the first ones of the pool are the first set. Every pass
/// through the sets has an order of its own.
fn drawn(
    numbers: &Numbers,
    hold: Option<usize>,
    seed: u64,
    request: RolloutRequest,
    groups: Range<usize>,
) -> Vec<u32> {
    if let Some(hold) = hold.filter(|_| !request.held_out) {
        let (turn, sets) = (request.iteration / hold, numbers.training / groups.len());
        let mut order: Vec<usize> = (0..sets).collect();
        Key::new(seed, "instance sets").iteration((turn / sets) as u64).open().shuffle(&mut order);
        let first = order[turn % sets] * groups.len();
        return (first..first + groups.len()).map(|instance| instance as u32).collect();
    }
    groups.map(|group| drawn_anew(numbers, seed, request, group)).collect()
}

fn drawn_anew(numbers: &Numbers, seed: u64, request: RolloutRequest, group: usize) -> u32 {
    // Not the purpose "instances", which draws the pool itself.
    let key = Key::new(seed, if request.held_out { "trial instances" } else { "rollout instances" });
    let mut stream = key.iteration(request.iteration as u64).lane(group as u64).open();
    if request.held_out {
        let all = held_out(numbers);
        all.start + stream.below(all.len() as u64) as u32
    } else {
        stream.below(numbers.training as u64) as u32
    }
}

/// The shops that are held out to be judged on.
fn held_out(numbers: &Numbers) -> Range<u32> {
    numbers.training as u32..numbers.bounds.len() as u32
}

/// Pays every member for its schedules.
fn pay(numbers: &Numbers, payments: &[Payment], rollout: &mut Rollout) {
    let Rollout { shape, reward, outcome, instances, .. } = rollout;
    let lanes = shape.lanes();
    let group = outcome.len() / instances.len().max(1);
    reward.clear();
    reward.extend(outcome.iter().enumerate().map(|(lane, &outcome)| {
        let optimum = numbers.bounds[instances[lane / group] as usize].upper;
        payments[lane / lanes].pay(outcome, optimum)
    }));
}

/// Prompts that texts are written behind. Each iteration draws its prompts from those to learn from, one for each group of lanes.
#[derive(Clone, Debug)]
pub struct TextEnvironment {
    /// The prompts and their verifier.
    pub task: Arc<TextTask>,
    /// What choices read as.
    pub choices: Choices,
}

impl Environment for TextEnvironment {
    type View = TextTask;

    fn view(&self) -> &TextTask {
        &self.task
    }

    fn instances(&self, seed: u64, request: RolloutRequest, groups: Range<usize>) -> Vec<u32> {
        let (training, all) = (self.task.training(), self.task.prompts().len());
        let held_out = request.held_out && training < all;
        let key = Key::new(seed, if request.held_out { "trial instances" } else { "rollout instances" });
        let draw = |group: usize| {
            let mut stream = key.iteration(request.iteration as u64).lane(group as u64).open();
            let drawn = if held_out {
                training + stream.below((all - training) as u64) as usize
            } else {
                stream.below(training as u64) as usize
            };
            drawn as u32
        };
        groups.map(draw).collect()
    }

    fn held_out(&self) -> Option<Range<u32>> {
        let (training, all) = (self.task.training() as u32, self.task.prompts().len() as u32);
        // Where none are held out, those that were learned from are all there is.
        Some(if training < all { training..all } else { 0..all })
    }

    fn fill_rewards(&self, rollout: &mut Rollout) {
        let Rollout { shape, actions, reward, instances, .. } = rollout;
        let count = shape.members() * shape.lanes();
        let group = count / instances.len().max(1);
        let judge = |text: usize| {
            // Lanes are numbered through all members. What no tokenizer reads is no right answer.
            let written = self.choices.written(&actions[shape.steps(0, text..text + 1)]);
            written.map_or(0.0, |written| self.task.reward(instances[text / group] as usize, &written))
        };
        *reward = (0..count).into_par_iter().map(judge).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_shop::Bounds;

    #[test]
    fn sets_are_held_and_every_pass_plays_each_once() {
        let numbers = Numbers { training: 6, bounds: vec![Bounds { lower: 1, upper: 1 }; 8] };
        let play = |seed, iteration| {
            let request = RolloutRequest::batch(iteration);
            drawn(&numbers, Some(3), seed, request, 0..2)
        };
        for seed in 0..4 {
            let pass = |first: usize| {
                let mut sets: Vec<Vec<u32>> = (0..3).map(|turn| play(seed, first + 3 * turn)).collect();
                // Three iterations each.
                assert!((0..9).all(|at| play(seed, first + at) == sets[at / 3]));
                sets.sort();
                sets
            };
            assert_eq!(pass(0), [[0, 1], [2, 3], [4, 5]]);
            assert_eq!(pass(9), pass(0));
        }
        assert!((1..9).any(|seed| play(seed, 0) != play(0, 0)), "seeds have orders of their own");
    }
}
