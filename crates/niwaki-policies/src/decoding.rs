//! How a trained policy seeks the best schedule of one instance: the ways that pointers and policies over graphs share.
//!
//! Every way builds whole constructions from the same log-probabilities: the likeliest choice at each step (greedy), the same from
//! every open first choice (many starts), choices by chance (samples), and the `beam` likeliest beginnings side by side. This file
//! must not know training.

use crate::token::{by_chance, likeliest};
use niwaki_shop::Schedule;
use niwaki_stream::{Key, Stream};
use niwaki_tasks::Outcome;

/// How a schedule is sought; greedy always is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decoding {
    /// Constructions drawn by chance.
    pub samples: usize,
    /// Width of the beam; 0 for none.
    pub beam: usize,
    /// Whether greedy begins at every open first choice too.
    pub multistart: bool,
    /// Seed of the samples.
    pub seed: u64,
}

/// The best construction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Its schedule.
    pub schedule: Schedule,
    /// How it turned out.
    pub outcome: Outcome,
    /// The way that found it first: `greedy`, `multistart`, `samples` or `beam`.
    pub way: &'static str,
    /// Constructions that were tried.
    pub tried: usize,
}

/// How one construction chooses.
pub(crate) enum Choice {
    Likeliest,
    /// The likeliest after a given first choice.
    From(i32),
    Chance(Box<Stream>),
}

impl Choice {
    /// The choice at a step, from the log-probabilities of all candidates.
    pub(crate) fn take(&mut self, step: usize, log_probs: &[f32]) -> i32 {
        match self {
            Self::From(start) if step == 0 => *start,
            Self::Likeliest | Self::From(_) => likeliest(log_probs) as i32,
            Self::Chance(stream) => by_chance(log_probs, stream.uniform()) as i32,
        }
    }
}

impl Decoding {
    /// The constructions that are rolled out, each with the name of its way; `starts` are the open first choices.
    pub(crate) fn ways(self, starts: impl Iterator<Item = i32>) -> Vec<(&'static str, Choice)> {
        let mut ways = vec![("greedy", Choice::Likeliest)];
        if self.multistart {
            ways.extend(starts.map(|start| ("multistart", Choice::From(start))));
        }
        let stream = |sample: usize| Key::new(self.seed, "decode").lane(sample as u64).open();
        ways.extend((0..self.samples).map(|sample| ("samples", Choice::Chance(Box::new(stream(sample))))));
        ways
    }
}

impl Decoded {
    /// Worse than anything, until greedy is done.
    pub(crate) fn nothing() -> Self {
        let outcome = Outcome { makespan: u32::MAX, late: u32::MAX, violation: u64::MAX };
        Self { schedule: Schedule::default(), outcome, way: "greedy", tried: 0 }
    }
}

/// The beginnings of a beam, the likeliest first, each with its log-probability.
pub(crate) struct Beam {
    width: usize,
    beginnings: Vec<(f64, Vec<i32>)>,
}

impl Beam {
    pub(crate) fn new(width: usize) -> Self {
        Self { width, beginnings: vec![(0.0, Vec::new())] }
    }

    /// Beginnings that there are; fewer than the width in the first steps.
    pub(crate) fn len(&self) -> usize {
        self.beginnings.len()
    }

    /// The choices of a row. Rows that no beginning needs yet repeat the first one.
    pub(crate) fn row(&self, lane: usize) -> &[i32] {
        &self.beginnings[if lane < self.len() { lane } else { 0 }].1
    }

    /// Keeps the likeliest of all that are one choice longer; `open` gives a beginning's choices with their log-probabilities.
    pub(crate) fn lengthen<I: Iterator<Item = (i32, f32)>>(&mut self, open: impl Fn(usize) -> I) {
        let mut longer: Vec<(f64, usize, i32)> = Vec::new();
        for (lane, (score, _)) in self.beginnings.iter().enumerate() {
            longer.extend(open(lane).map(|(choice, log_prob)| (score + f64::from(log_prob), lane, choice)));
        }
        longer.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
        longer.truncate(self.width);
        let beginning = |(score, lane, choice): (f64, usize, i32)| {
            (score, [&self.beginnings[lane].1[..], &[choice]].concat())
        };
        self.beginnings = longer.into_iter().map(beginning).collect();
    }
}
