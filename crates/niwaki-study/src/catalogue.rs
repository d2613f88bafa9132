//! The studies that ship with the program, by the paper's labels.

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::training::{Plan, Training};
use niwaki_train::spec::strictly;

/// A study file: a new one is a TOML under `studies/` and a line in [`studies`].
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// The label of the paper.
    pub label: &'static str,
    /// What it does.
    kind: Kind,
    /// The file's text.
    pub text: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Diagnostics,
    Training,
}

/// What a study file says.
#[derive(Clone, Debug)]
pub enum Contents {
    /// Fixed policy pairs, measured exactly.
    Diagnostics(Box<Diagnostics>),
    /// Runs to train.
    Training(Box<Training>),
}

/// Every study, in the paper's order.
#[must_use]
pub const fn studies() -> &'static [Study] {
    macro_rules! study {
        ($kind:ident, $label:literal, $file:literal) => {
            Study {
                label: $label,
                kind: Kind::$kind,
                text: include_str!(concat!("../../../studies/", $file)),
            }
        };
    }
    &[
        study!(Diagnostics, "tab:diag-summary", "tab-diag-summary.toml"),
        study!(Diagnostics, "fig:diag-mse-alpha", "fig-diag-mse-alpha.toml"),
        study!(Diagnostics, "app:diagnostics", "app-diagnostics.toml"),
        study!(Diagnostics, "app:diagnostics-null-controls", "app-diagnostics-null-controls.toml"),
        study!(Training, "tab:results-summary", "tab-results-summary.toml"),
        study!(
            Training,
            "app:diagnostics-null-controls+training",
            "app-diagnostics-null-controls-training.toml"
        ),
        study!(Training, "tab:g-detail", "tab-g-detail.toml"),
        study!(Training, "tab:h-detail", "tab-h-detail.toml"),
        study!(Training, "tab:i-detail", "tab-i-detail.toml"),
        study!(Training, "tab:i-aggressive", "tab-i-aggressive.toml"),
        study!(Training, "app:opt-ablation", "app-opt-ablation.toml"),
        study!(Training, "tab:sched-null+transformer", "tab-sched-null-transformer.toml"),
        study!(Training, "tab:sched-win+warmup", "tab-sched-win-warmup.toml"),
        study!(Training, "tab:sched-win+easy", "tab-sched-win-easy.toml"),
        study!(Training, "tab:sched-win+hard", "tab-sched-win-hard.toml"),
        study!(Training, "tab:sched-win+confirm", "sched-win-confirm.toml"),
        study!(Training, "tab:sched-win+job", "tab-sched-win-job.toml"),
        study!(Training, "tab:sched-horizon", "tab-sched-horizon.toml"),
        study!(Training, "tab:sched-horizon+calibrated", "tab-sched-horizon-calibrated.toml"),
        study!(Training, "fig:wincorr", "fig-wincorr.toml"),
        study!(Training, "fig:ktol", "fig-ktol.toml"),
        study!(Training, "fig:2order", "fig-2order.toml"),
        study!(Training, "app:sched-boundary+lags", "app-sched-boundary.toml"),
        study!(Training, "tab:envladder", "tab-envladder.toml"),
        study!(Training, "tab:envladder+calibration", "tab-envladder-calibration.toml"),
        study!(Training, "tab:envladder+rungs", "tab-envladder-rungs.toml"),
        study!(Training, "eq:peak-advantage", "eq-peak-advantage.toml"),
        study!(Training, "sec:disc+shop", "sec-disc.toml"),
    ]
}

/// Every study that answers for this label: the blocks of one table may be studies of their own.
///
/// # Errors
/// As [`find`].
pub fn answering(label: &str) -> Result<Vec<Study>, Error> {
    let mut found = Vec::new();
    for study in studies() {
        if study.label == label || study.also()?.iter().any(|other| other == label) {
            found.push(*study);
        }
    }
    if found.is_empty() {
        let known = studies().iter().map(|study| study.label).collect::<Vec<_>>().join(", ");
        return Err(Error::UnknownLabel { came: label.to_owned(), known });
    }
    Ok(found)
}

/// The study of this label, or else the first that answers for it.
///
/// # Errors
/// Where there is none; the error lists all labels. Where a study file does not read.
pub fn find(label: &str) -> Result<Study, Error> {
    let found = answering(label)?;
    Ok(*found.iter().find(|study| study.label == label).unwrap_or(&found[0]))
}

