//! One logit per prefix and token, in f64: scores by lookup, pulls back by a sparse scatter, no tape.
//!
//! Rows are numbered as [`Process::row`] does. Log-probabilities are kept and refreshed only where a step changed a
//! row, so an iteration costs what the batch touches. Knows nothing of rewards but what their values do to a tree.

use niwaki_exact::Process;
use niwaki_nn::{Optimiser, optimiser::StepRule};
use niwaki_stream::{Key, by_chance, likeliest};

/// A tabular softmax policy with its gradient and optimiser state, and a value per prefix for a critic.
///
/// Paper: `app:testbed-protocol`
#[derive(Clone, Debug)]
pub struct Tabular {
    process: Process,
    /// Logits `[prefixes, vocab]`, then the critic's values `[prefixes]` where there is one.
    parameters: Vec<f64>,
    gradient: Vec<f64>,
    moments: Vec<Vec<f64>>,
    steps: u64,
    /// `[prefixes, vocab]`, `true` where a token may not be chosen; empty where all may.
    closed: Vec<bool>,
    log_prob: Vec<f64>,
    prob: Vec<f64>,
    /// Rows with a gradient, in the order in which they got one.
    touched: Vec<u32>,
    is_touched: Vec<bool>,
}

/// What flows back to one visited step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pull {
    /// Cotangent of the chosen token's log-probability.
    pub log_prob: f64,
    /// Cotangent of the row's entropy.
    pub entropy: f64,
    /// Cotangent of the row's value.
    pub value: f64,
}

impl Tabular {
    /// A policy with logits `scale · N(0, 1)` from the seed's weight stream, and values of zero where it has a critic.
    ///
    /// Shapes: `closed [prefixes, vocab]`, or empty
    #[must_use]
    pub fn new(process: Process, seed: u64, scale: f64, closed: Vec<bool>, critic: bool) -> Self {
        let mut stream = Key::new(seed, "weights").open();
        let (edges, prefixes) = (process.edges(), process.prefixes());
        let mut parameters: Vec<f64> = (0..edges).map(|_| scale * stream.normal()).collect();
        parameters.resize(edges + if critic { prefixes } else { 0 }, 0.0);
        let mut policy = Self {
            process,
            gradient: vec![0.0; parameters.len()],
            parameters,
            moments: Vec::new(),
            steps: 0,
            closed,
            log_prob: vec![0.0; edges],
            prob: vec![0.0; edges],
            touched: Vec::new(),
            is_touched: vec![false; prefixes],
        };
        policy.refresh_all();
        policy
    }

    /// The process.
    #[must_use]
    pub const fn process(&self) -> Process {
        self.process
    }

    /// Logits, then the critic's values.
    #[must_use]
    pub fn parameters(&self) -> &[f64] {
        &self.parameters
    }

    /// The gradient that the next step will take; zero in rows that no pull reached.
    #[must_use]
    pub fn gradient(&self) -> &[f64] {
        &self.gradient
    }

    /// Optimiser steps taken, and its moments, each as long as the parameters.
    #[must_use]
    pub fn state(&self) -> (u64, &[Vec<f64>]) {
        (self.steps, &self.moments)
    }

    /// Puts parameters and optimiser state back.
    pub fn restore(&mut self, parameters: Vec<f64>, steps: u64, moments: Vec<Vec<f64>>) {
        self.parameters = parameters;
        self.steps = steps;
        self.moments = moments;
        self.refresh_all();
    }

    /// Raises a token's first logit so that a policy that was indifferent there chooses it with probability `mass`.
    ///
    /// Paper: `app:sched-controls` (priming toward a dead branch)
    pub fn prime(&mut self, token: usize, mass: f64) {
        let others = (self.process.vocab() - 1) as f64;
        self.parameters[token] = (mass * others / (1.0 - mass)).ln();
        self.refresh(0);
    }

    /// The log-probability of a token in a row.
    #[must_use]
    pub fn log_prob(&self, row: usize, token: usize) -> f64 {
        self.log_prob[row * self.process.vocab() + token]
    }

