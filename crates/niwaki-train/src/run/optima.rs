//! The optima of a run's instances, sought once: what could not be proven in time must not differ after a resume.

use super::folder::{Folder, disk, other};
use crate::{Error, Recipe};
use niwaki_shop::Bounds;
use niwaki_tasks::Sought;
use std::{fs, io};

/// `[lower, upper]` of each instance, those to learn from first.
pub const OPTIMA: &str = "optima.json";

/// The recipe with the optima that the folder holds, or that are sought and then kept there.
pub(super) fn prepared(recipe: &Recipe, folder: &Folder, sought: Sought<'_>) -> Result<Recipe, Error> {
    let mut recipe = recipe.clone();
    let path = folder.file(OPTIMA);
    let kept =
        match fs::read_to_string(&path) {
            Ok(text) => Some(serde_json::from_str::<Vec<[u32; 2]>>(&text).map_err(|error| {
                other(&path, format!("{error}; remove it, and the optima are sought again"))
            })?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(source) => return Err(disk(&path, source)),
        };
    let known =
        kept.as_ref().map(|kept| kept.iter().map(|&[lower, upper]| Bounds { lower, upper }).collect());
    recipe.prepare(known, sought)?;
    if let (None, Some(bounds)) = (kept, recipe.bounds()) {
        let pairs: Vec<[u32; 2]> = bounds.iter().map(|bounds| [bounds.lower, bounds.upper]).collect();
        let text =
            serde_json::to_string(&pairs).map_err(|error| Error::Unwritable { reason: error.to_string() })?;
        folder.write(OPTIMA, (text + "\n").as_bytes())?;
    }
    Ok(recipe)
}
