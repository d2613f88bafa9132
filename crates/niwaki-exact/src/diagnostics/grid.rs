//! Rewards × drifts × seeds × losses, and the policy pairs they name.

use super::Row;
use crate::{Error, Pair, Payoff, Process, Table, Workspace};
use niwaki_correction::Surrogate;
use niwaki_stream::Key;
use rayon::prelude::*;
use std::borrow::Cow;

/// Where the two policies of a pair come from.
#[derive(Clone, Debug)]
pub enum Policies {
    /// The rollout policy is drawn once, near uniform; candidates add noise to every logit.
    ///
    /// Paper: `app:diagnostics` (measurement procedure)
    Drawn {
        /// Standard deviation of the rollout policy's logits.
        rollout_scale: f64,
        /// Seeds of the perturbations.
        seeds: Vec<u64>,
    },
    /// Two given tables of logits, `[prefixes, vocab]` each; a drift of 1 is the second one, smaller drifts lie
    /// on the straight line from the first.
    Given {
        /// Logits of the rollout policy.
        old: Vec<f64>,
        /// Logits of the candidate.
        new: Vec<f64>,
    },
    /// The policies of a run one after the other, a table of logits `[prefixes, vocab]` each: table n − 1 rolled out for
    /// iteration n, and table n is what the iteration made of it. Smaller drifts lie on the straight line between the two.
    Along(Vec<Vec<f64>>),
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The process.
    pub process: Process,
    /// Rewards by name.
    pub rewards: Vec<(String, Payoff)>,
    /// Sizes of the perturbation (δ).
    pub drifts: Vec<f64>,
    /// The policies.
    pub policies: Policies,
    /// The losses.
    pub losses: Vec<Surrogate>,
    /// Trajectories in the batches whose update is judged; at least two.
    pub batch: u64,
    /// Batches to draw for each pair and loss; none where their cosines are not asked for.
    pub drawn: usize,
    /// Bytes that pairs measured at once may take together; one is always measured.
    pub memory: u64,
}

/// Trajectories of a batch where nothing else is said: the paper's testbed's.
pub const BATCH: u64 = 256;

impl Grid {
    /// Number of policy pairs, each with all losses.
    #[must_use]
    pub fn pairs(&self) -> usize {
        self.rewards.len() * self.drifts.len() * self.seeds().len()
    }

    /// The same grid at other drifts.
    #[must_use]
    pub fn at(&self, drifts: &[f64]) -> Self {
        Self { drifts: drifts.to_vec(), ..self.clone() }
    }

    /// The same grid with other losses.
    #[must_use]
    pub fn with_losses(&self, losses: Vec<Surrogate>) -> Self {
        Self { losses, ..self.clone() }
    }

    /// The same grid without drawn batches.
    #[must_use]
    pub fn without_draws(&self) -> Self {
        Self { drawn: 0, ..self.clone() }
    }

    /// What tells pairs of one reward and drift apart: seeds, or the iterations of a run, from 1.
    fn seeds(&self) -> Vec<u64> {
        match &self.policies {
            Policies::Drawn { seeds, .. } => seeds.clone(),
            Policies::Given { .. } => vec![0],
            Policies::Along(tables) => (1..tables.len() as u64).collect(),
        }
    }

