//! A strength by the rule: what was measured of an arm in a cell, and what it licenses.

use crate::Error;
use niwaki_files::read_own_text;
use niwaki_page::Format;
use niwaki_train::trainer::strength_of;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The file of a study's strengths.
pub(crate) const STRENGTHS: &str = "strengths.json";

/// The strength of an arm in a cell, and what it was read off.
///
/// Paper: `app:sched-driftdial`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Strength {
    /// The arm.
    pub arm: String,
    /// The cell.
    pub cell: String,
    /// The hash of the spec that was probed.
    pub spec: String,
    /// σ²T of each seed's probe; nothing where its batch had no signal.
    pub drifts: BTreeMap<u64, Option<f64>>,
    /// What their median licenses.
    pub alpha: f64,
}

impl Strength {
    /// The strength in a sentence.
    #[must_use]
    pub fn words(&self) -> String {
        let known = self.drifts.values().flatten().count();
        format!(
            "{}, {}: α = {}, which the median σ²T of {known} probes with a signal, of {}, licenses",
            self.arm,
            self.cell,
            Format::significant(3).text(self.alpha),
            self.drifts.len()
        )
    }

    /// Those of a study's folder; none where nothing was measured yet.
    ///
    /// # Errors
    /// If the file is damaged or cannot be read.
    pub fn read(folder: &Path) -> Result<Vec<Self>, Error> {
        let path = folder.join(STRENGTHS);
        match read_own_text(&path) {
            Ok(text) => Self::vouched(&text).map_err(|reason| Error::Damaged { path, reason }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(source) => Err(Error::Disk { path, source }),
        }
    }

    /// Strengths of a text, each of which is still what its own drifts license.
    fn vouched(text: &[u8]) -> Result<Vec<Self>, String> {
        let strengths: Vec<Self> = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        for Self { arm, cell, drifts, alpha, .. } in &strengths {
            let drifts: Vec<Option<f64>> = drifts.values().copied().collect();
            if strength_of(&drifts).ok() != Some(*alpha) {
                return Err(format!("arm {arm}, cell {cell}: its drifts do not license α = {alpha}"));
            }
        }
        Ok(strengths)
    }
}
