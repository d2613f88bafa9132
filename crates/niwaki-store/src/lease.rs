//! Attempts at pieces of work: begun, renewed, ended, overtaken.
//!
//! The attempts at piece `7` are the records `7.1`, `7.2`, …, each created by the process that then holds the lease and
//! renewed by it. How one ended is a record of its own, `7.1.done`, so that one listing tells the state of all pieces.

use crate::{Error, Store};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

/// Renewals within the time after which a lease counts as lost.
const RENEWALS: u32 = 4;
/// When it is renewed first; then after twice as long each time, up to that part.
const FIRST: Duration = Duration::from_secs(2);

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Ending {
    /// The work is done.
    Done,
    /// It failed, for the reason in its record.
    Failed,
    /// It was asked to stop; that is nobody's fault.
    Stopped,
}

impl Ending {
    const ALL: [(Self, &str); 3] =
        [(Self::Done, "done"), (Self::Failed, "failed"), (Self::Stopped, "stopped")];

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(ending, _)| *ending == self).map_or("", |(_, word)| word)
    }
}

/// What the holder of a lease says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// Who works: a machine and a process.
    pub holder: String,
    /// Seconds without a renewal after which the lease is lost.
    pub patience: u64,
    /// Steps of the work that are done.
    pub steps: u64,
}

/// What is said of an attempt that has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// Who worked.
    pub holder: String,
    /// How long.
    pub seconds: f64,
    /// Steps of the work that this attempt did.
    pub steps: u64,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reason: Option<String>,
}

/// Leases on numbered pieces of work.
#[derive(Clone)]
pub struct Leases {
    store: Arc<dyn Store>,
    under: String,
    holder: String,
    patience: Duration,
}

/// What one listing tells of all pieces: how many attempts were begun, and how those that ended did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    begun: BTreeMap<usize, u32>,
    ended: BTreeMap<usize, BTreeMap<u32, Ending>>,
}

impl Survey {
    /// The last attempt at a piece; 0 where there was none.
    #[must_use]
    pub fn last(&self, piece: usize) -> u32 {
        self.begun.get(&piece).copied().unwrap_or(0)
    }

    /// How an attempt ended; nothing where it has not, or nobody said so.
    #[must_use]
    pub fn ending(&self, piece: usize, attempt: u32) -> Option<Ending> {
        self.ended.get(&piece)?.get(&attempt).copied()
    }

    /// The attempt at which a piece was done.
    #[must_use]
    pub fn done(&self, piece: usize) -> Option<u32> {
        let ended = self.ended.get(&piece)?;
        ended.iter().find(|(_, ending)| **ending == Ending::Done).map(|(attempt, _)| *attempt)
    }

    /// Attempts at a piece that count against it: those that failed, and those that never ended and were followed by
    /// another. Being asked to stop counts for nothing.
    #[must_use]
    pub fn failures(&self, piece: usize) -> u32 {
        let lost = |attempt: u32| match self.ending(piece, attempt) {
            Some(ending) => ending == Ending::Failed,
            None => attempt < self.last(piece),
        };
        (1..=self.last(piece)).filter(|attempt| lost(*attempt)).count() as u32
    }
}

