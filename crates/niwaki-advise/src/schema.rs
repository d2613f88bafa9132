//! The fields of a dump and the names under which they come.
//!
//! Owns names only; knows nothing of files or numbers. The table in `docs/advise.md` is this one in prose.

use niwaki_words::nearest;
use std::fmt;
use std::str::FromStr;

/// A field of a trajectory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Field {
    /// Log-probs of the steps taken under the policy that the batch was drawn from.
    OldLogProb,
    /// Log-probs of the same steps under the policy as it is now.
    NewLogProb,
    /// Log-probs as the sampling engine gave them.
    BehaviourLogProb,
    /// Advantage of each step, or one for the trajectory.
    Advantage,
    /// Reward of the trajectory, or of each step.
    Reward,
    /// 1 where the policy took the step.
    Mask,
    /// A second mask; both must be 1.
    ToolMask,
    /// Version of the policy that sampled each step, or one for the trajectory.
    Version,
    /// How many updates had used the trajectory before; as a list, how many versions old the policy was that sampled each step.
    Age,
    /// What trajectories of one prompt or instance share.
    Group,
    /// Batch of the run.
    Iteration,
    /// How much the trajectory counts.
    Weight,
    /// Chance with which a thinned dump kept the trajectory's steps; 0 where it left them out.
    Kept,
    /// Version of the policy that was trained on the trajectory.
    TrainerVersion,
    /// Steps of the trajectory in a padded array.
    Length,
    /// Where trajectories start in a flat array.
    Offsets,
}

/// Every field, in the order of [`Field::index`].
pub const FIELDS: [Field; 16] = [
    Field::OldLogProb,
    Field::NewLogProb,
    Field::BehaviourLogProb,
    Field::Advantage,
    Field::Reward,
    Field::Mask,
    Field::ToolMask,
    Field::Version,
    Field::Age,
    Field::Group,
    Field::Iteration,
    Field::Weight,
    Field::Kept,
    Field::TrainerVersion,
    Field::Length,
    Field::Offsets,
];

impl Field {
    /// The field's place in [`FIELDS`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it holds one value per trajectory and never a list.
    #[must_use]
    pub const fn is_single(self) -> bool {
        matches!(self, Self::Group | Self::Iteration | Self::Weight | Self::Kept | Self::TrainerVersion)
    }

    /// The field's own name first, then those of other trainers' dumps.
    ///
    /// TRL: tensors of `GRPOTrainer` (1.16). verl: keys of its `DataProto` and of its actor's output (0.9). AReaL: `prox_logp` and
    /// `versions` of its rollout batches. prime-rl: fields of its loss's inputs. NeMo-RL: columns of its training data.
    #[must_use]
    pub const fn names(self) -> &'static [&'static str] {
        match self {
            Self::OldLogProb => &[
                "old_log_prob",
                "old_log_probs",
                "old_per_token_logps",
                "old_logprobs",
                "old_logps",
                "prox_logp",
                "prev_logprobs",
            ],
            Self::NewLogProb => &[
                "new_log_prob",
                "new_log_probs",
                "log_prob",
                "log_probs",
                "per_token_logps",
                "current_log_prob",
                "current_log_probs",
                "logprobs",
                "trainer_logprobs",
                "curr_logprobs",
            ],
            Self::BehaviourLogProb => &[
                "behaviour_log_prob",
                "rollout_log_probs",
                "rollout_log_prob",
                "sampling_per_token_logps",
                "behavior_log_prob",
                "behaviour_log_probs",
                "behavior_log_probs",
                "inference_logprobs",
                "generation_logprobs",
            ],
            Self::Advantage => &["advantage", "advantages"],
            Self::Reward => {
                &["reward", "rewards", "token_level_rewards", "token_level_scores", "score", "return"]
            }
            Self::Mask => {
                &["mask", "response_mask", "completion_mask", "action_mask", "loss_mask", "token_mask"]
            }
            Self::ToolMask => &["tool_mask", "env_mask"],
            Self::Version => &["version", "versions"],
            Self::Group => &["group", "group_id", "uid", "prompt_id", "instance"],
            Self::Iteration => &["iteration", "step", "global_step", "global_steps", "update"],
            Self::Age => &["age", "use"],
            Self::Weight => &["weight"],
            Self::Kept => &["kept"],
            Self::TrainerVersion => &["trainer_version", "current_version"],
            Self::Length => &["length", "lengths"],
            Self::Offsets => &["offsets", "cu_seqlens"],
        }
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.names()[0])
    }
}

