//! One batch as the update sees it, and the loss it hands to the player.
//!
//! Everything is `[member, lane, step]`. Rollout log-probabilities are those of the first pass over the batch, from
//! the same program that the update runs, so that all log-ratios are exactly zero before the first step.

use crate::Error;
use crate::player::{Loss, Player, Seen, Wanted};
use niwaki_correction::{Batch, Diagnostics, Real, Rows, Surrogate, Workspace};
use niwaki_nn::Span;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

/// What a member's loss is made of.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// The corrected clip-min objective.
    pub surrogate: Surrogate,
    /// Weight of the entropy bonus.
    pub entropy: f64,
    /// Weight of the penalty on leaving the reference.
    pub reference_kl: f64,
    /// Weight of the critic's squared error.
    pub value: f64,
}

impl Terms {
    /// Whether the member looks at the whole batch before it weighs one step.
    fn coupled(&self) -> bool {
        let rule = self.surrogate.correction.rule();
        rule.self_normalised || rule.ess_floor.is_some()
    }
}

/// One batch, or a part of one. Empty vectors are parts that nobody asked for.
#[derive(Clone, Debug, Default)]
pub struct Material<F> {
    /// Steps per trajectory.
    pub horizon: usize,
    /// Trajectories per member.
    pub lanes: usize,
    /// Log-probabilities at rollout; empty until the first pass has been made.
    pub rollout: Vec<F>,
    /// Advantages.
    pub advantage: Vec<F>,
    /// Log-probabilities under the reference.
    pub reference: Vec<F>,
    /// What the critic should say.
    pub target: Vec<F>,
    /// Log-probabilities after the update.
    pub current: Vec<F>,
    /// Rooms for the correction's passes, reused from epoch to epoch.
    pub rooms: Arc<Mutex<Vec<Workspace<F>>>>,
}

impl<F: Real> Material<F> {
    /// Where a member's steps lie.
    #[must_use]
    pub fn member(&self, member: usize) -> Range<usize> {
        let size = self.lanes * self.horizon;
        member * size..(member + 1) * size
    }

    /// Where some lanes of a member lie.
    fn lanes(&self, span: &Span) -> Range<usize> {
        let start = self.member(span.member).start;
        start + span.items.start * self.horizon..start + span.items.end * self.horizon
    }

    /// Some lanes of each member.
    #[must_use]
    pub fn part(&self, chosen: &[Vec<usize>]) -> Self {
        let pick = |from: &[F]| {
            let lanes = chosen.iter().enumerate().flat_map(|(member, lanes)| {
                lanes.iter().map(move |lane| (member * self.lanes + lane) * self.horizon)
            });
            let picked = lanes.filter_map(|start| from.get(start..start + self.horizon));
            picked.flatten().copied().collect()
        };
        Self {
            horizon: self.horizon,
            lanes: chosen.first().map_or(0, Vec::len),
            rollout: pick(&self.rollout),
            advantage: pick(&self.advantage),
            reference: pick(&self.reference),
            target: pick(&self.target),
            current: pick(&self.current),
            rooms: self.rooms.clone(),
        }
    }

    /// Keeps the last pass's log-probabilities as the rollout's.
    pub fn keep_rollout<P: Player<Scalar = F>>(&mut self, player: &P) {
        keep(player, &mut self.rollout);
    }

    /// Keeps the last pass's log-probabilities as the current ones.
    pub fn keep_current<P: Player<Scalar = F>>(&mut self, player: &P) {
        keep(player, &mut self.current);
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
        terms: &[Terms],
        iteration: usize,
    ) -> Result<(), Error> {
        let coupled = self.coupled(player, terms, iteration)?;
        let refused: Mutex<Option<(usize, niwaki_correction::Error)>> = Mutex::new(None);
        let rooms = || self.rooms.lock().unwrap_or_else(PoisonError::into_inner);
        let loss: &Loss<'_, F> = &|span: Span, seen: Seen<'_, F>, mut wanted: Wanted<'_, F>| {
            let range = self.lanes(&span);
            if let Some(whole) = coupled.get(span.member).filter(|whole| !whole.is_empty()) {
                let start = self.member(span.member).start;
                wanted.log_prob.copy_from_slice(&whole[range.start - start..range.end - start]);
            } else {
                let mut workspace = rooms().pop().unwrap_or_default();
                let share = F::from_f64(span.items.len() as f64 / self.lanes as f64);
                let batch = self.steps(range.clone(), seen.log_prob);
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
                rooms().push(workspace);
            }
            self.add_other_terms(&terms[span.member], range, &seen, &mut wanted);
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
        terms: &[Terms],
        iteration: usize,
    ) -> Result<Vec<Vec<F>>, Error> {
        if !terms.iter().any(Terms::coupled) {
            return Ok(Vec::new());
        }
        player.score()?;
        let mut workspace = Workspace::default();
        let each = terms.iter().enumerate().map(|(member, terms)| {
            if !terms.coupled() {
                return Ok(Vec::new());
            }
            let log_prob = player.seen(member).log_prob;
            let batch = self.steps(self.member(member), log_prob);
            let cotangent = terms.surrogate.cotangent(&batch, &mut workspace);
            cotangent.map(<[F]>::to_vec).map_err(|source| Error::Diverged { iteration, member, source })
        });
        each.collect()
    }

    /// Some steps as the correction reads them; before the first pass, the rollout's log-probabilities are these.
    fn steps<'a>(&'a self, range: Range<usize>, log_prob: &'a [F]) -> Batch<'a, F> {
        let rollout = self.rollout.get(range.clone()).unwrap_or(log_prob);
        Batch::new(Rows::uniform(self.horizon), log_prob, rollout, &self.advantage[range])
    }

    /// What the correction measures on one member's log-probabilities, and the strength that its rule came to.
    ///
    /// # Errors
    /// Where a log-probability is not finite.
    pub fn measure(
        &self,
        log_prob: &[F],
        terms: &Terms,
        member: usize,
        iteration: usize,
    ) -> Result<(Diagnostics, Option<f64>), Error> {
        let mut workspace = Workspace::default();
        let adaptive = terms.surrogate.correction.rule().ess_floor.is_some();
        let batch = self.steps(self.member(member), log_prob);
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
        terms: &Terms,
        range: Range<usize>,
        seen: &Seen<'_, F>,
        wanted: &mut Wanted<'_, F>,
    ) {
        let count = (self.lanes * self.horizon) as f64;
        wanted.entropy.fill(F::from_f64(terms.entropy / count));
        if terms.reference_kl > 0.0 {
            let steps = wanted.log_prob.iter_mut().zip(seen.log_prob).zip(&self.reference[range.clone()]);
            for ((wanted, &log_prob), &reference) in steps {
                let pull = (reference.to_f64() - log_prob.to_f64()).exp() - 1.0;
                *wanted += F::from_f64(terms.reference_kl * pull / count);
            }
        }
        if let Some(target) = self.target.get(range).filter(|_| !wanted.value.is_empty()) {
            for ((wanted, &value), &target) in wanted.value.iter_mut().zip(seen.value).zip(target) {
                *wanted = F::from_f64(terms.value * (target.to_f64() - value.to_f64()) / count);
            }
        }
    }
}

/// Copies the log-probabilities of the last pass, `[member, lane, step]`.
fn keep<P: Player>(player: &P, to: &mut Vec<P::Scalar>) {
    to.clear();
    for member in 0..player.members() {
        to.extend_from_slice(player.seen(member).log_prob);
    }
}
