//! Errors of the system at one call after another that writes, files that may not grow, signals, and two processes at
//! once; then the same command again.
//!
//! What is left after the second run is what an undisturbed run leaves, to the byte. Kills at every call are
//! `cargo xtask crash`.

use super::attempt::{Arena, Attempt, files};
use super::words::{STUDY, line};
use super::{Row, Scale};
use anyhow::{Context, ensure};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// System calls that change something.
const CALLS: &str =
    "write,pwrite64,rename,renameat,renameat2,fsync,fdatasync,ftruncate,unlink,unlinkat,mkdir,mkdirat,openat";

/// Files that tell how long something took.
const CLOCKS: &[&str] = &["speed.json", "index.html", "events.out.tfevents.0.niwaki"];

const TRAIN: &str = "train ROOT/examples/train/tabular-ppo.toml --out out --set iterations=6 --set task.horizon=3 \
    --set checkpoint.every=2 --set dump.every=2";

pub(super) fn attack(arena: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    let plays = [
        ("train", Play::new(arena, &line(TRAIN), ("own.toml", STUDY))?),
        ("reproduce", Play::new(arena, &Attempt::new("reproduce own.toml --out out"), ("own.toml", STUDY))?),
    ];
    let mut rows = Vec::new();
    let traced = Command::new("strace").arg("-V").output().is_ok_and(|output| output.status.success());
    for (door, play) in &plays {
        rows.push(sizes(arena, scale, door, play)?);
        rows.push(signals(arena, scale, door, play)?);
        rows.push(company(arena, scale, door, play)?);
        if traced {
            rows.push(errors(arena, scale, door, play)?);
        }
    }
    if !traced {
        rows.push(Row::new("errors at system calls: no strace on this machine"));
    }
    Ok(rows)
}

/// An error of the disk at one call after another.
fn errors(arena: &Arena, scale: Scale, door: &str, play: &Play) -> anyhow::Result<Row> {
    let mut row = Row::new(&format!("errors at a system call of {door}"));
    let calls = play.calls(arena)?;
    // The quick part takes every nth call; the whole takes all of them.
    let step = if scale == Scale::Quick { calls.div_ceil(8).max(1) } else { 1 };
    for error in ["ENOSPC", "EIO", "EROFS"] {
        for call in (1..=calls).step_by(step) {
            let trace = format!(
                "strace -f -qq -o /dev/null -e trace={CALLS} -e inject={CALLS}:error={error}:when={call}"
            );
            let broke = play.disturb(arena, &play.asked.clone().behind(&trace))?;
            row.add(broke.map(|broke| format!("{door}, {error}, call {call}: {broke}")));
        }
    }
    Ok(row)
}

/// Files that may not grow beyond a size: a write that is cut off, and then refused.
fn sizes(arena: &Arena, scale: Scale, door: &str, play: &Play) -> anyhow::Result<Row> {
    let mut row = Row::new(&format!("files of {door} that may not grow"));
    let sizes: &[u32] = if scale == Scale::Quick { &[0, 2] } else { &[0, 1, 2, 3, 4, 6, 8, 12, 16] };
    for size in sizes {
        let broke =
            play.disturb(arena, &play.asked.clone().after(&format!("trap '' XFSZ; ulimit -f {size}")))?;
        row.add(broke.map(|broke| format!("{door}, {size} kB: {broke}")));
    }
    Ok(row)
}

/// Signals after some milliseconds.
fn signals(arena: &Arena, scale: Scale, door: &str, play: &Play) -> anyhow::Result<Row> {
    let mut row = Row::new(&format!("signals to {door}"));
    let step = if scale == Scale::Quick { 20 } else { 2 };
    for signal in ["INT", "TERM", "HUP", "KILL"] {
        for wait in (2..100).step_by(step) {
            let later = format!("me=$$; (sleep 0.0{wait:02}; kill -{signal} $me) 2>/dev/null & disown");
            let folder = play.ground(arena)?;
            let first = arena.run(&play.asked.clone().after(&later), &folder)?;
            let panicked = first.code().is_some_and(|code| code == 101 || code == 70);
            let broke = if panicked { first.broke() } else { play.again(arena, &folder)? };
            row.add(broke.map(|broke| format!("{door}, {signal} after {wait} ms: {broke}")));
        }
    }
    Ok(row)
}

