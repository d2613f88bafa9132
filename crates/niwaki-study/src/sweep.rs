//! A study of one's own: arms × settings × seeds around the spec of a run, written as a study file.

use crate::Error;
use crate::training::{Plan, Training};
use niwaki_train::Spec;
use niwaki_train::spec::{strictly, value_of};
use toml::{Table, Value};

/// What a sweep varies.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The label of its study, which names its folder.
    pub label: String,
    /// What every run has in common.
    pub base: Spec,
    /// Corrections; every one is compared with the first, seed by seed.
    pub arms: Vec<String>,
    /// Keys of a run, with dots, and the values that each takes, as one would write them in a setting.
    pub vary: Vec<(String, Vec<String>)>,
    /// Paired seeds.
    pub seeds: u64,
    /// What is read off each curve and compared; by what the task is judged where empty.
    pub endpoints: Vec<String>,
}

impl Sweep {
    /// The text of its study file.
    ///
    /// # Errors
    /// Where a key, a value, an arm or an endpoint is refused, or there is nothing to run.
    pub fn study(&self) -> Result<String, Error> {
        let senseless = |mend: String| Error::Senseless { label: self.label.clone(), mend };
        let Some(first) = self.arms.first() else {
            return Err(senseless("it has no arm; name at least one correction".to_owned()));
        };
        let texts = |words: &[String]| Value::Array(words.iter().cloned().map(Value::String).collect());
        let endpoints = if self.endpoints.is_empty() {
            let judged =
                if self.base.evaluate.greedy { ["greedy-auc", "greedy-final"] } else { ["auc", "final"] };
            judged.map(ToOwned::to_owned).to_vec()
        } else {
            self.endpoints.clone()
        };
        let mut study = Table::new();
        let mut says = |key: &str, value: Value| _ = study.insert(key.to_owned(), value);
        says("label", self.label.clone().into());
        says("title", format!("{}: {}", self.label, self.arms.join(", ")).into());
        says("question", self.question().into());
        says("seeds", i64::try_from(self.seeds).unwrap_or(i64::MAX).into());
        says("endpoints", texts(&endpoints));
        says("base", Value::Table(self.base.beyond_defaults()?));
        let arm = |name: &String| Value::Table(Table::from_iter([("name".to_owned(), name.clone().into())]));
        says("arm", Value::Array(self.arms.iter().map(arm).collect()));
        let mut axes = Vec::new();
        if self.base.seed != 0 {
            let last = self.seeds.saturating_sub(1);
            return Err(senseless(format!(
                "a sweep runs seeds 0 to {last}; leave seed = {} out",
                self.base.seed
            )));
        }
        for (at, (key, values)) in self.vary.iter().enumerate() {
            let mend = match key.as_str() {
                "seed" => Some(
                    "seed: seeds are paired over all settings; give their number with --seeds".to_owned(),
                ),
                "update.correction" => {
                    Some("update.correction: losses are arms; name each with --arm".to_owned())
                }
                _ if self.vary[..at].iter().any(|(before, _)| before == key) => {
                    Some(format!("{key} is varied twice; write all of its values in one"))
                }
                _ => None,
            };
            if let Some(mend) = mend {
                return Err(senseless(mend));
            }
            if values.is_empty() || values.iter().any(String::is_empty) {
                return Err(senseless(format!("{key} takes no value; write it as key=a,b")));
            }
            let values = Value::Array(values.iter().map(|value| value_of(value)).collect());
            axes.push(Value::Table(Table::from_iter([
                ("key".to_owned(), key.clone().into()),
                ("values".to_owned(), values),
            ])));
        }
        if !axes.is_empty() {
            says("grid", Value::Array(axes));
        }
        if self.arms.len() > 1 {
            says(
                "compare",
                Value::Table(Table::from_iter([
                    ("against".to_owned(), texts(std::slice::from_ref(first))),
                    ("endpoints".to_owned(), texts(&endpoints)),
                ])),
            );
        }
        let text = toml::to_string(&study).map_err(|error| senseless(error.to_string()))?;
        // What cannot be planned is refused before anything is written.
        let read: Training = strictly(&format!("study {}", self.label), &text)?;
        Plan::new(read, None)?;
        Ok(text)
    }

    fn question(&self) -> String {
        let axes = self.vary.iter().map(|(key, values)| format!("{key} in {}", values.join(", ")));
        let axes = axes.collect::<Vec<_>>().join("; ");
        let settings = if axes.is_empty() { String::new() } else { format!(" Settings: {axes}.") };
        let arms = match self.arms.split_last() {
            Some((last, before)) if !before.is_empty() => format!("{} and {last}", before.join(", ")),
            _ => self.arms.join(""),
        };
        format!("How do {arms} compare over {} paired seeds?{settings}", self.seeds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sweep(vary: &[(&str, &[&str])]) -> Sweep {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        Sweep {
            label: "mine".to_owned(),
            base: Spec::read("base", "iterations = 6\n[task]\nhorizon = 3\n", &[]).unwrap(),
            arms: words(&["ppo", "tempered:0.1"]),
            vary: vary.iter().map(|(key, values)| ((*key).to_owned(), words(values))).collect(),
            seeds: 3,
            endpoints: Vec::new(),
        }
    }

    #[test]
    fn arms_times_settings_times_seeds() {
        let text = sweep(&[("optimiser.rate", &["0.05", "0.1"])]).study().unwrap();
        let study: Training = strictly("mine", &text).unwrap();
        let plan = Plan::new(study, None).unwrap();
        // 2 arms × 2 rates × 3 seeds.
        assert_eq!((plan.runs.len(), plan.cells.len()), (12, 2));
        assert_eq!(plan.cells, ["rate=0.05", "rate=0.1"]);
        assert_eq!(plan.runs[11].recipe.spec.optimiser.rate, 0.1);
        assert_eq!(plan.runs[0].recipe.spec.iterations, 6);
        let compare = plan.study.compare.unwrap();
        assert_eq!(compare.against, ["ppo"]);
        assert_eq!(compare.endpoints.iter().map(ToString::to_string).collect::<Vec<_>>(), ["auc", "final"]);
    }

    #[test]
    fn mistakes_are_named() {
        let refusal = |sweep: Sweep| sweep.study().unwrap_err().to_string();
        assert!(refusal(sweep(&[("optimiser.rat", &["0.05"])])).contains("the nearest valid one is 'rate'"));
        assert!(refusal(sweep(&[("optimiser.rate", &[""])])).contains("optimiser.rate takes no value"));
        assert!(refusal(sweep(&[("seed", &["1", "2"])])).contains("--seeds"));
        assert!(refusal(sweep(&[("update.correction", &["gspo"])])).contains("--arm"));
        let twice: [(&str, &[&str]); 2] = [("task.horizon", &["3"]), ("task.horizon", &["4"])];
        assert!(refusal(sweep(&twice)).contains("task.horizon is varied twice"));
        let mut seeded = sweep(&[]);
        seeded.base.seed = 77;
        assert!(refusal(seeded).contains("leave seed = 77 out"));
        assert!(refusal(Sweep { arms: Vec::new(), ..sweep(&[]) }).contains("it has no arm"));
        let odd = Sweep { endpoints: vec!["finale".to_owned()], ..sweep(&[]) };
        assert!(refusal(odd).contains("the nearest valid one is 'final'"));
    }
}
