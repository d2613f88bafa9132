//! A run's folder as one archive, which people's tools open: a zip file with nothing of the clock in it.

use niwaki_files::read_own;
use niwaki_train::run::{CHECKPOINT, CURVE, DUMP, EVENTS, OPTIMA, POLICIES, SPEC, SUMMARY, TURNS};
use std::fs;
use std::io::{self, Cursor, Read, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{ZipArchive, ZipWriter};

/// The files of a run, the only ones that are packed or unpacked. The summary comes last, as in a folder.
const FILES: [&str; 9] = [SPEC, OPTIMA, CURVE, DUMP, POLICIES, EVENTS, CHECKPOINT, TURNS, SUMMARY];

/// The archive of a folder.
pub(super) fn pack(folder: &Path) -> io::Result<Vec<u8>> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    for name in FILES {
        match read_own(&folder.join(name)) {
            Ok(bytes) => {
                archive.start_file(name, SimpleFileOptions::default().large_file(false))?;
                archive.write_all(&bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(archive.finish()?.into_inner())
}

/// The files of an archive.
pub(super) fn files(bytes: &[u8]) -> Result<Vec<(String, Vec<u8>)>, String> {
    let read = || -> Result<Vec<(String, Vec<u8>)>, zip::result::ZipError> {
        let mut archive = ZipArchive::new(Cursor::new(bytes))?;
        let mut files = Vec::new();
        for name in FILES {
            if archive.index_for_name(name).is_some() {
                let mut bytes = Vec::new();
                archive.by_name(name)?.read_to_end(&mut bytes)?;
                files.push((name.to_owned(), bytes));
            }
        }
        Ok(files)
    };
    read().map_err(|error| format!("it is not an archive of a run ({error})"))
}

/// Unpacks an archive into a folder, which is made.
pub(super) fn unpack(bytes: &[u8], folder: &Path) -> Result<(), String> {
    let write = |files: Vec<(String, Vec<u8>)>| -> io::Result<()> {
        fs::create_dir_all(folder)?;
        files.into_iter().try_for_each(|(name, bytes)| fs::write(folder.join(name), bytes))
    };
    write(files(bytes)?).map_err(|error| format!("it cannot be unpacked ({error})"))
}
