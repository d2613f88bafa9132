//! Where a command can be killed, and a command that is.

use super::Victim;
use anyhow::ensure;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// System calls that change a file or a folder, by the names that they have on one machine or another.
const WRITES: &str = "trace=?open,?openat,?creat,?write,?pwrite64,?writev,?truncate,?ftruncate,?fsync,?fdatasync,?rename,\
                      ?renameat,?renameat2,?unlink,?unlinkat,?mkdir,?mkdirat,?rmdir";
/// How a file is opened that may be written.
const OPENED_TO_WRITE: [&str; 3] = ["O_WRONLY", "O_RDWR", "O_CREAT"];
/// Moments of a run at which the clock kills.
const MOMENTS: u32 = 60;

/// One place.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Place {
    /// A thread's n-th call of a kind.
    Call(String, usize),
    /// So long after the start.
    After(Duration),
}

/// Where a command is killed.
pub(super) struct Places(Vec<Place>);

/// Waits for the end of a command that is killed, and says whether it was: one that ends by itself has a code.
pub(super) type Doom = Box<dyn FnMut() -> anyhow::Result<bool>>;

impl Places {
    /// The places of a command that takes so long, at most so many of each kind, spread evenly.
    pub(super) fn find(victim: &Victim<'_>, whole: Duration, most: usize) -> anyhow::Result<Self> {
        let traced = Command::new("strace").arg("-V").stdout(Stdio::null()).status();
        if !traced.is_ok_and(|status| status.success()) {
            let moments = MOMENTS.min(u32::try_from(most.saturating_mul(4)).unwrap_or(MOMENTS));
            return Ok(Self((0..moments).map(|moment| Place::After(whole * moment / moments)).collect()));
        }
        let log = victim.home.join("calls.log");
        let log_name = log.display().to_string();
        let words = ["-f", "-qq", "-o", &log_name, "-e", WRITES];
        let status = victim.start(&mut victim.behind("strace", &words))?.wait()?;
        ensure!(status.success(), "strace of {} ended with {status}", victim.words.join(" "));
        let mut places = Vec::new();
        for (call, counts) in writes(&fs::read_to_string(&log)?) {
            let step = counts.len().div_ceil(most).max(1);
            // The last one is often the one that says that all is done.
            let chosen = counts.iter().rev().step_by(step).rev();
            places.extend(chosen.map(|&count| Place::Call(call.clone(), count)));
        }
        fs::remove_file(&log)?;
        Ok(Self(places))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Place> {
        self.0.iter()
    }

    /// What decides when.
    pub(super) fn kind(&self) -> &'static str {
        match self.0.first() {
            Some(Place::After(_)) => "moments (no strace here)",
            _ => "system calls",
        }
    }

    /// Starts a command that is killed at a place.
    pub(super) fn kill(&self, victim: &Victim<'_>, place: &Place) -> anyhow::Result<Doom> {
        match place {
            Place::Call(call, count) => {
                let (trace, inject) =
                    (format!("trace={call}"), format!("inject={call}:signal=KILL:when={count}"));
                let words = ["-f", "-qq", "-o", "/dev/null", "-e", &trace, "-e", &inject];
                let mut child = victim.start(&mut victim.behind("strace", &words))?;
                Ok(Box::new(move || Ok(child.wait()?.code().is_none())))
            }
            Place::After(delay) => {
                let (mut child, end) = (victim.start(&mut victim.command())?, Instant::now() + *delay);
                Ok(Box::new(move || {
                    // A second one may have been started since.
                    std::thread::sleep(end.saturating_duration_since(Instant::now()));
                    child.kill()?;
                    Ok(child.wait()?.code().is_none())
                }))
            }
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(call, count) => write!(to, "a thread's {call} no. {count}"),
            Self::After(delay) => write!(to, "{} ms", delay.as_millis()),
        }
    }
}

/// The calls of a log that change files: kinds, each with its numbers in the threads that made them.
fn writes(log: &str) -> BTreeMap<String, BTreeSet<usize>> {
    let (mut counts, mut found) =
        (BTreeMap::<(&str, &str), usize>::new(), BTreeMap::<String, BTreeSet<usize>>::new());
    for line in log.lines() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let Some((call, words)) = rest.trim_start().split_once('(') else { continue };
        if !call.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()) {
            // The end of a call that was told before, or an exit.
            continue;
        }
        let count = counts.entry((thread, call)).or_default();
        *count += 1;
        let changes = match call {
            "open" | "openat" => OPENED_TO_WRITE.iter().any(|flag| words.contains(flag)),
            // What goes to the terminal changes nothing.
            "write" | "writev" => !words.starts_with("1,") && !words.starts_with("2,"),
            _ => true,
        };
        if changes {
            found.entry(call.to_owned()).or_default().insert(*count);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_calls_that_change_something_are_places() {
        let log = "7 openat(AT_FDCWD, \"/lib/x\", O_RDONLY|O_CLOEXEC) = 3\n\
                   7 openat(AT_FDCWD, \"out/a.part\", O_WRONLY|O_CREAT|O_TRUNC|O_CLOEXEC, 0666) = 4\n\
                   8 openat(AT_FDCWD, \"out/b\", O_RDWR|O_CLOEXEC <unfinished ...>\n\
                   8 <... openat resumed>) = 5\n\
                   7 write(1, \"hello\", 5) = 5\n\
                   7 write(4, \"x\", 1)   = 1\n\
                   7 fsync(4)            = 0\n\
                   7 rename(\"out/a.part\", \"out/a\") = 0\n\
                   7 +++ exited with 0 +++\n";
        let found = writes(log);
        // Thread 7's second openat and its second write; thread 8's first openat.
        assert_eq!(found["openat"], BTreeSet::from([1, 2]));
        assert_eq!(found["write"], BTreeSet::from([2]));
        assert_eq!(found.keys().collect::<Vec<_>>(), ["fsync", "openat", "rename", "write"]);
    }
}
