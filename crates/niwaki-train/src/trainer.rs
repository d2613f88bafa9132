//! Algorithm 1 for a cohort: rollout, advantages, update, again.
//!
//! Knows players and losses; knows nothing of files, studies or devices.

use crate::Error;
use crate::advantage::{AdvantageInputs, Advantages, estimate};
use crate::player::{Player, RolloutRequest, Scores};
use crate::record::{LastBatch, Measured, Record};
use crate::spec::{AdvantageKind, Recipe, cohort_of};
use crate::spread;
use crate::update::{LossTerms, TrainingBatch};
use niwaki_correction::Real;
use niwaki_correction::schedule::alpha_for_drift;
use niwaki_policies::Rollout;
use niwaki_stream::Key;
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

/// Members that train together. Results do not depend on who else is in the cohort.
pub struct Trainer<P: Player> {
    player: P,
    recipes: Vec<Recipe>,
    /// Iterations done.
    done: usize,
    rollout: Rollout,
    evaluated: Rollout,
    batch: TrainingBatch<P::Scalar>,
    /// The strengths that the drift licensed, where they were measured.
    alphas: Vec<Option<f64>>,
    /// Seconds of rollout, advantages, update and evaluation.
    seconds: [f64; 4],
}

impl<P: Player> Trainer<P> {
    /// A cohort at its beginning; one recipe per member of the player.
    ///
    /// # Errors
    /// Where the recipes do not share what a cohort must share.
    pub fn new(player: P, recipes: Vec<Recipe>) -> Result<Self, Error> {
        let keys = recipes.iter().map(|recipe| cohort_of(&recipe.spec)).collect::<Result<Vec<_>, _>>()?;
        if keys.windows(2).any(|pair| pair[0] != pair[1]) || recipes.len() != player.members() {
            return Err(Error::Mixed);
        }
        let (rollout, evaluated, batch) = Default::default();
        let alphas = vec![None; recipes.len()];
        Ok(Self { player, recipes, done: 0, rollout, evaluated, batch, alphas, seconds: [0.0; 4] })
    }

    /// One iteration of every member; one record each.
    ///
    /// # Errors
    /// If the device fails, or a member's log-probabilities stop being finite.
    pub fn advance(&mut self) -> Result<Vec<Record>, Error> {
        self.advance_unless(&|| false)
    }

    /// The same, left where `leave` says so between two passes.
    ///
    /// # Errors
    /// [`Error::Left`], or as [`Trainer::advance`].
    ///
    /// Paper: `alg:tempered`
    pub fn advance_unless(&mut self, leave: &dyn Fn() -> bool) -> Result<Vec<Record>, Error> {
        if self.done == 0 {
            self.measure_strengths()?;
        }
        let initial =
            if self.done == 0 && self.shared().spec.evaluate.initial { self.evaluate()? } else { Vec::new() };
        let iteration = self.done;
        let terms: Vec<LossTerms> =
            self.recipes.iter().map(|recipe| LossTerms::of(recipe, iteration)).collect();
        let before = spread::before(&mut self.player, &self.recipes[0], iteration)?;
        let norms = self.learn(iteration, &terms, leave)?;
        let mut clock = Clock::start();
        self.batch.keep_current(&self.player);
        let mut records = self.records(&terms, &norms)?;
        spread::fill(before, &mut self.player, &self.recipes[0], &mut records)?;
        // Line 10: the next rollout is drawn from the trained policy.
        self.done += 1;
        for (record, exact) in records.iter_mut().zip(self.exact_returns()?) {
            record.eta = exact;
        }
        let spec = &self.shared().spec;
        if self.done.is_multiple_of(spec.evaluate.every) || self.done == spec.iterations {
            for (record, Measured { eta, greedy, gap }) in records.iter_mut().zip(self.evaluate()?) {
                (record.eta, record.greedy, record.gap) = (eta, greedy, gap);
            }
        }
        for (record, initial) in records.iter_mut().zip(initial) {
            record.initial = Some(initial);
        }
        clock.lap(&mut self.seconds[3]);
        Ok(records)
    }

