//! A tabular policy trained from sampled batches on the enumerable testbed, small enough that the truth is known.

use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::{Came, Record};
use niwaki_correction::{Batch, Clip, Correction, Error, Rows, Surrogate, Workspace};
use niwaki_exact::{Payoff, Process, Reward, Table, Values};
use niwaki_stream::Key;

/// A training run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// What sequences pay.
    pub reward: Reward,
    /// Number of steps; the vocabulary has four tokens.
    pub horizon: usize,
    /// Trajectories per batch.
    pub lanes: usize,
    /// Update epochs on each batch.
    pub reuse: usize,
    /// Length of an update step: gradients are normalised (N-SGD).
    pub rate: f64,
    /// Clip range; none leaves the ratios free.
    pub clip: Option<f64>,
    /// Iterations.
    pub iterations: usize,
    /// Added to the logit of a wrong first token.
    pub priming: f64,
    /// Correction of the first iterations, and how many.
    pub warmup: Option<(Correction, usize)>,
    /// Seed of all draws.
    pub seed: u64,
}

/// What a run leaves.
pub(crate) struct Trained {
    /// Exact return of the policy before each iteration and after the last.
    pub eta: Vec<f64>,
    /// One record per trajectory of the first iterations, as a trainer would dump it after its update epochs.
    pub dump: Vec<Record>,
}

impl Run {
    /// Trains, and dumps the first `dumped` iterations.
    pub(crate) fn train(&self, dumped: usize) -> Result<Trained, Box<dyn std::error::Error>> {
        let process = Process::new(4, self.horizon)?;
        let payoff = self.reward.payoff(process)?;
        let mut noise = Key::new(self.seed, "initial logits").open();
        let mut logits: Vec<f64> = (0..process.edges()).map(|_| 0.1 * noise.normal()).collect();
        logits[1] += self.priming;
        let (mut eta, mut dump) = (Vec::new(), Vec::new());
        for iteration in 0..self.iterations {
            let old = Table::new(process, &logits)?;
            eta.push(Values::new(&old, &payoff)?.eta());
            let batch = self.sample(&old, &payoff, iteration);
            let surrogate = self.surrogate(iteration)?;
            for _ in 0..self.reuse {
                self.step(&mut logits, &batch, &surrogate)?;
            }
            if iteration < dumped {
                let new = Table::new(process, &logits)?;
                dump.extend(batch.records(&new, iteration));
            }
        }
        eta.push(Values::new(&Table::new(process, &logits)?, &payoff)?.eta());
        Ok(Trained { eta, dump })
    }

    fn surrogate(&self, iteration: usize) -> Result<Surrogate, Error> {
        let correction = match self.warmup {
            Some((correction, warmup)) if iteration < warmup => correction,
            _ => "ppo".parse()?,
        };
        Ok(Surrogate { clip: self.clip.map(Clip::symmetric), ..Surrogate::new(correction) })
    }

    fn sample(&self, old: &Table, payoff: &Payoff, iteration: usize) -> Rollout {
        let process = old.process();
        let (mut edges, mut rewards) = (Vec::new(), Vec::new());
        for lane in 0..self.lanes {
            let mut noise =
                Key::new(self.seed, "actions").iteration(iteration as u64).lane(lane as u64).open();
            let mut node = 0;
            for _ in 0..self.horizon {
                let row = process.vocab() * node;
                let mut left = noise.uniform();
                let token = old.prob()[row..row + process.vocab()].iter().position(|prob| {
                    left -= prob;
                    left < 0.0
                });
                let edge = row + token.unwrap_or(process.vocab() - 1);
                edges.push(edge);
                node = edge + 1;
            }
            rewards.push(payoff.terminal()[node - process.prefixes()]);
        }
        let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
        let advantage = rewards.iter().flat_map(|reward| vec![reward - mean; self.horizon]).collect();
        let old = edges.iter().map(|&edge| old.log_prob()[edge]).collect();
        Rollout { horizon: self.horizon, edges, old, advantage, rewards }
    }

    /// One update on the batch.
    fn step(
        &self,
        logits: &mut [f64],
        batch: &Rollout,
        surrogate: &Surrogate,
    ) -> Result<(), Box<dyn std::error::Error>> {
        let process = Process::new(4, self.horizon)?;
        let table = Table::new(process, logits)?;
        let new: Vec<f64> = batch.edges.iter().map(|&edge| table.log_prob()[edge]).collect();
        let mut workspace = Workspace::default();
        let rows = Batch::new(Rows::uniform(self.horizon), &new, &batch.old, &batch.advantage);
        let evaluation = surrogate.evaluate(&rows, &mut workspace)?;
        let mut gradient = vec![0.0; process.edges()];
        for (&edge, cotangent) in batch.edges.iter().zip(evaluation.cotangent) {
            gradient[edge] += cotangent;
        }
        table.pull_back(&mut gradient);
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        if norm > 0.0 {
            logits.iter_mut().zip(&gradient).for_each(|(logit, g)| *logit += self.rate * g / norm);
        }
        Ok(())
    }
}

/// A batch as it was drawn.
struct Rollout {
    horizon: usize,
    edges: Vec<usize>,
    old: Vec<f64>,
    advantage: Vec<f64>,
    rewards: Vec<f64>,
}

impl Rollout {
    fn records(&self, new: &Table, iteration: usize) -> Vec<Record> {
        let lanes = self.edges.chunks(self.horizon).zip(self.old.chunks(self.horizon)).enumerate();
        lanes
            .map(|(lane, (edges, old))| {
                let mut record = Record::default();
                record.fill(Field::OldLogProb, Came::Many).extend_from_slice(old);
                let new = edges.iter().map(|&edge| new.log_prob()[edge]);
                record.fill(Field::NewLogProb, Came::Many).extend(new);
                record.fill(Field::Advantage, Came::One).push(self.advantage[lane * self.horizon]);
                record.fill(Field::Reward, Came::One).push(self.rewards[lane]);
                record.iteration = Some(iteration as i64);
                record
            })
            .collect()
    }
}
