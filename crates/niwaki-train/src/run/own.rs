//! The run of another trainer, `niwaki.Run` of Python, in the files that our own runs have.
//!
//! Its spec has `[own]`: what the trainer says of the run. The trainer hands over a record per iteration and, from time to
//! time, what it goes on from; order of writing, checks, resume and summary are those of the other runs.

use super::check;
use super::events::{self, Events};
use super::finished::Finished;
use super::folder::{CHECKPOINT, CURVE, Folder, Identity, Occupied, SPEC, SUMMARY, damaged, other, unsound};
use super::lines::{self, Lines};
use super::summary::Summary;
use crate::Error;
use crate::record::Record;
use crate::spec::Spec;
use niwaki_files::read_own_text;
use niwaki_nn::RawTensor;
use serde_json::{Value, json};
use std::path::Path;
use std::time::{Duration, Instant};

/// How long readers of a curve wait for its last lines.
const FLUSH: Duration = Duration::from_millis(500);

/// The key of `[own]` with the digest of the user's code.
const CODE: &str = "code";

/// What a checkpoint keeps for the trainer, beside what names the run.
const STATE: &str = "own";

/// A run of another trainer's, with its files open at some iteration.
pub struct Own {
    folder: Folder,
    spec: Spec,
    curve: Vec<Record>,
    lines: Lines,
    events: Events,
    flushed: Instant,
    finished: Option<Summary>,
}

impl Own {
    /// Makes the folder of a run, or opens the one that an earlier process left, at its checkpoint.
    ///
    /// Where the code has changed since (`own.code`), the run is refused unless `changed` says that it is known; it then
    /// keeps the name that it began with.
    ///
    /// # Errors
    /// Where the folder holds another run or is in use, a file of it is damaged, or the disk refuses.
    pub fn open(path: &Path, spec: &Spec, changed: bool) -> Result<Self, Error> {
        let mut spec = spec.clone();
        if let Some(began) = began_with_other_code(path, &spec)? {
            if !changed {
                let place = path.join(SPEC);
                let reason = "the code of the script has changed since the run began; put it back, choose another folder, or say changed=True to go on with the new code";
                return Err(other(&place, reason.to_owned()));
            }
            spec = began;
        }
        let folder = Folder::open(path, &spec, Occupied::Refuse)?;
        let finished = Finished::read(folder.path(), folder.identity())?;
        let done = match &finished {
            Some(finished) => finished.summary.done,
            None => usize::try_from(folder.saved()?).unwrap_or(usize::MAX),
        };
        if finished.is_none() {
            folder.remove_page()?;
            folder.remove(SUMMARY)?;
        }
        let (lines, curve) = Lines::open::<Record>(&folder, CURVE, done, &|done| done)?;
        lines::check_numbers(&folder.file(CURVE), &curve)?;
        let events = Events::open(&folder.file(events::NAME), &curve)?.0;
        let finished = finished.map(|finished| finished.summary);
        Ok(Self { folder, spec, curve, lines, events, flushed: Instant::now(), finished })
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Iterations done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.curve.len()
    }

    /// What it came to, where it is finished.
    #[must_use]
    pub const fn finished(&self) -> Option<&Summary> {
        self.finished.as_ref()
    }

    /// What the trainer goes on from; nothing where nothing was saved.
    ///
    /// # Errors
    /// Where the checkpoint is not as it was written.
    pub fn restore(&self) -> Result<Option<(Vec<RawTensor>, Value)>, Error> {
        let path = self.folder.file(CHECKPOINT);
        if !path.exists() {
            return Ok(None);
        }
        let (tensors, mut state) = niwaki_nn::load_tensors(&path).map_err(|error| unsound(&path, error))?;
        let Identity { spec, seed, .. } = self.folder.identity();
        // A run that is over may have been saved before its end.
        let at = state["iteration"].as_u64();
        let is_there = match &self.finished {
            Some(_) => at.is_some_and(|at| at <= self.done() as u64),
            None => at == Some(self.done() as u64),
        };
        if state["spec"] != **spec || state["seed"] != *seed || !is_there {
            return Err(damaged(&path, "it was not saved by this run where its curve ends".to_owned()));
        }
        Ok(Some((tensors, state[STATE].take())))
    }

