//! From numbers and names to a recipe that can run.

use super::task::RECORD;
use super::{AdvantageKind, OptimiserKind, Played, RateSchedule, Spec, StorageKind};
use crate::Error;
use niwaki_correction::surrogate::Mean;
use niwaki_correction::{Clip, Correction, Phase, ReuseSchedule, Surrogate};
use niwaki_nn::{Optimiser, Storage, optimiser};
use niwaki_tasks::Sequence;
use std::sync::Arc;

/// A correction whose strength is measured before training.
pub const MEASURED: &str = "tempered:rule";

/// A run that was checked: only this trains.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The file, resolved.
    pub spec: Spec,
    /// What is played.
    pub task: Played,
    /// Correction and reuse over the iterations.
    pub schedule: ReuseSchedule,
    /// The clip of the objective.
    pub clip: Option<Clip>,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The learning rate over the optimiser's steps.
    pub rate: optimiser::LearningRate,
    /// Whether the strength of the warmup's correction and that of the rest is measured before training; until then
    /// the schedule has PPO in its place.
    pub measured: [bool; 2],
}

impl Recipe {
    /// The loss of an iteration.
    #[must_use]
    pub fn surrogate(&self, iteration: usize) -> Surrogate {
        Surrogate {
            correction: self.schedule.phase(iteration).correction,
            clip: self.clip,
            routing: self.spec.update.routing,
            mean: Mean::Steps,
        }
    }

    /// Puts the strength that was measured into the schedule.
    ///
    /// # Errors
    /// If it is no strength.
    pub fn settle(&mut self, alpha: f64) -> Result<(), Error> {
        let correction =
            Correction::tempered(alpha).map_err(|error| refuse("update.correction", error.to_string()))?;
        for (phase, measured) in
            [&mut self.schedule.first, &mut self.schedule.rest].into_iter().zip(self.measured)
        {
            if measured {
                phase.correction = correction;
            }
        }
        Ok(())
    }

    /// Whether an iteration's strength is a measured one.
    #[must_use]
    pub fn measures(&self, iteration: usize) -> bool {
        self.measured[usize::from(iteration >= self.schedule.warmup)]
    }

    /// The task where it is one of tokens.
    #[must_use]
    pub fn tokens(&self) -> Option<Arc<dyn Sequence>> {
        match &self.task {
            Played::Tokens(task) => Some(task.clone()),
            Played::Texts(_) | Played::Shops(_) => None,
        }
    }

    /// Whether the policy has a critic.
    #[must_use]
    pub fn critic(&self) -> bool {
        self.spec.advantage.kind == AdvantageKind::Critic
    }
}

