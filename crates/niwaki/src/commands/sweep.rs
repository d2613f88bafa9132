//! `niwaki sweep`: a study of one's own from the command line, with paired comparisons.

use super::cluster::{Local, PlanArgs};
use super::reproduce::Reproduce;
use crate::device::DeviceArgs;
use crate::{output, places, terminal};
use anyhow::Context;
use niwaki_study::machines::launch::{flag, shell};
use niwaki_study::machines::{Split, Splitting};
use niwaki_study::sweep::Sweep;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The spec that every run begins with, as for `niwaki train`.
    file: PathBuf,
    /// An arm: a correction such as ppo or tempered:0.1; every other one is compared with the first, seed by seed.
    #[arg(long = "arm", value_name = "CORRECTION", required = true)]
    arms: Vec<String>,
    /// A key of the spec and the values it takes, e.g. optimiser.rate=0.05,0.1; may be repeated to make a grid.
    #[arg(long, value_name = "KEY=A,B")]
    vary: Vec<String>,
    /// Paired seeds.
    #[arg(long, value_name = "N", default_value_t = 8)]
    seeds: u64,
    /// Set a key of the spec for all runs; may be given several times.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    settings: Vec<String>,
    /// Which endpoints of each curve are compared, e.g. final; auc and final if absent, of the likeliest trajectory
    /// if the spec evaluates that.
    #[arg(long = "endpoint", value_name = "NAME")]
    endpoints: Vec<String>,
    /// Name of the study; that of the spec's file if absent.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Folder for results; the study's file is written there as NAME.toml.
    #[arg(long, value_name = "DIR", default_value = "runs")]
    out: PathBuf,
    /// Write the study and its plan, and leave running it to a launcher.
    #[arg(long, conflicts_with = "workers")]
    write_only: bool,
    /// Run it with this many processes on this machine, as `niwaki cluster launch local` does.
    #[arg(long, value_name = "N")]
    workers: Option<usize>,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (file, study) = self.study()?;
        terminal::say(&format!("study: {}", file.display()));
        if !self.write_only && self.workers.is_none() {
            return Reproduce::of(&file, &self.out, self.device, false).run();
        }
        self.launch(&file, study)
    }

    /// Writes the study, and gives its file.
    pub(super) fn write(&self) -> anyhow::Result<PathBuf> {
        Ok(self.study()?.0)
    }

    /// The study's file, which is written, and its text.
    fn study(&self) -> anyhow::Result<(PathBuf, String)> {
        super::check_seeds(self.seeds)?;
        places::folder_only(
            "--out",
            &self.out,
            "write the study with --write-only, and launch its plan with a bucket",
        )?;
        let text = niwaki_files::read_text(&self.file)
            .with_context(|| format!("cannot read {}", self.file.display()))?;
        let base = super::spec(&self.file.display().to_string(), &text, &self.settings)?.beside(&self.file);
        let stem = self.file.file_stem().map_or("sweep".into(), |stem| stem.to_string_lossy());
        let label = self.name.clone().unwrap_or_else(|| stem.into_owned());
        let folder = niwaki_files::folder_name(&label).map_err(|reason| {
            anyhow::anyhow!("the name '{}' {reason}; give another with --name", label.escape_debug())
        })?;
        let mut vary = Vec::new();
        for axis in &self.vary {
            let (key, values) = axis.split_once('=').with_context(|| {
                format!("--vary {axis}: write it as key=a,b, e.g. optimiser.rate=0.05,0.1")
            })?;
            vary.push((
                key.trim().to_owned(),
                values.split(',').map(|value| value.trim().to_owned()).collect(),
            ));
        }
        let sweep = Sweep {
            label,
            base,
            arms: self.arms.clone(),
            vary,
            seeds: self.seeds,
            endpoints: self.endpoints.clone(),
        };
        let study = sweep.study()?;
        let file = self.out.join(format!("{folder}.toml"));
        output::write_whole(&file, &study)?;
        Ok((file, study))
    }

    /// Hands the study to the processes of this machine, or writes what other machines need.
    fn launch(self, file: &Path, study: String) -> anyhow::Result<ExitCode> {
        let asked = Splitting {
            seeds: None,
            first_seed: None,
            device: self.device.planned()?,
            runs: None,
            speeds: BTreeMap::new(),
            model: None,
        };
        let split = Split::new(vec![study], &asked)?;
        let plan =
            PlanArgs { plan: file.with_extension("json"), out: self.out.display().to_string(), attempts: 3 };
        output::write_whole(&plan.plan, &split.to_json()?)?;
        // What is printed can be typed.
        let typed = |name: &str, path: &Path| {
            let words = flag(name, &path.to_string_lossy()).into_iter().map(|word| shell(&word));
            words.collect::<Vec<_>>().join(" ")
        };
        let out = typed("--out", &self.out);
        let here = format!("{} {out}", typed("--plan", &plan.plan));
        if self.write_only {
            terminal::say(&format!("plan: {} units in {}", split.units.len(), plan.plan.display()));
            terminal::say(&format!("run it: niwaki cluster launch slurm {here} (or local, kubernetes, ray)"));
            let study = shell(&file.to_string_lossy());
            terminal::say(&format!("report it: niwaki reproduce {study} --report-only {out}"));
            return Ok(ExitCode::SUCCESS);
        }
        let local = Local { plan, workers: self.workers, cpus: None, lease: 60, dry_run: false };
        let code = local.run()?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
        Reproduce::of(file, &self.out, self.device, true).run()
    }
}