    /// Lines 1 to 9: one batch and all epochs on it, then a pass that shows where they led; returns the norms of the last
    /// gradients.
    fn learn(
        &mut self,
        iteration: usize,
        terms: &[LossTerms],
        leave: &dyn Fn() -> bool,
    ) -> Result<Vec<f64>, Error> {
        let ask = |moved: bool| if leave() { Err(Error::Left { moved }) } else { Ok(()) };
        let (lanes, parts) = (self.shared().spec.rollout.lanes, self.shared().spec.update.minibatches);
        let reuse = self.shared().schedule.phase(iteration).reuse;
        let mut clock = Clock::start();
        // Lines 1 and 2: roll out, estimate advantages, and keep the rollout's log-probabilities where something needs them early.
        let labels = self.shared().spec.advantage.kind == AdvantageKind::Best;
        let request = RolloutRequest { scored: !labels, ..RolloutRequest::batch(iteration) };
        self.player.roll_out(request, lanes, &mut self.rollout)?;
        clock.lap(&mut self.seconds[0]);
        ask(false)?;
        self.batch.rollout_log_prob.clear();
        if parts > 1 || self.shared().critic() {
            self.player.score()?;
            self.batch.keep_rollout(&self.player);
        }
        self.estimate_advantages();
        if labels {
            // What has no label is neither loaded nor scored.
            let chosen = self.batch.labelled(self.rollout.group());
            let moves = self.shared().spec.advantage.improve;
            if moves == 0 {
                self.player.load_part(&self.rollout, &chosen)?;
            } else {
                // What was earned stays what it was: only what is learned is better.
                let mut labels = self.rollout.part(&chosen);
                self.player.improve(iteration, moves, &mut labels)?;
                self.player.load(&labels)?;
            }
            self.batch = self.batch.part(&chosen);
        } else if self.shared().spec.update.reference_kl > 0.0 {
            self.batch.reference_log_prob = self.player.reference(&self.rollout)?;
        }
        let terms = &self.batch.settle(terms);
        clock.lap(&mut self.seconds[1]);

        let mut norms = Vec::new();
        for epoch in 0..reuse {
            if parts == 1 {
                ask(epoch > 0)?;
                // Lines 4 to 7: log-ratios, their prefix sums, the corrected loss.
                self.batch.pull_back(&mut self.player, terms, iteration)?;
                if epoch == 0 {
                    self.batch.keep_rollout(&self.player);
                }
                // Line 8.
                norms = self.step(iteration, epoch)?;
                // A critic learns from every trajectory.
                let some = !self.shared().critic() && terms.iter().all(LossTerms::needs_advantage);
                if epoch == 0 && reuse > 1 && some {
                    self.player.leave_out(&self.batch.silent())?;
                }
            } else {
                for part in 0..parts {
                    ask(epoch + part > 0)?;
                    let chosen = self.choose_lanes(iteration, epoch, part);
                    self.player.load_part(&self.rollout, &chosen)?;
                    self.batch.part(&chosen).pull_back(&mut self.player, terms, iteration)?;
                    norms = self.step(iteration, epoch * parts + part)?;
                }
            }
        }
        ask(true)?;
        if parts > 1 {
            let whole = vec![(0..lanes).collect(); self.player.members()];
            self.player.load_part(&self.rollout, &whole)?;
        }
        // What is recorded is the update as it ended: the last step, too, has moved the policy.
        self.player.score()?;
        clock.lap(&mut self.seconds[2]);
        Ok(norms)
    }

    /// Sets the strengths that are to be measured: one for all members whose specs differ in their seeds alone.
    ///
    /// Paper: `app:sched-driftdial`
    fn measure_strengths(&mut self) -> Result<(), Error> {
        if !self.recipes.iter().any(|recipe| recipe.measured.contains(&true)) {
            return Ok(());
        }
        let drifts = self.probe()?;
        let mut settings: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (member, recipe) in self.recipes.iter().enumerate() {
            if recipe.measured.contains(&true) {
                settings.entry(recipe.spec.hash()?).or_default().push(member);
            }
        }
        for members in settings.into_values() {
            let drifts: Vec<Option<f64>> = members.iter().map(|&member| drifts[member]).collect();
            let alpha = strength_of(&drifts)?;
            for member in members {
                self.recipes[member].settle(alpha)?;
                self.alphas[member] = Some(alpha);
            }
        }
        Ok(())
    }

