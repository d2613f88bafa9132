//! The door: dumps or tallies in, advice out.

use crate::gate::Gate;
use crate::measure::{Measure, Measured, Settings};
use crate::read::{Dump, shown};
use crate::schema::Naming;
use crate::series::{is_tally, named};
use crate::verdict::{Trainer, Verdict};
use crate::{Error, page, text};
use niwaki_page::{Made, Page};
use std::path::PathBuf;

/// What is asked of some dumps or tallies.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Clip range, batch, ESS floor, verl's weights and what the current policy is held against. Of these a tally has its own,
    /// and takes the batch alone.
    pub settings: Settings,
    /// Names of the fields.
    pub naming: Naming,
    /// Whether the files are still written to: a last line without its end is then left for later.
    pub growing: bool,
}

/// What the dumps of a run say.
#[derive(Debug)]
pub struct Advice {
    /// The files as they were given.
    pub files: Vec<PathBuf>,
    /// What it was measured under.
    pub settings: Settings,
    /// Every number.
    pub measured: Measured,
    /// What to do, and why.
    pub verdict: Verdict,
    measure: Measure,
}

/// Reads the dumps of one run, in order, or the tallies of its shares, and says what they mean.
///
/// `watch` is told how many bytes are to be read, and how many have been.
///
/// # Errors
/// Where a setting is out of its range, a file cannot be read, a trajectory cannot be used, tallies are not of one run, or there is
/// no trajectory.
pub fn advise(
    files: &[PathBuf],
    question: Question,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Advice, Error> {
    question.settings.check()?;
    let (measure, unread, trainer) = match files.iter().find(|file| is_tally(file)) {
        Some(tally) => match files.iter().find(|file| !is_tally(file)) {
            Some(dump) => return Err(Error::Mixed { tally: shown(tally), dump: shown(dump) }),
            None => (tallies(files, &question.settings, watch)?, Vec::new(), None),
        },
        None => dumps(files, question, watch)?,
    };
    if measure.is_empty() {
        let names: Vec<String> = files.iter().map(|file| shown(file)).collect();
        return Err(Error::Empty { files: names.join(", ") });
    }
    let mut measured = measure.finish();
    measured.facts.unread = unread;
    let verdict = Verdict::new(&measured).in_the_words_of(trainer);
    Ok(Advice { files: files.to_vec(), settings: measure.settings(), measured, verdict, measure })
}

/// Measures dumps; with the names that were not read, and whose words they speak.
fn dumps(
    files: &[PathBuf],
    question: Question,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<(Measure, Vec<String>, Option<Trainer>), Error> {
    let Question { settings, naming, growing } = question;
    let mut dump = Dump::open(files, naming, settings.against, growing)?;
    let (bytes, trainer) = (dump.bytes(), dump.trainer());
    watch(bytes, 0);
    let mut measure = Measure::new(settings);
    dump.prepare(|done| watch(bytes, done))?;
    let unread = dump.each(|chunk, done| {
        measure.add(chunk);
        watch(bytes, done);
    })?;
    Ok((measure, unread, trainer))
}

/// Adds tallies up.
fn tallies(
    files: &[PathBuf],
    settings: &Settings,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Measure, Error> {
    let mut all: Option<Measure> = None;
    for (at, file) in files.iter().enumerate() {
        watch(files.len() as u64, at as u64);
        let refuse = |source| Error::File { file: shown(file), source };
        let bytes = std::fs::read(file).map_err(refuse)?;
        let tally = Measure::from_tally(&bytes).map_err(|why| Error::Tally { file: shown(file), why })?;
        match &mut all {
            None => all = Some(tally),
            Some(all) => {
                let first = shown(&files[0]);
                all.merge(&tally).map_err(|why| Error::Differ { file: shown(file), first, why })?;
            }
        }
    }
    let mut all = all.unwrap_or_else(|| Measure::new(*settings));
    settings.batch.into_iter().for_each(|batch| all.set_batch(batch));
    Ok(all)
}

impl Advice {
    /// Verdict, reasons and a table of numbers for a terminal of some width.
    #[must_use]
    pub fn text(&self, width: usize) -> String {
        text::summary(&self.measured, &self.verdict, width)
    }

    /// Everything measured, at full precision.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    pub fn json(&self) -> Result<String, serde_json::Error> {
        serde_json::to_string_pretty(&self.value())
    }

    /// What was measured as a tally's bytes, for a file that ends in .tally.
    #[must_use]
    pub fn tally(&self) -> Vec<u8> {
        self.measure.tally()
    }

    pub(crate) fn value(&self) -> serde_json::Value {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        serde_json::json!({ "files": files, "verdict": self.verdict, "measured": self.measured })
    }

    /// The page: verdict, plots and every number.
    #[must_use]
    pub fn page(&self, made: Made) -> Page {
        let title = match &self.files[..] {
            [_] => format!("What {} says about stale data", named(&self.files)),
            files => format!("What {} files say about stale data", files.len()),
        };
        let clip = (self.settings.clip.low, self.settings.clip.high);
        page::page(&title, &self.measured, &self.verdict, clip, made)
    }

    /// The conditions that are met, each with the number that meets it.
    pub fn met<'g>(&self, gates: &'g [Gate]) -> impl Iterator<Item = (&'g Gate, f64)> {
        gates.iter().filter_map(|gate| gate.triggered(&self.measured).map(|value| (gate, value)))
    }
}
