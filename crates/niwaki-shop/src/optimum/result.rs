//! What a solver is given and what it returns.

use crate::Schedule;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What is known of an optimal makespan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// No schedule is shorter.
    pub lower: u32,
    /// A schedule this short is known.
    pub upper: u32,
}

impl Bounds {
    /// Whether the optimum is known.
    #[must_use]
    pub const fn proven(self) -> bool {
        self.lower == self.upper
    }

    /// How far the known schedule may be above the optimum, as a share of the lower bound.
    #[must_use]
    pub fn gap(self) -> f64 {
        if self.proven() { 0.0 } else { f64::from(self.upper - self.lower) / f64::from(self.lower.max(1)) }
    }
}

/// When a solver must stop.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Wall-clock time.
    pub time: Duration,
    /// Seed of whatever the solver draws.
    pub seed: u64,
    /// Rounds after which the search of a shop ends, whatever the clock says. What it finds is then the same on any machine, and
    /// with any number of threads.
    pub rounds: Option<u32>,
    /// Threads to search on.
    pub threads: usize,
    /// Raised to ask for what has been found so far.
    stop: [Option<&'static AtomicBool>; 2],
}

impl Limits {
    /// A time and a seed; nobody stops the search early, and it has one thread.
    #[must_use]
    pub const fn new(time: Duration, seed: u64) -> Self {
        Self { time, seed, rounds: None, threads: 1, stop: [None; 2] }
    }

    /// The same, with a flag that ends the search as if its time were up; the last two that are named count.
    #[must_use]
    pub const fn stopped_by(self, stop: &'static AtomicBool) -> Self {
        Self { stop: [self.stop[1], Some(stop)], ..self }
    }

    /// The same, on so many threads.
    #[must_use]
    pub const fn on(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// The same, for so many rounds of the search of a shop.
    #[must_use]
    pub const fn for_rounds(self, rounds: u32) -> Self {
        Self { rounds: Some(rounds), ..self }
    }

    /// The same, with another time.
    #[must_use]
    pub const fn within(self, time: Duration) -> Self {
        Self { time, ..self }
    }

    /// The same, with no time at all: what a solver knows at once.
    #[must_use]
    pub const fn at_once(self) -> Self {
        self.within(Duration::ZERO)
    }

    /// Whether what there is has been asked for.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.stop.into_iter().flatten().any(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Who is told each time a bound moves.
pub type Watch<'a> = &'a mut dyn FnMut(Bounds);

/// The best schedule found and what is known about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Optimum {
    /// No schedule is shorter.
    pub lower: u32,
    /// The makespan of [`Self::schedule`].
    pub upper: u32,
    /// Whether the two are equal: the schedule is optimal.
    pub proven: bool,
    /// The best schedule found.
    pub schedule: Schedule,
}

impl Optimum {
    /// The result for a schedule and a lower bound on every schedule's makespan.
    #[must_use]
    pub fn new(lower: u32, schedule: Schedule) -> Self {
        let upper = schedule.makespan();
        Self { lower, upper, proven: lower == upper, schedule }
    }

    /// The two bounds alone.
    #[must_use]
    pub const fn bounds(&self) -> Bounds {
        Bounds { lower: self.lower, upper: self.upper }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_gap_is_relative_to_the_lower_bound() {
        // (110 − 100) / 100.
        assert!((Bounds { lower: 100, upper: 110 }.gap() - 0.1).abs() < 1e-15);
        assert!(Bounds { lower: 0, upper: 0 }.gap() == 0.0);
        assert!(Bounds { lower: 7, upper: 7 }.proven());
    }
}
