//! The optima of a run's instances, sought once: what could not be proven in time must not differ after a resume.

use super::check;
use super::folder::{Folder, Identity, damaged, disk};
use crate::{Error, Recipe};
use niwaki_files::read_own;
use niwaki_shop::Bounds;
use niwaki_tasks::OptimaProgress;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;

/// What is known of the optimum of each instance, those to learn from first.
pub const OPTIMA: &str = "optima.json";

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Optima {
    lower: Vec<u32>,
    upper: Vec<u32>,
}

/// What a run's folder knows of its optima; nothing where it holds none.
///
/// # Errors
/// Where the file is not as it was written, or the disk refuses.
pub fn known(folder: &Path, identity: &Identity) -> Result<Option<Vec<Bounds>>, Error> {
    let path = folder.join(OPTIMA);
    let text = match read_own(&path) {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(disk(&path, source)),
    };
    let read: Optima = check::read_document(&text, identity.chain(OPTIMA))
        .ok_or_else(|| damaged(&path, "it is not as this run wrote it".to_owned()))?;
    let pairs = read.lower.into_iter().zip(read.upper);
    Ok(Some(pairs.map(|(lower, upper)| Bounds { lower, upper }).collect()))
}

/// How many of some optima are not proven.
pub(super) fn unproven(known: &[Bounds]) -> usize {
    known.iter().filter(|one| !one.proven()).count()
}

/// The recipe with the optima that the folder holds, or that are sought now.
pub(super) fn prepared(
    recipe: &Recipe,
    folder: &Folder,
    progress: OptimaProgress<'_>,
) -> Result<Recipe, Error> {
    let mut recipe = recipe.clone();
    recipe.prepare(known(folder.path(), folder.identity())?, progress)?;
    Ok(recipe)
}

/// Leaves the optima that are played in a folder, before anything depends on them; a run that goes on must have had the same.
pub(super) fn keep(folder: &Folder, played: &[Bounds], goes_on: bool) -> Result<(), Error> {
    let known = if goes_on { known(folder.path(), folder.identity())? } else { None };
    match known {
        Some(known) if known == played => return Ok(()),
        Some(_) => {
            let reason = "other runs of the same instances know other optima".to_owned();
            return Err(damaged(&folder.file(OPTIMA), reason));
        }
        None if goes_on => return Err(damaged(&folder.file(OPTIMA), "it is missing".to_owned())),
        None => {}
    }
    write(folder, played)
}

/// Writes the optima again, where they were removed.
pub(super) fn restore(folder: &Folder, played: &[Bounds]) -> Result<(), Error> {
    if folder.file(OPTIMA).exists() { Ok(()) } else { write(folder, played) }
}

fn write(folder: &Folder, played: &[Bounds]) -> Result<(), Error> {
    let each = |of: fn(&Bounds) -> u32| played.iter().map(of).collect();
    let optima = Optima { lower: each(|bounds| bounds.lower), upper: each(|bounds| bounds.upper) };
    folder.write(OPTIMA, check::document(&optima, folder.identity().chain(OPTIMA))?.as_bytes())
}
