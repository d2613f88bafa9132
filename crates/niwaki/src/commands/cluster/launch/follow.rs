//! A plan followed while others work on it: a table of runs in a terminal, a line now and then elsewhere.

use super::PlanArgs;
use crate::places;
use crate::terminal::{self, Bar, span};
use crate::watch::Watch;
use niwaki_store::Leases;
use niwaki_study::machines::{Split, Status};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often the leases are looked at, and how often a line is written where there is no terminal.
const EVERY: Duration = Duration::from_secs(2);
const LINE: Duration = Duration::from_secs(60);

/// A plan that is followed until this is dropped.
pub(super) struct Follow<'a> {
    split: &'a Split,
    attempts: u32,
    bar: Arc<Bar>,
    looked: Option<Instant>,
    /// Units that were done when a line was written, and when that was.
    told: (usize, Instant),
    watch: Option<Watch>,
}

impl<'a> Follow<'a> {
    pub(super) fn new(plan: &PlanArgs, split: &'a Split) -> Self {
        let bar = Arc::new(Bar::default());
        let all = split.units.iter().map(|unit| unit.run_iterations).sum();
        bar.begin(terminal::run_progress(all, format!("plan {}", split.id)));
        let above = bar.clone();
        // The runs of a bucket train elsewhere.
        let folder =
            (!places::is_bucket(&plan.out)).then(|| Path::new(plan.out.trim_start_matches("file://")));
        let watch = folder.map(|folder| Watch::begin(folder.to_owned(), move |table| above.above(table)));
        Self { split, attempts: plan.attempts, bar, looked: None, told: (0, Instant::now()), watch }
    }

    /// Looks at the leases, where they were not a moment ago. A store that refuses now may answer the next time.
    pub(super) fn look(&mut self, leases: &Leases) {
        if self.looked.is_some_and(|at| at.elapsed() < EVERY) {
            return;
        }
        if let Ok(status) = Status::of(self.split, leases, self.attempts) {
            self.bar.at(status.run_iterations_done);
            if !terminal::shows_progress() && (status.done > self.told.0 || self.told.1.elapsed() >= LINE) {
                self.told = (status.done, Instant::now());
                let left = status.seconds_left.filter(|_| status.done < status.units);
                let left = left.map_or(String::new(), |seconds| format!(", about {} left", span(seconds)));
                let failed = match status.failed.len() {
                    0 => String::new(),
                    count => format!(", {count} failed"),
                };
                terminal::remark(&format!(
                    "{} of {} units done, {} running{failed}{left}",
                    status.done,
                    status.units,
                    status.running.len()
                ));
            }
        }
        self.looked = Some(Instant::now());
    }
}

impl Drop for Follow<'_> {
    fn drop(&mut self) {
        self.watch.take();
        self.bar.end();
    }
}