    /// How far one whole update takes each member from where it is, measured on its batch and on copies: σ²T, or
    /// nothing where the batch has no advantage to learn from. A strength that is still to be measured counts as none.
    ///
    /// # Errors
    /// If the device fails, or a member's log-probabilities stop being finite.
    ///
    /// Paper: `app:sched-driftdial`
    pub fn probe(&mut self) -> Result<Vec<Option<f64>>, Error> {
        let members = 0..self.player.members();
        let kept =
            members.clone().map(|member| self.player.checkpoint(member)).collect::<Result<Vec<_>, _>>()?;
        let terms: Vec<LossTerms> =
            self.recipes.iter().map(|recipe| LossTerms::of(recipe, self.done)).collect();
        self.learn(self.done, &terms, &|| false)?;
        let mut drifts = Vec::with_capacity(kept.len());
        for member in members {
            let scores = self.player.scores(member);
            let (found, _) = self.batch.measure(scores.log_prob, &terms[member], member, self.done)?;
            drifts.push((found.zero_signal < 1.0).then_some(found.drift));
            self.player.set_checkpoint(member, &kept[member])?;
        }
        Ok(drifts)
    }

    /// Seconds spent so far in each part of an iteration. They are for the eye only: no result depends on them.
    #[must_use]
    pub fn times(&self) -> [(&'static str, f64); 4] {
        let [rollout, judge, update, evaluate] = self.seconds;
        [("rollout", rollout), ("judge", judge), ("update", update), ("evaluate", evaluate)]
    }

    /// Iterations done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.done
    }

    /// The recipes, one per member.
    #[must_use]
    pub fn recipes(&self) -> &[Recipe] {
        &self.recipes
    }

    /// What all members share; only the fields that [`cohort_of`] keeps may be read from it.
    fn shared(&self) -> &Recipe {
        &self.recipes[0]
    }

    /// Fills the batch's advantages and targets.
    fn estimate_advantages(&mut self) {
        let Self { player, recipes, rollout, batch, .. } = self;
        batch.shape.clone_from(&rollout.shape);
        batch.reward.clone_from(&rollout.reward);
        batch.advantage.clear();
        batch.target.clear();
        let known = (0..recipes.len()).map(|member| {
            let kind = recipes[member].spec.advantage.kind;
            let exact =
                if kind == AdvantageKind::Exact { player.exact_advantage(member, rollout) } else { None };
            let value = if kind == AdvantageKind::Critic { player.scores(member).value } else { &[] };
            // What is paid is minus the makespan over the optimum.
            let expected = recipes[member].spec.advantage.shaped.then(|| {
                let steps = &rollout.estimated[rollout.shape.member(member)];
                steps.iter().map(|&estimated| -f64::from(estimated)).collect::<Vec<f64>>()
            });
            (exact, value.iter().map(|value| value.to_f64()).collect::<Vec<f64>>(), expected)
        });
        let known: Vec<_> = known.collect();
        let estimated = known.par_iter().enumerate().map(|(member, (exact, value, expected))| {
            let spec = &recipes[member].spec;
            let inputs = AdvantageInputs {
                reward: rollout.reward_of(member),
                shape: &rollout.shape,
                member,
                group: spec.rollout.group,
                exact: exact.as_deref(),
                value,
                expected: expected.as_deref(),
            };
            estimate(&spec.advantage, inputs)
        });
        for Advantages { advantage, target } in estimated.collect::<Vec<_>>() {
            batch.advantage.extend(advantage.iter().map(|&value| P::Scalar::from_f64(value)));
            batch.target.extend(target.iter().map(|&value| P::Scalar::from_f64(value)));
        }
    }

    /// One optimiser step; `place` counts the steps within the iteration.
    fn step(&mut self, iteration: usize, place: usize) -> Result<Vec<f64>, Error> {
        let shared = self.shared();
        let before = shared.schedule.epochs(iteration) * shared.spec.update.minibatches;
        let rate = |recipe: &Recipe| recipe.rate.rate((before + place) as u64);
        let rates: Vec<f64> = self.recipes.iter().map(rate).collect();
        let optimiser = shared.optimiser;
        self.player.step(&optimiser, &rates)
    }

