//! Files that commands leave behind: where they go, written whole or not at all, signed and named, and how they were made.

use crate::terminal;
use anyhow::{Context, bail};
use clap::ValueEnum;
use niwaki_page::Made;
use std::fs;
use std::path::{Path, PathBuf};

/// What a command prints.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Sentences and tables.
    Text,
    /// One JSON document, full precision.
    Json,
}

/// Flags that say what a command prints.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct FormatArgs {
    /// What to print.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Short for --format json.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl FormatArgs {
    pub(crate) const fn is_json(self) -> bool {
        self.json || matches!(self.format, Format::Json)
    }
}

/// One of a command's results as a file.
pub(crate) struct Piece {
    /// What it is called in a folder.
    pub(crate) name: &'static str,
    pub(crate) text: String,
}

impl Piece {
    pub(crate) fn new(name: &'static str, text: impl Into<String>) -> Self {
        Self { name, text: text.into() }
    }

    /// A JSON document, signed.
    pub(crate) fn json(name: &'static str, text: &str) -> Self {
        Self::new(name, signed(text))
    }
}

/// Endings that no folder has: a name with one of them is a file.
const FILES: [&str; 26] = [
    "html", "htm", "json", "jsonl", "csv", "tsv", "svg", "ics", "txt", "md", "pdf", "png", "jpg", "doc",
    "docx", "odt", "xls", "xlsx", "ods", "xml", "yaml", "yml", "toml", "npz", "parquet", "zip",
];

/// Where results go, the same for every command: a folder for all of them, or a file whose ending says which one.
pub(crate) struct Out<'a> {
    path: &'a Path,
    /// The ending of the one that is wanted; all if absent.
    ending: Option<&'static str>,
}

impl<'a> Out<'a> {
    /// Decides which it is before any work is done.
    ///
    /// # Errors
    /// If it is a file of a kind that the command does not write, or nothing can be written there.
    pub(crate) fn new(path: &'a Path, endings: &[&'static str]) -> anyhow::Result<Self> {
        let ending = endings.iter().copied().find(|ending| has_ending(path, ending));
        if ending.is_none() && FILES.iter().any(|ending| has_ending(path, ending)) && !path.is_dir() {
            let known: Vec<String> = endings.iter().map(|ending| format!(".{ending}")).collect();
            bail!(
                "--out {}: expected a folder, or a name that ends in {}",
                path.display(),
                known.join(" or ")
            );
        }
        let ending = ending.filter(|_| !path.is_dir());
        let folder = if ending.is_some() { path.parent().unwrap_or(Path::new(".")) } else { path };
        make_folder(folder)?;
        Ok(Self { path, ending })
    }

    /// Whether a piece of this ending is wanted.
    pub(crate) fn wants(&self, ending: &str) -> bool {
        self.ending.is_none_or(|only| only == ending)
    }

    /// Writes the pieces that are wanted, and gives their paths.
    pub(crate) fn write(&self, pieces: &[Piece]) -> anyhow::Result<Vec<PathBuf>> {
        let mut written = Vec::new();
        for piece in pieces.iter().filter(|piece| {
            Path::new(piece.name).extension().is_some_and(|ending| self.wants(&ending.to_string_lossy()))
        }) {
            let path = if self.ending.is_some() { self.path.to_owned() } else { self.path.join(piece.name) };
            write_whole(&path, &piece.text)?;
            written.push(path);
        }
        Ok(written)
    }
}

/// Names the files that were written: beside a text, or where a program does not read it.
pub(crate) fn name_written(paths: &[PathBuf], for_program: bool) {
    for path in paths {
        let line = format!("wrote {}", path.display());
        if for_program { terminal::remark(&line) } else { terminal::say(&line) }
    }
}

/// A JSON document with the version of the program that made it as its first key; a list becomes the object's `rows`.
pub(crate) fn signed(text: &str) -> String {
    let version = env!("CARGO_PKG_VERSION");
    match text.trim_start().strip_prefix('{') {
        Some(rest) => format!("{{\n  \"niwaki\": \"{version}\",{rest}"),
        None => {
            let rows = text.trim().replace('\n', "\n  ");
            format!("{{\n  \"niwaki\": \"{version}\",\n  \"rows\": {rows}\n}}\n")
        }
    }
}

/// Whether a name ends so.
pub(crate) fn has_ending(path: &Path, ending: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending))
}

/// Writes a text as [`write_bytes`] does.
pub(crate) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    write_bytes(path, text.as_bytes())
}

/// Writes a file whole, in a folder that is made where it is missing.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    niwaki_files::write_atomically(path, bytes).with_context(|| format!("cannot write {}", path.display()))
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
    made_by(&std::iter::once("niwaki".to_owned()).chain(words).collect::<Vec<_>>().join(" "))
}

/// The same for a command that another one runs.
pub(crate) fn made_by(command: &str) -> Made {
    Made::new(command)
        .fact("version", env!("CARGO_PKG_VERSION"))
        .fact("processor", format!("{} ({} threads)", std::env::consts::ARCH, threads()))
}

/// A word of the command line as one would type it.
pub(crate) fn shown(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_signed_with_the_version() {
        let version = env!("CARGO_PKG_VERSION");
        assert_eq!(signed("{\n  \"a\": 1\n}"), format!("{{\n  \"niwaki\": \"{version}\",\n  \"a\": 1\n}}"));
        let rows: serde_json::Value = serde_json::from_str(&signed("[\n  1,\n  2\n]\n")).unwrap();
        assert_eq!(rows, serde_json::json!({ "niwaki": version, "rows": [1, 2] }));
    }

    #[test]
    fn a_place_is_a_folder_or_the_file_of_one_piece() {
        let home = tempfile::tempdir().unwrap();
        let pieces = [Piece::new("index.html", "page"), Piece::new("all.json", "{}")];
        let write = |name: &str| {
            let path = home.path().join(name);
            Out::new(&path, &["html", "json"]).and_then(|out| out.write(&pieces))
        };
        assert_eq!(write("v1.2").unwrap().len(), 2);
        assert_eq!(write("here/x.JSON").unwrap(), [home.path().join("here/x.JSON")]);
        assert_eq!(fs::read_to_string(home.path().join("here/x.JSON")).unwrap(), "{}");
        let refused = write("x.pdf").unwrap_err().to_string();
        assert!(
            refused.ends_with("x.pdf: expected a folder, or a name that ends in .html or .json"),
            "{refused}"
        );
    }
}