    /// Adds the record of an iteration; its number is the next one.
    ///
    /// # Errors
    /// Where the run is finished, all its iterations are done, or the disk refuses.
    pub fn push(&mut self, record: Record) -> Result<(), Error> {
        if self.finished.is_some() || self.done() >= self.spec.iterations {
            let reason = format!("all {} iterations of the run are done", self.spec.iterations);
            return Err(other(&self.folder.file(CURVE), reason));
        }
        let record = Record { iteration: self.done() + 1, ..record }.storable(true);
        self.lines.push(&record)?;
        self.events.push(&record);
        self.curve.push(record);
        if self.flushed.elapsed() >= FLUSH {
            self.flush(false)?;
        }
        Ok(())
    }

    fn flush(&mut self, sync: bool) -> Result<(), Error> {
        if sync {
            self.folder.keep_name()?;
        }
        if !self.lines.is_there() {
            self.lines.rewrite(&self.folder, CURVE, &self.curve)?;
        }
        self.lines.flush(sync)?;
        self.events.flush(&self.curve)?;
        self.flushed = Instant::now();
        Ok(())
    }

    /// Saves what the trainer goes on from, after the lines that it counts on.
    ///
    /// # Errors
    /// Where a tensor is not one, or the disk refuses; the checkpoint before it is then still there.
    pub fn save(&mut self, tensors: &[RawTensor], state: Value) -> Result<(), Error> {
        self.flush(true)?;
        let Identity { spec, seed, .. } = self.folder.identity();
        let state = json!({ "spec": spec, "seed": seed, "iteration": self.done(), STATE: state });
        let path = self.folder.file(CHECKPOINT);
        niwaki_nn::save_tensors(&path, tensors, state).map_err(|error| unsound(&path, error))
    }

    /// Says that the run is done.
    ///
    /// # Errors
    /// Where no iteration is done, or the disk refuses.
    pub fn finish(&mut self, device: &str) -> Result<&Summary, Error> {
        if self.done() == 0 {
            return Err(other(&self.folder.file(CURVE), "no iteration is done yet".to_owned()));
        }
        self.flush(true)?;
        let summary = match self.finished.take() {
            Some(summary) => summary,
            None => {
                let summary = Summary {
                    device: device.to_owned(),
                    curve: self.lines.last_check(),
                    ..Summary::of(&self.spec, &self.curve, false)?
                };
                let text = check::document(&summary, self.folder.identity().chain(SUMMARY))?;
                self.folder.write_last(SUMMARY, text.as_bytes())?;
                summary
            }
        };
        Ok(self.finished.insert(summary))
    }
}

