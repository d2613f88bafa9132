//! The resolved file with a sentence above every key that its kinds have.
//!
//! A key that is absent and stands for a value is shown as a comment with that value: the file says all that the run
//! uses, and reads back as the same spec.

use super::Spec;
use super::fields::{FIELDS, value_of};
use super::shop::{DEADLINE, PATIENCE, TRAINING, VALIDATION};
use crate::Error;
use niwaki_tasks::Shop;

impl Spec {
    /// The resolved file: every key that its kinds have with its value, a sentence above it.
    ///
    /// # Errors
    /// As [`Spec::to_toml`].
    pub fn to_commented_toml(&self) -> Result<String, Error> {
        let values = self.to_table()?;
        let (mut text, mut table) = (String::new(), "");
        for field in FIELDS.iter().filter(|field| field.is_of(self.kinds())) {
            let (home, key) = field.name.rsplit_once('.').unwrap_or(("", field.name));
            let line = match value_of(&values, field.name) {
                Some(value) => format!("{key} = {value}\n"),
                None => match self.usual(field.name) {
                    Some(value) => format!("# {key} = {value}\n"),
                    None => continue,
                },
            };
            if home != table {
                table = home;
                text += &format!("\n[{table}]\n");
            }
            text += &format!("# {}\n{line}", field.sentence());
        }
        if let Some(own) = &self.own {
            let said =
                toml::to_string(own).map_err(|error| Error::Unwritable { reason: error.to_string() })?;
            text += &format!("\n# What its trainer says of the run.\n[own]\n{said}");
        }
        Ok(text)
    }

    /// What an absent key stands for, where it is a number or a name.
    fn usual(&self, name: &str) -> Option<toml::Value> {
        let drawn = self.task.folder.is_none();
        let shop = self.task_kind().ok()?.shop();
        let whole = |number: usize| i64::try_from(number).ok().map(toml::Value::from);
        match (name, shop) {
            ("task.machines", Some(shop)) if drawn => whole(self.size(shop).machines),
            ("task.jobs", Some(shop)) if drawn => whole(self.size(shop).jobs),
            ("task.reward", Some(shop)) => Some(self.reward(shop).into()),
            ("task.deadline", Some(shop)) if self.reward(shop) == "deadline" => Some(DEADLINE.into()),
            ("task.order", Some(_)) => Some("non-delay".into()),
            ("task.draw", Some(Shop::Flexible { draw })) if drawn => Some(draw.name().into()),
            ("task.hidden", Some(_)) => Some(false.into()),
            ("task.both", Some(_)) if drawn => Some(false.into()),
            ("task.training", Some(_)) if drawn => whole(TRAINING),
            ("task.validation", Some(_)) if drawn => whole(VALIDATION),
            ("task.pool", Some(_)) if drawn => whole(0),
            ("task.patience", Some(_)) => Some(PATIENCE.into()),
            ("policy.width", _) => whole(self.width()),
            ("policy.glimpse", _) => Some("plain".into()),
            ("policy.bound", _) => Some(self.bound().into()),
            ("policy.bounds", _) => Some(false.into()),
            ("policy.hidden", _) => whole(self.hidden()),
            ("update.clip_high", _) => Some(self.update.clip.into()),
            ("warmup.correction", _) if self.warmup.iterations > 0 => {
                Some(self.update.correction.clone().into())
            }
            ("warmup.reuse", _) if self.warmup.iterations > 0 => whole(self.update.reuse),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(settings: &[&str]) -> Spec {
        let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
        Spec::read("run.toml", "", &settings).unwrap()
    }

    #[test]
    fn every_key_has_its_sentence_and_the_file_reads_back() {
        let every = [
            "update.clip_high=0.3",
            "update.dual_clip=3.0",
            "warmup.correction=full",
            "warmup.reuse=9",
            "optimiser.clip_norm=1.0",
        ];
        let kinds: [&[&str]; 9] = [
            &["policy.prime={token=1, mass=0.9}"],
            &["task.kind=choice", "task.terminal=modal", "task.busy=2", "policy.kind=bag", "policy.width=8"],
            &[
                "policy.kind=causal",
                "policy.width=8",
                "policy.hidden=16",
                "policy.heads=2",
                "policy.blocks=1",
            ],
            &["task.kind=flow-shop", "policy.kind=pointer"],
            &["task.kind=job-shop", "policy.kind=pointer", "task.jobs=3", "task.order=active", "task.pool=4"],
            &["task.kind=flexible-shop", "policy.kind=hgnn", "task.draw=sd2", "task.order=free"],
            &["task.kind=job-shop", "policy.kind=hgnn", "task.order=active", "policy.hidden=16"],
            &["task.kind=lags", "policy.kind=pointer", "task.reward=makespan", "task.hidden=true"],
            &[
                "task.kind=two-orders",
                "policy.kind=pointer",
                "task.both=true",
                "task.slack=3",
                "task.training=9",
            ],
        ];
        for kind in kinds {
            let spec = spec(&[kind, &every[..]].concat());
            let text = spec.to_commented_toml().unwrap();
            assert_eq!(Spec::read("spec.toml", &text, &[]).unwrap(), spec, "{text}");
            // Every value of the resolved file that its kinds have is there, none of another kind is.
            for field in FIELDS {
                let key = field.name.rsplit('.').next().unwrap();
                let said =
                    value_of(&spec.to_table().unwrap(), field.name).is_some() && field.is_of(spec.kinds());
                assert!(
                    !said || text.contains(&format!("# {}\n{key} = ", field.sentence())),
                    "{} in {text}",
                    field.name
                );
            }
        }
        let known: Vec<&str> = FIELDS.iter().map(|field| field.name).collect();
        for (table, values) in Spec::default().to_table().unwrap() {
            match values {
                toml::Value::Table(values) => {
                    values.keys().for_each(|key| {
                        assert!(known.contains(&format!("{table}.{key}").as_str()), "{table}.{key}")
                    });
                }
                _ => assert!(known.contains(&table.as_str()), "{table}"),
            }
        }
    }

    #[test]
    fn a_flow_shop_shows_what_it_uses_and_nothing_else() {
        let text = spec(&["task.kind=flow-shop", "policy.kind=pointer", "task.jobs=12"])
            .to_commented_toml()
            .unwrap();
        for line in [
            "jobs = 12",
            "# machines = 7",
            "# deadline = 1.05",
            "# training = 256",
            "# width = 64",
            "# hidden = 128",
        ] {
            assert!(text.lines().any(|said| said == line), "{line} in {text}");
        }
        for key in ["vocab", "horizon", "terminal", "busy", "both", "slack", "scale"] {
            assert!(!text.contains(&format!("{key} = ")), "{key} in {text}");
        }
        let text = spec(&[]).to_commented_toml().unwrap();
        assert!(text.contains("# Epochs on each batch.\nreuse = 4\n"), "{text}");
        assert!(!text.contains("jobs") && text.contains("horizon = 8"), "{text}");
    }
}
