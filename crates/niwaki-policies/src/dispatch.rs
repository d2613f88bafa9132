//! The best schedule that a policy over graphs finds for one instance.
//!
//! As with pointers, every way builds whole schedules from the same log-probabilities: the likeliest pair at each step (greedy), the
//! same from every open first pair (many starts), pairs by chance (samples), and the `beam` likeliest beginnings side by side. The
//! least violation wins, then the least makespan, then the one that was tried first. This file must not know training.

use crate::Error;
use crate::graph::{GraphPolicy, GraphScratch};
use crate::pointer::{Decoded, Decoding};
use crate::policy::{MakeEngine, Policy};
use crate::token::{by_chance, likeliest};
use niwaki_nn::Engine;
use niwaki_shop::Schedule;
use niwaki_stream::{Key, Stream};
use niwaki_tasks::{GraphLanes, GraphTask, Outcome};

/// Schedules that are built together.
const BATCH: usize = 128;

/// How one schedule is built.
enum Way {
    Likeliest,
    /// The likeliest after a given first pair.
    From(i32),
    Chance(Box<Stream>),
}

/// Dispatches the first instance of a task with the parameters of the first member of an engine; `make` makes an engine with one member, `tick` is
/// told of the steps of constructions as they are taken, in all `(1 + starts + samples + beam) · operations`.
///
/// # Errors
/// If a log-probability is no number, or the device fails.
pub fn dispatch<E: Engine<Scalar = f32>>(
    policy: &GraphPolicy,
    parameters: &E,
    make: &MakeEngine<E>,
    task: &GraphTask,
    how: Decoding,
    tick: &mut dyn FnMut(usize),
) -> Result<Decoded, Error> {
    let mut ways: Vec<(&'static str, Way)> = vec![("greedy", Way::Likeliest)];
    if how.multistart {
        let first = task.begin(&[0])?;
        ways.extend(first.open(0).map(|start| ("multistart", Way::From(start as i32))));
    }
    let stream = |sample: usize| Key::new(how.seed, "decode").lane(sample as u64).open();
    ways.extend((0..how.samples).map(|sample| ("samples", Way::Chance(Box::new(stream(sample))))));
    let mut search = Search { policy, parameters, make, task, scratch: GraphScratch::default(), tick };
    // Worse than anything, until greedy is done.
    let worst = Outcome { makespan: u32::MAX, late: u32::MAX, violation: u64::MAX };
    let mut best = Decoded { schedule: Schedule::default(), outcome: worst, way: "greedy", tried: 0 };
    for batch in ways.chunks_mut(BATCH) {
        search.roll(batch, &mut best)?;
    }
    if how.beam > 0 {
        search.beam(how.beam, &mut best)?;
    }
    Ok(best)
}

/// What all ways share.
struct Search<'a, E> {
    policy: &'a GraphPolicy,
    parameters: &'a E,
    make: &'a MakeEngine<E>,
    task: &'a GraphTask,
    scratch: GraphScratch<E>,
    tick: &'a mut dyn FnMut(usize),
}

impl<E: Engine<Scalar = f32>> Search<'_, E> {
    /// Log-probabilities of every lane's next pairs, `[lane, pair]`.
    fn look(&mut self, building: &GraphLanes) -> Result<Vec<f32>, Error> {
        let log_probs = self.policy.next_log_probs(&mut self.scratch, self.task, building)?;
        // A lane that is complete has no open pair, and one that is not has a likeliest one.
        if log_probs.iter().any(|log_prob| log_prob.is_nan()) {
            return Err(Error::NoNumber);
        }
        Ok(log_probs)
    }

    /// Builds one schedule for each way.
    fn roll(&mut self, ways: &mut [(&'static str, Way)], best: &mut Decoded) -> Result<(), Error> {
        self.policy.begin(self.parameters, &mut self.scratch, self.make, ways.len())?;
        let mut building = self.task.begin(&vec![0; ways.len()])?;
        for step in 0..self.policy.horizon() {
            let log_probs = self.look(&building)?;
            let lanes = log_probs.chunks_exact(self.policy.sizes.pairs()).zip(ways.iter_mut());
            let choice = |(log_probs, (_, way)): (&[f32], &mut (&'static str, Way))| match way {
                Way::From(start) if step == 0 => *start,
                Way::Likeliest | Way::From(_) => likeliest(log_probs) as i32,
                Way::Chance(stream) => by_chance(log_probs, stream.uniform()) as i32,
            };
            let choices: Vec<i32> = lanes.map(choice).collect();
            building.choose(&choices)?;
            (self.tick)(ways.len());
        }
        (0..ways.len()).for_each(|lane| keep(best, &building, lane, ways[lane].0));
        Ok(())
    }

    /// Keeps the `width` likeliest beginnings at every step.
    fn beam(&mut self, width: usize, best: &mut Decoded) -> Result<(), Error> {
        self.policy.begin(self.parameters, &mut self.scratch, self.make, width)?;
        let mut beginnings: Vec<(f64, Vec<i32>)> = vec![(0.0, Vec::new())];
        for step in 0..self.policy.horizon() {
            // Rows that no beginning needs yet repeat the first one.
            let row = |lane: usize| &beginnings[if lane < beginnings.len() { lane } else { 0 }].1;
            let building = self.rebuild(width, step, |lane, at| row(lane)[at])?;
            let log_probs = self.look(&building)?;
            let mut longer: Vec<(f64, usize, i32)> = Vec::new();
            let lanes = beginnings.iter().zip(log_probs.chunks_exact(self.policy.sizes.pairs()));
            for (lane, ((score, _), log_probs)) in lanes.enumerate() {
                let open = (0..).zip(log_probs).filter(|(_, log_prob)| log_prob.is_finite());
                longer.extend(open.map(|(pair, &log_prob)| (score + f64::from(log_prob), lane, pair)));
            }
            longer.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
            longer.truncate(width);
            beginnings = longer
                .into_iter()
                .map(|(score, lane, pair)| (score, [&beginnings[lane].1[..], &[pair]].concat()))
                .collect();
            (self.tick)(width);
        }
        let building =
            self.rebuild(beginnings.len(), self.policy.horizon(), |lane, at| beginnings[lane].1[at])?;
        (0..beginnings.len()).for_each(|lane| keep(best, &building, lane, "beam"));
        Ok(())
    }

    /// Lanes that have taken given pairs.
    fn rebuild(
        &self,
        lanes: usize,
        steps: usize,
        choice: impl Fn(usize, usize) -> i32,
    ) -> Result<GraphLanes, Error> {
        let mut building = self.task.begin(&vec![0; lanes])?;
        for step in 0..steps {
            let choices: Vec<i32> = (0..lanes).map(|lane| choice(lane, step)).collect();
            building.choose(&choices)?;
        }
        Ok(building)
    }
}

/// Takes a complete lane where it is better than the best so far.
fn keep(best: &mut Decoded, building: &GraphLanes, lane: usize, way: &'static str) {
    let rank = |outcome: &Outcome| (outcome.violation, outcome.makespan);
    let (outcome, tried) = (building.outcome(lane), best.tried + 1);
    if rank(&outcome) < rank(&best.outcome) {
        *best = Decoded { schedule: building.schedule(lane), outcome, way, tried };
    }
    best.tried = tried;
}
