//! One recipe trained in a folder, from wherever the folder is.

use super::events::Events;
use super::folder::{Folder, Occupied};
use super::runs::Runs;
use super::summary::Summary;
use super::{EVENTS, finished, optima};
use crate::cohort::check_room;
use crate::{Device, Error, Recipe, Record};
use niwaki_tasks::OptimaProgress;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How a call of [`train`] ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The run is done.
    Done(Box<Summary>),
    /// It was asked to stop; the same call goes on from there.
    Stopped {
        /// The iteration up to which everything is saved.
        iteration: usize,
    },
}

/// An iteration that takes no longer is finished and saved where a run is asked to stop; a longer one is left.
const SHORT: Duration = Duration::from_millis(500);

/// What [`train`] tells on the way.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// The run is about to be saved: a process that ends now loses what was done since it was saved before.
    Saves,
    /// Everything up to and with this iteration is saved, and another process would go on from there.
    Saved(usize),
    /// An iteration was done; the last one of an earlier call is told first.
    Record(&'a Record),
    /// A file that had been changed or taken away was written anew from the curve.
    Mended(&'a Path),
}

/// Trains a recipe in a folder, from its beginning or from where an earlier call was stopped or killed.
///
/// `progress` is told of the optima of shops, which an earlier call may have left in the folder. `tell` sees each
/// iteration. Once `stop` is true, the iteration in hand is finished and saved, or left between two passes where it takes
/// long: what was done of it is then lost, and what was done before is saved if no step of it was taken.
///
/// # Errors
/// Where the folder holds another run or is in use, a file of it is damaged, the disk refuses, or training diverges.
pub fn train(
    recipe: &Recipe,
    device: &Device,
    folder: &Path,
    stop: &AtomicBool,
    progress: OptimaProgress<'_>,
    mut tell: impl FnMut(Told<'_>),
) -> Result<Ending, Error> {
    recipe.check_ready()?;
    check_room(recipe, device)?;
    let folder = Folder::open(folder, &recipe.spec, Occupied::Refuse)?;
    if let Some(done) = finished::verify(folder.path(), recipe)? {
        let path = folder.file(EVENTS);
        let (mut events, mended) = Events::open(&path, &done.curve)?;
        events.flush(&done.curve)?;
        done.curve.last().map(Told::Record).into_iter().for_each(&mut tell);
        mended.then_some(Told::Mended(&path)).into_iter().for_each(&mut tell);
        return Ok(Ending::Done(Box::new(done.summary)));
    }
    let recipe = optima::prepared(recipe, &folder, progress)?;
    let (iterations, every) = (recipe.spec.iterations, recipe.spec.checkpoint.every);
    let mut runs = Runs::open(vec![folder], vec![recipe], device)?;
    runs.last(0).map(Told::Record).into_iter().for_each(&mut tell);
    tell(Told::Saved(runs.kept()));
    while runs.done() < iterations {
        let began = Instant::now();
        let left = match runs.advance_unless(&|| stop.load(Ordering::Relaxed) && began.elapsed() > SHORT) {
            Ok(()) => None,
            Err(Error::Left { moved }) => Some(moved),
            Err(error) => return Err(lost(&runs, error)?),
        };
        if left.is_none() {
            runs.last(0).map(Told::Record).into_iter().for_each(&mut tell);
        }
        let (done, stopped) = (runs.done(), left.is_some() || stop.load(Ordering::Relaxed));
        // Parameters that have moved on are those of no iteration.
        let whole = left != Some(true) && done > runs.kept();
        let due = stopped || done == iterations || every > 0 && (done.is_multiple_of(every) || runs.is_due());
        if whole && due {
            tell(Told::Saves);
            if let Err(error) = runs.save() {
                return Err(lost(&runs, error)?);
            }
            tell(Told::Saved(runs.kept()));
        }
        if stopped && done < iterations {
            return Ok(Ending::Stopped { iteration: runs.kept() });
        }
    }
    runs.mended().for_each(|path| tell(Told::Mended(&path)));
    let summary = runs.finish()?.pop().ok_or(Error::Mixed)?;
    Ok(Ending::Done(Box::new(summary)))
}

/// A divergence with what can be done about it; any other error as it is.
fn lost(runs: &Runs, error: Error) -> Result<Error, Error> {
    match error {
        // The trainer counts iterations from 0.
        Error::Diverged { iteration, member, source } => runs.lost(member, iteration + 1, source.to_string()),
        Error::NotFinite { iteration, member, tensor } => {
            runs.lost(member, iteration, format!("tensor {tensor} is no longer finite"))
        }
        other => Ok(other),
    }
}
