//! One step ahead: lanes are shown to the network, and what it says of their next pairs is heard. A device works in between, so that
//! the caller may do something else before listening.

use super::alike::first_alike;
use super::{GraphPolicy, GraphScratch};
use crate::Error;
use niwaki_nn::log_softmax;
use niwaki_tasks::{GraphLanes, GraphTask};

/// What a network was asked of lanes.
pub(crate) struct Asked {
    /// The first lane that is in the same state as each; `None` for one with at most one way to go.
    first: Vec<Option<usize>>,
    /// The lanes that it was shown, if any.
    which: Vec<Option<usize>>,
}

/// What a network says of some lanes' next steps.
pub(super) struct Ahead<'a> {
    /// `[member, lane][pair]`
    pub(super) logits: Vec<&'a [f32]>,
    /// `[member, lane, pair]`
    pub(super) open: &'a [u8],
}

impl GraphPolicy {
    /// Shows the network some lanes, one place after the other, of which some may be empty, and lets it begin to say something of their next
    /// steps; where nobody keeps what they show, a lane that has only one way to go shows nothing else.
    pub(super) fn ask(
        &self,
        scratch: &mut GraphScratch,
        task: &GraphTask,
        building: &GraphLanes,
        which: &[Option<usize>],
        kept: bool,
    ) -> Result<(), Error> {
        let GraphScratch { engine, now, .. } = scratch;
        let Some(engine) = engine else { return Err(Error::Unready) };
        self.look(task, building, which, now, kept);
        self.step_inputs.load(engine.as_mut(), now)?;
        Ok(engine.start_forward()?)
    }

    /// What the network says of the lanes that it was shown.
    pub(super) fn hear<'a>(&self, scratch: &'a GraphScratch) -> Result<Ahead<'a>, Error> {
        let Some(engine) = &scratch.engine else { return Err(Error::Unready) };
        engine.synchronize()?;
        let of = |member| engine.output(member, 0).chunks(self.sizes.pairs());
        Ok(Ahead { logits: (0..engine.members()).flat_map(of).collect(), open: &scratch.now.open })
    }

    /// Asks for the log-probabilities of every lane's next pairs, of the only member.
    ///
    /// Lanes in the same state are looked at once, and those with one way to go not at all; where the engine does not change its size freely,
    /// their places stay empty.
    pub(crate) fn ask_next(
        &self,
        scratch: &mut GraphScratch,
        task: &GraphTask,
        building: &GraphLanes,
    ) -> Result<Asked, Error> {
        let Some(engine) = &mut scratch.engine else { return Err(Error::Unready) };
        let first = first_alike(building);
        let own = |lane: usize| first[lane].filter(|&first| first == lane);
        let mut which: Vec<Option<usize>> = (0..building.count()).map(own).collect();
        if engine.resizes_freely() || which.iter().all(Option::is_none) {
            which.retain(Option::is_some);
        }
        if !which.is_empty() {
            if engine.resizes_freely() {
                engine.set_items(which.len())?;
            }
            self.ask(scratch, task, building, &which, false)?;
        }
        Ok(Asked { first, which })
    }

    /// The log-probabilities that were asked for, `[lane, pair]`; those of closed pairs are −∞.
    pub(crate) fn hear_next(
        &self,
        scratch: &GraphScratch,
        building: &GraphLanes,
        Asked { first, which }: Asked,
    ) -> Result<Vec<f32>, Error> {
        let pairs = self.sizes.pairs();
        let mut log_probs = vec![f32::NEG_INFINITY; first.len() * pairs];
        for (lane, log_probs) in log_probs.chunks_exact_mut(pairs).enumerate() {
            if first[lane].is_none() {
                building.open(lane).for_each(|pair| log_probs[pair] = 0.0);
            }
        }
        if which.is_empty() {
            return Ok(log_probs);
        }
        let ahead = self.hear(scratch)?;
        for ((lane, logits), open) in which.iter().zip(ahead.logits).zip(ahead.open.chunks_exact(pairs)) {
            if let Some(lane) = lane {
                log_softmax(logits, Some(open), &mut log_probs[lane * pairs..(lane + 1) * pairs]);
            }
        }
        for (lane, first) in first.iter().enumerate() {
            if let Some(first) = first.filter(|&first| first < lane) {
                log_probs.copy_within(first * pairs..(first + 1) * pairs, lane * pairs);
            }
        }
        Ok(log_probs)
    }
}