impl Spec {
    /// Checks every number and name.
    ///
    /// # Errors
    /// The first thing that cannot run: its key, what came and what is possible.
    pub fn check(&self) -> Result<Recipe, Error> {
        if self.own.is_some() {
            let reason = "the run is another trainer's; the script that wrote it goes on with it";
            return Err(refuse("own", reason.to_owned()));
        }
        let task = self.played()?;
        self.check_counts()?;
        self.check_numbers()?;
        self.check_policy(&task)?;
        self.check_effects(&task)?;
        self.check_size(&task)?;
        let phase = |key: &'static str, name: &str, reuse: usize| {
            let parsed = if name == MEASURED { "ppo" } else { name }.parse();
            let correction: Correction = parsed.map_err(|error: niwaki_correction::Error| {
                let other =
                    if name.starts_with("tempered") { format!(" or {MEASURED}") } else { String::new() };
                refuse(key, format!("{error}{other}"))
            })?;
            Ok::<_, Error>(Phase { correction, reuse })
        };
        let rest = phase("update.correction", &self.update.correction, self.update.reuse)?;
        let early = self.warmup.correction.as_deref().unwrap_or(&self.update.correction);
        let first = phase("warmup.correction", early, self.warmup.reuse.unwrap_or(self.update.reuse))?;
        let measured = [self.warmup.iterations > 0 && early == MEASURED, self.update.correction == MEASURED];
        let schedule = ReuseSchedule { warmup: self.warmup.iterations, first, rest };
        let update = &self.update;
        let clip = (update.clip > 0.0).then(|| Clip {
            low: update.clip,
            high: update.clip_high.unwrap_or(update.clip),
            dual: update.dual_clip,
        });
        let mut optimiser = match self.optimiser.kind {
            OptimiserKind::NSgd => Optimiser::normalised_sgd(),
            OptimiserKind::Sgd => Optimiser::sgd(),
            OptimiserKind::Adam => Optimiser::adam(),
        };
        let asked = &self.optimiser;
        if let optimiser::StepRule::Adam { decay, first, second, epsilon, storage } = &mut optimiser.rule {
            *decay = asked.decay;
            [*first, *second] = asked.betas.unwrap_or([*first, *second]);
            *epsilon = asked.epsilon.unwrap_or(*epsilon);
            *storage = match asked.storage {
                Some(StorageKind::Bf16) => Storage::Bf16,
                Some(StorageKind::F32) | None => Storage::Whole,
            };
        } else {
            for (key, said) in [
                ("optimiser.betas", asked.betas.is_some()),
                ("optimiser.epsilon", asked.epsilon.is_some()),
                ("optimiser.storage", asked.storage.is_some()),
            ] {
                if said {
                    return Err(refuse(key, "only 'adam' keeps moments; leave it out".to_owned()));
                }
            }
        }
        optimiser.clip = self.optimiser.clip_norm;
        let steps = (schedule.epochs(self.iterations) * self.update.minibatches) as u64;
        let peak = self.optimiser.rate;
        let rate = match self.optimiser.schedule {
            RateSchedule::Constant => optimiser::LearningRate::Constant(peak),
            RateSchedule::Linear => optimiser::LearningRate::Linear { from: peak, to: 0.0, steps },
            RateSchedule::Cosine => optimiser::LearningRate::Cosine { peak, floor: 0.0, warmup: 0, steps },
        };
        Ok(Recipe { spec: self.resolved(&task)?, task, schedule, clip, optimiser, rate, measured })
    }

    fn check_counts(&self) -> Result<(), Error> {
        let counts = [
            ("iterations", self.iterations, 1_000_000),
            ("rollout.lanes", self.rollout.lanes, 1 << 24),
            ("rollout.group", self.rollout.group, 1 << 24),
            ("update.reuse", self.update.reuse, 10_000),
            ("update.minibatches", self.update.minibatches, 1 << 24),
            ("rollout.hold", self.rollout.hold.unwrap_or(1), usize::MAX),
            ("warmup.reuse", self.warmup.reuse.unwrap_or(1), 10_000),
            ("evaluate.every", self.evaluate.every, usize::MAX),
            ("task.vocab", self.task.vocab, 1 << 20),
            ("task.horizon", self.task.horizon, 1 << 20),
        ];
        for (key, came, most) in counts {
            if came == 0 || came > most {
                let most = if most == usize::MAX { "any number".to_owned() } else { most.to_string() };
                return Err(refuse(key, format!("{came} is not between 1 and {most}")));
            }
        }
        let (lanes, advantage) = (self.rollout.lanes, &self.advantage);
        for (key, asked) in [
            ("advantage.standard_returns", advantage.standard_returns),
            ("advantage.fresh", advantage.fresh),
            ("advantage.shaped", advantage.shaped),
        ] {
            if asked && advantage.kind != AdvantageKind::Critic {
                return Err(refuse(key, "only advantage.kind = 'critic' knows it; leave it out".to_owned()));
            }
        }
        if advantage.fresh && (advantage.lambda != 1.0 || advantage.standardise) {
            let reason = "it is the return minus the estimate: set advantage.lambda = 1 and leave out advantage.standardise";
            return Err(refuse("advantage.fresh", reason.to_owned()));
        }
        if advantage.shaped && self.task.reward.as_deref() != Some("makespan") {
            let reason = "estimates are of makespans; set task.reward = 'makespan', or leave it out";
            return Err(refuse("advantage.shaped", reason.to_owned()));
        }
        if advantage.improve > 0
            && (advantage.kind != AdvantageKind::Best || self.task.reward.as_deref() != Some("makespan"))
        {
            let reason = "what is improved are the labels of advantage.kind = 'best' where task.reward = 'makespan'; set both, or leave it out";
            return Err(refuse("advantage.improve", reason.to_owned()));
        }
        if matches!(self.advantage.kind, AdvantageKind::Group | AdvantageKind::Best)
            && (!lanes.is_multiple_of(self.rollout.group) || self.rollout.group < 2)
        {
            let group = self.rollout.group;
            let reason =
                format!("groups of {group} do not divide {lanes} lanes into equal parts of at least 2");
            return Err(refuse("rollout.group", reason));
        }
        if advantage.kind == AdvantageKind::Best && self.update.minibatches > 1 {
            let reason = "what is learned of a group is one trajectory, so a batch is not cut; leave it out";
            return Err(refuse("update.minibatches", reason.to_owned()));
        }
        if advantage.kind == AdvantageKind::Best {
            // A label is right whatever drew it.
            let why = "advantage.kind = 'best' learns labels, not ratios; leave it out";
            if self.update.reference_kl > 0.0 {
                return Err(refuse("update.reference_kl", why.to_owned()));
            }
            if self.dump.every > 0 {
                return Err(refuse("dump.every", why.to_owned()));
            }
        }
        if !lanes.is_multiple_of(self.update.minibatches) {
            let parts = self.update.minibatches;
            return Err(refuse("update.minibatches", format!("{parts} parts do not divide {lanes} lanes")));
        }
        Ok(())
    }

    fn check_numbers(&self) -> Result<(), Error> {
        // Closer to zero a bound leaves nothing of the scores, and its inverse no number.
        if self.bound() > 0.0 && self.bound() < 1e-3 {
            let reason = format!("{} leaves nothing of the scores; give 0 for no bound", self.bound());
            return Err(refuse("policy.bound", reason));
        }
        let betas = self.optimiser.betas.unwrap_or_default();
        let numbers = [
            ("policy.scale", self.policy.scale, 0.0, f64::MAX),
            ("policy.bound", self.bound(), 0.0, 1e6),
            ("advantage.lambda", self.advantage.lambda, 0.0, 1.0),
            ("update.clip", self.update.clip, 0.0, 1.0),
            ("update.clip_high", self.update.clip_high.unwrap_or(0.0), 0.0, f64::MAX),
            ("update.dual_clip", self.update.dual_clip.unwrap_or(2.0), 1.0, f64::MAX),
            ("update.entropy", self.update.entropy, 0.0, f64::MAX),
            ("update.reference_kl", self.update.reference_kl, 0.0, f64::MAX),
            ("update.value", self.update.value, 0.0, f64::MAX),
            ("optimiser.rate", self.optimiser.rate, 0.0, f64::MAX),
            ("optimiser.decay", self.optimiser.decay, 0.0, f64::MAX),
            ("optimiser.betas", betas[0], 0.0, 0.999_999),
            ("optimiser.betas", betas[1], 0.0, 0.999_999),
            ("optimiser.epsilon", self.optimiser.epsilon.unwrap_or(1e-8), 0.0, 1.0),
            ("optimiser.clip_norm", self.optimiser.clip_norm.unwrap_or(1.0), 0.0, f64::MAX),
        ];
        for (key, came, least, most) in numbers {
            if !(least..=most).contains(&came) {
                let most = if most == f64::MAX { "up".to_owned() } else { format!("to {most}") };
                return Err(refuse(
                    key,
                    format!("{came} is out of range; give a number from {least} {most}"),
                ));
            }
        }
        Ok(())
    }
}

