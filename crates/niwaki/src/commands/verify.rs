//! `niwaki verify`: does a schedule keep its instance's constraints?

use super::solve::layout;
use crate::terminal;
use anyhow::Context;
use niwaki_shop::planning::{Problem, open};
use niwaki_shop::{Error, Instance, general, verify};
use std::path::PathBuf;
use std::process::ExitCode;

/// Checks a schedule against its instance.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The instance, in any known layout.
    instance: PathBuf,
    /// The schedule: JSON or CSV as `solve --out` writes it, or JobShopLib's JSON (jobs in order for each machine).
    schedule: PathBuf,
    /// The instance file's layout; recognised if absent.
    #[arg(long)]
    layout: Option<String>,
}

impl Args {
    /// Prints `ok` and the makespan, or `wrong` and the first constraint that is broken; the exit code is then 1.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let opened = open(&self.instance, layout(self.layout.as_deref())?)?;
        let at = || self.schedule.display().to_string();
        let text = niwaki_files::read_text(&self.schedule).with_context(at)?;
        let schedule = match opened.problem.read_schedule(&text) {
            Err(Error::Schedule(fault)) => return answer(Err(Error::Schedule(fault))),
            read => read.with_context(at)?,
        };
        let instance = match opened.problem {
            Problem::Special(instance) => instance,
            Problem::Plan(plan) => {
                plan.notes().iter().for_each(|note| terminal::remark(note));
                return answer(general::verify(&plan.shop, &schedule).map(|verdict| {
                    let values: Vec<String> = (0..verdict.values.len())
                        .map(|sum| {
                            format!("{} {}", plan.objective.sums[sum], plan.amount(sum, verdict.values[sum]))
                        })
                        .collect();
                    format!("ok: {}", values.join(", "))
                }));
            }
        };
        answer(verify(&instance, &schedule).map(|verdict| {
            let mut line = format!("ok: makespan {}", verdict.makespan);
            if matches!(&instance, Instance::Flexible(shop) if shop.has_windows()) {
                line += &format!(", violation {}", verdict.violation);
            }
            if matches!(instance, Instance::Lags(_) | Instance::Single(_)) {
                line += &format!(", late {} of {} jobs", verdict.late, instance.jobs());
            }
            line
        }))
    }
}

/// Prints what the checker says; a broken constraint is an answer, too.
fn answer(said: niwaki_shop::Result<String>) -> anyhow::Result<ExitCode> {
    match said {
        Ok(line) => {
            terminal::say(&line);
            Ok(ExitCode::SUCCESS)
        }
        Err(Error::Schedule(fault)) => {
            terminal::say(&format!("wrong: {fault}"));
            Ok(ExitCode::FAILURE)
        }
        Err(other) => Err(other.into()),
    }
}
