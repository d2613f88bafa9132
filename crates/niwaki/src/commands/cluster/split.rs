//! `niwaki cluster split`: a study as units of work for many machines.

use crate::device::DeviceArgs;
use crate::{places, terminal};
use anyhow::{Context, bail, ensure};
use niwaki_page::{Cell, Column, Format, Table};
use niwaki_study::machines::{Scaling, Split, Splitting};
use niwaki_study::training::{Speed, Training};
use niwaki_study::{Contents, answering, studies};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Seconds that a simulation counts for each unit beside its work: the most that one may cost.
const OVERHEAD: f64 = 0.05;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Labels of the paper that train, `all` for every one, or studies of your own as .toml files.
    #[arg(value_name = "LABEL", required = true)]
    labels: Vec<String>,
    /// Where the plan is written: a file, or an object of a bucket.
    #[arg(long, value_name = "FILE", default_value = "plan.json")]
    out: PathBuf,
    /// Number of seeds, in place of the study's own.
    #[arg(long, value_name = "N")]
    seeds: Option<u64>,
    /// First seed, in place of the study's own.
    #[arg(long, value_name = "SEED", value_parser = clap::value_parser!(u64).range(..1 << 62))]
    first_seed: Option<u64>,
    /// Largest number of runs in a unit; 1 on the CPU and 192 on a GPU if absent.
    #[arg(long, value_name = "N")]
    runs: Option<usize>,
    /// A folder of results whose speed.json files say how long units take; may be given several times.
    #[arg(long, value_name = "DIR")]
    speeds: Vec<PathBuf>,
    /// Estimate how long the plan takes on this many machines, from the speeds.
    #[arg(long, value_name = "N", value_delimiter = ',')]
    simulate: Vec<usize>,
    /// The pretrained model of studies that fine-tune one, where every machine finds it: a Hugging Face folder or a GGUF file.
    #[arg(long, value_name = "MODEL")]
    model: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        self.seeds.map_or(Ok(()), crate::commands::check_seeds)?;
        ensure!(self.runs != Some(0), "--runs 0 gives a unit nothing to do; give at least 1");
        ensure!(!self.simulate.contains(&0), "--simulate 0: nothing runs on no machine; give at least 1");
        let texts = self.texts()?;
        let speeds = self.speeds(&texts)?;
        let guessed = guess(&texts, speeds)?;
        let asked = Splitting {
            seeds: self.seeds,
            first_seed: self.first_seed,
            device: self.device.planned()?,
            runs: self.runs,
            speeds: guessed,
            model: self.model()?,
        };
        let split = Split::new(texts, &asked).map_err(|error| match error {
            niwaki_study::Error::NoModel { .. } => anyhow::anyhow!("{error}; name it with --model"),
            other => other.into(),
        })?;
        let scaling = if self.simulate.is_empty() { None } else { Some(self.scaling(&split)?) };
        places::write(&self.out, &split.to_json()?)?;
        let runs: usize = split.units.iter().map(|unit| unit.runs.len()).sum();
        let iterations: u64 = split.units.iter().map(|unit| unit.run_iterations).sum();
        terminal::say(&format!(
            "plan {}: {} units, {runs} runs, {iterations} run-iterations, in {}",
            split.id,
            split.units.len(),
            self.out.display()
        ));
        scaling.iter().for_each(show);
        Ok(ExitCode::SUCCESS)
    }

    fn scaling(&self, split: &Split) -> anyhow::Result<Scaling> {
        split.simulate(&self.simulate, OVERHEAD).map_err(|error| match error {
            niwaki_study::Error::Unit { .. } => anyhow::anyhow!("{error} with --speeds"),
            other => other.into(),
        })
    }

    /// The model, as every machine finds it.
    fn model(&self) -> anyhow::Result<Option<PathBuf>> {
        let whole = self.model.as_ref().map(std::path::absolute).transpose();
        whole.context("cannot tell where the model is")
    }

    /// The texts of the studies.
    fn texts(&self) -> anyhow::Result<Vec<String>> {
        let mut texts = Vec::new();
        for label in &self.labels {
            match label.as_str() {
                "all" => {
                    for study in studies() {
                        match study.read()? {
                            Contents::Training(training)
                                if training.lacks_model() && self.model.is_none() =>
                            {
                                terminal::warn(&format!(
                                    "{} fine-tunes a pretrained model; name it with --model: left out",
                                    training.label
                                ));
                            }
                            Contents::Training(_) => texts.push(study.text.to_owned()),
                            // They take seconds on one machine, and `reproduce` measures them where it reports.
                            Contents::Diagnostics(_) => {}
                        }
                    }
                }
                file if file.ends_with(".toml") => {
                    let text = niwaki_files::read_text(Path::new(file))
                        .with_context(|| format!("cannot read {file}"))?;
                    // Refusals then name the file.
                    Contents::read(file, &text)?;
                    texts.push(text);
                }
                label => texts.extend(answering(label)?.iter().map(|study| study.text.to_owned())),
            }
        }
        Ok(texts)
    }

    /// What the given folders say of the studies' speeds; the last one that knows a study counts.
    fn speeds(&self, texts: &[String]) -> anyhow::Result<BTreeMap<String, Speed>> {
        let mut speeds = BTreeMap::new();
        for folder in &self.speeds {
            if !folder.is_dir() {
                bail!("--speeds {} is not a folder", folder.display());
            }
            for study in training(texts)? {
                for study in [study.pilot_study(), Some(study)].into_iter().flatten() {
                    let path = folder.join(study.folder()).join("speed.json");
                    if let Ok(bytes) = niwaki_files::read_own_text(&path) {
                        let what = || format!("{} does not say a speed", path.display());
                        let speed: Speed = serde_json::from_slice(&bytes).with_context(what)?;
                        ensure!(speed.is_sound(), "{}: not a possible time", what());
                        speeds.insert(study.label, speed);
                    }
                }
            }
        }
        Ok(speeds)
    }
}

