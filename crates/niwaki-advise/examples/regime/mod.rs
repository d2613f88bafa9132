//! Proper pairs of policies over independent steps, drifted apart by a drift that is set exactly, as dumps.
//!
//! Tokens have their own log-probs at each step; the policy drifts along noise or towards what pays.

use niwaki_advise::Fault;
use niwaki_advise::measure::Measure;
use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::{Came, Chunk, Record};
use niwaki_stream::{Key, Stream};

/// Tokens at each step.
pub(crate) const VOCAB: usize = 8;

/// Where a policy drifts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Way {
    /// Along noise.
    Noise,
    /// Towards what pays.
    Reward,
}

/// A rollout policy, one that has drifted from it by so much, and what tokens are worth.
pub(crate) struct Regime {
    /// Log-probs of the policy that samples, `[horizon, VOCAB]`.
    pub old: Vec<[f64; VOCAB]>,
    /// Log-probs of the policy that has drifted.
    pub new: Vec<[f64; VOCAB]>,
    /// Probabilities of both, old first.
    chance: [Vec<[f64; VOCAB]>; 2],
    worth: Vec<[f64; VOCAB]>,
    /// Mean reward under the policy that samples.
    pub mean: f64,
}

impl Regime {
    /// A regime of so many steps and so much drift σ²T.
    pub(crate) fn new(horizon: usize, drift: f64, way: Way, seed: u64) -> Self {
        let mut noise = Key::new(seed, "regime").open();
        let mut table = |scale: f64| -> Vec<[f64; VOCAB]> {
            (0..horizon).map(|_| std::array::from_fn(|_| scale * noise.normal())).collect()
        };
        let (logits, worth, random) = (table(0.7), table(1.0), table(1.0));
        let along = if way == Way::Noise { &random } else { &worth };
        let policy = |size: f64| -> Vec<[f64; VOCAB]> {
            let moved = logits.iter().zip(along);
            moved
                .map(|(logits, along)| normal(std::array::from_fn(|a| logits[a] + size * along[a])))
                .collect()
        };
        let old = policy(0.0);
        // The drift of a step grows with its size, until it is far beyond the largest of the grid.
        let (mut low, mut high) = (0.0, 30.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if drift_between(&old, &policy(middle)) < drift { low = middle } else { high = middle }
        }
        let new = policy(low);
        let chance =
            [&old, &new].map(|policy| policy.iter().map(|row| row.map(f64::exp)).collect::<Vec<_>>());
        let mut regime = Self { old, new, chance, worth, mean: 0.0 };
        // What pays: worth above a bar that about a fifth of the trajectories reach.
        let mut draws = Key::new(seed, "mean").open();
        regime.mean = (0..4096).map(|_| regime.draw(&mut draws, |_| false).1).sum::<f64>() / 4096.0;
        regime
    }

    /// Tokens and what they pay, drawn from the drifted policy at the steps that `moved` names and from the old one elsewhere.
    pub(crate) fn draw(&self, noise: &mut Stream, moved: impl Fn(usize) -> bool) -> (Vec<usize>, f64) {
        let mut worth = 0.0;
        let mut tokens = Vec::with_capacity(self.old.len());
        for (t, pays) in self.worth.iter().enumerate() {
            let mut left = noise.uniform();
            let token = self.chance[usize::from(moved(t))][t].iter().position(|chance| {
                left -= chance;
                left < 0.0
            });
            tokens.push(token.unwrap_or(VOCAB - 1));
            worth += pays[tokens[tokens.len() - 1]];
        }
        (tokens, f64::from(u8::from(worth > 0.8 * (self.old.len() as f64).sqrt())))
    }

    /// Adds so many trajectories of the old policy.
    pub(crate) fn add(&self, count: usize, noise: &mut Stream, measure: &mut Measure) -> Result<(), Fault> {
        let (mut chunk, mut record) = (Chunk::default(), Record::default());
        for _ in 0..count {
            let (tokens, reward) = self.draw(noise, |_| false);
            record.clear();
            let picked = |of: &[[f64; VOCAB]]| -> Vec<f64> {
                of.iter().zip(&tokens).map(|(row, &a)| row[a]).collect()
            };
            record.fill(Field::OldLogProb, Came::Many).extend(picked(&self.old));
            record.fill(Field::NewLogProb, Came::Many).extend(picked(&self.new));
            record.fill(Field::Advantage, Came::One).push(reward - self.mean);
            chunk.push(&record, None)?;
        }
        measure.add(&chunk);
        Ok(())
    }
}

fn normal(logits: [f64; VOCAB]) -> [f64; VOCAB] {
    let total = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
    logits.map(|logit| logit - total)
}

fn drift_between(old: &[[f64; VOCAB]], new: &[[f64; VOCAB]]) -> f64 {
    let step = |(old, new): (&[f64; VOCAB], &[f64; VOCAB])| {
        let moment =
            |power: i32| (0..VOCAB).map(|a| old[a].exp() * (new[a] - old[a]).powi(power)).sum::<f64>();
        moment(2) - moment(1).powi(2)
    };
    old.iter().zip(new).map(step).sum()
}
