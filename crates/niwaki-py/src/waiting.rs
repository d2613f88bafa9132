//! Long calls: work in a thread of its own while the interpreter stays answerable.

use pyo3::prelude::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How often signals are looked for.
const BEAT: Duration = Duration::from_millis(50);

/// Flags that no call uses at the moment. Solvers take one that lives as long as the program, so flags are used again.
static IDLE: Mutex<Vec<&'static AtomicBool>> = Mutex::new(Vec::new());

/// A flag of one call, raised when its caller has gone away.
struct Flag(&'static AtomicBool);

impl Flag {
    fn take() -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        Self(idle.unwrap_or_else(|| Box::leak(Box::new(AtomicBool::new(false)))))
    }
}

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
        IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(self.0);
    }
}

/// Runs `work`, which may look at a flag that asks it to stop, without the interpreter's lock and looks for Ctrl-C meanwhile.
///
/// # Errors
/// What a signal's handler raises, `KeyboardInterrupt` as a rule; the work is asked to stop and its result is thrown away.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&'static AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let (give, mut take) = channel();
    let flag = Flag::take();
    let stop = flag.0;
    let thread = std::thread::spawn(move || {
        let found = work(flag.0);
        // Given back only now: an abandoned search reads its flag to the end.
        drop(flag);
        // A caller that has gone takes nothing.
        let _ = give.send(found);
    });
    loop {
        // A receiver is not `Sync`: it goes in and comes back.
        let (back, found) = py.detach(move || {
            let found = take.recv_timeout(BEAT);
            (take, found)
        });
        take = back;
        match found {
            Ok(found) => return Ok(found),
            Err(RecvTimeoutError::Timeout) => {
                if let Err(raised) = py.check_signals() {
                    stop.store(true, Ordering::Relaxed);
                    return Err(raised);
                }
            }
            // The work panicked: a broken law, handed on as one.
            Err(RecvTimeoutError::Disconnected) => match thread.join() {
                Err(panic) => std::panic::resume_unwind(panic),
                Ok(()) => unreachable!("a thread that ends well has sent its result"),
            },
        }
    }
}
