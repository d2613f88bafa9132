//! A folder that was tampered with: files cut off, doubled, emptied, taken away, exchanged for another run's or
//! for what is not a file, before the command goes on or while it works; and a disk that is full.
//!
//! The command refuses by name, in one line, or ends with the bytes of an undisturbed run.

use super::attempt::{Arena, Attempt};
use super::faults::{Play, left};
use super::flips::{RUN, put, stopped};
use super::words::{STUDY, line};
use super::{Row, Scale};
use anyhow::Context;
use niwaki_stream::Key;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The one file that a finished run can do without: it takes the most room, and no result is read from it.
const SPARE: &str = "checkpoint.safetensors";

/// What a command writes without reading it.
const WRITTEN: [&str; 4] = ["index.html", "endpoints.csv", "speed.json", "spec.toml"];

/// Files of a run, taken away while it trains; the last is the folder itself.
const TAKEN: [&str; 7] = [
    "out/spec.toml",
    "out/curve.jsonl",
    "out/dump.jsonl",
    "out/checkpoint.safetensors",
    "out/events.out.tfevents.0.niwaki",
    "out/*",
    "out",
];

/// Runs the words that follow in a disk of so many kilobytes at `out`, and keeps what they left there.
const SMALL_DISK: &str = "mkdir -p out kept && mount -t tmpfs -o size=\"$1\"k none out || exit 99\n\
    shift\n\"$@\"\ncode=$?\ncp -a out/. kept/ && umount out && rmdir out && mv kept out || exit 98\nexit $code\n";

pub(super) fn attack(arena: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    let cuts = if scale == Scale::Quick { 2 } else { 30 };
    let study = Attempt::new("reproduce own.toml --out out");
    let other = Attempt::new("reproduce own.toml --out out --first-seed 7");
    let mut rows = Vec::new();
    for (what, asked, other, halfway) in [
        ("a finished run", line(RUN), line(RUN).word("--set").word("seed=7"), false),
        ("a half-way run", line(RUN), line(RUN).word("--set").word("seed=7"), true),
        ("a finished study", study, other, false),
    ] {
        rows.push(changed(arena, what, &asked, &other, halfway, cuts)?);
    }
    rows.push(taken(arena, scale)?);
    rows.push(small_disk(arena, scale)?);
    Ok(rows)
}

/// What is done to a file.
enum Change {
    /// Other bytes stand in it.
    Bytes(Vec<u8>),
    /// It is not there any more.
    Gone,
    /// A folder is in its place.
    Folder,
    /// A link to what has no end.
    Endless,
}

impl Change {
    /// Cut off at some places, emptied, doubled, its last line twice, another run's; and what is not a file, where the run
    /// reads it: what it only writes goes to a device as well.
    fn all(bytes: &[u8], other: Option<&Vec<u8>>, reads: bool, cuts: u64) -> Vec<(String, Self)> {
        let mut noise = Key::new(2026, "cuts").iteration(bytes.len() as u64).open();
        let mut all: Vec<(String, Self)> = (0..cuts)
            .map(|_| noise.below(bytes.len().max(1) as u64) as usize)
            .map(|cut| (format!("cut off at {cut}"), Self::Bytes(bytes[..cut].to_vec())))
            .collect();
        let last = bytes.split_inclusive(|&byte| byte == b'\n').next_back().unwrap_or_default();
        all.push(("emptied".to_owned(), Self::Bytes(Vec::new())));
        all.push(("doubled".to_owned(), Self::Bytes([bytes, bytes].concat())));
        all.push(("with its last line twice".to_owned(), Self::Bytes([bytes, last].concat())));
        all.push(("full of zeros".to_owned(), Self::Bytes(vec![0; bytes.len()])));
        all.extend(other.map(|other| ("another run's".to_owned(), Self::Bytes(other.clone()))));
        all.push(("taken away".to_owned(), Self::Gone));
        all.push(("made a folder".to_owned(), Self::Folder));
        if reads {
            all.push(("made a device".to_owned(), Self::Endless));
        }
        all
    }

    fn apply(&self, path: &Path) -> anyhow::Result<()> {
        fs::remove_file(path)?;
        match self {
            Self::Bytes(bytes) => fs::write(path, bytes)?,
            Self::Gone => {}
            Self::Folder => fs::create_dir(path)?,
            Self::Endless => symlink("/dev/zero", path)?,
        }
        Ok(())
    }

    /// Whether what was done still stands.
    fn stands(&self, path: &Path) -> bool {
        let kind = fs::symlink_metadata(path).map(|there| there.file_type());
        match self {
            Self::Bytes(bytes) => fs::read(path).is_ok_and(|now| now == *bytes),
            Self::Gone => kind.is_err(),
            Self::Folder => kind.is_ok_and(|kind| kind.is_dir()),
            Self::Endless => kind.is_ok_and(|kind| kind.is_symlink()),
        }
    }
}

