//! The files of one run while it trains.

use super::check;
use super::dump::{self, PolicyTable, Trajectory};
use super::events::{self, Events};
use super::folder::{CHECKPOINT, CURVE, DUMP, Folder, POLICIES, SUMMARY};
use super::lines::{self, Lines};
use super::optima;
use super::summary::Summary;
use crate::record::{LastBatch, finite};
use crate::{Error, Recipe, Record};
use niwaki_shop::Bounds;

/// One run's folder with its files open at some iteration.
pub(super) struct Member {
    pub(super) folder: Folder,
    recipe: Recipe,
    pub(super) curve: Vec<Record>,
    lines: Lines,
    /// Where trajectories go, where they are asked for.
    dump: Option<Lines>,
    /// Where policies go, where they are asked for.
    policies: Option<Lines>,
    events: Events,
    /// Whether the events had to be written anew.
    pub(super) mended: bool,
}

impl Member {
    /// Opens the files at an iteration and cuts off what follows.
    pub(super) fn open(folder: Folder, recipe: &Recipe, done: usize) -> Result<Self, Error> {
        // This run is not finished, so a page or a summary that is here belongs to another run.
        folder.remove_page()?;
        folder.remove(SUMMARY)?;
        let (lines, curve) = Lines::open::<Record>(&folder, CURVE, done, &|done| done)?;
        lines::check_numbers(&folder.file(CURVE), &curve)?;
        let dump = if recipe.spec.dump.every > 0 {
            let kept = dump::kept_until(recipe, done);
            let per = |done| dump::kept_until(recipe, done);
            Some(Lines::open::<Trajectory>(&folder, DUMP, kept, &per)?.0)
        } else {
            None
        };
        let policies = if recipe.spec.dump.policies {
            let kept = dump::policies_until(done);
            Some(Lines::open::<PolicyTable>(&folder, POLICIES, kept, &dump::policies_until)?.0)
        } else {
            None
        };
        let (events, mended) = Events::open(&folder.file(events::NAME), &curve)?;
        Ok(Self { folder, recipe: recipe.clone(), curve, lines, dump, policies, events, mended })
    }

    /// Whether the trajectories of an iteration are to be kept.
    pub(super) fn wants_batch(&self, iteration: usize) -> bool {
        dump::wanted(&self.recipe, iteration)
    }

    /// An iteration's record, and its trajectories where they are wanted.
    pub(super) fn push(&mut self, record: Record, batch: Option<&LastBatch>) -> Result<(), Error> {
        // Candidates of a pointer, and the words of a language, are no tokens to count.
        let record = record.storable(self.recipe.tokens().is_none());
        self.lines.push(&record)?;
        self.events.push(&record);
        self.curve.push(record);
        if let (Some(lines), Some(batch)) = (&mut self.dump, batch) {
            for trajectory in dump::trajectories(&self.recipe, batch) {
                lines.push(&trajectory)?;
            }
        }
        Ok(())
    }

    /// Whether the member's policies are kept.
    pub(super) fn wants_policies(&self) -> bool {
        self.policies.is_some()
    }

    /// The policy after an iteration, or before the first.
    pub(super) fn push_policy(&mut self, iteration: usize, logits: Vec<f64>) -> Result<(), Error> {
        let logits = logits.into_iter().map(finite).collect();
        let table = PolicyTable { iteration, logits };
        self.policies.as_mut().map_or(Ok(()), |lines| lines.push(&table))
    }

    /// Hands everything to the system; `sync` waits until what a checkpoint counts on is on the disk.
    pub(super) fn flush(&mut self, sync: bool) -> Result<(), Error> {
        if sync {
            self.folder.keep_name()?;
        }
        if !self.lines.is_there() {
            self.write_curve_again()?;
        }
        self.lines.flush(sync)?;
        for lines in [&mut self.dump, &mut self.policies].into_iter().flatten() {
            lines.flush(sync)?;
        }
        self.mended |= self.events.flush(&self.curve)?;
        Ok(())
    }

    /// The curve was removed, but it is still known.
    fn write_curve_again(&mut self) -> Result<(), Error> {
        self.lines.rewrite(&self.folder, CURVE, &self.curve)
    }

    /// Says that the run is done. Everything else must be on the disk by now.
    pub(super) fn finish(
        &mut self,
        device: &str,
        diverged: bool,
        bounds: Option<&[Bounds]>,
    ) -> Result<Summary, Error> {
        if diverged || !self.recipe.spec.checkpoint.keep {
            // A checkpoint may have been saved on the way, depending on the clock; a diverged policy is not kept.
            self.folder.remove(CHECKPOINT)?;
        }
        self.folder.close_turns()?;
        let unproven = bounds.map(optima::unproven);
        let summary = Summary {
            unproven,
            device: device.to_owned(),
            curve: self.lines.last_check(),
            dump: self.dump.as_ref().map(Lines::last_check),
            policies: self.policies.as_ref().map(Lines::last_check),
            turns: self.folder.identity().turns.clone(),
            ..Summary::of(&self.recipe.spec, &self.curve, diverged)?
        };
        let text = check::document(&summary, self.folder.identity().chain(SUMMARY))?;
        self.folder.write_last(SUMMARY, text.as_bytes())?;
        Ok(summary)
    }
}
