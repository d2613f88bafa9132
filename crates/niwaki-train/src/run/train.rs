//! One recipe trained in a folder, from wherever the folder is.

use super::dump::{self, Trajectory};
use super::folder::{CHECKPOINT, CURVE, DUMP, Folder, SUMMARY};
use super::lines::Lines;
use super::optima;
use super::summary::Summary;
use crate::{Cohort, Device, Error, Recipe, Record, gather};
use niwaki_shop::Bounds;
use niwaki_tasks::Sought;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a call of [`train`] ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Ending {
    /// The run is done.
    Done(Box<Summary>),
    /// It was asked to stop; the same call goes on from there.
    Stopped {
        /// Iterations done.
        iteration: usize,
    },
}

/// Trains a recipe in a folder, from its beginning or from where an earlier call was stopped or killed.
///
/// `sought` is told of the optima of shops, which an earlier call may have left in the folder. `show` sees the record of
/// each iteration, the last one of an earlier call first. Once `stop` is true, the iteration
/// in hand is finished and saved.
///
/// # Errors
/// Where the folder holds another run or is in use, a file of it is damaged, the disk refuses, or training diverges.
pub fn train(
    recipe: &Recipe,
    device: &Device,
    folder: &Path,
    stop: &AtomicBool,
    sought: Sought<'_>,
    mut show: impl FnMut(&Record),
) -> Result<Ending, Error> {
    let folder = Folder::open(folder, recipe)?;
    let recipe = &optima::prepared(recipe, &folder, sought)?;
    let mut run = Run::open(folder, recipe, device)?;
    run.curve.last().into_iter().for_each(&mut show);
    let (iterations, every) = (recipe.spec.iterations, recipe.spec.checkpoint.every);
    while run.cohort.done() < iterations {
        run.advance(recipe)?;
        run.curve.last().into_iter().for_each(&mut show);
        let (done, stopped) = (run.cohort.done(), stop.load(Ordering::Relaxed));
        if stopped || done == iterations || every > 0 && done.is_multiple_of(every) {
            run.save()?;
        }
        if stopped && done < iterations {
            return Ok(Ending::Stopped { iteration: done });
        }
    }
    run.finish(recipe).map(|summary| Ending::Done(Box::new(summary)))
}

/// A run at some iteration, with its files open.
struct Run {
    folder: Folder,
    cohort: Box<dyn Cohort>,
    curve: Vec<Record>,
    lines: Lines,
    /// Where trajectories go, where they are asked for.
    dump: Option<Lines>,
}

impl Run {
    /// Goes to the folder's checkpoint, or to the beginning where there is none.
    fn open(folder: Folder, recipe: &Recipe, device: &Device) -> Result<Self, Error> {
        let mut cohort = gather(vec![recipe.clone()], device)?;
        let checkpoint = folder.file(CHECKPOINT);
        if checkpoint.exists() {
            cohort.restore(0, &checkpoint)?;
        }
        let done = cohort.done();
        let (lines, curve) = Lines::open(&folder.file(CURVE), done)?;
        let dump = if recipe.spec.dump.every > 0 {
            let kept = dump::kept_until(recipe, done);
            Some(Lines::open::<Trajectory>(&folder.file(DUMP), kept)?.0)
        } else {
            None
        };
        Ok(Self { folder, cohort, curve, lines, dump })
    }

    /// One iteration, its record and its trajectories.
    fn advance(&mut self, recipe: &Recipe) -> Result<(), Error> {
        let records = self.cohort.advance()?;
        for record in records {
            self.lines.push(&record)?;
            self.curve.push(record);
        }
        self.lines.flush()?;
        if let Some(lines) = self.dump.as_mut().filter(|_| dump::wanted(recipe, self.cohort.done())) {
            for trajectory in dump::trajectories(recipe, &self.cohort.last_batch(0)) {
                lines.push(&trajectory)?;
            }
            lines.flush()?;
        }
        Ok(())
    }

    /// Everything a checkpoint counts on, then the checkpoint.
    fn save(&mut self) -> Result<(), Error> {
        self.lines.sync()?;
        self.dump.as_mut().map_or(Ok(()), Lines::sync)?;
        self.folder.write_events(&self.curve)?;
        self.cohort.save(0, &self.folder.file(CHECKPOINT))
    }

    /// What follows from the curve alone.
    fn finish(&self, recipe: &Recipe) -> Result<Summary, Error> {
        let unproven = |bounds: &[_]| bounds.iter().filter(|one: &&Bounds| !one.proven()).count();
        let unproven = recipe.bounds().map(unproven);
        let summary = Summary { unproven, ..Summary::of(&recipe.spec, &self.curve)? };
        let text = serde_json::to_string_pretty(&summary)
            .map_err(|error| Error::Unwritable { reason: error.to_string() })?;
        self.folder.write(SUMMARY, (text + "\n").as_bytes())?;
        Ok(summary)
    }
}
