//! When to stop.

use super::result::Limits;
use std::time::Instant;

/// A running time limit.
pub(super) struct Clock {
    limits: Limits,
    end: Option<Instant>,
}

impl Clock {
    /// Starts now; a limit beyond what the clock can count never ends.
    pub(super) fn start(limits: Limits) -> Self {
        Self { limits, end: Instant::now().checked_add(limits.time) }
    }

    /// Whether the time is up, or what there is has been asked for.
    pub(super) fn is_over(&self) -> bool {
        self.limits.is_stopped() || self.end.is_some_and(|end| Instant::now() >= end)
    }
}
