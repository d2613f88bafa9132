//! Studies as units of work: which runs train together, what comes before what, and a document that says so.
//!
//! The document is a pure function of the studies and of what was asked: made anew it has the same bytes. It holds the text
//! of every study, so that a worker needs nothing else, and the names of its units, by which a worker knows that it makes
//! the same runs of that text.

use super::unit::{Stage, Unit};
use crate::report::Speed;
use crate::training::{Plan, Planned, Stages, alike};
use crate::{Contents, Error};
use niwaki_files::Digest;
use niwaki_train::Device;
use niwaki_train::spec::PolicyKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The version of the document.
const VERSION: u32 = 1;

/// Runs of a unit on a GPU, where nothing else is asked for: six programs of 32 members fill an H200.
const ON_A_GPU: usize = 192;

/// Studies as units of work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Split {
    /// The version of the document.
    pub niwaki_plan: u32,
    /// What it is, in 16 digits.
    pub id: String,
    /// Seeds in place of the studies' own numbers.
    pub seeds: Option<u64>,
    /// The first seed in place of their own.
    pub first_seed: Option<u64>,
    /// The pretrained model of studies that leave it open, as every machine finds it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub model: Option<PathBuf>,
    /// The texts of the studies.
    pub studies: Vec<String>,
    /// The units; one stands behind those that must be done before it.
    pub units: Vec<Unit>,
}

/// What is asked of a split.
#[derive(Clone, Debug)]
pub struct Splitting {
    /// Seeds in place of the studies' own numbers.
    pub seeds: Option<u64>,
    /// The first seed in place of their own.
    pub first_seed: Option<u64>,
    /// Where networks train, as [`Device::name`] calls it; this program need not know that device. Tables always train on
    /// the processor.
    pub device: String,
    /// Most runs of a unit; one where all train on the processor and 192 on a GPU if absent.
    pub runs: Option<usize>,
    /// How fast studies were made, by label; pilots have labels of their own.
    pub speeds: BTreeMap<String, Speed>,
    /// The pretrained model of studies that leave it open.
    pub model: Option<PathBuf>,
}

/// What decides whether the rest of a document can be read.
#[derive(Deserialize)]
struct Head {
    niwaki_plan: Option<u32>,
}

/// A unit before it has its place, and what it comes after.
struct Draft {
    unit: Unit,
    /// How many stages of its study come before it.
    depth: usize,
}

impl Split {
    /// Splits studies, each given by its text.
    ///
    /// # Errors
    /// Where a study is refused, measures policy pairs or lacks a model, or two of them put different runs into one folder.
    pub fn new(studies: Vec<String>, asked: &Splitting) -> Result<Self, Error> {
        let mut drafts = Vec::new();
        let mut owners = BTreeMap::new();
        for (place, text) in studies.iter().enumerate() {
            let stages = stages(text, asked.seeds, asked.first_seed, asked.model.as_deref())?;
            if stages.study.lacks_model() {
                return Err(Error::NoModel { label: stages.study.label });
            }
            let mut depth = 0;
            if let Some(pilot) = stages.pilot()? {
                draft(&mut drafts, &mut owners, place, Stage::Pilot, depth, &pilot, asked)?;
                depth += 1;
            }
            let arms = stages.provisional()?;
            if arms.measures() {
                draft(&mut drafts, &mut owners, place, Stage::Strengths, depth, &arms, asked)?;
                depth += 1;
            }
            draft(&mut drafts, &mut owners, place, Stage::Arms, depth, &arms, asked)?;
        }
        // What others wait for comes first, then what takes longest.
        drafts.sort_by(|one, other| {
            let order = |draft: &Draft| (draft.depth, draft.unit.stage);
            let together = |draft: &Draft| if draft.unit.stage == Stage::Arms { 0 } else { draft.unit.study };
            let cost = |draft: &Draft| draft.unit.seconds.unwrap_or(draft.unit.run_iterations as f64);
            order(one)
                .cmp(&order(other))
                .then(together(one).cmp(&together(other)))
                .then(cost(other).total_cmp(&cost(one)))
        });
        let mut units: Vec<Unit> = drafts.into_iter().map(|draft| draft.unit).collect();
        let mut places: BTreeMap<(usize, Stage), [usize; 2]> = BTreeMap::new();
        for (number, unit) in units.iter_mut().enumerate() {
            let before = [Stage::Strengths, Stage::Pilot].into_iter().filter(|stage| *stage < unit.stage);
            unit.after = before.filter_map(|stage| places.get(&(unit.study, stage)).copied()).next();
            places.entry((unit.study, unit.stage)).or_insert([number, number])[1] = number + 1;
        }
        let mut split = Self {
            niwaki_plan: VERSION,
            id: String::new(),
            seeds: asked.seeds,
            first_seed: asked.first_seed,
            model: asked.model.clone(),
            studies,
            units,
        };
        split.id = Digest::of(split.to_json()?).to_string();
        Ok(split)
    }

