//! A run among many: what tables and figures of several need of it, in little memory.

use niwaki_files::read_own;
use niwaki_train::reading::{Course, Endpoint, Judged, Run, Standing};
use niwaki_train::run::{EVENTS, event_times};
use niwaki_train::{Record, Spec};
use std::path::PathBuf;

/// Most points of a curve that are kept; the same ones for all runs of one spec.
const POINTS: usize = 100;

/// Every kind of judgement, in the order of [`Row`]'s values.
const KINDS: [Judged; 3] = [Judged::Likeliest, Judged::Eta, Judged::Batch];

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Iterations done.
    pub iteration: usize,
    /// What was measured.
    pub value: f64,
    /// Seconds since the run began; not a number where its events file does not say.
    pub seconds: f64,
}

/// A run among many.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its folder.
    pub folder: PathBuf,
    /// What it was asked to do.
    pub spec: Spec,
    /// The hash of that without its seed; empty where it cannot be taken.
    pub hash: String,
    /// How it stands.
    pub standing: Standing,
    /// Iterations done.
    pub done: usize,
    /// What it is judged by; nothing where it is not finished and only its batches are known: an evaluation would have followed.
    pub judged: Option<Judged>,
    /// Its curve as far as it came, thinned.
    pub curve: Vec<Point>,
    /// Seconds from its beginning to its last line.
    pub seconds: Option<f64>,
    /// Mean drift so far.
    pub drift: Option<f64>,
    values: [[Option<f64>; 2]; 3],
}

impl Row {
    /// What is kept of a run.
    #[must_use]
    pub fn of(run: Run) -> Self {
        let course = &run.course;
        let over = run.standing != Standing::Running;
        let kind = course.judged();
        // A run that diverged before it was evaluated once belongs to its group like any other; another trainer's may have its
        // batches alone.
        let is_final = run.standing == Standing::Finished || run.spec.own.is_some();
        let judged = (is_final || kind != Judged::Batch).then_some(kind);
        let value = |judged: Judged, endpoint: Endpoint| {
            let there = run.standing == Standing::Diverged || !course.measured(judged).is_empty();
            if over && there { endpoint.of(course) } else { None }
        };
        let values = KINDS.map(|judged| judged.endpoints().map(|endpoint| value(judged, endpoint)));
        let times = read_own(&run.folder.join(EVENTS)).map(|bytes| event_times(&bytes)).unwrap_or_default();
        let curve = judged.map_or_else(Vec::new, |kind| thinned(course, kind, &times));
        Self {
            hash: run.spec.hash().unwrap_or_default(),
            standing: run.standing,
            done: course.done(),
            judged,
            curve,
            seconds: times.get(course.done().wrapping_sub(1)).copied(),
            drift: Endpoint::MeanDrift.of(course),
            values,
            folder: run.folder,
            spec: run.spec,
        }
    }

    /// An endpoint of a run that is over.
    #[must_use]
    pub fn value(&self, judged: Judged, endpoint: Endpoint) -> Option<f64> {
        let kind = KINDS.iter().position(|kind| *kind == judged)?;
        let place = judged.endpoints().iter().position(|known| *known == endpoint)?;
        self.values[kind][place]
    }

    /// What it earned when it was measured last.
    #[must_use]
    pub fn score(&self) -> Option<f64> {
        self.curve.last().map(|point| point.value)
    }

    /// Whether it is over, so that it counts in comparisons.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.standing != Standing::Running
    }
}

/// The points of a curve that are kept: every nth of those that the whole run will have, the first and the last.
fn thinned(course: &Course, judged: Judged, times: &[f64]) -> Vec<Point> {
    let measured = |record: &Record| judged.of(record).map(|value| (record.iteration, value));
    let all: Vec<(usize, f64)> = course.curve.iter().filter_map(measured).collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return Vec::new() };
    let every = first.0.max(1);
    let step = (course.iterations / every).div_ceil(POINTS).max(1);
    let kept = |at: usize| at == first.0 || at == last.0 || (at / every).is_multiple_of(step);
    all.iter()
        .filter(|(iteration, _)| kept(*iteration))
        .map(|&(iteration, value)| Point {
            iteration,
            value,
            seconds: times.get(iteration - 1).copied().unwrap_or(f64::NAN),
        })
        .collect()
}
