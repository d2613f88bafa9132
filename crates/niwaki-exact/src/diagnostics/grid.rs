//! Rewards × drifts × seeds × losses, and the policy pairs they name.

use super::Row;
use crate::{Error, Pair, Payoff, Process, Table, Workspace};
use niwaki_correction::Surrogate;
use niwaki_stream::Key;
use rayon::prelude::*;

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
    /// Bytes that pairs measured at once may take together; one is always measured.
    pub memory: u64,
}

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

    fn seeds(&self) -> &[u64] {
        match &self.policies {
            Policies::Drawn { seeds, .. } => seeds,
            Policies::Given { .. } => &[0],
        }
    }

    /// Measures every cell, pairs in parallel; the order of the rows does not depend on threads.
    ///
    /// `tick` is called once for each pair that is done.
    ///
    /// # Errors
    /// Where an axis is empty or holds the same twice, a drift is not positive, or the oracle refuses.
    pub fn run(&self, tick: impl Fn() + Sync) -> Result<Vec<Row>, Error> {
        let empty = [
            ("the list of rewards", self.rewards.is_empty()),
            ("the list of drifts", self.drifts.is_empty()),
            ("the list of seeds", self.seeds().is_empty()),
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
        let old_logits = self.old_logits();
        let old = Table::new(self.process, &old_logits)?;
        let mut cells = Vec::with_capacity(self.pairs());
        for (reward, payoff) in &self.rewards {
            for &drift in &self.drifts {
                cells.extend(self.seeds().iter().map(|&seed| (reward, payoff, drift, seed)));
            }
        }
        let one = |workspace: &mut Workspace, (reward, payoff, drift, seed): (&String, &Payoff, f64, u64)| {
            let new = Table::new(self.process, &self.new_logits(&old_logits, drift, seed))?;
            let rows = self.measure(reward, drift, seed, &Pair::new(&old, &new, payoff)?, workspace);
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
                let (reweighting, routing) = pair.channel_totals(surrogate, workspace)?;
                Ok(Row {
                    process: self.process,
                    reward: reward.to_owned(),
                    drift,
                    seed,
                    surrogate: *surrogate,
                    measured,
                    apart: apart.clone(),
                    conditions: conditions.clone(),
                    reweighting_along: relative(reweighting.along_eta),
                    routing_along: relative(routing.along_eta),
                })
            })
            .collect()
    }

    fn old_logits(&self) -> Vec<f64> {
        match &self.policies {
            Policies::Drawn { rollout_scale, .. } => {
                let mut stream = Key::new(0, "rollout policy").open();
                (0..self.process.edges()).map(|_| rollout_scale * stream.normal()).collect()
            }
            Policies::Given { old, .. } => old.clone(),
        }
    }

    fn new_logits(&self, old: &[f64], drift: f64, seed: u64) -> Vec<f64> {
        match &self.policies {
            Policies::Drawn { .. } => {
                let mut stream = Key::new(seed, "perturbation").open();
                old.iter().map(|logit| logit + drift * stream.normal()).collect()
            }
            // The given table itself, to the bit.
            Policies::Given { new, .. } if drift == 1.0 => new.clone(),
            Policies::Given { new, .. } => {
                old.iter().zip(new).map(|(old, new)| old + drift * (new - old)).collect()
            }
        }
    }
}

/// Whether two of the values are the same.
fn repeats<X>(values: &[X], same: impl Fn(&X, &X) -> bool) -> bool {
    values.iter().enumerate().any(|(place, value)| values[..place].iter().any(|earlier| same(earlier, value)))
}
