//! `niwaki advise`: what the log-probs of any run say about stale data.

use crate::{output, terminal};
use anyhow::{Context, bail, ensure};
use clap::ValueEnum;
use niwaki_advise::gate::Gate;
use niwaki_advise::measure::{Measure, Measured, Settings};
use niwaki_advise::read::Dump;
use niwaki_advise::schema::{Field, Naming};
use niwaki_advise::trajectory::Against;
use niwaki_advise::verdict::Verdict;
use niwaki_advise::{page, text, verl};
use niwaki_correction::Clip;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Exit code of a condition that was met.
const FAILED: u8 = 1;

/// Tell whether stale data costs a run its signal.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Dumps of one run, .jsonl, .npz or .parquet, in order.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Read a field under a name of your own, e.g. new_log_prob=lp; may be repeated.
    #[arg(long, value_name = "FIELD=NAME")]
    map: Vec<String>,
    /// Clip range of the trainer, [1 − EPS, 1 + EPS], or [1 − LOW, 1 + HIGH] with two values.
    #[arg(long, num_args = 1..=2, value_name = "EPS", default_values_t = [0.2])]
    clip: Vec<f64>,
    /// Trajectories per update [default: the mean of the dump's iterations].
    #[arg(long, value_name = "N")]
    batch: Option<u64>,
    /// Effective sample size that a correction must keep.
    #[arg(long, default_value_t = 0.9, value_name = "SHARE")]
    ess_floor: f64,
    /// What the current policy is held against: the policy that sampled as the trainer computes it, or as the sampling
    /// engine did.
    #[arg(long, value_enum, default_value_t = Reference::Old)]
    against: Reference,
    /// Level of verl's weights in the rollout_corr metrics: token or sequence.
    #[arg(long, default_value = "token", value_name = "LEVEL")]
    rollout_is: verl::Level,
    /// Upper bound of verl's weights in the rollout_corr metrics.
    #[arg(long, default_value_t = 2.0, value_name = "BOUND")]
    rollout_is_threshold: f64,
    /// Exit with code 1 where a number meets a condition, e.g. 'ess<0.3'; may be repeated.
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Gate>,
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Also write a page with plots, and all numbers as JSON, into this folder.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reference {
    /// old_log_prob.
    Old,
    /// behaviour_log_prob.
    Behaviour,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Verdict, reasons and a table of numbers.
    Text,
    /// Everything measured, full precision.
    Json,
}

const HELP: &str = "\
A dump has one record per trajectory with the log-probs of its steps under the policy that sampled (old_log_prob) and
under the policy as it is now (new_log_prob), and an advantage or a reward; the names of TRL and verl are understood.
docs/advise.md has the schema, the meaning of every number and recipes for exporting.";

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (settings, naming) = (self.settings()?, self.naming()?);
        let measured = self.measure(settings, naming)?;
        let verdict = Verdict::new(&measured);
        match self.format {
            Format::Text => terminal::say(text::summary(&measured, &verdict, terminal::width()).trim_end()),
            Format::Json => terminal::say(&self.json(&measured, &verdict)?),
        }
        if let Some(folder) = &self.out {
            let path = self.write(folder, settings.clip, &measured, &verdict)?;
            if self.format == Format::Text {
                terminal::say(&format!("\nreport: {}", path.display()));
            }
        }
        Ok(self.judge(&measured))
    }

    fn settings(&self) -> anyhow::Result<Settings> {
        let clip = match self.clip[..] {
            [epsilon] => Clip::symmetric(epsilon),
            [low, high, ..] => Clip { low, high, dual: None },
            [] => Clip::PPO,
        };
        ensure!(
            (0.0..=1.0).contains(&clip.low) && clip.high >= 0.0,
            "--clip {} {}: the lower width lies in [0, 1], the upper one is not negative",
            clip.low,
            clip.high
        );
        ensure!(
            self.ess_floor > 0.0 && self.ess_floor < 1.0,
            "--ess-floor {} must lie between 0 and 1",
            self.ess_floor
        );
        ensure!(self.batch != Some(0), "--batch 0 holds no trajectory; give at least 1");
        ensure!(
            self.rollout_is_threshold.is_finite() && self.rollout_is_threshold > 0.0,
            "--rollout-is-threshold {} must be a positive number",
            self.rollout_is_threshold
        );
        Ok(Settings {
            clip,
            ess_floor: self.ess_floor,
            batch: self.batch.map(|batch| batch as f64),
            verl: verl::Settings { level: self.rollout_is, threshold: self.rollout_is_threshold },
        })
    }

    fn naming(&self) -> anyhow::Result<Naming> {
        let mut naming = Naming::default();
        for pair in &self.map {
            let Some((field, name)) = pair.split_once('=') else {
                bail!("--map {pair}: write FIELD=NAME, e.g. new_log_prob=lp");
            };
            let field: Field = field.parse().map_err(anyhow::Error::msg).context("--map")?;
            naming = naming.with(field, name);
        }
        Ok(naming)
    }

    /// Reads the dump behind a progress bar.
    fn measure(&self, settings: Settings, naming: Naming) -> anyhow::Result<Measured> {
        let against = match self.against {
            Reference::Old => Against::Old,
            Reference::Behaviour => Against::Behaviour,
        };
        let mut dump = Dump::open(&self.files, naming, against)?;
        let names = dump.names();
        let bar = terminal::progress(dump.bytes(), "reading");
        let mut measure = Measure::new(settings);
        let read = dump.prepare(|done| bar.set_position(done)).and_then(|()| {
            dump.each(|chunk, done| {
                measure.add(chunk);
                bar.set_position(done);
            })
        });
        bar.finish_and_clear();
        read?;
        if measure.is_empty() {
            return Err(niwaki_advise::Error::Empty { files: names }.into());
        }
        Ok(measure.finish())
    }

    fn json(&self, measured: &Measured, verdict: &Verdict) -> anyhow::Result<String> {
        let files: Vec<String> = self.files.iter().map(|file| file.display().to_string()).collect();
        let all = serde_json::json!({ "files": files, "verdict": verdict, "measured": measured });
        Ok(serde_json::to_string_pretty(&all)?)
    }

    /// Writes the page and the numbers; returns the page's path.
    fn write(
        &self,
        folder: &Path,
        clip: Clip,
        measured: &Measured,
        verdict: &Verdict,
    ) -> anyhow::Result<PathBuf> {
        let names: Vec<String> = self
            .files
            .iter()
            .map(|file| file.file_name().unwrap_or_default().to_string_lossy().into_owned())
            .collect();
        let title = match &names[..] {
            [name] => format!("What {name} says about stale data"),
            names => format!("What {} files say about stale data", names.len()),
        };
        let page = page::page(&title, measured, verdict, (clip.low, clip.high), output::made());
        let path = folder.join("index.html");
        output::write_whole(&folder.join("advise.json"), &self.json(measured, verdict)?)?;
        output::write_whole(&path, &page.to_html())?;
        Ok(path)
    }

    /// Says which conditions are met, on standard error.
    fn judge(&self, measured: &Measured) -> ExitCode {
        let mut code = ExitCode::SUCCESS;
        for gate in &self.fail_on {
            if let Some(value) = gate.triggered(measured) {
                terminal::warn(&format!("failed: {gate} ({value})"));
                code = ExitCode::from(FAILED);
            }
        }
        code
    }
}
