//! The door: dumps in, advice out.

use crate::gate::Gate;
use crate::measure::{Measure, Measured, Settings};
use crate::read::Dump;
use crate::schema::Naming;
use crate::series::named;
use crate::trajectory::Against;
use crate::verdict::Verdict;
use crate::{Error, page, text};
use niwaki_correction::Clip;
use niwaki_page::{Made, Page};
use std::path::PathBuf;

/// What is asked of some dumps.
#[derive(Clone, Debug, Default)]
pub struct Question {
    /// Clip range, batch, ESS floor and verl's weights.
    pub settings: Settings,
    /// Names of the fields.
    pub naming: Naming,
    /// What the current policy is held against.
    pub against: Against,
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
}

/// Reads the dumps of one run, in order, and says what they mean.
///
/// `watch` is told how many bytes are to be read, and how many have been.
///
/// # Errors
/// Where a setting is out of its range, a file cannot be read, a trajectory cannot be used, or there is none.
pub fn advise(
    files: &[PathBuf],
    question: Question,
    watch: &mut dyn FnMut(u64, u64),
) -> Result<Advice, Error> {
    let Question { settings, naming, against, growing } = question;
    check(&settings)?;
    let mut dump = Dump::open(files, naming, against, growing)?;
    let (names, bytes, trainer) = (dump.names(), dump.bytes(), dump.trainer());
    watch(bytes, 0);
    let mut measure = Measure::new(settings);
    dump.prepare(|done| watch(bytes, done))?;
    let unread = dump.each(|chunk, done| {
        measure.add(chunk);
        watch(bytes, done);
    })?;
    if measure.is_empty() {
        return Err(Error::Empty { files: names });
    }
    let mut measured = measure.finish();
    measured.facts.unread = unread;
    let verdict = Verdict::new(&measured).in_the_words_of(trainer);
    Ok(Advice { files: files.to_vec(), settings, measured, verdict })
}

/// Refuses settings that mean nothing.
fn check(settings: &Settings) -> Result<(), Error> {
    let Settings { clip, ess_floor, batch, verl } = settings;
    Clip::new(clip.low, clip.high)?;
    let faults = [
        // Written so that what is not a number fails too.
        ("ess_floor", *ess_floor, *ess_floor > 0.0 && *ess_floor < 1.0, "must lie between 0 and 1"),
        (
            "batch",
            batch.unwrap_or(1.0),
            batch.is_none_or(|batch| batch >= 1.0),
            "holds no trajectory; give at least 1",
        ),
        (
            "threshold",
            verl.threshold.upper,
            verl.threshold.is_sound(),
            "must be a positive number, with a smaller one before it where there are two",
        ),
    ];
    match faults.into_iter().find(|(_, _, sound, _)| !sound) {
        Some((name, value, _, why)) => Err(Error::Setting { name, value, why }),
        None => Ok(()),
    }
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