/// The spec of a folder's run where it differs from this one in the digest of the code alone.
fn began_with_other_code(folder: &Path, ours: &Spec) -> Result<Option<Spec>, Error> {
    let Ok(bytes) = read_own_text(&folder.join(SPEC)) else { return Ok(None) };
    let Some(theirs) = std::str::from_utf8(&bytes).ok().and_then(|text| Spec::read(SPEC, text, &[]).ok())
    else {
        return Ok(None);
    };
    let codeless = |spec: &Spec| {
        let mut spec = spec.clone();
        spec.own.iter_mut().for_each(|own| _ = own.remove(CODE));
        spec
    };
    let differs = theirs != *ours && codeless(&theirs) == codeless(ours);
    Ok((differs && theirs.own.is_some()).then_some(theirs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run;
    use std::fs;

    fn spec(code: &str) -> Spec {
        let text = format!(
            "seed = 3\niterations = 4\n[task]\nkind = \"CartPole-v1\"\n[update]\ncorrection = \"mine\"\n[own]\nrate = 0.5\ncode = \"{code}\"\n"
        );
        Spec::read("mine", &text, &[]).unwrap()
    }

    fn record(reward: f64) -> Record {
        let own = [("charts/loss".to_owned(), f64::INFINITY)].into_iter().collect();
        Record { batch_reward: reward, ess: 1.0, own, ..Record::default() }
    }

    fn tensor(value: f32) -> RawTensor {
        let bytes = value.to_le_bytes().to_vec();
        RawTensor { name: "w".to_owned(), kind: "F32".to_owned(), shape: vec![1], bytes }
    }

    fn play(run: &mut Own, until: usize) {
        while run.done() < until {
            run.push(record(run.done() as f64)).unwrap();
            run.save(&[tensor(run.done() as f32)], json!({ "note": run.done() })).unwrap();
        }
    }

    #[test]
    fn a_run_that_is_cut_off_ends_with_the_same_bytes() {
        let home = tempfile::tempdir().unwrap();
        let (whole, cut) = (home.path().join("whole"), home.path().join("cut"));
        let mut run = Own::open(&whole, &spec("a"), false).unwrap();
        assert!(run.restore().unwrap().is_none());
        play(&mut run, 4);
        assert!(run.push(record(1.0)).is_err());
        run.finish("cpu").unwrap();

        let mut run = Own::open(&cut, &spec("a"), false).unwrap();
        play(&mut run, 2);
        // A third iteration that no checkpoint counts on.
        run.push(record(9.0)).unwrap();
        run.flush(false).unwrap();
        drop(run);
        let mut run = Own::open(&cut, &spec("a"), false).unwrap();
        let (tensors, state) = run.restore().unwrap().unwrap();
        assert_eq!((run.done(), tensors, state), (2, vec![tensor(2.0)], json!({ "note": 2 })));
        play(&mut run, 4);
        run.finish("cpu").unwrap();
        drop(run);
        for name in [SPEC, CURVE, CHECKPOINT, SUMMARY] {
            assert_eq!(fs::read(whole.join(name)).unwrap(), fs::read(cut.join(name)).unwrap(), "{name}");
        }
        let events = |folder: &Path| run::timeless_events(&fs::read(folder.join(events::NAME)).unwrap());
        assert_eq!(events(&whole), events(&cut));

        // A finished run is opened as what it is, and reads like any other.
        let run = Own::open(&cut, &spec("a"), false).unwrap();
        assert_eq!((run.done(), run.finished().unwrap().done), (4, 4));
        drop(run);
        let text = fs::read_to_string(cut.join(SPEC)).unwrap();
        let read = Spec::read(SPEC, &text, &[]).unwrap();
        assert_eq!(read, spec("a"));
        assert!(text.contains("rate = 0.5") && !text.contains("optimiser"), "{text}");
        assert!(read.check().unwrap_err().to_string().starts_with("own: the run is another trainer's"));
        let finished = Finished::read(&cut, &Identity::of(&read).unwrap()).unwrap().unwrap();
        assert_eq!(finished.curve[3].own["charts/loss"], f64::MAX);
    }

    #[test]
    fn other_settings_and_other_code_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let mut run = Own::open(home.path(), &spec("a"), false).unwrap();
        play(&mut run, 1);
        drop(run);
        let refused = |spec: &Spec| Own::open(home.path(), spec, false).err().unwrap().to_string();
        assert!(refused(&spec("b")).contains("the code of the script has changed since the run began"));
        let mut faster = spec("a");
        faster.own.as_mut().unwrap().insert("rate".to_owned(), 0.7.into());
        assert!(refused(&faster).contains("the folder holds spec"));
        // Where it is known, the run goes on under its own name.
        let mut run = Own::open(home.path(), &spec("b"), true).unwrap();
        assert_eq!(run.done(), 1);
        play(&mut run, 4);
        let summary = run.finish("cpu").unwrap().clone();
        assert_eq!(summary.spec, spec("a").hash().unwrap());
    }

    #[test]
    fn another_trainers_spec_has_its_own_keys_alone() {
        let read = |text: &str| Spec::read("spec.toml", text, &[]);
        let refused = read("[own]\n[optimiser]\nrate = 0.1\n").unwrap_err().to_string();
        assert!(refused.contains("another trainer"), "{refused}");
        assert!(read("[own]\na = 1\n[update]\nreuse = 3\n").is_ok());
        assert_ne!(
            read("[own]\na = 1\n").unwrap().hash().unwrap(),
            read("[own]\na = 2\n").unwrap().hash().unwrap()
        );
        assert!(read("own = 3\n").is_err());
    }
}