    /// The trajectories of one part of a batch, whole: shuffled once per epoch by each member's own stream.
    fn choose_lanes(&self, iteration: usize, epoch: usize, part: usize) -> Vec<Vec<usize>> {
        let parts = self.shared().spec.update.minibatches;
        let choose = |recipe: &Recipe| {
            let group = self.rollout.group();
            let mut groups: Vec<usize> = (0..self.rollout.shape.lanes() / group).collect();
            let key = Key::new(recipe.spec.seed, "minibatches").iteration(iteration as u64);
            key.lane(epoch as u64).open().shuffle(&mut groups);
            let size = groups.len() / parts;
            let chosen = &groups[part * size..(part + 1) * size];
            chosen.iter().flat_map(|first| first * group..(first + 1) * group).collect()
        };
        self.recipes.iter().map(choose).collect()
    }

    fn records(&self, terms: &[LossTerms], norms: &[f64]) -> Result<Vec<Record>, Error> {
        let Self { player, recipes, rollout, batch, alphas, done, .. } = self;
        let scores: Vec<Scores<'_, P::Scalar>> =
            (0..player.members()).map(|member| player.scores(member)).collect();
        let record = |(member, scores): (usize, &Scores<'_, P::Scalar>)| {
            let (diagnostics, alpha) = batch.measure(scores.log_prob, &terms[member], member, *done)?;
            let entropy = scores.entropy;
            Ok(Record {
                entropy: entropy.iter().map(|entropy| entropy.to_f64()).sum::<f64>() / entropy.len() as f64,
                gradient_norm: norms[member],
                alpha: alpha.or(alphas[member].filter(|_| recipes[member].measures(*done))),
                ..Record::of_batch(done + 1, member, rollout).measured(&diagnostics)
            })
        };
        scores.par_iter().enumerate().map(record).collect()
    }

    /// Every member's exact return, where the process can be enumerated.
    fn exact_returns(&mut self) -> Result<Vec<Option<f64>>, Error> {
        Ok(match self.player.exact_returns()? {
            Some(exact) => exact.into_iter().map(Some).collect(),
            None => vec![None; self.player.members()],
        })
    }

    /// Measures the policies as they are.
    fn evaluate(&mut self) -> Result<Vec<Measured>, Error> {
        let exact = self.exact_returns()?;
        let spec = &self.recipes[0].spec;
        let (lanes, wanted, greedy) = (spec.rollout.lanes, spec.evaluate.lanes, spec.evaluate.greedy);
        let mut measured: Vec<Measured> =
            exact.into_iter().map(|eta| Measured { eta, ..Measured::default() }).collect();
        let Self { player, evaluated, done, .. } = self;
        let request = RolloutRequest {
            purpose: "evaluation",
            iteration: *done,
            first: 0,
            greedy: false,
            held_out: true,
            scored: false,
        };
        if wanted > 0 && measured.iter().any(|member| member.eta.is_none()) {
            let mut earned = vec![0.0; measured.len()];
            // In batches of the rollout's size, which is what the device is laid out for.
            for first in (0..wanted).step_by(lanes) {
                let request = RolloutRequest { first, ..request };
                player.roll_out(request, lanes, evaluated)?;
                let count = lanes.min(wanted - first);
                for (member, earned) in earned.iter_mut().enumerate() {
                    *earned += evaluated.reward_of(member)[..count].iter().sum::<f64>();
                }
            }
            for (member, earned) in measured.iter_mut().zip(earned) {
                member.eta = Some(earned / wanted as f64);
            }
        }
        if greedy {
            let request = RolloutRequest { greedy: true, ..request };
            let earned = player.greedy_reward(request, lanes, evaluated)?;
            let gaps = player.gaps(evaluated);
            for (place, (member, earned)) in measured.iter_mut().zip(earned).enumerate() {
                member.greedy = Some(earned);
                member.gap = gaps.get(place).copied();
            }
        }
        Ok(measured)
    }

