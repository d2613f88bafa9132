//! How a trained policy seeks the best schedule of one instance: the ways that pointers and policies over graphs share.
//!
//! Every way builds whole constructions from the same log-probabilities: the likeliest choice at each step (greedy), the same from
//! every open first choice (many starts), choices by chance (samples), and the `beam` likeliest beginnings side by side. This file
//! must not know training.

use niwaki_shop::Schedule;
use niwaki_stream::{Key, Stream, by_log_chance, likeliest};
use niwaki_tasks::Outcome;

/// How a schedule is sought; greedy always is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decoding {
    /// Constructions drawn by chance.
    pub samples: usize,
    /// Width of the beam; 0 for none.
    pub beam: usize,
    /// Whether greedy begins at every open first choice too.
    pub multistart: bool,
    /// Seed of the samples.
    pub seed: u64,
    /// What log-probabilities are divided by before a sample is drawn: below 1 samples stay nearer to what is likeliest.
    pub temperature: f64,
}

impl Default for Decoding {
    fn default() -> Self {
        Self { samples: 0, beam: 0, multistart: false, seed: 0, temperature: 1.0 }
    }
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
    /// By chance, at a temperature.
    Chance(Box<Stream>, f64),
}

impl Choice {
    /// The choice at a step, from the log-probabilities of all candidates.
    pub(crate) fn take(&mut self, step: usize, log_probs: &[f32]) -> i32 {
        match self {
            Self::From(start) if step == 0 => *start,
            Self::Likeliest | Self::From(_) => likeliest(log_probs) as i32,
            Self::Chance(stream, 1.0) => by_log_chance(log_probs, stream.uniform()) as i32,
            Self::Chance(stream, temperature) => {
                by_log_chance(&tempered(log_probs, *temperature), stream.uniform()) as i32
            }
        }
    }
}

/// Log-probabilities at a temperature; those of closed candidates, most of all as a rule, stay −∞.
fn tempered(log_probs: &[f32], temperature: f64) -> Vec<f32> {
    let scaled = |log_prob: &f32| f64::from(*log_prob) / temperature;
    let open = || log_probs.iter().filter(|log_prob| **log_prob != f32::NEG_INFINITY);
    let most = open().map(scaled).fold(f64::NEG_INFINITY, f64::max);
    let all = most + open().map(|log_prob| (scaled(log_prob) - most).exp()).sum::<f64>().ln();
    let rescaled = |log_prob: &f32| {
        if *log_prob == f32::NEG_INFINITY { *log_prob } else { (scaled(log_prob) - all) as f32 }
    };
    log_probs.iter().map(rescaled).collect()
}

impl Decoding {
    /// The constructions that are rolled out, each with the name of its way; `starts` are the open first choices.
    pub(crate) fn ways(self, starts: impl Iterator<Item = i32>) -> Vec<(&'static str, Choice)> {
        let mut ways = vec![("greedy", Choice::Likeliest)];
        if self.multistart {
            ways.extend(starts.map(|start| ("multistart", Choice::From(start))));
        }
        let stream = |sample: usize| Key::new(self.seed, "decode").lane(sample as u64).open();
        ways.extend(
            (0..self.samples)
                .map(|sample| ("samples", Choice::Chance(Box::new(stream(sample)), self.temperature))),
        );
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_temperature_sharpens() {
        // 1/4 and 3/4 at one half: 1/16 and 9/16, that is .1 and .9.
        let closed = f32::NEG_INFINITY;
        let sharp = tempered(&[0.25_f32.ln(), closed, 0.75_f32.ln()], 0.5);
        assert!((sharp[0].exp() - 0.1).abs() < 1e-6 && (sharp[2].exp() - 0.9).abs() < 1e-6);
        assert_eq!(sharp[1], closed);
        // What is complete has no candidate, and is not asked.
        let share = |temperature: f64| {
            let mut choice = Choice::Chance(Box::new(Key::new(3, "decode").open()), temperature);
            let draws = (0..4000).filter(|_| choice.take(0, &[0.25_f32.ln(), closed, 0.75_f32.ln()]) == 2);
            draws.count() as f64 / 4000.0
        };
        // Three deviations of a share of 4,000 are below .021.
        assert!((share(1.0) - 0.75).abs() < 0.021 && (share(0.5) - 0.9).abs() < 0.015);
    }
}
