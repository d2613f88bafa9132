//! One batch as the update sees it, and the loss it hands to the player.
//!
//! Everything is `[member, lane, step]`, as the rollout's shape says. Rollout log-probabilities are those of the first pass over the batch, from
//! the same program that the update runs, so that all log-ratios are exactly zero before the first step.

use crate::Error;
use crate::player::{Cotangents, Loss, Player, Scores};
use crate::spec::Recipe;
use niwaki_correction::{Batch, Diagnostics, Real, Surrogate, Workspace};
use niwaki_nn::Span;
use niwaki_policies::RolloutShape;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What a member's loss is made of.
#[derive(Clone, Copy, Debug)]
pub struct LossTerms {
    /// The corrected clip-min objective.
    pub surrogate: Surrogate,
    /// Weight of the entropy bonus.
    pub entropy: f64,
    /// Weight of the penalty on leaving the reference.
    pub reference_kl: f64,
    /// Weight of the critic's squared error.
    pub value: f64,
    /// Whether advantages are targets minus the critic's estimates of the pass at hand, which nothing flows through.
    pub fresh: bool,
}

impl LossTerms {
    /// The loss of a recipe in an iteration.
    #[must_use]
    pub fn of(recipe: &Recipe, iteration: usize) -> Self {
        let update = &recipe.spec.update;
        Self {
            surrogate: recipe.surrogate(iteration),
            entropy: update.entropy,
            reference_kl: update.reference_kl,
            value: update.value,
            fresh: recipe.spec.advantage.fresh,
        }
    }

    /// Whether the member looks at the whole batch before it weighs one step.
    fn coupled(&self) -> bool {
        self.surrogate.correction.rule().coupled()
    }

    /// Whether a trajectory without an advantage has no cotangent in the policy's heads.
    #[must_use]
    pub fn needs_advantage(&self) -> bool {
        let pulls_always =
            self.surrogate.correction.rule().written.is_some_and(|written| written.pulls_always());
        !self.coupled() && !pulls_always && self.entropy == 0.0 && self.reference_kl == 0.0
    }
}

/// One batch, or a part of one. Empty vectors are parts that nobody asked for.
#[derive(Clone, Debug, Default)]
pub struct TrainingBatch<F> {
    /// Where trajectories lie.
    pub shape: RolloutShape,
    /// Log-probabilities at rollout; empty until the first pass has been made.
    pub rollout_log_prob: Vec<F>,
    /// Advantages.
    pub advantage: Vec<F>,
    /// What the trajectories earned, `[member, lane]`.
    pub reward: Vec<f64>,
    /// Log-probabilities under the reference.
    pub reference_log_prob: Vec<F>,
    /// What the critic should say.
    pub target: Vec<F>,
    /// Log-probabilities after the update.
    pub log_prob: Vec<F>,
    /// Memory for the correction's passes, reused from epoch to epoch.
    pub workspaces: Workspaces<F>,
}

/// One workspace for each thread, so that none waits for another's.
#[derive(Clone, Debug)]
pub struct Workspaces<F>(Arc<[Mutex<Workspace<F>>]>);

impl<F: Default> Default for Workspaces<F> {
    fn default() -> Self {
        Self((0..=rayon::current_num_threads()).map(|_| Mutex::default()).collect())
    }
}

