//! The dumps as they were given: files, folders, or standard input.

use anyhow::{Context, anyhow, bail};
use niwaki_advise::series::{Runs, series};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// What was given, and where standard input was put.
pub(super) struct Given {
    files: Vec<PathBuf>,
    runs: Runs,
    /// The folder that holds standard input until the end.
    folder: Option<PathBuf>,
}

impl Given {
    /// Takes standard input whole, where a file is called `-`: dumps are read more than once.
    pub(super) fn new(files: &[PathBuf], runs: Runs) -> anyhow::Result<Self> {
        let mut given = Self { files: files.to_vec(), runs, folder: None };
        let piped: Vec<usize> = (0..files.len()).filter(|&at| files[at] == Path::new("-")).collect();
        match piped[..] {
            [] => {}
            [at] => given.files[at] = given.take().context("standard input cannot be read")?,
            _ => bail!("- stands for standard input, which can be read once"),
        }
        Ok(given)
    }

    /// The files of each run, as they are now.
    pub(super) fn runs(&self) -> anyhow::Result<Vec<Vec<PathBuf>>> {
        Ok(series(&self.files, self.runs)?)
    }

    /// What is said of the file that holds standard input, said of standard input.
    pub(super) fn named(&self, error: anyhow::Error) -> anyhow::Error {
        let Some(file) =
            self.folder.as_ref().and_then(|folder| self.files.iter().find(|file| file.starts_with(folder)))
        else {
            return error;
        };
        anyhow!(format!("{error:#}").replace(&file.display().to_string(), "standard input"))
    }

    /// The files as they were given, standard input as `-`.
    pub(super) fn as_given(&self, files: &mut [PathBuf]) {
        if let Some(folder) = &self.folder {
            files
                .iter_mut()
                .filter(|file| file.starts_with(folder))
                .for_each(|file| *file = PathBuf::from("-"));
        }
    }

    /// Puts standard input into a file whose ending is that of its first bytes.
    fn take(&mut self) -> std::io::Result<PathBuf> {
        let mut input = std::io::stdin().lock();
        let mut first = [0; 4];
        let mut got = 0;
        while got < first.len() {
            match input.read(&mut first[got..])? {
                0 => break,
                more => got += more,
            }
        }
        let ending = match &first[..got] {
            b"PAR1" => "parquet",
            [b'P', b'K', ..] => "npz",
            b"NIWA" => "tally",
            _ => "jsonl",
        };
        let folder = std::env::temp_dir().join(format!("niwaki-advise-{}", std::process::id()));
        std::fs::create_dir(&folder)?;
        let path = folder.join(format!("stdin.{ending}"));
        self.folder = Some(folder);
        let mut file = File::create_new(&path)?;
        file.write_all(&first[..got])?;
        std::io::copy(&mut input, &mut file)?;
        Ok(path)
    }
}

impl Drop for Given {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            // Nothing is lost where it stays: the system sweeps its own folder.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}
