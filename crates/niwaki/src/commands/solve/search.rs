//! Searches beside a progress bar, which the first Ctrl-C ends.

use crate::terminal;
use anyhow::Context;
use indicatif::ProgressBar;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Exit code of a search that was interrupted: 128 and the signal's number.
pub(super) const INTERRUPTED: u8 = 130;

/// Raised by Ctrl-C: the search ends and what it has found is printed and written.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// Raised once there is a schedule to print and write.
static FOUND: AtomicBool = AtomicBool::new(false);

/// Notes that there is a schedule.
pub(super) fn found() {
    FOUND.store(true, Ordering::Relaxed);
}

/// Lets the first Ctrl-C end the search, and the second one the program; the first one where there is no schedule yet, as while a
/// large file is read.
pub(super) fn watch_for_interrupts() -> anyhow::Result<()> {
    let stop = || {
        let again = STOP.swap(true, Ordering::Relaxed);
        if !FOUND.load(Ordering::Relaxed) {
            terminal::warn("stopped before there was a schedule");
        } else if !again {
            return;
        }
        std::process::exit(INTERRUPTED.into());
    };
    ctrlc::set_handler(stop).context("cannot watch for Ctrl-C")
}

/// Searches beside a bar that follows the clock; what was found so far is its message.
pub(super) fn beside_a_bar<T>(limit: Option<Duration>, search: impl FnOnce(&ProgressBar) -> T) -> T {
    let bar = terminal::search_progress(limit);
    let began = Instant::now();
    let (stop, stopped) = mpsc::channel::<()>();
    let found = std::thread::scope(|scope| {
        let ticking = bar.clone();
        scope.spawn(move || {
            while stopped
                .recv_timeout(Duration::from_millis(250))
                .is_err_and(|why| why == mpsc::RecvTimeoutError::Timeout)
            {
                let seconds = began.elapsed().as_secs();
                ticking.set_position(limit.map_or(seconds, |limit| seconds.min(limit.as_secs())));
            }
        });
        let found = search(&bar);
        drop(stop);
        found
    });
    bar.finish_and_clear();
    found
}
