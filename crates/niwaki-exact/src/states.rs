//! A process as a graph of states, with chance: what weights of paths are worth beside weights of states.
//!
//! Where histories merge, a state is reached by many paths. [`crate::Merging`] lists them; here everything is a recursion over
//! states, level by level, so that the states may be many, their successors drawn, and what the policy sees less than the state.

use crate::Error;
use crate::sum::{dot, norm};
use std::collections::BTreeMap;

/// Where a choice may lead: the state, and its chance.
type Outcome = (usize, f64);

/// States level by level, what is open in each, and what the last ones pay.
#[derive(Clone, Debug)]
pub struct StateGraph {
    /// Where the levels' states begin, and the end.
    levels: Vec<usize>,
    /// `[states]`: where the choices of each begin, and the end; the last level has none.
    first: Vec<usize>,
    /// `[choices]`: the logit that decides for it.
    logit: Vec<usize>,
    /// `[choices]`
    outcomes: Vec<Vec<Outcome>>,
    /// `[logits]`: where the row of the observation begins, and ends.
    row: Vec<(usize, usize)>,
    /// `[states]`: the observation, 0 on the last level.
    seen: Vec<usize>,
    observations: usize,
    /// `[states]`, 0 but on the last level.
    pays: Vec<f64>,
}

/// Which weights correct a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// The product of the path's ratios, which a trainer has.
    Path,
    /// The same, and gradients flow through it.
    Routed,
    /// The ratio of the state's visitations, which only the recursion knows.
    State,
    /// The ratio of the observation's visitations.
    Seen,
}

/// What an estimate with some weights is worth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Worth {
    /// Expected estimate less the improvement.
    pub bias: f64,
    /// Of the estimate of one trajectory.
    pub variance: f64,
    /// Cosine of the expected gradient with that of η; not a number where one is zero.
    pub cosine: f64,
    /// A(N) of a batch, as [`crate::Measurement::alignment`].
    pub alignment: f64,
}

/// Two policies on a graph.
#[derive(Clone, Debug)]
pub struct StatePair<'a> {
    graph: &'a StateGraph,
    old: Vec<f64>,
    new: Vec<f64>,
    advantage: Vec<f64>,
    visits_old: Vec<f64>,
    visits_new: Vec<f64>,
    gradient: Vec<f64>,
    /// η(new) − η(old).
    pub improvement: f64,
}

impl StateGraph {
    /// Builds the graph that begins in `root` and ends after `steps` choices.
    ///
    /// `open` names the choices of a state, `next` where one may lead, `see` what the policy sees, `pay` what a last state pays.
    ///
    /// # Errors
    /// Where nothing is open, or two states look alike and differ in what is open.
    pub fn new<S: Ord + Clone, K: Ord>(
        root: S,
        steps: usize,
        open: impl Fn(&S) -> Vec<usize>,
        next: impl Fn(&S, usize) -> Vec<(S, f64)>,
        see: impl Fn(&S) -> K,
        pay: impl Fn(&S) -> f64,
    ) -> Result<Self, Error> {
        let mut graph = Self {
            levels: vec![0],
            first: vec![0],
            logit: Vec::new(),
            outcomes: Vec::new(),
            row: Vec::new(),
            seen: Vec::new(),
            observations: 0,
            pays: Vec::new(),
        };
        let mut level = vec![root];
        for _ in 0..steps {
            let end = graph.levels.last().copied().unwrap_or(0) + level.len();
            let mut known: BTreeMap<K, (usize, usize, Vec<usize>)> = BTreeMap::new();
            let (mut places, mut reached): (BTreeMap<S, usize>, Vec<S>) = (BTreeMap::new(), Vec::new());
            for state in &level {
                let choices = open(state);
                if choices.is_empty() {
                    return Err(Error::Closed { level: graph.levels.len() - 1 });
                }
                let begin = graph.row.len();
                let entry = known.entry(see(state)).or_insert_with(|| {
                    graph.row.extend(choices.iter().map(|_| (begin, begin + choices.len())));
                    graph.observations += 1;
                    (begin, graph.observations - 1, choices.clone())
                });
                if entry.2 != choices {
                    return Err(Error::Ambiguous { level: graph.levels.len() - 1 });
                }
                graph.seen.push(entry.1);
                graph.pays.push(0.0);
                for (place, &choice) in choices.iter().enumerate() {
                    graph.logit.push(entry.0 + place);
                    let outcomes = next(state, choice).into_iter().map(|(after, chance)| {
                        let place = *places.entry(after).or_insert_with_key(|after| {
                            reached.push(after.clone());
                            reached.len() - 1
                        });
                        (end + place, chance)
                    });
                    graph.outcomes.push(outcomes.collect());
                }
                graph.first.push(graph.logit.len());
            }
            graph.levels.push(end);
            level = reached;
        }
        graph.levels.push(graph.levels.last().copied().unwrap_or(0) + level.len());
        for state in &level {
            graph.pays.push(pay(state));
            graph.seen.push(0);
        }
        Ok(graph)
    }

