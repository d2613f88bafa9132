//! Files that change in one step, and what a kill leaves behind.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

/// How the names of files that are being written end.
pub const PART: &str = ".part";

/// Writes to a temporary file in the same folder, flushes it and its folder to the disk, and renames it into place.
///
/// A process that is killed leaves at most a file whose name ends in [`PART`]; [`sweep`] removes it.
///
/// # Errors
/// If the disk refuses; the old file is then still there.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // Two threads may write the same file.
    name.push(format!(".{}.{:?}{PART}", std::process::id(), std::thread::current().id()));
    let part = folder.join(name);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(&part, path)) {
        // The error that matters is the first one.
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    sync_folder(folder)
}

/// Waits until the names in a folder are on the disk.
///
/// # Errors
/// If the disk refuses.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Removes what killed processes left half written of some files in a folder. Only for one whom nobody else writes beside.
///
/// # Errors
/// If the disk refuses.
pub fn sweep(folder: &Path, names: &[&str]) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let half = name.to_str().and_then(|name| name.strip_suffix(PART));
        let ours = |whole: &&str| half.is_some_and(|half| half.strip_prefix(*whole).is_some_and(is_tag));
        if names.iter().any(ours) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Removes what processes that are dead left half written in a folder, whatever it was; others may write beside. Does
/// nothing where the system does not say which processes live.
///
/// # Errors
/// If the disk refuses.
pub fn sweep_dead(folder: &Path) -> io::Result<()> {
    let processes = Path::new("/proc");
    if !processes.join("self").exists() {
        return Ok(());
    }
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let half = name.to_str().and_then(|name| name.strip_suffix(PART));
        let writer =
            half.and_then(|half| half.rsplit_once(".ThreadId(")).and_then(|(rest, _)| rest.rsplit_once('.'));
        let Some((_, process)) =
            writer.filter(|(_, process)| process.bytes().all(|byte| byte.is_ascii_digit()))
        else {
            continue;
        };
        if !processes.join(process).exists() {
            match fs::remove_file(entry.path()) {
                // Somebody else sweeps too.
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Whether the middle of a temporary name is one of ours: a process and a thread.
fn is_tag(middle: &str) -> bool {
    let mut words = middle.splitn(3, '.');
    let number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    words.next() == Some("")
        && words.next().is_some_and(number)
        && words.next().is_none_or(|thread| thread.starts_with("ThreadId("))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_takes_our_halves_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        write_atomically(&at("a.json"), b"whole").unwrap();
        let halves = ["a.json.17.ThreadId(3).part", "a.json.17.part", "b.7.ThreadId(12).part"];
        let others =
            ["a.json", "a.json.part", "a.jsonl.17.part", "mine.part", "a.json.x.part", "notes.17.part"];
        for name in halves.iter().chain(&others) {
            fs::write(at(name), "").unwrap();
        }
        sweep(folder.path(), &["a.json", "b"]).unwrap();
        assert!(halves.iter().all(|name| !at(name).exists()));
        assert!(others.iter().all(|name| at(name).exists()));
        // No process has so high a number; this one lives.
        let dead = "speed.json.4194999999.ThreadId(1).part";
        let alive = format!("speed.json.{}.ThreadId(1).part", std::process::id());
        for name in [dead, &alive] {
            fs::write(at(name), "").unwrap();
        }
        sweep_dead(folder.path()).unwrap();
        assert_eq!((at(dead).exists(), at(&alive).exists()), (!Path::new("/proc/self").exists(), true));
        assert!(others.iter().all(|name| at(name).exists()));
    }
}
