//! Keys that another key leaves without effect: a value that says more than the default is refused there.

use super::check::refuse;
use super::{AdvantageKind, OptimiserKind, Played, Spec};
use crate::Error;

const NO_WARMUP: &str = "warmup.iterations = 0 is no warmup at all";

impl Spec {
    /// Refuses what only the spec of a single run may not say: a study's cell gives its warmup's reuse to all arms, those without
    /// a warmup too.
    ///
    /// # Errors
    /// With the key, and the one that leaves it without effect.
    pub fn check_alone(&self) -> Result<(), Error> {
        if self.warmup.reuse.is_some() && self.warmup.iterations == 0 {
            return Err(refuse("warmup.reuse", format!("{NO_WARMUP}; leave it out")));
        }
        Ok(())
    }

    /// Refuses what nothing would read.
    pub(super) fn check_effects(&self, task: &Played) -> Result<(), Error> {
        let plain = Self::default();
        let (advantage, update, optimiser) = (&self.advantage, &self.update, &self.optimiser);
        let judged = match advantage.kind {
            AdvantageKind::Returns => "returns",
            AdvantageKind::Group => "group",
            AdvantageKind::Best => "best",
            AdvantageKind::Exact => "exact",
            AdvantageKind::Critic => "critic",
        };
        let rule = match optimiser.kind {
            OptimiserKind::NSgd => "n-sgd",
            OptimiserKind::Sgd => "sgd",
            OptimiserKind::Adam => "adam",
        };
        let by_judge = |reads: &str| format!("advantage.kind = '{judged}' {reads}");
        let no_critic = (advantage.kind != AdvantageKind::Critic)
            .then(|| by_judge("has no critic, which alone would read it"));
        let no_group = (matches!(task, Played::Tokens(_))
            && !matches!(advantage.kind, AdvantageKind::Group | AdvantageKind::Best))
        .then(|| by_judge("has no groups"));
        let no_scale = matches!(advantage.kind, AdvantageKind::Exact | AdvantageKind::Best)
            .then(|| by_judge("is not divided by anything"));
        let no_clip = (update.clip == 0.0).then(|| "update.clip = 0 clips nothing".to_owned());
        let no_warmup = (self.warmup.iterations == 0).then(|| NO_WARMUP.to_owned());
        let no_decay = (optimiser.kind != OptimiserKind::Adam)
            .then(|| format!("optimiser.kind = '{rule}' has no decay, 'adam' has"));
        let no_norm = (optimiser.kind == OptimiserKind::NSgd)
            .then(|| format!("optimiser.kind = '{rule}' takes steps of fixed length, whatever the norm"));
        let said = [
            ("rollout.group", self.rollout.group != plain.rollout.group, no_group),
            ("advantage.standardise", advantage.standardise, no_scale),
            ("advantage.lambda", advantage.lambda != plain.advantage.lambda, no_critic.clone()),
            ("update.value", update.value != plain.update.value, no_critic),
            ("update.clip_high", update.clip_high.is_some(), no_clip.clone()),
            ("update.dual_clip", update.dual_clip.is_some(), no_clip),
            ("warmup.correction", self.warmup.correction.is_some(), no_warmup),
            ("optimiser.decay", optimiser.decay != plain.optimiser.decay, no_decay),
            ("optimiser.clip_norm", optimiser.clip_norm.is_some(), no_norm),
        ];
        let dead = said.into_iter().find_map(|(key, said, why)| said.then_some(key).zip(why));
        dead.map_or(Ok(()), |(key, why)| Err(refuse(key, format!("{why}; leave it out"))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(settings: &[&str]) -> Result<(), String> {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        let spec = Spec::read("run.toml", "", &settings).map_err(|error| error.to_string())?;
        spec.check().and_then(|_| spec.check_alone()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_key_that_another_leaves_without_effect_is_refused_with_both_names() {
        let critic = "advantage.kind=critic";
        // A base, what nothing reads there, the key that makes it so, and a setting that makes it alive.
        let cases: &[(&[&str], &str, &str, &[&str])] = &[
            (&[], "advantage.lambda=0.9", "advantage.kind = 'returns'", &["policy.kind=bag", critic]),
            (&["advantage.kind=group"], "advantage.lambda=0.9", "advantage.kind = 'group'", &[]),
            (&[], "update.value=1.0", "advantage.kind = 'returns'", &["policy.kind=bag", critic]),
            (&["advantage.kind=exact"], "update.value=0.0", "advantage.kind = 'exact'", &[]),
            (&[], "rollout.group=8", "advantage.kind = 'returns'", &["advantage.kind=group"]),
            (&["policy.kind=causal"], "rollout.group=8", "advantage.kind = 'returns'", &[]),
            (&["advantage.kind=exact"], "advantage.standardise=true", "advantage.kind = 'exact'", &[]),
            (&["update.clip=0"], "update.clip_high=0.3", "update.clip = 0", &["update.clip=0.1"]),
            (&["update.clip=0.0"], "update.dual_clip=3", "update.clip = 0", &["update.clip=0.1"]),
            (&[], "warmup.correction=full", "warmup.iterations = 0", &["warmup.iterations=5"]),
            (&[], "warmup.reuse=9", "warmup.iterations = 0", &["warmup.iterations=5"]),
            (&[], "optimiser.decay=0.1", "optimiser.kind = 'n-sgd'", &["optimiser.kind=adam"]),
            (&["optimiser.kind=sgd"], "optimiser.decay=0.1", "optimiser.kind = 'sgd'", &[]),
            (&[], "optimiser.clip_norm=1", "optimiser.kind = 'n-sgd'", &["optimiser.kind=sgd"]),
        ];
        for (base, dead, killer, alive) in cases {
            let with = |more: &[&str]| checked(&[base, &[*dead][..], more].concat());
            let said = with(&[]).unwrap_err();
            let key = dead.split_once('=').unwrap().0;
            assert!(said.starts_with(&format!("{key}: {killer}")), "{dead}: {said}");
            assert!(said.ends_with("; leave it out") && said.lines().count() == 1, "{said}");
            assert!(alive.is_empty() || with(alive).is_ok(), "{dead} {alive:?}: {:?}", with(alive));
        }
        // What holds anyway may be said, as in a resolved file; the groups of a shop share an instance whatever is learned.
        assert_eq!(checked(&["advantage.lambda=0.95", "update.value=0.5", "optimiser.decay=0"]), Ok(()));
        let shop = ["task.kind=flow-shop", "policy.kind=pointer", "rollout.group=8"];
        assert_eq!(checked(&shop), Ok(()));
    }
}