    /// The batch that the last iteration learned from, as one member saw it; empty before the first iteration.
    #[must_use]
    pub fn last_batch(&self, member: usize) -> LastBatch {
        let Self { batch, done, .. } = self;
        let widen = |values: &[P::Scalar]| {
            let values = values.get(batch.shape.member(member)).unwrap_or_default();
            values.iter().map(|value| value.to_f64()).collect()
        };
        LastBatch {
            iteration: *done,
            shape: batch.shape.of_member(member),
            rollout: widen(&batch.rollout_log_prob),
            log_prob: widen(&batch.log_prob),
            advantage: widen(&batch.advantage),
            reward: batch.reward.chunks(batch.shape.lanes().max(1)).nth(member).unwrap_or_default().to_vec(),
        }
    }

    /// What every member says at all prefixes; see [`Player::tables`].
    ///
    /// # Errors
    /// If the device fails.
    pub fn tables(&mut self) -> Result<Option<Vec<Vec<f64>>>, Error> {
        self.player.tables()
    }

    /// Writes a member so that training can go on from here.
    ///
    /// # Errors
    /// If the device or the disk refuses.
    pub fn save(&self, member: usize, path: &Path) -> Result<(), Error> {
        let spec = &self.recipes[member].spec;
        let mut state =
            serde_json::json!({ "iteration": self.done, "spec": spec.hash()?, "seed": spec.seed });
        if let Some(alpha) = self.alphas[member] {
            state["alpha"] = alpha.into();
        }
        self.player.save(member, path, state)
    }

    /// Goes back to where a member was saved. All members of a cohort must have been saved at the same iteration.
    ///
    /// # Errors
    /// If the file is damaged, or of another spec or seed.
    pub fn restore(&mut self, member: usize, path: &Path) -> Result<(), Error> {
        let state = self.player.restore(member, path)?;
        let spec = &self.recipes[member].spec;
        let refuse = |reason: String| Error::Damaged { path: path.to_owned(), reason };
        let (hash, seed) = (state["spec"].as_str().unwrap_or_default(), state["seed"].as_u64());
        if hash != spec.hash()? || seed != Some(spec.seed) {
            return Err(refuse(format!(
                "it was saved by another run (spec {hash}, seed {})",
                seed.unwrap_or_default()
            )));
        }
        let Some(done) = state["iteration"].as_u64() else {
            return Err(refuse("it does not say at which iteration it was saved".to_owned()));
        };
        if let Some(alpha) = state["alpha"].as_f64() {
            self.recipes[member].settle(alpha)?;
            self.alphas[member] = Some(alpha);
        }
        self.done = done as usize;
        Ok(())
    }
}

/// Adds the time since the last lap to a part.
struct Clock(Instant);

impl Clock {
    fn start() -> Self {
        Self(Instant::now())
    }

    fn lap(&mut self, part: &mut f64) {
        *part += self.0.elapsed().as_secs_f64();
        self.0 = Instant::now();
    }
}

/// The strength that the drifts of a setting's probes license: that of their median. Probes without a signal say
/// nothing.
///
/// # Errors
/// Where no probe has a signal.
///
/// Paper: `app:sched-driftdial`
pub fn strength_of(drifts: &[Option<f64>]) -> Result<f64, Error> {
    let mut known: Vec<f64> = drifts.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    let middle = known.len() / 2;
    match known.as_slice() {
        [] => Err(Error::NoSignal { probes: drifts.len() }),
        known if known.len() % 2 == 0 => Ok(alpha_for_drift(f64::midpoint(known[middle - 1], known[middle]))),
        known => Ok(alpha_for_drift(known[middle])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_has_the_strength_of_its_median_probe() {
        // The median of 1, 2 and 4 is 2, of 1 and 4 it is 2.5; a probe without a signal does not count.
        assert_eq!(strength_of(&[Some(4.0), None, Some(1.0), Some(2.0)]).unwrap(), 0.5);
        assert_eq!(strength_of(&[Some(4.0), Some(1.0)]).unwrap(), 0.4);
        assert_eq!(strength_of(&[Some(0.2)]).unwrap(), 1.0);
        let refused = strength_of(&[None, None]).unwrap_err().to_string();
        assert_eq!(
            refused,
            "tempered:rule: none of 2 probes has a trajectory with an advantage, so no drift can be measured; give a \
             strength, or a task that pays some trajectories and not others"
        );
    }
}
