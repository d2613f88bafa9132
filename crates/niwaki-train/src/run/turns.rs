//! Where a run that diverged went on with other learning rates.
//!
//! A run that diverges notes it, with the checkpoint that was kept. Only then may the same folder go on under a spec whose
//! optimiser has other numbers: a turn. What was trained before it stays, so the turns are part of the run's name.

use super::check;
use super::folder::{Folder, Identity, damaged, disk};
use crate::Error;
use crate::spec::{OptimiserSpec, Spec};
use niwaki_files::read_own;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// The turns of a run, where it has diverged.
pub const TURNS: &str = "turns.json";

/// A divergence, and how the run went on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The iteration in which training diverged.
    pub diverged: usize,
    /// The iteration whose checkpoint was kept.
    pub after: usize,
    /// The hash of the spec that diverged.
    pub from: String,
    /// The hash of the spec under which it went on; none until it does.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub to: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    turns: Vec<Turn>,
}

/// The turns that a folder notes, the last of which may still be open.
pub(super) fn read(folder: &Path, seed: u64) -> Result<Vec<Turn>, Error> {
    let path = folder.join(TURNS);
    let text = match read_own(&path) {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(disk(&path, source)),
    };
    let refuse = || damaged(&path, "it is not as this run wrote it".to_owned());
    let claimed: File = check::unchecked(&text).ok_or_else(refuse)?;
    let first = claimed.turns.first().ok_or_else(refuse)?;
    let identity = Identity { spec: first.from.clone(), seed, turns: Vec::new() };
    let file: File = check::read_document(&text, identity.chain(TURNS)).ok_or_else(refuse)?;
    Ok(file.turns)
}

/// Whether a run diverged in this folder and did not go on.
///
/// # Errors
/// Where the folder's turns are not as they were written.
pub fn is_lost(folder: &Path, spec: &Spec) -> Result<bool, Error> {
    Ok(read(folder, spec.seed)?.last().is_some_and(|turn| turn.to.is_none()))
}

/// Notes the turns of a run; the file goes where there are none.
pub(super) fn write(folder: &Folder, turns: &[Turn]) -> Result<(), Error> {
    let Some(first) = turns.first() else { return folder.remove(TURNS) };
    let identity = Identity { spec: first.from.clone(), seed: folder.identity().seed, turns: Vec::new() };
    let text = check::document(&File { turns: turns.to_vec() }, identity.chain(TURNS))?;
    folder.write(TURNS, text.as_bytes())
}

/// Whether two specs differ in nothing but numbers of the optimiser.
pub(super) fn only_rates_differ(one: &Spec, other: &Spec) -> Result<bool, Error> {
    let optimiser = OptimiserSpec { kind: one.optimiser.kind, ..other.optimiser.clone() };
    let turned = Spec { optimiser, ..one.clone() };
    Ok(turned.seed == other.seed && turned.hash()? == other.hash()?)
}