impl<F> Workspaces<F> {
    /// That of the thread at hand; the first is for threads outside the pool.
    fn mine(&self) -> MutexGuard<'_, Workspace<F>> {
        let place = rayon::current_thread_index().map_or(0, |index| index + 1);
        self.0[place.min(self.0.len() - 1)].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Real> TrainingBatch<F> {
    /// Some trajectories of each member, whole.
    #[must_use]
    pub fn part(&self, lanes: &[Vec<usize>]) -> Self {
        let pick = |from: &[F]| self.shape.pick(lanes, from);
        let earned = lanes.iter().zip(self.reward.chunks(self.shape.lanes().max(1)));
        Self {
            reward: earned.flat_map(|(lanes, reward)| lanes.iter().map(|&lane| reward[lane])).collect(),
            shape: self.shape.part(lanes),
            rollout_log_prob: pick(&self.rollout_log_prob),
            advantage: pick(&self.advantage),
            reference_log_prob: pick(&self.reference_log_prob),
            target: pick(&self.target),
            log_prob: pick(&self.log_prob),
            workspaces: self.workspaces.clone(),
        }
    }

    /// Which trajectories have no advantage in any step, `[member][lane]`: they ask for nothing, whatever the policy does.
    #[must_use]
    pub fn silent(&self) -> Vec<Vec<bool>> {
        let lane = |member: usize, lane: usize| {
            self.advantage[self.shape.steps(member, lane..lane + 1)]
                .iter()
                .all(|&advantage| advantage == F::ZERO)
        };
        (0..self.shape.members())
            .map(|member| (0..self.shape.lanes()).map(|place| lane(member, place)).collect())
            .collect()
    }

    /// The lanes of each member that have an advantage, with the whole of the `group` that they stay together with.
    #[must_use]
    pub fn labelled(&self, group: usize) -> Vec<Vec<usize>> {
        let lanes = |silent: Vec<bool>| {
            let groups = silent.chunks(group).enumerate().filter(|(_, silent)| silent.contains(&false));
            groups.flat_map(|(place, _)| place * group..(place + 1) * group).collect()
        };
        self.silent().into_iter().map(lanes).collect()
    }

    /// Keeps the last pass's log-probabilities as the rollout's.
    pub fn keep_rollout<P: Player<Scalar = F>>(&mut self, player: &P) {
        keep(player, &mut self.rollout_log_prob);
    }

    /// Keeps the last pass's log-probabilities as the current ones.
    pub fn keep_current<P: Player<Scalar = F>>(&mut self, player: &P) {
        keep(player, &mut self.log_prob);
    }

    /// Every member's loss, where a strength depends on lengths with that of the whole batch: a part of it has the same.
    #[must_use]
    pub fn settle(&self, terms: &[LossTerms]) -> Vec<LossTerms> {
        let of_member = |(member, terms): (usize, &LossTerms)| {
            let lengths = (0..self.shape.lanes()).map(|lane| self.shape.steps(member, lane..lane + 1).len());
            let correction = terms.surrogate.correction.at_lengths(lengths);
            LossTerms { surrogate: Surrogate { correction, ..terms.surrogate }, ..*terms }
        };
        terms.iter().enumerate().map(of_member).collect()
    }

    /// Pulls the loss of every member back through the player.
    ///
    /// # Errors
    /// If the device fails, or a member's log-probabilities are not finite.
    ///
    /// Paper: `alg:tempered` (lines 4 to 7), `eq:pcppo-objective`
    pub fn pull_back<P: Player<Scalar = F>>(
        &self,
        player: &mut P,
        terms: &[LossTerms],
        iteration: usize,
    ) -> Result<(), Error> {
        let coupled = self.coupled(player, terms, iteration)?;
        let refused: Mutex<Option<(usize, niwaki_correction::Error)>> = Mutex::new(None);
        let loss: &Loss<'_, F> = &|span: Span, scores: Scores<'_, F>, mut wanted: Cotangents<'_, F>| {
            let range = self.shape.steps(span.member, span.items.clone());
            let whole = self.shape.member(span.member);
            if let Some(coupled) = coupled.get(span.member).filter(|coupled| !coupled.is_empty()) {
                let own = range.start - whole.start..range.end - whole.start;
                wanted.log_prob.copy_from_slice(&coupled[own]);
            } else {
                let mut workspace = self.workspaces.mine();
                let share = F::from_f64(range.len() as f64 / whole.len() as f64);
                let fresh = self.fresh(&terms[span.member], &span, scores.value);
                let batch = self.steps(&span, scores.log_prob, fresh.as_deref());
                match terms[span.member].surrogate.cotangent(&batch, &mut workspace) {
                    Ok(cotangent) => {
                        for (wanted, &cotangent) in wanted.log_prob.iter_mut().zip(cotangent) {
                            *wanted = cotangent * share;
                        }
                    }
                    Err(error) => {
                        wanted.log_prob.fill(F::ZERO);
                        let mut refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
                        refused.get_or_insert((span.member, error));
                    }
                }
            }
            self.add_other_terms(&terms[span.member], &span, &scores, &mut wanted);
        };
        player.pull_back(loss)?;
        match refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((member, source)) => Err(Error::Diverged { iteration, member, source }),
            None => Ok(()),
        }
    }

    /// Cotangents of the members that look at the whole batch, from a pass of their own; empty for the others.
    fn coupled<P: Player<Scalar = F>>(
        &self,
        player: &mut P,
        terms: &[LossTerms],
        iteration: usize,
    ) -> Result<Vec<Vec<F>>, Error> {
        if !terms.iter().any(LossTerms::coupled) {
            return Ok(Vec::new());
        }
        player.score()?;
        let mut workspace = Workspace::default();
        let each = terms.iter().enumerate().map(|(member, terms)| {
            if !terms.coupled() {
                return Ok(Vec::new());
            }
            let Scores { log_prob, value, entropy } = player.scores(member);
            let fresh = self.fresh(terms, &self.whole(member), value);
            let batch = self.steps(&self.whole(member), log_prob, fresh.as_deref());
            let cotangent = terms.surrogate.cotangent(&batch.with_entropy(entropy), &mut workspace);
            cotangent.map(<[F]>::to_vec).map_err(|source| Error::Diverged { iteration, member, source })
        });
        each.collect()
    }

    /// All trajectories of a member.
    fn whole(&self, member: usize) -> Span {
        Span { member, items: 0..self.shape.lanes() }
    }

    /// The advantages of some trajectories where they follow the critic.
    fn fresh(&self, terms: &LossTerms, lanes: &Span, value: &[F]) -> Option<Vec<F>> {
        let target = self.target.get(self.shape.steps(lanes.member, lanes.items.clone()))?;
        terms.fresh.then(|| target.iter().zip(value).map(|(&target, &value)| target - value).collect())
    }

    /// Some trajectories as the correction reads them; before the first pass, the rollout's log-probabilities are these. The
    /// advantages are the rollout's unless others are given.
    fn steps<'a>(&'a self, lanes: &Span, log_prob: &'a [F], advantage: Option<&'a [F]>) -> Batch<'a, F> {
        let range = self.shape.steps(lanes.member, lanes.items.clone());
        let rollout = self.rollout_log_prob.get(range.clone()).unwrap_or(log_prob);
        let rows = self.shape.rows(lanes.member, lanes.items.clone());
        Batch::new(rows, log_prob, rollout, advantage.unwrap_or(&self.advantage[range]))
    }

    /// What the correction measures on one member's log-probabilities, and the strength that its rule came to.
    ///
    /// # Errors
    /// Where a log-probability is not finite.
    pub fn measure(
        &self,
        log_prob: &[F],
        terms: &LossTerms,
        member: usize,
        iteration: usize,
    ) -> Result<(Diagnostics, Option<f64>), Error> {
        let mut workspace = Workspace::default();
        let rule = terms.surrogate.correction.rule();
        let adaptive = rule.ess_floor.is_some() || rule.amplification.is_some();
        let batch = self.steps(&self.whole(member), log_prob, None);
        let evaluation = terms.surrogate.evaluate(&batch, &mut workspace);
        evaluation
            .map(|found| (found.diagnostics, adaptive.then_some(found.rule.strength)))
            .map_err(|source| Error::Diverged { iteration, member, source })
    }

    /// Entropy bonus, reference penalty and value loss, each the mean over steps.
    ///
    /// The penalty is k3, `e^{ref − log π} − (ref − log π) − 1`, whose derivative is `1 − e^{ref − log π}`.
    fn add_other_terms(
        &self,
        terms: &LossTerms,
        lanes: &Span,
        scores: &Scores<'_, F>,
        wanted: &mut Cotangents<'_, F>,
    ) {
        let range = self.shape.steps(lanes.member, lanes.items.clone());
        let count = self.shape.member(lanes.member).len() as f64;
        wanted.entropy.fill(F::from_f64(terms.entropy / count));
        if terms.reference_kl > 0.0 {
            let steps =
                wanted.log_prob.iter_mut().zip(scores.log_prob).zip(&self.reference_log_prob[range.clone()]);
            for ((wanted, &log_prob), &reference) in steps {
                let pull = (reference.to_f64() - log_prob.to_f64()).exp() - 1.0;
                *wanted += F::from_f64(terms.reference_kl * pull / count);
            }
        }
        if let Some(target) = self.target.get(range).filter(|_| !wanted.value.is_empty()) {
            for ((wanted, &value), &target) in wanted.value.iter_mut().zip(scores.value).zip(target) {
                *wanted = F::from_f64(terms.value * (target.to_f64() - value.to_f64()) / count);
            }
        }
    }
}

/// Copies the log-probabilities of the last pass, `[member, lane, step]`.
fn keep<P: Player>(player: &P, to: &mut Vec<P::Scalar>) {
    to.clear();
    for member in 0..player.members() {
        to.extend_from_slice(player.scores(member).log_prob);
    }
}
