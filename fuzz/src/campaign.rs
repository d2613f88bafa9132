//! Cases in order, what came of them, and the watch over those that do not end.

use crate::meter;
use crate::mutate::mutate;
use crate::readers::Reader;
use niwaki_stream::Key;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// A case may run for so long, on a machine that does other things as well.
const LONGEST: Duration = Duration::from_secs(120);

/// What came of a reader's cases.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    /// Cases run.
    pub inputs: u64,
    /// Those that gave a value.
    pub read: u64,
    /// Bytes that a case held at most.
    pub peak: usize,
    /// Seconds that a case took at most.
    pub slowest: f64,
    /// Cases that broke a promise, and which.
    pub failures: Vec<(u64, String)>,
}

impl Tally {
    /// Adds the cases of another.
    pub fn merge(&mut self, other: Self) {
        self.inputs += other.inputs;
        self.read += other.read;
        self.peak = self.peak.max(other.peak);
        self.slowest = self.slowest.max(other.slowest);
        self.failures.extend(other.failures);
    }
}

/// The input of a case: the seeds as they are first, then changed ones.
#[must_use]
pub fn input(reader: &Reader, case: u64) -> Vec<u8> {
    let seeds = &reader.seeds;
    if seeds.is_empty() {
        return Vec::new();
    }
    if let Some(seed) = usize::try_from(case).ok().and_then(|case| seeds.get(case)) {
        return seed.clone();
    }
    let mut noise = Key::new(reader.key(), "fuzz").iteration(case).open();
    let pick = |place: u64| &seeds[(place % seeds.len() as u64) as usize];
    let mut bytes = pick(noise.bits()).clone();
    let other = pick(noise.bits());
    mutate(&mut bytes, other, &mut noise);
    bytes
}

/// Runs cases of a reader, with files in `folder`, until they are done or the time is up.
#[must_use]
pub fn run(reader: &Reader, cases: Range<u64>, until: Option<Instant>, folder: &Path) -> Tally {
    let mut tally = Tally::default();
    // Number of the case in hand, plus one, and when it began.
    let (now, begun) = (AtomicU64::new(0), AtomicU64::new(0));
    let clock = Instant::now();
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| watch(reader.name, &now, &begun, clock));
        for case in cases {
            if until.is_some_and(|until| Instant::now() >= until) {
                break;
            }
            begun.store(clock.elapsed().as_millis() as u64, Ordering::Relaxed);
            now.store(case + 1, Ordering::Relaxed);
            one(reader, case, folder, &mut tally);
        }
        now.store(u64::MAX, Ordering::Relaxed);
        watch.thread().unpark();
    });
    tally
}

fn one(reader: &Reader, case: u64, folder: &Path, tally: &mut Tally) {
    let bytes = input(reader, case);
    meter::note(reader.name, case);
    let start = Instant::now();
    let (ended, peak) = meter::measure(|| catch_unwind(AssertUnwindSafe(|| (reader.read)(&bytes, folder))));
    tally.inputs += 1;
    tally.slowest = tally.slowest.max(start.elapsed().as_secs_f64());
    tally.peak = tally.peak.max(peak);
    match ended {
        Ok(read) => tally.read += u64::from(read),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no words");
            tally.failures.push((case, format!("panic: {text}")));
        }
    }
    let allowed = reader.floor + reader.factor * bytes.len();
    if peak > allowed {
        let what = format!("{peak} bytes held for an input of {}; {allowed} are allowed", bytes.len());
        tally.failures.push((case, what));
    }
}

/// Ends the whole campaign where a case does not end: nothing else can stop it.
#[expect(clippy::print_stderr, reason = "the process ends here")]
fn watch(name: &str, now: &AtomicU64, begun: &AtomicU64, clock: Instant) {
    loop {
        std::thread::park_timeout(Duration::from_secs(1));
        let case = now.load(Ordering::Relaxed);
        if case == u64::MAX {
            return;
        }
        let since = Duration::from_millis(begun.load(Ordering::Relaxed));
        if case > 0 && clock.elapsed().saturating_sub(since) > LONGEST {
            eprintln!("{name}, case {}: no end after {} s", case - 1, LONGEST.as_secs());
            std::process::abort();
        }
    }
}