    /// Number of logits of a policy.
    #[must_use]
    pub fn logits(&self) -> usize {
        self.row.len()
    }

    /// Number of states in which something is chosen.
    #[must_use]
    pub fn states(&self) -> usize {
        self.first.len() - 1
    }

    /// What the last states pay under a policy, on average.
    ///
    /// Shapes: `logits [logits]`
    #[must_use]
    pub fn eta(&self, logits: &[f64]) -> f64 {
        self.values(&self.policy(logits)).0.first().copied().unwrap_or(0.0)
    }

    /// Probabilities of logits, row by row. Shapes: `[logits]` both
    fn policy(&self, logits: &[f64]) -> Vec<f64> {
        let share = |(place, &(begin, end)): (usize, &(usize, usize))| {
            let top = logits[begin..end].iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum: f64 = logits[begin..end].iter().map(|logit| (logit - top).exp()).sum();
            (logits[place] - top).exp() / sum
        };
        self.row.iter().enumerate().map(share).collect()
    }

    /// The value of every state and of every choice.
    fn values(&self, policy: &[f64]) -> (Vec<f64>, Vec<f64>) {
        let (mut value, mut of_choice) = (self.pays.clone(), vec![0.0; self.logit.len()]);
        for state in (0..self.states()).rev() {
            for choice in self.first[state]..self.first[state + 1] {
                of_choice[choice] = self.ahead(choice, &value);
                value[state] += policy[self.logit[choice]] * of_choice[choice];
            }
        }
        (value, of_choice)
    }

    /// The mean of what lies behind a choice.
    fn ahead(&self, choice: usize, value: &[f64]) -> f64 {
        self.outcomes[choice].iter().map(|&(state, chance)| chance * value[state]).sum()
    }

    /// Sums over the paths to every state of the product of what each choice counts for.
    fn forward(&self, counts: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.pays.len()];
        sums[0] = 1.0;
        for state in 0..self.states() {
            for choice in self.first[state]..self.first[state + 1] {
                for &(after, chance) in &self.outcomes[choice] {
                    sums[after] += sums[state] * counts(choice) * chance;
                }
            }
        }
        sums
    }

    /// Weights of choices as a gradient of logits, `[logits]`.
    fn pull_back(&self, weight: &[f64], policy: &[f64]) -> Vec<f64> {
        let mut summed = vec![0.0; self.logits()];
        self.logit.iter().zip(weight).for_each(|(&logit, weight)| summed[logit] += weight);
        let inner = |(place, &(begin, end)): (usize, &(usize, usize))| {
            summed[place] - policy[place] * summed[begin..end].iter().sum::<f64>()
        };
        self.row.iter().enumerate().map(inner).collect()
    }
}

impl<'a> StatePair<'a> {
    /// The policy that samples, and the one that is updated.
    ///
    /// Shapes: `[logits]` both.
    #[must_use]
    pub fn new(graph: &'a StateGraph, old: &[f64], new: &[f64]) -> Self {
        let (old, new) = (graph.policy(old), graph.policy(new));
        let ((before, of_choice), (after, better)) = (graph.values(&old), graph.values(&new));
        let mut advantage = of_choice;
        for state in 0..graph.states() {
            for choice in graph.first[state]..graph.first[state + 1] {
                advantage[choice] -= before[state];
            }
        }
        let visits = |policy: &[f64]| graph.forward(|choice| policy[graph.logit[choice]]);
        let (visits_old, visits_new) = (visits(&old), visits(&new));
        let mut weight = better;
        for state in 0..graph.states() {
            for choice in graph.first[state]..graph.first[state + 1] {
                weight[choice] *= visits_new[state] * new[graph.logit[choice]];
            }
        }
        let gradient = graph.pull_back(&weight, &new);
        let improvement = after[0] - before[0];
        Self { graph, old, new, advantage, visits_old, visits_new, gradient, improvement }
    }

    fn ratio(&self, choice: usize) -> f64 {
        let logit = self.graph.logit[choice];
        self.new[logit] / self.old[logit]
    }

    /// `E[Var(W_t | s_t)]` and `Var(W_t)`, summed over the steps: the premium of path weights, and what it is part of.
    ///
    /// Paper: `app:derivation`
    #[must_use]
    pub fn premium(&self) -> (f64, f64) {
        let graph = self.graph;
        let squares = graph.forward(|choice| self.old[graph.logit[choice]] * self.ratio(choice).powi(2));
        let (mut within, mut whole) = (0.0, 0.0);
        for level in graph.levels.windows(2).take(graph.levels.len() - 2) {
            for state in level[0]..level[1] {
                within += squares[state] - self.visits_new[state].powi(2) / self.visits_old[state];
                whole += squares[state];
            }
            whole -= 1.0;
        }
        (within, whole)
    }

