//! Files that commands leave behind: written whole or not at all, and how they were made.

use anyhow::Context;
use niwaki_page::Made;
use std::fs;
use std::path::Path;

/// Writes a file whole, in a folder that is made where it is missing.
pub(crate) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    niwaki_files::write_atomically(path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a folder, so that a command finds out before its work rather than after it.
pub(crate) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| {
        format!("cannot make the folder {}; choose one that can be written", folder.display())
    })
}

/// How the page in hand was made: the command as it was typed, and the program's version.
pub(crate) fn made() -> Made {
    let words = std::env::args_os().skip(1).map(|word| shown(&word.to_string_lossy()));
    let command = std::iter::once("niwaki".to_owned()).chain(words).collect::<Vec<_>>().join(" ");
    Made::new(command)
        .fact("version", env!("CARGO_PKG_VERSION"))
        .fact("processor", format!("{} ({} threads)", std::env::consts::ARCH, threads()))
}

/// A word of the command line as one would type it.
fn shown(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}
