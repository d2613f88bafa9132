//! What study files say, and which of those that ship with the program answer for a label of the paper.

use crate::Error;
use crate::diagnostics::Diagnostics;
use crate::shipped::{Kind, Study, studies, unknown};
use crate::training::{self, Plan, Training};
use niwaki_train::spec::strictly;
use serde::Deserialize;

/// What a study file says.
#[derive(Clone, Debug)]
pub enum Contents {
    /// Fixed policy pairs, measured exactly.
    Diagnostics(Box<Diagnostics>),
    /// Runs to train.
    Training(Box<Training>),
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
        return Err(unknown(label));
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
        let contents = Contents::read(&self.name(), self.text)?;
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
        Error::Senseless { label: self.label.to_owned(), mend: format!("it is not a study that {what}") }
    }

    /// Further labels that the study answers for.
    ///
    /// # Errors
    /// As [`Study::read`].
    pub fn also(&self) -> Result<Vec<String>, Error> {
        Ok(match self.read()? {
            Contents::Diagnostics(_) => Vec::new(),
            Contents::Training(study) => study.also,
        })
    }
}

/// What decides how the rest of a file is read.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    kind: Kind,
}

impl Contents {
    /// Reads a study file: its kind first, then that kind's own strict table.
    ///
    /// # Errors
    /// Where a key is unknown or missing; the error begins with `name`.
    pub fn read(name: &str, text: &str) -> Result<Self, Error> {
        let head: Head = strictly(name, text)?;
        Ok(match head.kind {
            Kind::Diagnostics => Self::Diagnostics(Box::new(strictly(name, text)?)),
            Kind::Training => Self::Training(Box::new(strictly(name, text)?)),
        })
    }

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
            Self::Training(study) => training::statements(study),
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
        let refusal = find("tab:nothing").unwrap_err().to_string();
        assert!(refusal.starts_with(
            "no study is called 'tab:nothing'; the labels that exist so far are tab:diag-summary, "
        ));
        for near in ["tab:diag-sumary", "tab:diag"] {
            let refusal = find(near).unwrap_err().to_string();
            assert_eq!(refusal, format!("no study is called '{near}'; did you mean 'tab:diag-summary'?"));
        }
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