impl Leases {
    /// Leases under a prefix, for a process that calls itself so and renews its own within `patience`.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, under: &str, holder: String, patience: Duration) -> Self {
        Self { store, under: under.to_owned(), holder, patience: patience.max(Duration::from_secs(1)) }
    }

    fn at(&self, name: &str) -> String {
        format!("{}/{name}", self.under)
    }

    /// What one listing tells of all pieces.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn survey(&self) -> Result<Survey, Error> {
        let mut survey = Survey::default();
        for name in self.store.list(&self.under)? {
            let mut words = name.split('.');
            let numbers = (
                words.next().and_then(|word| word.parse().ok()),
                words.next().and_then(|word| word.parse().ok()),
            );
            let (Some(piece), Some(attempt)) = numbers else { continue };
            let begun = survey.begun.entry(piece).or_insert(attempt);
            *begun = attempt.max(*begun);
            if let Some(word) = words.next()
                && let Some((ending, _)) = Ending::ALL.iter().find(|(_, known)| *known == word)
            {
                survey.ended.entry(piece).or_default().insert(attempt, *ending);
            }
        }
        Ok(survey)
    }

    /// What the holder of an attempt said last; nothing where there was no such attempt.
    ///
    /// # Errors
    /// If the store refuses, or the record does not read.
    pub fn attempt(&self, piece: usize, attempt: u32) -> Result<Option<Attempt>, Error> {
        self.document(&format!("{piece}.{attempt}"))
    }

    /// What was said of an attempt that ended so.
    ///
    /// # Errors
    /// If the store refuses, or the record does not read.
    pub fn ended(&self, piece: usize, attempt: u32, ending: Ending) -> Result<Option<Ended>, Error> {
        self.document(&format!("{piece}.{attempt}.{}", ending.word()))
    }

    fn document<T: for<'a> Deserialize<'a>>(&self, name: &str) -> Result<Option<T>, Error> {
        let name = self.at(name);
        let Some(bytes) = self.store.read(&name)? else { return Ok(None) };
        let damaged = |error: serde_json::Error| Error::Damaged {
            place: self.store.name(),
            name: name.clone(),
            reason: error.to_string(),
        };
        serde_json::from_slice(&bytes).map(Some).map_err(damaged)
    }

    /// The store's own time.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn now(&self) -> Result<SystemTime, Error> {
        let clock = format!("{}-clock/{}", self.under, self.holder);
        self.store.write(&clock, b"{}\n")?;
        Ok(self.store.written(&clock)?.unwrap_or(SystemTime::UNIX_EPOCH))
    }

    /// For how long the holder of an attempt has been silent, where that is longer than it promised. A renewal in the
    /// future is one of a clock that was set back since, and says nothing about life.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn silent(&self, piece: usize, attempt: u32, now: SystemTime) -> Result<Option<Duration>, Error> {
        let name = format!("{piece}.{attempt}");
        let Some(written) = self.store.written(&self.at(&name))? else { return Ok(Some(Duration::ZERO)) };
        let silent = now.duration_since(written).unwrap_or_else(|error| error.duration());
        // A record that does not read is no promise.
        let promised = self
            .attempt(piece, attempt)
            .ok()
            .flatten()
            .map_or(self.patience, |attempt| Duration::from_secs(attempt.patience));
        Ok((silent > promised).then_some(silent))
    }

    /// Begins an attempt at a piece; nothing where another process has begun that very attempt.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn begin(&self, piece: usize, attempt: u32) -> Result<Option<Lease>, Error> {
        let said = Attempt { holder: self.holder.clone(), patience: self.patience.as_secs(), steps: 0 };
        let name = format!("{piece}.{attempt}");
        if !self.store.create(&self.at(&name), &json(&said))? {
            return Ok(None);
        }
        Ok(Some(Lease::hold(self.clone(), name, said, attempt)))
    }
}

/// A lease that this process renews until it is dropped.
pub struct Lease {
    leases: Leases,
    name: String,
    /// Which attempt at its piece it is.
    pub attempt: u32,
    began: std::time::Instant,
    steps: Arc<AtomicU64>,
    quit: Arc<(Mutex<bool>, Condvar)>,
    renewing: Option<JoinHandle<()>>,
}

impl Lease {
    fn hold(leases: Leases, name: String, said: Attempt, attempt: u32) -> Self {
        let (steps, quit) = (Arc::new(AtomicU64::new(0)), Arc::new((Mutex::new(false), Condvar::new())));
        let renewing = std::thread::spawn({
            let (leases, name, steps, quit) = (leases.clone(), name.clone(), steps.clone(), quit.clone());
            move || renew(&leases, &name, said, &steps, &quit)
        });
        let began = std::time::Instant::now();
        Self { leases, name, attempt, began, steps, quit, renewing: Some(renewing) }
    }

    /// Counts steps of the work, which the next renewal tells.
    pub fn step(&self, steps: u64) {
        self.steps.fetch_add(steps, Ordering::Relaxed);
    }

    /// Says how the attempt ended. That it has ended already is no error: the one who stopped it may have said so.
    ///
    /// # Errors
    /// If the store refuses.
    pub fn end(&self, ending: Ending, reason: Option<String>) -> Result<Ended, Error> {
        let ended = Ended {
            holder: self.leases.holder.clone(),
            seconds: self.began.elapsed().as_secs_f64(),
            steps: self.steps.load(Ordering::Relaxed),
            reason,
        };
        let name = format!("{}.{}", self.name, ending.word());
        self.leases.store.create(&self.leases.at(&name), &json(&ended))?;
        Ok(ended)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        *self.quit.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.quit.1.notify_all();
        if let Some(renewing) = self.renewing.take() {
            // It only sleeps and writes; if it broke, the lease runs out by itself.
            let _ = renewing.join();
        }
    }
}

