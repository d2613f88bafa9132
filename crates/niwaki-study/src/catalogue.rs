//! The studies that ship with the program, by the paper's labels.

use crate::Error;
use crate::diagnostics::Diagnostics;

/// A study file: a new one is a TOML under `studies/` and a line in [`studies`].
#[derive(Clone, Copy, Debug)]
pub struct Study {
    /// The label of the paper.
    pub label: &'static str,
    /// The file's text.
    pub text: &'static str,
}

/// Every study, in the paper's order.
#[must_use]
pub const fn studies() -> &'static [Study] {
    macro_rules! study {
        ($label:literal, $file:literal) => {
            Study { label: $label, text: include_str!(concat!("../../../studies/", $file)) }
        };
    }
    &[
        study!("tab:diag-summary", "tab-diag-summary.toml"),
        study!("fig:diag-mse-alpha", "fig-diag-mse-alpha.toml"),
        study!("app:diagnostics", "app-diagnostics.toml"),
        study!("app:diagnostics-null-controls", "app-diagnostics-null-controls.toml"),
    ]
}

/// The study with this label.
///
/// # Errors
/// Where there is none; the error lists all labels.
pub fn find(label: &str) -> Result<Study, Error> {
    studies().iter().copied().find(|study| study.label == label).ok_or_else(|| Error::UnknownLabel {
        came: label.to_owned(),
        known: studies().iter().map(|study| study.label).collect::<Vec<_>>().join(", "),
    })
}

impl Study {
    /// Reads the file.
    ///
    /// # Errors
    /// Where a key is unknown or missing, or the file claims another label.
    pub fn read(&self) -> Result<Diagnostics, Error> {
        let study: Diagnostics = toml::from_str(self.text)
            .map_err(|source| Error::Unreadable { label: self.label, source: Box::new(source) })?;
        if study.label != self.label {
            let mend = format!("its file says it is {}", study.label);
            return Err(Error::Senseless { label: self.label.to_owned(), mend });
        }
        Ok(study)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_study_reads_and_names_a_grid() {
        for study in studies() {
            let read = study.read().unwrap();
            let grid = read.grid(Some(1)).unwrap();
            assert!(grid.pairs() > 0, "{}", study.label);
        }
    }

    #[test]
    fn an_unknown_label_lists_the_known_ones() {
        let refusal = find("tab:diag").unwrap_err().to_string();
        assert!(refusal.starts_with(
            "no study is called 'tab:diag'; the labels that exist so far are tab:diag-summary, "
        ));
    }
}
