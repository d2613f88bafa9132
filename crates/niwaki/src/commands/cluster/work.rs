//! `niwaki cluster work`: units of a plan, on this machine.

use super::launch::{self, PlanArgs};
use crate::terminal;
use anyhow::{Context, anyhow, bail};
use niwaki_study::Error;
use niwaki_study::machines::{Crew, Standing, State, Told};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Exit code of a process that was interrupted: 128 and the signal's number.
const INTERRUPTED: u8 = 130;

/// How long a unit that comes after others waits between two looks.
const LOOK: Duration = Duration::from_secs(1);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// The unit to work on, from 0.
    #[arg(long, value_name = "N", required_unless_present = "claim", conflicts_with = "claim")]
    unit: Option<usize>,
    /// Claim one unit after another until all are done or given up, alongside any number of other processes.
    #[arg(long)]
    claim: bool,
    /// Wait until the units before --unit are done.
    #[arg(long, requires = "unit")]
    wait: bool,
    /// Seconds after which others may take over a unit whose worker has not renewed its lease.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    lease: u64,
}

impl Args {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        // The plan lives as long as the process: the handler of signals may still hold it when the command ends.
        let split = Box::leak(Box::new(self.plan.read()?));
        let crew = Arc::new(Crew::new(split, self.plan.store()?, self.plan.terms(self.lease)));
        let stopped = crew.clone();
        ctrlc::set_handler(move || {
            stopped.stop();
            // Every file is whole at any moment, so there is nothing to wait for.
            std::process::exit(i32::from(INTERRUPTED));
        })
        .context("cannot watch for signals")?;
        let words = |number: usize| split.words(number);
        let told = |told: Told<'_>| match told {
            Told::Done { number, worked } => {
                let before = if worked.finished > 0 {
                    format!(", {} were finished before", worked.finished)
                } else {
                    String::new()
                };
                terminal::say(&format!("{}: done, {} trained{before}", words(number), worked.trained));
            }
            // With --unit the failure is what the command ends with.
            Told::Failed { number, attempt, error } if self.claim => {
                terminal::warn(&format!("{}, attempt {attempt}: {error}", words(number)));
            }
            _ => {}
        };
        match self.unit {
            Some(number) => loop {
                match crew.one(number, &told) {
                    Err(error @ Error::Waits { .. }) if self.wait => {
                        let standing = crew.standing()?;
                        if standing.states.get(number) == Some(&State::Blocked) {
                            let why = given_up(&self.plan, &standing);
                            bail!("{error}{}", why.map_or_else(String::new, |why| format!("; {why}")));
                        }
                        std::thread::sleep(LOOK);
                    }
                    Err(error @ Error::Waits { .. }) => bail!("{error}; run them first, or wait with --wait"),
                    ended => {
                        ended?;
                        return Ok(ExitCode::SUCCESS);
                    }
                }
            },
            None => {
                let standing = crew.all(&told)?;
                given_up(&self.plan, &standing).map_or(Ok(ExitCode::SUCCESS), Err)
            }
        }
    }
}

/// The units that were given up, by name and with the reason.
pub(super) fn given_up(plan: &PlanArgs, standing: &Standing) -> Option<anyhow::Error> {
    standing.given_up().next()?;
    Some(match launch::status(plan) {
        Ok(status) => {
            let named = status.failed.iter().filter(|failed| failed.given_up);
            let named: Vec<String> = named
                .map(|failed| format!("{} failed {} times: {}", failed.words, failed.failures, failed.reason))
                .collect();
            anyhow!(
                "{} of {} units were given up, the others are done: {}",
                named.len(),
                status.units,
                named.join("; ")
            )
        }
        Err(error) => error,
    })
}
