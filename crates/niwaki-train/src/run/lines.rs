//! A file of JSON lines, each vouched for, that grows with the run and can be cut back to a checkpoint.

use super::check;
use super::folder::{CURVE, Folder, Identity, damaged, disk};
use crate::{Error, Record};
use niwaki_files::{Digest, read_own};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::OpenOptions;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

/// A file that only grows at its end. It is opened for each write: a study has thousands.
#[derive(Debug)]
pub(super) struct Tail {
    path: PathBuf,
    /// How long the file is, as far as we have written it.
    length: u64,
    /// What is not yet handed to the system.
    pending: Vec<u8>,
}

impl Tail {
    /// Makes the file where it is missing, and cuts it off where what is ours ends.
    pub(super) fn open(path: &Path, length: u64) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(path)?;
        if file.metadata()?.len() != length {
            file.set_len(length)?;
        }
        Ok(Self { path: path.to_owned(), length, pending: Vec::new() })
    }

    /// What the next flush hands to the system.
    pub(super) fn pending(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Hands what is pending to the system, so that readers see it; `sync` also waits until it is on the disk.
    ///
    /// # Errors
    /// Of the kind [`io::ErrorKind::NotFound`] where the file was removed or its length changed.
    pub(super) fn flush(&mut self, sync: bool) -> io::Result<()> {
        if self.pending.is_empty() && !sync {
            return Ok(());
        }
        let mut file = OpenOptions::new().write(true).open(&self.path)?;
        if file.metadata()?.len() != self.length {
            let reason = "another process changed its length while the run wrote it";
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        file.seek(SeekFrom::Start(self.length))?;
        file.write_all(&self.pending)?;
        self.length += self.pending.len() as u64;
        self.pending.clear();
        if sync { file.sync_data() } else { Ok(()) }
    }
}

/// A file of lines, open at its end.
#[derive(Debug)]
pub(super) struct Lines {
    tail: Tail,
    chain: Digest,
}

impl Lines {
    /// Opens a file of the folder, reads its first `count` lines and cuts off what follows. `per` says how many lines there
    /// are after an iteration.
    ///
    /// # Errors
    /// Where there are fewer lines, one is not as it was written, or the disk refuses. Nothing is cut then.
    pub(super) fn open<T: DeserializeOwned>(
        folder: &Folder,
        name: &str,
        count: usize,
        per: &dyn Fn(usize) -> usize,
    ) -> Result<(Self, Vec<T>), Error> {
        let path = folder.file(name);
        let text = match read_own(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(source) => return Err(disk(&path, source)),
        };
        let mut chain = Chain::new(folder.identity(), name, per);
        let (kept, end) = read(&path, &text, count, &mut chain)?;
        let tail = Tail::open(&path, end as u64).map_err(|source| disk(&path, source))?;
        Ok((Self { tail, chain: chain.now }, kept))
    }

    /// Adds a line.
    ///
    /// # Errors
    /// If a value cannot be written as JSON.
    pub(super) fn push(&mut self, value: &impl Serialize) -> Result<(), Error> {
        check::push_line(self.tail.pending(), value, &mut self.chain)
    }

    /// As [`Tail::flush`].
    pub(super) fn flush(&mut self, sync: bool) -> Result<(), Error> {
        self.tail.flush(sync).map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                damaged(&self.tail.path, format!("it was taken away while the run wrote it ({source})"))
            } else {
                disk(&self.tail.path, source)
            }
        })
    }

    /// Writes lines that are still known again, one per iteration, where the file was removed.
    pub(super) fn rewrite(
        &mut self,
        folder: &Folder,
        name: &str,
        values: &[impl Serialize],
    ) -> Result<(), Error> {
        let path = folder.file(name);
        let mut chain = Chain::new(folder.identity(), name, &|done| done);
        self.tail = Tail::open(&path, 0).map_err(|source| disk(&path, source))?;
        for (place, value) in values.iter().enumerate() {
            chain.pass(place);
            check::push_line(self.tail.pending(), value, &mut chain.now)?;
        }
        chain.pass(values.len());
        self.chain = chain.now;
        Ok(())
    }

    /// Whether the file is still there.
    pub(super) fn is_there(&self) -> bool {
        self.tail.path.exists()
    }

    /// The check of the last line.
    pub(super) fn last_check(&self) -> String {
        self.chain.to_string()
    }
}

/// The checks of a file's lines, which turn where the run did.
pub(super) struct Chain {
    now: Digest,
    /// After so many lines, the spec that the run went on with.
    turns: Vec<(usize, String)>,
}

impl Chain {
    /// The checks of a file that has `per` lines after an iteration.
    pub(super) fn new(identity: &Identity, name: &str, per: &dyn Fn(usize) -> usize) -> Self {
        let turns = identity.turns.iter().filter_map(|turn| Some((per(turn.after), turn.to.clone()?)));
        Self { now: identity.chain(name), turns: turns.collect() }
    }

    /// Turns where a number of lines says so.
    fn pass(&mut self, lines: usize) {
        for (_, spec) in self.turns.iter().filter(|(place, _)| *place == lines) {
            self.now = self.now.and(format!("turn {spec}\n"));
        }
    }
}