    /// The document's text.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn to_json(&self) -> Result<String, Error> {
        let text = serde_json::to_string_pretty(self);
        Ok(text.map_err(|error| Error::Plan { name: "the plan".to_owned(), mend: error.to_string() })? + "\n")
    }

    /// Reads a document that is called `name`.
    ///
    /// # Errors
    /// Where it is no plan, one of another version, or not as it was written.
    pub fn read(name: &str, text: &str) -> Result<Self, Error> {
        let refuse = |mend: String| Error::Plan { name: name.to_owned(), mend };
        let head: Head = serde_json::from_str(text)
            .map_err(|error| refuse(format!("it is not a plan of work ({error})")))?;
        match head.niwaki_plan {
            None => return Err(refuse("it is not a plan of work: it has no 'niwaki_plan'".to_owned())),
            Some(VERSION) => {}
            Some(other) => {
                let mend = format!(
                    "it is a plan of version {other}, and this program knows version {VERSION}; make it again"
                );
                return Err(refuse(mend));
            }
        }
        let mut split: Self = serde_json::from_str(text).map_err(|error| refuse(error.to_string()))?;
        let id = std::mem::take(&mut split.id);
        if Digest::of(split.to_json()?).to_string() != id {
            return Err(refuse("it is not as it was written; make it again".to_owned()));
        }
        let sound = |number: usize, unit: &Unit| {
            let before = unit.before();
            unit.study < split.studies.len() && before.start <= before.end && before.end <= number
        };
        let mut units = split.units.iter().enumerate();
        if let Some((number, _)) = units.find(|(number, unit)| !sound(*number, unit)) {
            let mend = format!("unit {number} is of no study, or comes after one behind it; make it again");
            return Err(refuse(mend));
        }
        split.id = id;
        Ok(split)
    }

    /// A unit.
    ///
    /// # Errors
    /// Where there is none of that number.
    pub fn unit(&self, number: usize) -> Result<&Unit, Error> {
        self.units.get(number).ok_or(Error::NoUnit { number, units: self.units.len() })
    }

    /// A unit in words: its number, its study, and the first of its runs.
    #[must_use]
    pub fn words(&self, number: usize) -> String {
        let Some(unit) = self.units.get(number) else { return format!("unit {number}") };
        let first = unit.runs.first().map_or("", String::as_str);
        match (unit.stage, unit.runs.len()) {
            (Stage::Strengths, count) => {
                format!("unit {number} (strengths by {count} probes, {first} first)")
            }
            (_, 1) => format!("unit {number} ({first})"),
            (_, count) => format!("unit {number} ({count} runs, {first} first)"),
        }
    }

    /// The study of a unit, to be planned stage by stage.
    pub(super) fn stages(&self, study: usize) -> Result<Stages, Error> {
        let text = self.studies.get(study).map_or("", String::as_str);
        stages(text, self.seeds, self.first_seed, self.model.as_deref())
    }
}

