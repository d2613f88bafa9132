//! `niwaki cluster status`: how far a plan is, wherever its units run.

use super::launch::{self, PlanArgs};
use crate::output::{FormatArgs, signed};
use crate::terminal::{self, span};
use anyhow::Context;
use niwaki_page::{Cell, Column, Table};
use niwaki_study::machines::Status;
use std::process::ExitCode;
use std::time::Duration;

/// How often a plan that is watched is looked at.
const EVERY: Duration = Duration::from_secs(2);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    #[command(flatten)]
    format: FormatArgs,
    /// Look again every two seconds until nothing is left to do.
    #[arg(long, conflicts_with_all = ["format", "json"])]
    watch: bool,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let status = launch::status(&self.plan)?;
        if self.watch {
            return watch(&self.plan, status);
        }
        if self.format.is_json() {
            terminal::give(&signed(&serde_json::to_string_pretty(&status)?));
        } else {
            show(&status);
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Shows how a plan stands, again and again, in the place of what was shown before where that can be taken away.
fn watch(plan: &PlanArgs, mut status: Status) -> anyhow::Result<ExitCode> {
    let screen = console::Term::stdout();
    loop {
        if screen.is_term() {
            screen.clear_screen().context("cannot clear the terminal")?;
        }
        show(&status);
        if status.running.is_empty() && status.ready == 0 && status.waiting == 0 {
            return Ok(ExitCode::SUCCESS);
        }
        let before = status;
        loop {
            std::thread::sleep(EVERY);
            status = launch::status(plan)?;
            // A file of what was said holds every change once.
            if screen.is_term() || status != before {
                break;
            }
        }
    }
}

/// Counts, who works on what, failures, and the time that is left.
pub(super) fn show(status: &Status) {
    let Status { plan, units, done, ready, waiting, blocked, .. } = status;
    terminal::say(&format!(
        "plan {plan}: {done} of {units} units done, {} running, {ready} ready, {waiting} waiting, {} failed, {blocked} behind a failure",
        status.running.len(),
        status.failed.len()
    ));
    let share = 100.0 * status.run_iterations_done as f64 / status.run_iterations.max(1) as f64;
    let left = match status.seconds_left {
        Some(seconds) if done < units => format!(", about {} left", span(seconds)),
        _ => String::new(),
    };
    terminal::say(&format!(
        "{} of {} run-iterations ({share:.1}%){left}",
        status.run_iterations_done, status.run_iterations
    ));
    if !status.running.is_empty() {
        let mut table = Table::new("Running").columns([
            Column::text("unit"),
            Column::number("attempt"),
            Column::text("by"),
            Column::text("run-iterations"),
        ]);
        for unit in &status.running {
            table.push([
                Cell::from(unit.words.as_str()),
                Cell::from(f64::from(unit.attempt)),
                Cell::from(unit.holder.as_str()),
                Cell::from(format!("{} of {}", unit.done, unit.of)),
            ]);
        }
        terminal::say(table.to_text(terminal::width()).trim_end());
    }
    for failed in &status.failed {
        let next = if failed.given_up { "given up" } else { "to be tried again" };
        terminal::say(&format!(
            "{} failed {} times, {next}: {}",
            failed.words, failed.failures, failed.reason
        ));
    }
}