/// The first `count` lines of a text, and where they end.
fn read<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    count: usize,
    chain: &mut Chain,
) -> Result<(Vec<T>, usize), Error> {
    let (mut kept, mut end) = (Vec::new(), 0);
    chain.pass(0);
    for line in bytes.split_inclusive(|&byte| byte == b'\n').take(count) {
        let text = line.strip_suffix(b"\n").and_then(|line| std::str::from_utf8(line).ok());
        let read = text.and_then(|text| check::read_line(text, &mut chain.now));
        let place = kept.len() + 1;
        kept.push(read.ok_or_else(|| {
            damaged(path, format!("line {place} is not the one that this run wrote after line {}", place - 1))
        })?);
        end += line.len();
        chain.pass(place);
    }
    if kept.len() < count {
        let found = kept.len();
        return Err(damaged(path, format!("it ends after line {found}, but the run came to line {count}")));
    }
    Ok((kept, end))
}

/// All lines of a finished file, and the check of the last one.
pub(super) fn read_whole<T: DeserializeOwned>(
    path: &Path,
    count: usize,
    mut chain: Chain,
) -> Result<(Vec<T>, String), Error> {
    let bytes = read_own(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => damaged(path, "it is missing".to_owned()),
        _ => disk(path, source),
    })?;
    let (kept, end) = read(path, &bytes, count, &mut chain)?;
    if end < bytes.len() {
        return Err(damaged(path, format!("it goes on after line {count}, where the run ended")));
    }
    Ok((kept, chain.now.to_string()))
}

/// Iterations are numbered like the lines they stand on.
pub(super) fn check_numbers(path: &Path, curve: &[Record]) -> Result<(), Error> {
    match curve.iter().enumerate().find(|(place, record)| record.iteration != place + 1) {
        None => Ok(()),
        Some((place, record)) => {
            Err(damaged(path, format!("line {} is of iteration {}", place + 1, record.iteration)))
        }
    }
}

/// The curve of a folder that a run writes or has written, as far as it goes.
///
/// # Errors
/// Where a line is not as it was written, or the disk refuses.
pub fn read_curve(folder: &Path, identity: &Identity) -> Result<Vec<Record>, Error> {
    let path = folder.join(CURVE);
    let bytes = read_own(&path).map_err(|source| disk(&path, source))?;
    read_ended(&path, &bytes, Chain::new(identity, CURVE, &|done| done))
}

/// All lines of a text that have their end; one without is still being written.
pub(super) fn read_ended<T: DeserializeOwned>(
    path: &Path,
    bytes: &[u8],
    mut chain: Chain,
) -> Result<Vec<T>, Error> {
    let count = bytes.iter().filter(|&&byte| byte == b'\n').count();
    Ok(read(path, bytes, count, &mut chain)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Spec;
    use crate::run::Occupied;
    use std::fs;

    #[derive(Debug, PartialEq, serde::Serialize, serde::Deserialize)]
    struct Number {
        value: u32,
    }

    fn folder(path: &Path) -> Folder {
        Folder::open(path, &Spec::default(), Occupied::Refuse).unwrap()
    }

    #[test]
    fn lines_are_cut_back_and_go_on() {
        let home = tempfile::tempdir().unwrap();
        let folder = folder(home.path());
        let text = || fs::read_to_string(folder.file("lines")).unwrap();
        let (mut lines, none) = Lines::open::<Number>(&folder, "lines", 0, &|done| done).unwrap();
        assert!(none.is_empty());
        for value in [1, 22, 333] {
            lines.push(&Number { value }).unwrap();
        }
        lines.flush(true).unwrap();
        let three = text();
        assert_eq!(three.lines().count(), 3);
        let (mut lines, kept) = Lines::open::<Number>(&folder, "lines", 2, &|done| done).unwrap();
        assert_eq!(kept, [Number { value: 1 }, Number { value: 22 }]);
        assert_eq!(text().lines().count(), 2);
        lines.push(&Number { value: 333 }).unwrap();
        lines.flush(false).unwrap();
        assert_eq!(text(), three, "the chain goes on where it was cut");
    }

    #[test]
    fn a_short_or_damaged_file_is_refused_and_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let folder = folder(home.path());
        let (mut lines, _) = Lines::open::<Number>(&folder, "lines", 0, &|done| done).unwrap();
        for value in [1, 2, 3] {
            lines.push(&Number { value }).unwrap();
        }
        lines.flush(false).unwrap();
        let path = folder.file("lines");
        let good = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = good.lines().collect();
        for (content, said) in [
            (format!("{}\n{}\n", lines[0], lines[1]), "ends after line 2, but the run came to line 3"),
            (good.trim_end().to_owned(), "line 3 is not the one that this run wrote after line 2"),
            (good.replace("\"value\":2", "\"value\":7"), "line 2 is not the one"),
            (format!("{}\n{}\n{}\n", lines[0], lines[2], lines[1]), "line 2 is not the one"),
        ] {
            fs::write(&path, &content).unwrap();
            let refusal = Lines::open::<Number>(&folder, "lines", 3, &|done| done).unwrap_err().to_string();
            assert!(refusal.contains(said), "{refusal}");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
    }

    #[test]
    fn a_file_that_is_taken_away_is_noticed() {
        let home = tempfile::tempdir().unwrap();
        let folder = folder(home.path());
        let (mut lines, _) = Lines::open::<Number>(&folder, "lines", 0, &|done| done).unwrap();
        fs::remove_file(folder.file("lines")).unwrap();
        lines.push(&Number { value: 1 }).unwrap();
        assert!(lines.flush(false).unwrap_err().to_string().contains("taken away"));
        fs::write(folder.file("lines"), "another's").unwrap();
        assert!(lines.flush(false).unwrap_err().to_string().contains("changed its length"));
    }
}
