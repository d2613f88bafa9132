//! Files that change in one step, and what a kill leaves behind.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

/// How the names of files that are being written end.
pub const PART: &str = ".part";

/// Bytes of a name that leave room for what a temporary one has beside it: most disks take 255.
const LONGEST_NAME: usize = 200;

/// What of a file is on the disk when a write returns. A process that is killed loses nothing in any case; this is about power
/// cuts, and each step costs milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDisk {
    /// Nothing yet: a power cut may leave an empty file, so the caller must know what belongs there.
    Later,
    /// Its bytes: a power cut leaves the old file or the new one.
    Bytes,
    /// Its bytes and its name: the new file stands.
    Name,
}

/// Writes to a temporary file in the same folder, flushes it and its folder to the disk, and renames it into place.
///
/// A process that is killed leaves at most a file whose name ends in [`PART`]; [`sweep`] removes it. A link stands for the
/// file that it points to. A pipe or a device is written to: a rename would put a file in its place.
///
/// # Errors
/// If the disk refuses; the old file is then still there.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_whole(path, bytes, OnDisk::Name)
}

/// As [`write_atomically`], and waits for as much as is asked.
///
/// # Errors
/// As [`write_atomically`].
pub fn write_whole(path: &Path, bytes: &[u8], until: OnDisk) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
        return OpenOptions::new().write(true).open(path)?.write_all(bytes);
    }
    let linked = fs::canonicalize(path);
    let path = linked.as_deref().unwrap_or(path);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut name = path.file_name().unwrap_or_default().to_owned();
    // With what follows a long name would be one that the disk does not take, when all the work is done.
    if name.len() > LONGEST_NAME {
        name = "niwaki".into();
    }
    // Two threads may write the same file.
    name.push(format!(".{}.{:?}{PART}", std::process::id(), std::thread::current().id()));
    let part = folder.join(name);
    let written = File::create(&part).and_then(|mut file| {
        file.write_all(bytes)?;
        if until == OnDisk::Later { Ok(()) } else { file.sync_all() }
    });
    if let Err(error) = written.and_then(|()| fs::rename(&part, path)) {
        // The error that matters is the first one.
        let _ = fs::remove_file(&part);
        return Err(error);
    }
    if until == OnDisk::Name { sync_folder(folder) } else { Ok(()) }
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
                // Another process sweeps too.
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
    fn the_longest_name_of_a_disk_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("n".repeat(255));
        write_atomically(&path, b"new").unwrap();
        assert_eq!(
            (fs::read(&path).unwrap(), fs::read_dir(folder.path()).unwrap().count()),
            (b"new".to_vec(), 1)
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_pipe_a_pipe() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("far")).unwrap();
        fs::write(at("far/file"), "old").unwrap();
        symlink("far/file", at("link")).unwrap();
        write_atomically(&at("link"), b"new").unwrap();
        assert!(fs::symlink_metadata(at("link")).unwrap().is_symlink());
        assert_eq!(fs::read(at("far/file")).unwrap(), b"new");
        // One that points to nothing becomes the file.
        symlink("nowhere", at("dangling")).unwrap();
        write_atomically(&at("dangling"), b"new").unwrap();
        assert_eq!(fs::read(at("dangling")).unwrap(), b"new");
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status();
        if made.is_ok_and(|made| made.success()) {
            let reader = std::thread::spawn({
                let pipe = at("pipe");
                move || fs::read(pipe).unwrap()
            });
            write_atomically(&at("pipe"), b"through").unwrap();
            assert_eq!(reader.join().unwrap(), b"through");
            assert!(fs::metadata(at("pipe")).unwrap().file_type().is_fifo());
        }
    }

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