    /// Measures every cell, pairs in parallel; the order of the rows does not depend on threads.
    ///
    /// `tick` is called once for each pair that is done.
    ///
    /// # Errors
    /// Where an axis is empty or holds the same twice, a drift is not positive, or the oracle refuses.
    pub fn run(&self, tick: impl Fn() + Sync) -> Result<Vec<Row>, Error> {
        let seeds = self.seeds();
        let empty = [
            ("the list of rewards", self.rewards.is_empty()),
            ("the list of drifts", self.drifts.is_empty()),
            ("the list of seeds", seeds.is_empty()),
            ("the list of losses", self.losses.is_empty()),
        ];
        if let Some((what, _)) = empty.into_iter().find(|(_, empty)| *empty) {
            return Err(Error::EmptyAxis { what });
        }
        // Summaries tell rows apart by these: what stands twice would count as more seeds.
        let repeated = [
            ("the list of rewards", repeats(&self.rewards, |a, b| a.0 == b.0)),
            ("the list of drifts", repeats(&self.drifts, |a, b| a == b)),
            ("the list of losses", repeats(&self.losses, |a, b| a == b)),
        ];
        if let Some((what, _)) = repeated.into_iter().find(|(_, repeated)| *repeated) {
            return Err(Error::RepeatedOnAxis { what });
        }
        if let Some(&drift) = self.drifts.iter().find(|drift| !(drift.is_finite() && **drift > 0.0)) {
            return Err(Error::Drift(drift));
        }
        let rolled_out = self.rolled_out();
        let olds: Vec<Table> =
            rolled_out.iter().map(|logits| Table::new(self.process, logits)).collect::<Result<_, _>>()?;
        let mut cells = Vec::with_capacity(self.pairs());
        for (reward, payoff) in &self.rewards {
            for &drift in &self.drifts {
                let places = seeds.iter().enumerate();
                cells.extend(places.map(|(place, &seed)| (reward, payoff, drift, place, seed)));
            }
        }
        let one =
            |workspace: &mut Workspace,
             (reward, payoff, drift, place, seed): (&String, &Payoff, f64, usize, u64)| {
                // One rollout policy for all pairs, or one for each.
                let place = place.min(olds.len() - 1);
                let new = Table::new(self.process, &self.new_logits(&rolled_out[place], drift, seed))?;
                let rows =
                    self.measure(reward, drift, seed, &Pair::new(&olds[place], &new, payoff)?, workspace);
                tick();
                rows
            };
        let at_once = usize::try_from(u128::from(self.memory) / self.process.bytes()).unwrap_or(usize::MAX);
        let share =
            if at_once < rayon::current_num_threads() { cells.len().div_ceil(at_once.max(1)) } else { 1 };
        let measured: Result<Vec<Vec<Row>>, Error> =
            cells.into_par_iter().with_min_len(share).map_init(Workspace::default, one).collect();
        Ok(measured?.into_iter().flatten().collect())
    }

    fn measure(
        &self,
        reward: &str,
        drift: f64,
        seed: u64,
        pair: &Pair<'_>,
        workspace: &mut Workspace,
    ) -> Result<Vec<Row>, Error> {
        let (apart, conditions) = (pair.drift(), pair.conditions());
        let slope = pair.eta_gradient_norm();
        let relative = |along: f64| if slope > 0.0 { along / slope } else { f64::NAN };
        self.losses
            .iter()
            .map(|surrogate| {
                let measured = pair.measure(surrogate, workspace)?;
                let alignment = measured.alignment(self.batch)?;
                let (reweighting, routing) = pair.channel_totals(surrogate, workspace)?;
                let batch_cosine = match usize::try_from(self.batch) {
                    Ok(batch) if self.drawn > 0 => {
                        pair.batches(surrogate, batch, self.drawn, seed).map(|drawn| drawn.mean_cosine())?
                    }
                    _ => f64::NAN,
                };
                Ok(Row {
                    process: self.process,
                    reward: reward.to_owned(),
                    drift,
                    seed,
                    surrogate: *surrogate,
                    measured,
                    batch: self.batch,
                    alignment,
                    batch_cosine,
                    apart: apart.clone(),
                    conditions: conditions.clone(),
                    reweighting_along: relative(reweighting.along_eta),
                    routing_along: relative(routing.along_eta),
                })
            })
            .collect()
    }

    /// Logits of the policies that rolled out: one for all pairs, or one for each.
    fn rolled_out(&self) -> Vec<Cow<'_, [f64]>> {
        match &self.policies {
            Policies::Drawn { rollout_scale, .. } => {
                let mut stream = Key::new(0, "rollout policy").open();
                vec![(0..self.process.edges()).map(|_| rollout_scale * stream.normal()).collect()]
            }
            Policies::Given { old, .. } => vec![old.into()],
            Policies::Along(tables) => tables.iter().take(tables.len() - 1).map(Into::into).collect(),
        }
    }

    fn new_logits(&self, old: &[f64], drift: f64, seed: u64) -> Vec<f64> {
        let new = match &self.policies {
            Policies::Drawn { .. } => {
                let mut stream = Key::new(seed, "perturbation").open();
                return old.iter().map(|logit| logit + drift * stream.normal()).collect();
            }
            Policies::Given { new, .. } => new,
            Policies::Along(tables) => &tables[seed as usize],
        };
        if drift == 1.0 {
            // The given table itself, to the bit.
            return new.clone();
        }
        old.iter().zip(new).map(|(old, new)| old + drift * (new - old)).collect()
    }
}

/// Whether two of the values are the same.
fn repeats<X>(values: &[X], same: impl Fn(&X, &X) -> bool) -> bool {
    values.iter().enumerate().any(|(place, value)| values[..place].iter().any(|earlier| same(earlier, value)))
}