pub(super) fn refuse(key: &'static str, reason: String) -> Error {
    Error::Senseless { key, reason }
}

/// What specs must have in common to train as one cohort: all but the seed, the loss, what a schedule pays, the
/// judgement of a trajectory, the learning rate, how often a run is saved and what is dumped.
///
/// # Errors
/// As [`Spec::to_toml`].
pub fn cohort_of(spec: &Spec) -> Result<String, Error> {
    let mut common = spec.clone();
    let plain = Spec::default();
    common.seed = 0;
    common.update = super::UpdateSpec {
        reuse: spec.update.reuse,
        minibatches: spec.update.minibatches,
        // Whether a reference is needed at all shapes the program.
        reference_kl: f64::from(u8::from(spec.update.reference_kl > 0.0)),
        ..plain.update
    };
    common.warmup.correction = None;
    common.warmup.reuse = Some(spec.warmup.reuse.unwrap_or(spec.update.reuse));
    if common.warmup.reuse == Some(spec.update.reuse) {
        // A warmup that reuses its batches as often as the rest changes the loss alone.
        common.warmup.iterations = 0;
    }
    common.optimiser.rate = 0.0;
    common.optimiser.schedule = RateSchedule::Constant;
    // What a schedule pays is each member's own; a record pays all members alike.
    common.task.deadline = None;
    if spec.task.kind != RECORD {
        common.task.reward = None;
    }
    common.checkpoint = plain.checkpoint;
    common.dump = plain.dump;
    if !matches!(spec.advantage.kind, AdvantageKind::Critic | AdvantageKind::Best) {
        common.advantage = plain.advantage;
    }
    common.to_toml()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(settings: &[&str]) -> String {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        Spec::read("run.toml", "", &settings).unwrap().check().unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_run_is_named() {
        assert_eq!(
            refusal(&["task.kind=two-branhc"]),
            "task.kind: no task is called 'two-branhc'; did you mean 'two-branch'?"
        );
        assert_eq!(refusal(&["rollout.lanes=0"]), "rollout.lanes: 0 is not between 1 and 16777216");
        assert_eq!(
            refusal(&["advantage.kind=group", "rollout.group=7"]),
            "rollout.group: groups of 7 do not divide 256 lanes into equal parts of at least 2"
        );
        assert_eq!(refusal(&["update.minibatches=3"]), "update.minibatches: 3 parts do not divide 256 lanes");
        assert_eq!(
            refusal(&["optimiser.rate=-1"]),
            "optimiser.rate: -1 is out of range; give a number from 0 up"
        );
        let bound = |bound: &str| refusal(&["task.kind=flow-shop", "policy.kind=pointer", bound]);
        assert!(bound("policy.bound=-1").ends_with("-1 is out of range; give a number from 0 to 1000000"));
        assert!(bound("policy.bound=1e-9").ends_with("give 0 for no bound"));
        assert!(refusal(&["update.correction=tempred:0.1"]).contains("did you mean 'tempered'"));
        assert!(
            refusal(&["update.correction=tempered:rul"]).ends_with("write tempered:ALPHA or tempered:rule")
        );
        assert!(refusal(&["task.horizon=40"]).starts_with("policy.kind: "));
        assert!(refusal(&["policy.kind=bag", "advantage.kind=exact"]).contains("needs policy.kind"));
    }

    #[test]
    fn arms_share_a_cohort_and_shapes_do_not() {
        let spec = |settings: &[&str]| {
            let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
            cohort_of(&Spec::read("run.toml", "", &settings).unwrap()).unwrap()
        };
        let base = spec(&[]);
        assert_eq!(
            base,
            spec(&["seed=4", "update.correction=full", "optimiser.rate=1.0", "advantage.kind=exact"])
        );
        assert_ne!(base, spec(&["update.reuse=5"]));
        // Default reuse is 4: a warmup as long as one likes at 4 is company, one at 5 is not.
        assert_eq!(base, spec(&["warmup.iterations=50", "warmup.correction=full"]));
        assert_eq!(base, spec(&["warmup.iterations=25", "warmup.reuse=4"]));
        assert_ne!(base, spec(&["warmup.iterations=25", "warmup.reuse=5"]));
        assert_ne!(base, spec(&["task.horizon=7"]));
        let shop = |deadline: &str| spec(&["task.kind=flow-shop", "policy.kind=pointer", deadline]);
        assert_eq!(shop("task.deadline=1.04"), shop("task.deadline=1.06"));
        assert_ne!(base, spec(&["optimiser.kind=adam"]));
        assert_ne!(base, spec(&["update.reference_kl=0.1"]));
    }

    #[test]
    fn a_warmup_takes_what_it_does_not_say_from_the_update() {
        let text = "[update]\nreuse = 12\n[warmup]\niterations = 50\ncorrection = \"tempered:0.3\"\n";
        let recipe = Spec::read("run.toml", text, &[]).unwrap().check().unwrap();
        let (first, rest) = (recipe.schedule.phase(49), recipe.schedule.phase(50));
        assert_eq!((first.reuse, rest.reuse), (12, 12));
        assert_eq!(
            (first.correction.to_string().as_str(), rest.correction.to_string().as_str()),
            ("tempered:0.3", "ppo")
        );
    }
}