/// Renews a lease until it is let go.
fn renew(leases: &Leases, name: &str, mut said: Attempt, steps: &AtomicU64, quit: &(Mutex<bool>, Condvar)) {
    let mut over = quit.0.lock().unwrap_or_else(PoisonError::into_inner);
    let rest = leases.patience / RENEWALS;
    // Sooner at first, so that those who look on see it move.
    let mut wait = rest.min(FIRST);
    loop {
        // It may be over before this thread has begun.
        let waited = quit.1.wait_timeout_while(over, wait, |over| !*over);
        wait = rest.min(2 * wait);
        over = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *over {
            return;
        }
        said.steps = steps.load(Ordering::Relaxed);
        // A store that refuses now may take the next renewal; where it never does, others overtake.
        let _ = leases.store.write(&leases.at(name), &json(&said));
    }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    // Structs of words and numbers are always written.
    let mut bytes = serde_json::to_vec(value).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FolderStore;
    use std::fs::File;
    use std::path::Path;

    fn leases(folder: &Path, holder: &str) -> Leases {
        let store = Arc::new(FolderStore::open(folder).unwrap());
        Leases::new(store, "plan/units", holder.to_owned(), Duration::from_secs(1))
    }

    /// Sets the clock of the store by setting when a record was written.
    fn shift(folder: &Path, record: &str, hours: f64) {
        let file = File::options()
            .write(true)
            .open(folder.join("plan/units").join(record).join("record.json"))
            .unwrap();
        let (now, by) = (SystemTime::now(), Duration::from_secs_f64(3600.0 * hours.abs()));
        file.set_modified(if hours < 0.0 { now - by } else { now + by }).unwrap();
    }

    #[test]
    fn of_many_processes_one_begins_an_attempt() {
        let folder = tempfile::tempdir().unwrap();
        let begun = |thread: usize| {
            let leases = leases(folder.path(), &format!("holder-{thread}"));
            (0..50).filter(|piece| leases.begin(*piece, 1).unwrap().is_some()).count()
        };
        let total: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|thread| scope.spawn(move || begun(thread))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(total, 50);
        let survey = leases(folder.path(), "reader").survey().unwrap();
        assert!((0..50).all(|piece| survey.last(piece) == 1 && survey.done(piece).is_none()));
        // Nothing is left of the attempts that did not come first.
        assert_eq!(std::fs::read_dir(folder.path().join("plan/units/.making")).unwrap().count(), 0);
    }

    #[test]
    fn endings_are_told_and_only_faults_are_counted() {
        let folder = tempfile::tempdir().unwrap();
        let leases = leases(folder.path(), "one");
        for (attempt, ending) in
            [(1, Some(Ending::Failed)), (2, Some(Ending::Stopped)), (3, None), (4, Some(Ending::Done))]
        {
            let lease = leases.begin(7, attempt).unwrap().unwrap();
            lease.step(5);
            if let Some(ending) = ending {
                lease.end(ending, Some("why".to_owned())).unwrap();
            }
        }
        let survey = leases.survey().unwrap();
        assert_eq!((survey.last(7), survey.done(7), survey.last(8)), (4, Some(4), 0));
        // The first failed, the second was asked to stop, the third was overtaken.
        assert_eq!(survey.failures(7), 2);
        let failed = leases.ended(7, 1, Ending::Failed).unwrap().unwrap();
        assert_eq!((failed.reason.as_deref(), failed.steps, failed.holder.as_str()), (Some("why"), 5, "one"));
        assert!(leases.ended(7, 3, Ending::Done).unwrap().is_none());
    }

    #[test]
    fn a_holder_that_is_silent_for_longer_than_it_promised_can_be_overtaken() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (leases(folder.path(), "one"), leases(folder.path(), "other"));
        let held = one.begin(0, 1).unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(1600));
        // It is renewed four times within its patience of a second.
        assert_eq!(other.silent(0, 1, other.now().unwrap()).unwrap(), None);
        drop(held);
        std::thread::sleep(Duration::from_millis(1300));
        assert!(other.silent(0, 1, other.now().unwrap()).unwrap().is_some());
    }

    #[test]
    fn a_lease_that_is_let_go_at_once_keeps_nobody_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(FolderStore::open(folder.path()).unwrap());
        let leases = Leases::new(store, "plan/units", "one".to_owned(), Duration::from_secs(400));
        let began = std::time::Instant::now();
        for piece in 0..200 {
            drop(leases.begin(piece, 1).unwrap().unwrap());
        }
        // One that waited for its renewal would take 100 s.
        assert!(began.elapsed() < Duration::from_secs(60), "{:?}", began.elapsed());
    }

    #[test]
    fn a_clock_that_is_an_hour_off_keeps_nobody_from_overtaking() {
        let folder = tempfile::tempdir().unwrap();
        let leases = leases(folder.path(), "one");
        drop(leases.begin(0, 1).unwrap());
        let now = leases.now().unwrap();
        assert_eq!(leases.silent(0, 1, now).unwrap(), None);
        // The store's clock was set back by an hour after the record was written, or forward.
        for hours in [1.0, -1.0] {
            shift(folder.path(), "0.1", hours);
            let silent = leases.silent(0, 1, now).unwrap().unwrap();
            assert!((3590..3610).contains(&silent.as_secs()), "{silent:?}");
        }
    }
}
