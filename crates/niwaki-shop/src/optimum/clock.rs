//! When to stop.

use std::time::{Duration, Instant};

/// A running time limit.
pub(super) struct Clock {
    end: Option<Instant>,
}

impl Clock {
    /// Starts now; a limit beyond what the clock can count never ends.
    pub(super) fn start(limit: Duration) -> Self {
        Self { end: Instant::now().checked_add(limit) }
    }

    /// Whether the time is up.
    pub(super) fn is_over(&self) -> bool {
        self.end.is_some_and(|end| Instant::now() >= end)
    }
}