impl FromStr for Field {
    type Err = String;

    /// A field by its own name; the error names the nearest.
    fn from_str(text: &str) -> Result<Self, String> {
        let own = FIELDS.map(|field| field.names()[0]);
        FIELDS.into_iter().find(|field| field.names()[0] == text).ok_or_else(|| match nearest(text, own) {
            Some(near) => format!("no field is called '{text}'; did you mean '{near}'?"),
            None => format!("no field is called '{text}'; the fields are {}", own.join(", ")),
        })
    }
}

/// The names under which fields are looked for: those of the schema, and a user's own.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    own: Vec<(Field, String)>,
}

impl Naming {
    /// Reads `field` under `name`, and under no other.
    #[must_use]
    pub fn with(mut self, field: Field, name: impl Into<String>) -> Self {
        self.own.retain(|(known, _)| *known != field);
        self.own.push((field, name.into()));
        self
    }

    /// The field that a name stands for, and how much the name is preferred (0 first) where several are there.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<(Field, usize)> {
        if let Some((field, _)) = self.own.iter().find(|(_, own)| own == name) {
            return Some((*field, 0));
        }
        let mapped = |field: &Field| self.own.iter().any(|(known, _)| known == field);
        FIELDS
            .into_iter()
            .filter(|field| !mapped(field))
            .find_map(|field| field.names().iter().position(|&known| known == name).map(|at| (field, at)))
    }

    /// The optional field that an unread name was probably meant for: it differs in case, a dash or a plural only. Without it
    /// every number would come out otherwise, and nobody would notice.
    #[must_use]
    pub fn meant(&self, name: &str) -> Option<Field> {
        let plain = |name: &str| name.to_ascii_lowercase().replace('-', "_").trim_end_matches('s').to_owned();
        let optional = [
            Field::Mask,
            Field::ToolMask,
            Field::Weight,
            Field::BehaviourLogProb,
            Field::Version,
            Field::Age,
        ];
        let name = plain(name);
        optional.into_iter().find(|&field| self.names(field).into_iter().any(|known| plain(known) == name))
    }

    /// The names a field is looked for under.
    #[must_use]
    pub fn names(&self, field: Field) -> Vec<&str> {
        match self.own.iter().find(|(known, _)| *known == field) {
            Some((_, own)) => vec![own.as_str()],
            None => field.names().to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_for_two_fields() {
        let mut all: Vec<&str> = FIELDS.iter().flat_map(|field| field.names()).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        assert!(FIELDS.iter().enumerate().all(|(at, field)| field.index() == at));
    }

    #[test]
    fn the_documented_schema_is_this_one() {
        let text = include_str!("../../../docs/advise.md");
        for field in FIELDS {
            let row = text.lines().find(|line| line.starts_with(&format!("| `{field}` ")));
            let row = row.unwrap_or_else(|| panic!("docs/advise.md has no row for {field}"));
            for name in field.names() {
                assert!(row.contains(&format!("`{name}`")), "{field}: {name} is not documented");
            }
        }
    }

    #[test]
    fn a_name_of_ones_own_replaces_the_others() {
        let naming = Naming::default().with(Field::NewLogProb, "lp");
        assert_eq!(naming.field("lp"), Some((Field::NewLogProb, 0)));
        assert_eq!(naming.field("log_probs"), None);
        assert_eq!(naming.field("uid"), Some((Field::Group, 2)));
    }

    #[test]
    fn a_plural_of_an_optional_field_is_recognised() {
        let naming = Naming::default();
        let meant = ["masks", "Weights", "response-mask", "steps", "prompt"].map(|name| naming.meant(name));
        assert_eq!(meant, [Some(Field::Mask), Some(Field::Weight), Some(Field::Mask), None, None]);
    }

    #[test]
    fn slips_are_recognised() {
        assert!("x".parse::<Field>().unwrap_err().contains("the fields are "));
        assert!("advantges".parse::<Field>().unwrap_err().contains("did you mean 'advantage'?"));
    }
}
