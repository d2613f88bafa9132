//! Whether the disk holds the checkpoints of some runs, asked before anything is trained: hours of a pretrained model's
//! training must not end at a full disk.

use super::folder::{CHECKPOINT, Folder, disk};
use crate::spec::bytes_in_words;
use crate::{Error, Recipe};
use niwaki_files::free_space;
use std::io;

/// Refuses runs whose checkpoints the disk of their folders does not hold.
pub(super) fn check(folders: &[Folder], recipes: &[Recipe]) -> Result<(), Error> {
    let (mut missing, mut largest) = (0_u128, 0);
    for (folder, recipe) in folders.iter().zip(recipes) {
        let bytes = recipe.spec.checkpoint_bytes()?;
        largest = bytes.max(largest);
        if !folder.file(CHECKPOINT).exists() {
            missing = missing.saturating_add(bytes);
        }
    }
    // A new one stands beside the old one until it is whole.
    let needed = missing.saturating_add(largest);
    let Some(folder) = folders.first() else { return Ok(()) };
    match free_space(folder.path()).map(u128::from) {
        Some(free) if free < needed => {
            let reason = format!(
                "its checkpoints need {} and {} are free; make room, or train fewer runs at once",
                bytes_in_words(needed),
                bytes_in_words(free)
            );
            Err(disk(folder.path(), io::Error::new(io::ErrorKind::StorageFull, reason)))
        }
        _ => Ok(()),
    }
}
