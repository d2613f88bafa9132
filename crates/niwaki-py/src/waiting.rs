//! Long calls: work in a thread of its own while the interpreter stays answerable.

use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, OnceLock, PoisonError};
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

/// The process that loaded this module, whose pool of threads works; a process that was forked from it has the pool and none of
/// its threads, and would wait for them for ever.
static HOME: OnceLock<u32> = OnceLock::new();

/// Pools of forked processes, which live as long as these.
static FORKED: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

/// Notes the process that loads this module.
pub(crate) fn at_home() {
    HOME.get_or_init(std::process::id);
}

/// Runs `work` where its parallel parts have threads to run on.
pub(crate) fn pooled<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    let here = std::process::id();
    if HOME.get().is_none_or(|home| *home == here) {
        return work();
    }
    let mut forked = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
    let pool = match *forked {
        Some((process, pool)) if process == here => Some(pool),
        _ => ThreadPoolBuilder::new().build().ok().map(|pool| &*Box::leak(Box::new(pool))),
    };
    *forked = pool.map(|pool| (here, pool));
    drop(forked);
    match pool {
        Some(pool) => pool.install(work),
        // No thread is to be had: neither for the work's own pool.
        None => work(),
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
        let found = pooled(|| work(flag.0));
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