    /// The probabilities of a row's tokens, `[vocab]`.
    #[must_use]
    pub fn prob(&self, row: usize) -> &[f64] {
        &self.prob[row * self.process.vocab()..][..self.process.vocab()]
    }

    /// The entropy of a row.
    #[must_use]
    pub fn entropy(&self, row: usize) -> f64 {
        let edges = row * self.process.vocab()..(row + 1) * self.process.vocab();
        edges.filter(|&edge| self.prob[edge] > 0.0).map(|edge| -self.prob[edge] * self.log_prob[edge]).sum()
    }

    /// The critic's value of a row; zero without a critic.
    #[must_use]
    pub fn value(&self, row: usize) -> f64 {
        self.parameters.get(self.process.edges() + row).copied().unwrap_or(0.0)
    }

    /// Draws a trajectory: one uniform per step, or the likeliest tokens where there are none.
    ///
    /// Shapes: `tokens [horizon]`, `rows [horizon]`
    pub fn draw(&self, mut uniform: Option<&mut dyn FnMut() -> f64>, tokens: &mut [i32], rows: &mut [u32]) {
        let vocab = self.process.vocab();
        let mut row = 0;
        for (token, visited) in tokens.iter_mut().zip(rows) {
            *visited = row as u32;
            let chosen = match uniform.as_mut() {
                Some(uniform) => by_chance(self.prob(row).iter().copied(), uniform()),
                None => likeliest(self.prob(row)),
            };
            *token = chosen as i32;
            row = vocab * row + 1 + chosen;
        }
    }

    /// Adds what flows back to one visited step.
    pub fn pull(&mut self, row: usize, token: usize, pull: Pull) {
        let vocab = self.process.vocab();
        if !self.is_touched[row] {
            self.is_touched[row] = true;
            self.touched.push(row as u32);
        }
        let edges = row * vocab..(row + 1) * vocab;
        if pull.log_prob != 0.0 {
            for (gradient, &prob) in self.gradient[edges.clone()].iter_mut().zip(&self.prob[edges.clone()]) {
                *gradient -= pull.log_prob * prob;
            }
            self.gradient[edges.start + token] += pull.log_prob;
        }
        if pull.entropy != 0.0 {
            let entropy = self.entropy(row);
            for edge in edges.filter(|&edge| self.prob[edge] > 0.0) {
                self.gradient[edge] -= pull.entropy * self.prob[edge] * (self.log_prob[edge] + entropy);
            }
        }
        if pull.value != 0.0 {
            self.gradient[self.process.edges() + row] += pull.value;
        }
    }

    /// One step along the gradient, which is then forgotten; returns its norm.
    pub fn step(&mut self, optimiser: &Optimiser, rate: f64) -> f64 {
        let norm = self.squared_norm().sqrt();
        if let Some(factor) = optimiser.factor(norm) {
            self.steps += 1;
            match optimiser.rule {
                StepRule::NormalisedSgd | StepRule::Sgd => {
                    for index in 0..self.touched.len() {
                        let row = self.touched[index] as usize;
                        for place in self.places(row) {
                            self.parameters[place] += rate * factor * self.gradient[place];
                        }
                        self.refresh(row);
                    }
                }
                // A table is kept whole: specs refuse another storage.
                StepRule::Adam { first, second, epsilon, decay, storage: _ } => {
                    self.adam(rate, factor, [first, second, epsilon, decay]);
                }
            }
        }
        for index in 0..self.touched.len() {
            let row = self.touched[index] as usize;
            self.is_touched[row] = false;
            for place in self.places(row) {
                self.gradient[place] = 0.0;
            }
        }
        self.touched.clear();
        norm
    }

    fn squared_norm(&self) -> f64 {
        let rows = self.touched.iter().flat_map(|&row| self.places(row as usize));
        rows.map(|place| self.gradient[place] * self.gradient[place]).sum()
    }