/// Every file of a folder changed in every way, and then the same command.
fn changed(
    arena: &Arena,
    what: &str,
    asked: &Attempt,
    other: &Attempt,
    halfway: bool,
    cuts: u64,
) -> anyhow::Result<Row> {
    let mut row = Row::new(&format!("files of {what} cut, doubled, exchanged or taken away"));
    let others = Play::new(arena, other, ("own.toml", STUDY))?.whole(arena)?;
    // A study's runs lie under their seeds: any other run's file of that name will do.
    let of_other = |name: &Path| {
        let same = others.iter().find(|(other, _)| other.file_name() == name.file_name());
        others.get(name).or(same.map(|(_, bytes)| bytes))
    };
    let play = Play::new(arena, asked, ("own.toml", STUDY))?;
    let kept = if halfway { stopped(arena, &play)? } else { play.whole(arena)? };
    for (name, bytes) in &kept {
        if name == Path::new("own.toml") {
            continue;
        }
        for (how, change) in
            Change::all(bytes, of_other(name), WRITTEN.iter().all(|file| !name.ends_with(file)), cuts)
        {
            let folder = play.ground(arena)?;
            put(&folder, &kept)?;
            let path = folder.join(name);
            change.apply(&path)?;
            let ended = arena.run(&play.asked.clone().within(30), &folder)?;
            let mut broke = ended.broke();
            let refused = ended.code() == Some(2);
            if broke.is_none() && refused && !change.stands(&path) {
                broke = Some(format!("was refused and changed: {}", ended.said.trim_end()));
            }
            if broke.is_none() && !refused {
                broke = play.differs(&results(&play, &folder, name, &kept)?);
            }
            row.add(broke.map(|broke| format!("{what}, {} {how}: {broke}", name.display())));
        }
    }
    Ok(row)
}

/// What is left; a finished run's checkpoint that was taken away counts as it was.
fn results(
    play: &Play,
    folder: &Path,
    name: &Path,
    kept: &BTreeMap<PathBuf, Vec<u8>>,
) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let mut found = left(folder).with_context(|| format!("after {}", play.asked.shown()))?;
    if name.ends_with(SPARE) && !folder.join(name).exists() {
        found.insert(name.to_owned(), kept[name].clone());
    }
    Ok(found)
}

/// Files taken away while a run trains. It ends by itself; what the next one reports is the run, or a refusal.
fn taken(arena: &Arena, scale: Scale) -> anyhow::Result<Row> {
    let mut row = Row::new("files taken away while a run trains");
    let play = Play::new(arena, &line(RUN), ("own.toml", STUDY))?;
    let step = if scale == Scale::Quick { 40 } else { 4 };
    for name in TAKEN {
        for wait in (8..96).step_by(step) {
            let folder = play.ground(arena)?;
            let later = format!("(sleep 0.0{wait:02}; rm -rf {name}) >/dev/null 2>&1 & disown");
            let first = arena.run(&play.asked.clone().after(&later), &folder)?;
            std::thread::sleep(std::time::Duration::from_millis(100));
            let mut broke = first.broke();
            if broke.is_none() {
                let second = arena.run(&play.asked, &folder)?;
                broke = second.broke();
                if broke.is_none() && second.code() != Some(2) {
                    broke = play.differs(&results(
                        &play,
                        &folder,
                        Path::new("out").join(SPARE).as_path(),
                        play.expected(),
                    )?);
                }
            }
            row.add(broke.map(|broke| format!("{name} after {wait} ms: {broke}")));
        }
    }
    Ok(row)
}

/// A disk that fills up; then one with room.
fn small_disk(arena: &Arena, scale: Scale) -> anyhow::Result<Row> {
    let probe = "mount -t tmpfs none /mnt";
    let may = Command::new("unshare").args(["-m", "bash", "-c", probe]).output();
    if !may.is_ok_and(|output| output.status.success()) {
        return Ok(Row::new("a disk that fills up: no right to mount one on this machine"));
    }
    let mut row = Row::new("a disk that fills up");
    let step = if scale == Scale::Quick { 40 } else { 4 };
    for (door, asked) in [("train", line(RUN)), ("reproduce", Attempt::new("reproduce own.toml --out out"))] {
        let play = Play::new(arena, &asked, ("own.toml", STUDY))?;
        // A page of a disk is four kilobytes.
        for size in (4..=124).step_by(step) {
            let folder = play.ground(arena)?;
            fs::write(folder.join("disk.sh"), SMALL_DISK)?;
            let small = format!("unshare -m bash disk.sh {size}");
            let first = arena.run(&play.asked.clone().behind(&small), &folder)?;
            fs::remove_file(folder.join("disk.sh"))?;
            let broke = match first.broke() {
                None => play.again(arena, &folder)?,
                some => some,
            };
            row.add(broke.map(|broke| format!("{door} with {size} kB: {broke}")));
        }
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::super::attempt::files;
    use super::*;

    #[test]
    fn changes_are_made_and_seen() {
        let home = std::env::temp_dir().join(format!("niwaki-changes-{}", std::process::id()));
        fs::create_dir_all(&home).unwrap();
        let bytes = b"one\ntwo\n".to_vec();
        let all = Change::all(&bytes, Some(&b"other".to_vec()), true, 2);
        assert_eq!(all.len(), 10);
        for (how, change) in all {
            let path = home.join("file");
            fs::write(&path, &bytes).unwrap();
            assert!(!change.stands(&path) || how == "cut off at 8", "{how}");
            change.apply(&path).unwrap();
            assert!(change.stands(&path), "{how}");
            let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
        }
        assert!(files(&home).unwrap().is_empty());
        fs::remove_dir_all(&home).unwrap();
    }
}