impl Study {
    /// Reads the file.
    ///
    /// # Errors
    /// Where a key is unknown or missing, or the file claims another label.
    pub fn read(&self) -> Result<Contents, Error> {
        let name = format!("study {}", self.label);
        let contents = match self.kind {
            Kind::Diagnostics => Contents::Diagnostics(Box::new(strictly(&name, self.text)?)),
            Kind::Training => Contents::Training(Box::new(strictly(&name, self.text)?)),
        };
        let label = match &contents {
            Contents::Diagnostics(study) => &study.label,
            Contents::Training(study) => &study.label,
        };
        if label != self.label {
            let mend = format!("its file says it is {label}");
            return Err(Error::Senseless { label: self.label.to_owned(), mend });
        }
        Ok(contents)
    }

    /// Reads a diagnostics study.
    ///
    /// # Errors
    /// As [`Study::read`], and where it is one of the other kind.
    pub fn diagnostics(&self) -> Result<Diagnostics, Error> {
        match self.read()? {
            Contents::Diagnostics(study) => Ok(*study),
            Contents::Training(_) => Err(self.other("measures policy pairs")),
        }
    }

    /// Reads a training study.
    ///
    /// # Errors
    /// As [`Study::read`], and where it is one of the other kind.
    pub fn training(&self) -> Result<Training, Error> {
        match self.read()? {
            Contents::Training(study) => Ok(*study),
            Contents::Diagnostics(_) => Err(self.other("trains")),
        }
    }

    fn other(&self, what: &str) -> Error {
        Error::Senseless { label: self.label.to_owned(), mend: format!("it is no study that {what}") }
    }

    /// Further labels that the study answers for.
    ///
    /// # Errors
    /// As [`Study::read`].
    pub fn also(&self) -> Result<Vec<String>, Error> {
        match self.kind {
            Kind::Diagnostics => Ok(Vec::new()),
            Kind::Training => Ok(self.training()?.also),
        }
    }
}

impl Contents {
    /// The study's title.
    #[must_use]
    pub fn title(&self) -> &str {
        match self {
            Self::Diagnostics(study) => &study.title,
            Self::Training(study) => &study.title,
        }
    }

    /// How many statements of the paper it holds against its results.
    #[must_use]
    pub fn statements(&self) -> usize {
        match self {
            Self::Diagnostics(study) => {
                let (values, bounds) = (study.value.len() + study.bound.len(), study.order.len());
                values + bounds + study.lowest.len() + study.falling.len() + study.margin.len()
            }
            Self::Training(study) => {
                let numbers = study.value.len() + study.lead.len() + study.correlation.len();
                numbers + study.order.len() + study.trend.len() + usize::from(study.feasible.is_some())
            }
        }
    }

    /// What it costs, in words.
    ///
    /// # Errors
    /// Where its grid or its runs are refused.
    pub fn cost(&self) -> Result<String, Error> {
        Ok(match self {
            Self::Diagnostics(study) => format!("{} policy pairs", study.grid(None)?.pairs()),
            Self::Training(study) => {
                let (plan, first) = match study.pilot_study() {
                    None => (Plan::new(study.as_ref().clone(), None)?, ""),
                    Some(pilot) => (Plan::new(pilot, None)?, " for the pilot, then its arms"),
                };
                let policy = plan.runs.first().map(|run| run.recipe.spec.policy.kind);
                let policy = policy.map_or_else(String::new, |kind| format!("{kind:?} ").to_lowercase());
                format!("{} {policy}runs, {} run-iterations{first}", plan.runs.len(), plan.run_iterations())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_reads_and_names_work() {
        for study in studies() {
            let contents = study.read().unwrap();
            assert!(!contents.cost().unwrap().starts_with("0 "), "{}", study.label);
        }
    }

    #[test]
    fn an_unknown_label_lists_the_known_ones() {
        let refusal = find("tab:diag").unwrap_err().to_string();
        assert!(refusal.starts_with(
            "no study is called 'tab:diag'; the labels that exist so far are tab:diag-summary, "
        ));
    }

    #[test]
    fn figures_are_found_with_their_tables() {
        assert_eq!(find("fig:g-detail").unwrap().label, "tab:g-detail");
    }

    #[test]
    fn a_table_in_blocks_is_all_of_them() {
        let blocks: Vec<&str> = answering("tab:sched-win").unwrap().iter().map(|study| study.label).collect();
        let wanted =
            ["tab:sched-win+warmup", "tab:sched-win+easy", "tab:sched-win+hard", "tab:sched-win+job"];
        assert_eq!(blocks, wanted);
        // One of them stands before it in the list and answers for it, too.
        assert_eq!(find("tab:sched-horizon").unwrap().label, "tab:sched-horizon");
    }
}