    /// Where a row's logits and value lie.
    fn places(&self, row: usize) -> impl Iterator<Item = usize> + use<> {
        let (vocab, edges) = (self.process.vocab(), self.process.edges());
        let value = (self.parameters.len() > edges).then_some(edges + row);
        (row * vocab..(row + 1) * vocab).chain(value)
    }

    /// Adam moves every parameter, also those without a gradient: its moments live on.
    fn adam(&mut self, rate: f64, factor: f64, [first, second, epsilon, decay]: [f64; 4]) {
        let length = self.parameters.len();
        self.moments.resize_with(2, || vec![0.0; length]);
        let [means, squares] = self.moments.as_mut_slice() else { return };
        let count = self.steps as i32;
        let (first_mass, second_mass) = (1.0 - first.powi(count), 1.0 - second.powi(count));
        for (((parameter, &gradient), mean), square) in
            self.parameters.iter_mut().zip(&self.gradient).zip(means).zip(squares)
        {
            let gradient = factor * gradient;
            *mean = first * *mean + (1.0 - first) * gradient;
            *square = second * *square + (1.0 - second) * gradient * gradient;
            *parameter -= rate * decay * *parameter;
            *parameter += rate * (*mean / first_mass) / ((*square / second_mass).sqrt() + epsilon);
        }
        self.refresh_all();
    }

    fn refresh_all(&mut self) {
        for row in 0..self.process.prefixes() {
            self.refresh(row);
        }
    }

    /// Log-softmax of one row over its open tokens.
    fn refresh(&mut self, row: usize) {
        let vocab = self.process.vocab();
        let edges = row * vocab..(row + 1) * vocab;
        let closed = |edge: usize| self.closed.get(edge).copied().unwrap_or(false);
        let highest = (edges.clone().filter(|&edge| !closed(edge)))
            .map(|edge| self.parameters[edge])
            .fold(f64::NEG_INFINITY, f64::max);
        let mut total = 0.0;
        for edge in edges.clone() {
            self.prob[edge] = if closed(edge) { 0.0 } else { (self.parameters[edge] - highest).exp() };
            total += self.prob[edge];
        }
        let log_total = total.ln();
        for edge in edges {
            self.prob[edge] /= total;
            self.log_prob[edge] =
                if closed(edge) { f64::NEG_INFINITY } else { self.parameters[edge] - highest - log_total };
        }
    }

    /// The exact return of the policy where `terminal [vocab^horizon]` says what each sequence pays.
    ///
    /// Paper: `eq:trpo-identity` (η)
    #[must_use]
    pub fn eta(&self, terminal: &[f64]) -> f64 {
        let mut values = vec![0.0; self.process.prefixes()];
        self.induct(terminal, &mut values);
        values[0]
    }

    /// The exact advantage of every choice, `[prefixes, vocab]`, by backward induction.
    #[must_use]
    pub fn advantages(&self, terminal: &[f64]) -> Vec<f64> {
        let (vocab, prefixes) = (self.process.vocab(), self.process.prefixes());
        let mut values = vec![0.0; prefixes];
        self.induct(terminal, &mut values);
        let next =
            |edge: usize| values.get(edge + 1).copied().unwrap_or_else(|| terminal[edge + 1 - prefixes]);
        (0..self.process.edges()).map(|edge| next(edge) - values[edge / vocab]).collect()
    }

