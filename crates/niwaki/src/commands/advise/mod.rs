//! `niwaki advise`: what the log-probs of any run say about stale data.

mod given;
mod watch;

use crate::output::{self, FormatArgs, Out, Piece};
use crate::terminal;
use anyhow::{Context, anyhow, bail};
use clap::ValueEnum;
use given::Given;
use niwaki_advise::gate::Gate;
use niwaki_advise::measure::Settings;
use niwaki_advise::schema::{Field, Naming};
use niwaki_advise::series::{Runs, is_tally, named as run_name};
use niwaki_advise::trajectory::Against;
use niwaki_advise::{Advice, Comparison, Error, Fault, Question, advise, verl};
use niwaki_correction::Clip;
use std::path::PathBuf;
use std::process::ExitCode;

/// Exit code of a condition that was met.
const FAILED: u8 = 1;

/// Tell whether stale data costs a run its signal.
#[derive(clap::Args)]
#[command(after_help = HELP)]
pub(crate) struct Args {
    /// Dumps, .jsonl, .npz or .parquet, or .tally of each rank, folders or quoted patterns of them ('dumps/step-*.npz'), or -
    /// for standard input. The files of a folder or pattern, and those whose names differ in digits alone, are one run; any others are separate runs, compared
    /// side by side.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Treat all files as one run, whatever their names.
    #[arg(long, conflicts_with = "apart")]
    run: bool,
    /// Treat every file as a separate run.
    #[arg(long)]
    apart: bool,
    /// Update whenever the files grow, checking every SECONDS, until Ctrl-C.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, default_missing_value = "2")]
    watch: Option<f64>,
    /// Read a field under a name of your own, e.g. new_log_prob=lp; may be repeated.
    #[arg(long, value_name = "FIELD=NAME")]
    map: Vec<String>,
    /// Clip range of the trainer, [1 − EPS, 1 + EPS], or [1 − LOW, 1 + HIGH] with two values [default: 0.2].
    #[arg(long, num_args = 1..=2, value_name = "EPS")]
    clip: Vec<f64>,
    /// Trajectories per update [default: the mean of the dump's iterations].
    #[arg(long, value_name = "N")]
    batch: Option<u64>,
    /// Effective sample size that a correction must keep, as a share of the batch [default: 0.9].
    #[arg(long, value_name = "SHARE")]
    ess_floor: Option<f64>,
    /// Which log-probs of the policy that sampled to compare the current policy with: those the trainer computed, or those
    /// of the sampling engine [default: old].
    #[arg(long, value_enum)]
    against: Option<Reference>,
    /// Level of verl's weights in the rollout_corr metrics: token or sequence [default: token].
    #[arg(long, value_name = "LEVEL")]
    rollout_is: Option<verl::Level>,
    /// Upper bound of verl's weights in the rollout_corr metrics, or a band as verl writes it, e.g. 0.5_2.0 [default: 2.0].
    #[arg(long, value_name = "BOUND")]
    rollout_is_threshold: Option<verl::Threshold>,
    /// Also report verl's rollout_is_batch_norm_factor.
    #[arg(long)]
    rollout_is_batch_normalize: bool,
    /// Also report verl's rollout_rs metrics for these rejection rules, e.g. token_k1,seq_mean_k3.
    #[arg(long, value_name = "WAYS", requires = "rollout_rs_threshold")]
    rollout_rs: Option<String>,
    /// Thresholds of those rules, one for all or one each, as verl writes them, e.g. 0.5_2.0,0.01.
    #[arg(long, value_name = "BOUNDS", requires = "rollout_rs")]
    rollout_rs_threshold: Option<String>,
    /// Exit with code 1 if a number meets this condition, e.g. 'ess<0.3'; may be repeated.
    #[arg(long, value_name = "CONDITION")]
    fail_on: Vec<Gate>,
    #[command(flatten)]
    format: FormatArgs,
    /// Where to write a page with plots, and all numbers as JSON: a folder for both, or one file that ends in .html or
    /// .json. A file that ends in .tally keeps what was measured, to be added to other ranks'.
    #[arg(long, value_name = "PLACE")]
    out: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Reference {
    /// old_log_prob.
    Old,
    /// behaviour_log_prob.
    Behaviour,
}

const HELP: &str = "\
A dump has one record per trajectory: the log-probs of its steps under the policy that sampled it
(old_log_prob) and under the current policy (new_log_prob), and an advantage or a reward. The names
that TRL and verl use are understood. docs/advise.md has the schema, what every number means, and
recipes for exporting.";

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let question = self.question()?;
        self.place()?;
        let given = Given::new(&self.files, self.runs())?;
        match self.watch {
            Some(seconds) => watch::follow(&self, &given, &question, seconds),
            None => given.runs().and_then(|runs| self.show(&given, &runs, &question)),
        }
        .map_err(|error| given.named(error))
    }

    /// Reads all runs, prints and writes what they say.
    fn show(&self, given: &Given, runs: &[Vec<PathBuf>], question: &Question) -> anyhow::Result<ExitCode> {
        self.check_tallies(runs)?;
        let mut advices = self.advices(runs, question)?;
        let tally = self.out.as_deref().filter(|path| output::has_ending(path, "tally") && !path.is_dir());
        let tally = match (tally, &advices[..]) {
            (Some(path), [advice]) => Some((path, advice.tally())),
            (Some(path), _) => bail!(
                "--out {}: a tally is of one run, and these files are {}; give --run to join them",
                path.display(),
                advices.len()
            ),
            _ => None,
        };
        advices.iter_mut().for_each(|advice| given.as_given(&mut advice.files));
        let mut code = ExitCode::SUCCESS;
        let several = advices.len() > 1;
        for advice in &advices {
            for (gate, value) in advice.met(&self.fail_on) {
                let of = if several { format!("{}: ", run_name(&advice.files)) } else { String::new() };
                terminal::warn(&format!("failed: {of}{gate} ({value})"));
                code = ExitCode::from(FAILED);
            }
        }
        let (text, json, page) = if let [advice] = &advices[..] {
            (advice.text(terminal::width()), advice.json()?, advice.page(output::made()))
        } else {
            let together = Comparison { runs: advices };
            (together.text(terminal::width()), together.json()?, together.page(output::made()))
        };
        if self.format.is_json() {
            terminal::give(&output::signed(&json));
        } else {
            for files in runs.iter().filter(|files| files.len() > 1) {
                terminal::say(&format!("joined as one run: {}", run_name(files)));
            }
            terminal::say(text.trim_end());
        }
        if let Some((path, tally)) = tally {
            output::write_bytes(path, &tally)?;
            output::name_written(&[path.to_path_buf()], self.format.is_json());
        } else if let Some(out) = self.place()? {
            let pieces = [Piece::json("advise.json", &json), Piece::new("index.html", page.to_html())];
            output::name_written(&out.write(&pieces)?, self.format.is_json());
        }
        Ok(code)
    }

    /// The advice for each run.
    fn advices(&self, runs: &[Vec<PathBuf>], question: &Question) -> anyhow::Result<Vec<Advice>> {
        runs.iter().map(|files| self.read(files, question.clone())).collect()
    }

    /// The advice for every run that was given.
    pub(super) fn advise(&self) -> anyhow::Result<Vec<Advice>> {
        let given = Given::new(&self.files, self.runs())?;
        self.advices(&given.runs()?, &self.question()?)
    }

    /// Refuses settings beside tallies, which were measured under their own.
    fn check_tallies(&self, runs: &[Vec<PathBuf>]) -> anyhow::Result<()> {
        let Some(tally) = runs.iter().flatten().find(|file| is_tally(file)) else { return Ok(()) };
        let given = [
            ("--clip", !self.clip.is_empty()),
            ("--ess-floor", self.ess_floor.is_some()),
            ("--against", self.against.is_some()),
            ("--map", !self.map.is_empty()),
            ("--rollout-is", self.rollout_is.is_some()),
            ("--rollout-is-threshold", self.rollout_is_threshold.is_some()),
            ("--rollout-is-batch-normalize", self.rollout_is_batch_normalize),
            ("--rollout-rs", self.rollout_rs.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                bail!("{flag}: {} was measured under its own settings; leave {flag} out", tally.display())
            }
            None => Ok(()),
        }
    }

    /// Where files go.
    fn place(&self) -> anyhow::Result<Option<Out<'_>>> {
        self.out.as_deref().map(|path| Out::new(path, &["html", "json", "tally"])).transpose()
    }

    fn read(&self, files: &[PathBuf], question: Question) -> anyhow::Result<Advice> {
        let bar = terminal::Bar::default();
        let mut begun = false;
        let advice = advise(files, question, &mut |bytes, done| {
            if !std::mem::replace(&mut begun, true) {
                bar.begin(terminal::byte_progress(bytes, "reading"));
            }
            bar.at(done);
        });
        bar.end();
        advice.map_err(named)
    }

    fn runs(&self) -> Runs {
        match (self.run, self.apart) {
            (true, _) => Runs::Joined,
            (_, true) => Runs::Apart,
            _ => Runs::ByName,
        }
    }

    fn question(&self) -> anyhow::Result<Question> {
        let rejection = match (&self.rollout_rs, &self.rollout_rs_threshold) {
            (Some(ways), Some(bounds)) => {
                verl::Rejection::parse(ways, bounds).map_err(|why| anyhow!("--rollout-rs {ways}: {why}"))?
            }
            _ => verl::Rejection::default(),
        };
        let defaults = Settings::default();
        let settings = Settings {
            clip: super::clip(&self.clip)?.unwrap_or(Clip::PPO),
            ess_floor: self.ess_floor.unwrap_or(defaults.ess_floor),
            batch: self.batch.map(|batch| batch as f64),
            against: match self.against {
                Some(Reference::Behaviour) => Against::Behaviour,
                Some(Reference::Old) | None => Against::Old,
            },
            verl: verl::Settings {
                level: self.rollout_is.unwrap_or_default(),
                threshold: self.rollout_is_threshold.unwrap_or_default(),
                batch_normalised: self.rollout_is_batch_normalize,
                rejection,
            },
        };
        Ok(Question { settings, naming: self.naming()?, growing: self.watch.is_some() })
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
}

/// A refusal with the flag that mends it.
fn named(error: Error) -> anyhow::Error {
    match &error {
        Error::Setting { name, value, why } => anyhow!("--{} {value} {why}", name.replace('_', "-")),
        Error::Row { fault: Fault::Missing { field, near: Some(near) }, .. } => {
            anyhow!("{error}: give --map {field}={near}")
        }
        Error::Row { fault: Fault::Missing { field, near: None }, .. } if field.names().len() > 1 => {
            anyhow!("{error}; give --map {field}=NAME to read it under another name")
        }
        Error::Row { fault: Fault::Second { field, .. }, .. } => {
            anyhow!("{error}, or give --map {field}=NAME")
        }
        Error::Row { fault: Fault::Misnamed { field, name }, .. } => {
            anyhow!("{error}: give --map {field}={name}, or rename it")
        }
        _ => error.into(),
    }
}
