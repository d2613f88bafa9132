//! `niwaki bench trainer`: whole iterations of a cohort, rollout and evaluation included.

use super::meter::peak_memory;
use crate::device::DeviceArgs;
use crate::terminal::{self, say_format};
use anyhow::{Context, Result, ensure};
use niwaki_train::{Spec, gather};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    device: DeviceArgs,
    /// A run's file; the paper's transformer on the two-branch reward if absent.
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
    /// Changes to the file, e.g. update.reuse=8.
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Members of the cohort, with seeds from 0.
    #[arg(long, default_value_t = 1)]
    members: u64,
    /// Measured iterations, after one to warm up.
    #[arg(long, default_value_t = 20)]
    iterations: usize,
}

/// The paper's transformer: N-SGD at rate 1, four epochs, 256 trajectories.
const TRANSFORMER: &str = "[policy]\nkind = \"causal\"\n[optimiser]\nrate = 1.0\n";

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        ensure!(self.members > 0 && self.iterations > 0, "--members and --iterations must be at least 1");
        let began = Instant::now();
        let (name, text) = match &self.file {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                (path.display().to_string(), text.with_context(|| format!("cannot read {}", path.display()))?)
            }
            None => ("the built-in spec".to_owned(), TRANSFORMER.to_owned()),
        };
        let spec = crate::commands::spec(&name, &text, &self.set)?;
        let spec = self.file.as_deref().map_or(spec.clone(), |file| spec.beside(file));
        let recipes = (0..self.members).map(|seed| Spec { seed, ..spec.clone() }.check());
        let mut cohort = gather(recipes.collect::<Result<Vec<_>, _>>()?, &self.device.choose()?)?;
        cohort.advance()?;
        let started = began.elapsed().as_secs_f64();
        let bar = terminal::progress(self.iterations as u64, "iterations");
        let clock = Instant::now();
        for _ in 0..self.iterations {
            cohort.advance()?;
            bar.inc(1);
        }
        let seconds = clock.elapsed().as_secs_f64();
        bar.finish_and_clear();
        say_format!(
            "{} members × {} iterations: {:.2} ms per iteration, {:.0} run-iterations per second",
            self.members,
            self.iterations,
            1e3 * seconds / self.iterations as f64,
            self.members as f64 * self.iterations as f64 / seconds
        );
        say_format!("    start and first iteration {started:.2} s");
        for (part, seconds) in cohort.times() {
            say_format!(
                "    {part:<10} {:8.2} ms per iteration",
                1e3 * seconds / (1 + self.iterations) as f64
            );
        }
        if let Some(peak) = peak_memory() {
            say_format!("    peak memory {:.0} MB", peak / 1e6);
        }
        Ok(ExitCode::SUCCESS)
    }
}