/// Two processes in one folder.
fn company(arena: &Arena, scale: Scale, door: &str, play: &Play) -> anyhow::Result<Row> {
    let mut row = Row::new(&format!("two processes of {door} in one folder"));
    for round in 0..if scale == Scale::Quick { 2 } else { 40 } {
        let folder = play.ground(arena)?;
        // The other one starts some milliseconds earlier, or later.
        let wait = 3 * (round % 10);
        let twin = format!("(sleep 0.0{wait:02}; exec \"$@\" >/dev/null 2>twin.txt) &");
        let first = arena.run(&play.asked.clone().after(&twin), &folder)?;
        // The twin may still be at work: the next run waits for it, or is refused while it is.
        std::thread::sleep(std::time::Duration::from_millis(300));
        let said = fs::read_to_string(folder.join("twin.txt")).unwrap_or_default();
        fs::remove_file(folder.join("twin.txt")).ok();
        let broke = first.broke().or_else(|| said.contains("defect").then_some(said));
        let broke = match broke {
            None => play.again(arena, &folder)?,
            some => some,
        };
        row.add(broke.map(|broke| format!("{door}, round {round}: {broke}")));
    }
    Ok(row)
}

/// A command, a file that it reads, and what it leaves undisturbed.
pub(super) struct Play {
    pub(super) asked: Attempt,
    given: (&'static str, &'static str),
    expected: BTreeMap<PathBuf, Vec<u8>>,
}

impl Play {
    pub(super) fn new(
        arena: &Arena,
        asked: &Attempt,
        given: (&'static str, &'static str),
    ) -> anyhow::Result<Self> {
        let mut play = Self { asked: asked.clone(), given, expected: BTreeMap::new() };
        let folder = play.ground(arena)?;
        let ended = arena.run(asked, &folder)?;
        ensure!(ended.code() == Some(0), "{}: {:?} {}", asked.shown(), ended.status, ended.said);
        play.expected = left(&folder)?;
        Ok(play)
    }

    /// An empty folder with the file that the command reads.
    pub(super) fn ground(&self, arena: &Arena) -> anyhow::Result<PathBuf> {
        let folder = arena.folder("ground")?;
        fs::write(folder.join(self.given.0), self.given.1)?;
        Ok(folder)
    }

    /// What an undisturbed run leaves, without what only tells the time.
    pub(super) const fn expected(&self) -> &BTreeMap<PathBuf, Vec<u8>> {
        &self.expected
    }

    /// Every file of an undisturbed run.
    pub(super) fn whole(&self, arena: &Arena) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
        let folder = self.ground(arena)?;
        arena.run(&self.asked, &folder)?;
        files(&folder)
    }

    /// Calls that the busiest thread makes: each thread's are counted on their own.
    fn calls(&self, arena: &Arena) -> anyhow::Result<usize> {
        let folder = self.ground(arena)?;
        let log = folder.with_extension("log");
        let trace = format!("strace -f -qq -o {} -e trace={CALLS}", log.display());
        arena.run(&self.asked.clone().behind(&trace), &folder)?;
        let text = fs::read_to_string(&log).context("no trace")?;
        let mut threads: BTreeMap<&str, usize> = BTreeMap::new();
        for line in text.lines().filter(|line| line.contains('(') && !line.contains("resumed")) {
            *threads.entry(line.split_whitespace().next().unwrap_or_default()).or_default() += 1;
        }
        let calls = threads.values().copied().max().unwrap_or(0);
        ensure!(calls > 5, "only {calls} calls that write were seen");
        Ok(calls)
    }

    /// Disturbs a run, which must end by itself, then runs it again. What it says may be disturbed as well.
    fn disturb(&self, arena: &Arena, disturbed: &Attempt) -> anyhow::Result<Option<String>> {
        let folder = self.ground(arena)?;
        let ended = arena.run(disturbed, &folder)?;
        if matches!(ended.code(), Some(2 | 74)) && ended.said.is_empty() {
            return self.again(arena, &folder);
        }
        match ended.broke() {
            None => self.again(arena, &folder),
            some => Ok(some),
        }
    }

    /// Runs the command undisturbed; what is then left that should not be, or is not.
    pub(super) fn again(&self, arena: &Arena, folder: &Path) -> anyhow::Result<Option<String>> {
        let second = arena.run(&self.asked, folder)?;
        if second.code() != Some(0) {
            return Ok(Some(format!("the second run: {:?} {}", second.status, second.said.trim_end())));
        }
        Ok(self.differs(&left(folder)?))
    }

    /// The first file that is not as an undisturbed run leaves it.
    pub(super) fn differs(&self, came: &BTreeMap<PathBuf, Vec<u8>>) -> Option<String> {
        let mut names = came.keys().chain(self.expected.keys());
        let other = names.find(|name| came.get(*name) != self.expected.get(*name));
        other.map(|name| format!("{} is another after the second run", name.display()))
    }
}

/// What a run has left, without what only tells the time.
pub(super) fn left(folder: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = files(folder)?;
    found.retain(|name, _| !CLOCKS.iter().any(|clock| name.ends_with(clock)));
    Ok(found)
}