    /// Fills the value of every prefix, from the last level to the first.
    fn induct(&self, terminal: &[f64], values: &mut [f64]) {
        let vocab = self.process.vocab();
        for level in (0..self.process.horizon()).rev() {
            let rows = self.process.level(level);
            let (above, below) = values.split_at_mut(rows.end);
            let next = if level + 1 == self.process.horizon() { terminal } else { &*below };
            let prob = &self.prob[rows.start * vocab..rows.end * vocab];
            for ((value, prob), next) in
                above[rows].iter_mut().zip(prob.chunks_exact(vocab)).zip(next.chunks_exact(vocab))
            {
                *value = prob.iter().zip(next).map(|(prob, next)| prob * next).sum();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_exact::{Reward, Table, Values};

    fn policy(critic: bool) -> Tabular {
        Tabular::new(Process::new(4, 4).unwrap(), 3, 0.7, Vec::new(), critic)
    }

    #[test]
    fn values_are_the_oracles() {
        let policy = policy(false);
        let payoff = Reward::TwoBranch.payoff(policy.process()).unwrap();
        let table = Table::new(policy.process(), policy.parameters()).unwrap();
        let values = Values::new(&table, &payoff).unwrap();
        assert!((policy.eta(payoff.terminal()) - values.eta()).abs() < 1e-14);
        for (ours, theirs) in policy.advantages(payoff.terminal()).iter().zip(values.advantage()) {
            assert!((ours - theirs).abs() < 1e-14);
        }
    }

    #[test]
    fn a_pull_is_the_derivative() {
        let mut policy = policy(true);
        let pull = Pull { log_prob: 0.3, entropy: -0.7, value: 0.2 };
        policy.pull(6, 2, pull);
        let gradient = policy.gradient().to_vec();
        let worth = |policy: &Tabular| {
            pull.log_prob * policy.log_prob(6, 2)
                + pull.entropy * policy.entropy(6)
                + pull.value * policy.value(6)
        };
        for place in (0..gradient.len()).step_by(7).chain(24..28).chain([policy.process().edges() + 6]) {
            let shifted = |by: f64| {
                let mut moved = policy.clone();
                let mut parameters = moved.parameters.clone();
                parameters[place] += by;
                moved.restore(parameters, 0, Vec::new());
                worth(&moved)
            };
            let slope = (shifted(1e-5) - shifted(-1e-5)) / 2e-5;
            assert!((slope - gradient[place]).abs() < 1e-9, "{place}: {slope} {}", gradient[place]);
        }
    }

    #[test]
    fn a_normalised_step_has_the_rates_length_and_leaves_no_gradient() {
        let mut policy = policy(false);
        let before = policy.parameters().to_vec();
        policy.pull(0, 1, Pull { log_prob: 2.0, ..Pull::default() });
        policy.pull(7, 3, Pull { log_prob: -1.0, ..Pull::default() });
        policy.step(&Optimiser::normalised_sgd(), 0.3);
        let moved: f64 = before.iter().zip(policy.parameters()).map(|(a, b)| (a - b) * (a - b)).sum();
        assert!((moved.sqrt() - 0.3).abs() < 1e-12);
        assert!(policy.gradient().iter().all(|&gradient| gradient == 0.0));
        // Without a gradient there is no step.
        let after = policy.parameters().to_vec();
        assert_eq!(policy.step(&Optimiser::normalised_sgd(), 0.3), 0.0);
        assert_eq!(policy.parameters(), after);
    }

    #[test]
    fn closed_tokens_are_never_drawn() {
        let process = Process::new(4, 3).unwrap();
        let closed: Vec<bool> = (0..process.edges()).map(|edge| edge % 4 == 1).collect();
        let mut policy = Tabular::new(process, 1, 0.1, closed, false);
        policy.pull(0, 2, Pull { log_prob: 1.0, entropy: 0.5, value: 0.0 });
        policy.step(&Optimiser::sgd(), 1.0);
        let mut stream = Key::new(1, "actions").open();
        let (mut tokens, mut rows) = ([0; 3], [0; 3]);
        for _ in 0..500 {
            policy.draw(Some(&mut || stream.uniform()), &mut tokens, &mut rows);
            assert!(tokens.iter().all(|&token| token != 1));
        }
        assert!((policy.prob(0).iter().sum::<f64>() - 1.0).abs() < 1e-15);
    }

    #[test]
    fn priming_sets_the_first_choice() {
        let process = Process::new(4, 3).unwrap();
        let mut policy = Tabular::new(process, 1, 0.0, Vec::new(), false);
        policy.prime(1, 0.97);
        assert!((policy.prob(0)[1] - 0.97).abs() < 1e-12);
    }
}