    /// What the estimate `Σ_t w_t^α r_t A_t` is worth with some weights, for batches of `batch` trajectories.
    #[must_use]
    pub fn worth(&self, weights: Weights, alpha: f64, batch: f64) -> Worth {
        match weights {
            Weights::Path => self.along_paths(alpha, 0.0, batch),
            Weights::Routed => self.along_paths(alpha, alpha, batch),
            Weights::State => {
                self.by_state(|state| self.visits_new[state] / self.visits_old[state], alpha, batch)
            }
            Weights::Seen => {
                let (mut old, mut new) =
                    (vec![0.0; self.graph.observations], vec![0.0; self.graph.observations]);
                for state in 0..self.graph.states() {
                    old[self.graph.seen[state]] += self.visits_old[state];
                    new[self.graph.seen[state]] += self.visits_new[state];
                }
                self.by_state(|state| new[self.graph.seen[state]] / old[self.graph.seen[state]], alpha, batch)
            }
        }
    }

    /// The recursions: a path's weight multiplies all that comes after it.
    fn along_paths(&self, alpha: f64, routed: f64, batch: f64) -> Worth {
        let graph = self.graph;
        let to = |power: f64| {
            graph.forward(|choice| self.old[graph.logit[choice]] * self.ratio(choice).powf(power))
        };
        let (once, twice) = (to(alpha), to(2.0 * alpha));
        let (mut mean, mut square) = (vec![0.0; graph.pays.len()], vec![0.0; graph.pays.len()]);
        let (mut weight, mut noise) = (vec![0.0; graph.logit.len()], 0.0);
        for state in (0..graph.states()).rev() {
            for choice in graph.first[state]..graph.first[state + 1] {
                let (chance, ratio) = (self.old[graph.logit[choice]], self.ratio(choice));
                let (term, carried) = (ratio * self.advantage[choice], ratio.powf(alpha));
                let (first, second) = (graph.ahead(choice, &mean), graph.ahead(choice, &square));
                mean[state] += chance * (term + carried * first);
                square[state] +=
                    chance * (term * term + 2.0 * term * carried * first + carried * carried * second);
                weight[choice] = once[state] * chance * (term + routed * carried * first);
                let credit = term * term
                    + 2.0 * term * routed * carried * first
                    + routed * routed * carried * carried * second;
                noise += twice[state] * chance * self.score_square(choice) * credit;
            }
        }
        self.judged(mean[0], square[0], &weight, noise, batch)
    }

    /// The same where every state has a weight of its own.
    fn by_state(&self, ratio: impl Fn(usize) -> f64, alpha: f64, batch: f64) -> Worth {
        let graph = self.graph;
        let (mut mean, mut square) = (vec![0.0; graph.pays.len()], vec![0.0; graph.pays.len()]);
        let (mut weight, mut noise) = (vec![0.0; graph.logit.len()], 0.0);
        for state in (0..graph.states()).rev() {
            let own = ratio(state).powf(alpha);
            for choice in graph.first[state]..graph.first[state + 1] {
                let chance = self.old[graph.logit[choice]];
                let term = own * self.ratio(choice) * self.advantage[choice];
                let (first, second) = (graph.ahead(choice, &mean), graph.ahead(choice, &square));
                mean[state] += chance * (term + first);
                square[state] += chance * (term * term + 2.0 * term * first + second);
                weight[choice] = self.visits_old[state] * chance * term;
                noise += self.visits_old[state] * chance * self.score_square(choice) * term * term;
            }
        }
        self.judged(mean[0], square[0], &weight, noise, batch)
    }

    /// Square of the norm of a choice's score.
    fn score_square(&self, choice: usize) -> f64 {
        let logit = self.graph.logit[choice];
        let (begin, end) = self.graph.row[logit];
        1.0 - 2.0 * self.new[logit] + self.new[begin..end].iter().map(|chance| chance * chance).sum::<f64>()
    }

    fn judged(&self, mean: f64, square: f64, weight: &[f64], noise: f64, batch: f64) -> Worth {
        let gradient = self.graph.pull_back(weight, &self.new);
        let (ours, slope) = (norm(&gradient), norm(&self.gradient));
        let along = dot(&gradient, &self.gradient) / slope;
        let size = ours.hypot(((noise - ours * ours).max(0.0) / batch).sqrt());
        Worth {
            bias: mean - self.improvement,
            variance: square - mean * mean,
            cosine: along / ours,
            alignment: along / size,
        }
    }
}