/// The training studies among some texts.
fn training(texts: &[String]) -> anyhow::Result<Vec<Training>> {
    let mut found = Vec::new();
    for text in texts {
        if let Contents::Training(study) = Contents::read("the study", text)? {
            found.push(*study);
        }
    }
    Ok(found)
}

/// A study of unknown speed is taken to be as fast as all known ones together, and that is told.
fn guess(texts: &[String], mut speeds: BTreeMap<String, Speed>) -> anyhow::Result<BTreeMap<String, Speed>> {
    if speeds.is_empty() {
        return Ok(speeds);
    }
    let mut all = Speed {
        runs: 0,
        run_iterations: 0,
        seconds: 0.0,
        start_up_seconds: 0.0,
        device: String::new(),
        threads: 0,
    };
    for speed in speeds.values() {
        all.run_iterations += speed.run_iterations;
        all.seconds += speed.seconds;
    }
    for study in training(texts)? {
        for study in [study.pilot_study(), Some(study)].into_iter().flatten() {
            if let Entry::Vacant(unknown) = speeds.entry(study.label) {
                let said = "speed unknown; it counts as fast as the others together";
                terminal::warn(&format!("study {}: {said}", unknown.key()));
                unknown.insert(all.clone());
            }
        }
    }
    Ok(speeds)
}

fn show(scaling: &Scaling) {
    let hours = |name: &str| Column::number(name).format(Format::fixed(3));
    let mut table = Table::new("The plan by number of machines").columns([
        Column::number("machines"),
        hours("hours"),
        hours("idle share"),
        hours("speed-up"),
    ]);
    for simulated in &scaling.simulated {
        table.push([
            Cell::from(simulated.machines as f64),
            Cell::from(simulated.seconds / 3600.0),
            Cell::from(simulated.idle),
            Cell::from(scaling.work / simulated.seconds),
        ]);
    }
    terminal::say(table.to_text(terminal::width()).trim_end());
    terminal::say(&format!(
        "work: {:.3} hours of one machine; the longest chain of units takes {:.3} hours, so more than {:.0} machines do not help",
        scaling.work / 3600.0,
        scaling.chain / 3600.0,
        (scaling.work / scaling.chain).ceil()
    ));
}