/// A study's text, to be planned stage by stage.
fn stages(
    text: &str,
    seeds: Option<u64>,
    first_seed: Option<u64>,
    model: Option<&Path>,
) -> Result<Stages, Error> {
    match Contents::read("the plan's study", text)? {
        Contents::Training(mut study) => {
            if study.lacks_model() {
                study.base.policy.model = model.map(Path::to_owned);
            }
            Ok(Stages { study: *study, seeds, first_seed })
        }
        Contents::Diagnostics(study) => {
            let mend =
                "it measures policy pairs, which takes seconds on one machine; there is nothing to split";
            Err(Error::Senseless { label: study.label, mend: mend.to_owned() })
        }
    }
}

/// Adds the units of one stage of a study.
fn draft(
    drafts: &mut Vec<Draft>,
    owners: &mut BTreeMap<String, String>,
    study: usize,
    stage: Stage,
    depth: usize,
    plan: &Plan,
    asked: &Splitting,
) -> Result<(), Error> {
    let mut runs = Vec::new();
    for run in &plan.runs {
        if stage == Stage::Strengths {
            runs.extend(run.recipe.measured.contains(&true).then_some(run));
            continue;
        }
        // A cell may be borrowed from another study of the same plan: its runs are then made once.
        let home = home(run);
        match owners.get(&home) {
            None => {
                owners.insert(home, run.hash.clone());
                runs.push(run);
            }
            Some(hash) if *hash == run.hash => {}
            Some(_) => {
                let mend =
                    format!("another study of the plan puts a different run into {home}; split them apart");
                return Err(Error::Senseless { label: plan.study.label.clone(), mend });
            }
        }
    }
    let speed = asked.speeds.get(&plan.study.label);
    let (tables, networks): (Vec<_>, Vec<_>) =
        runs.into_iter().partition(|run| run.recipe.spec.policy.kind == PolicyKind::Tabular);
    let cpu = Device::Cpu.name();
    for (device, runs) in [(cpu.clone(), tables), (asked.device.clone(), networks)] {
        let most = match asked.runs {
            _ if stage == Stage::Strengths => usize::MAX,
            Some(most) => most.max(1),
            None if asked.device == cpu => 1,
            None => ON_A_GPU,
        };
        // On the processor results do not depend on company, and runs of different shapes may share a unit.
        let groups = if device == cpu || stage == Stage::Strengths { vec![runs] } else { alike(runs)? };
        for group in groups.into_iter().filter(|group| !group.is_empty()) {
            let equal = group.len().div_ceil(group.len().div_ceil(most));
            for runs in group.chunks(equal) {
                let unit = unit(study, stage, &device, runs, &plan.study.label, speed)?;
                drafts.push(Draft { unit, depth });
            }
        }
    }
    Ok(())
}

fn unit(
    study: usize,
    stage: Stage,
    device: &str,
    runs: &[&Planned],
    label: &str,
    speed: Option<&Speed>,
) -> Result<Unit, Error> {
    let trains = stage != Stage::Strengths;
    let run_iterations =
        if trains { runs.iter().map(|run| run.recipe.spec.iterations as u64).sum() } else { 0 };
    let mut memory = 0_u128;
    for run in runs {
        memory = memory.saturating_add(run.recipe.bytes()?);
    }
    Ok(Unit {
        id: identity(label, stage, device, runs),
        study,
        stage,
        after: None,
        device: device.to_owned(),
        runs: runs.iter().map(|run| home(run)).collect(),
        run_iterations,
        memory: u64::try_from(memory).unwrap_or(u64::MAX),
        seconds: speed.filter(|_| trains).map(|speed| run_iterations as f64 / speed.rate()),
    })
}

/// What a unit is, in 16 digits.
pub(super) fn identity(label: &str, stage: Stage, device: &str, runs: &[&Planned]) -> String {
    let begin = Digest::of(format!("{label}\n{stage:?}\n{device}\n"));
    runs.iter().fold(begin, |digest, run| digest.and(format!("{} {}\n", home(run), run.hash))).to_string()
}

/// The folder of a run, with slashes on every system.
pub(super) fn home(run: &Planned) -> String {
    let words = run.home.iter().map(|word| word.to_string_lossy().into_owned());
    words.collect::<Vec<_>>().join("/")
}
