//! One run of the command under caps, and what it may end like.

use anyhow::Context;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Address space that a run may take, in kilobytes.
const MEMORY: u64 = 4 << 20;

/// Where attacks take place: the command, and a folder that is emptied for each of them.
pub(super) struct Arena {
    pub(super) binary: PathBuf,
    home: PathBuf,
}

/// One run of the command, and what is done to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Attempt {
    words: Vec<OsString>,
    before: Vec<String>,
    prelude: String,
    redirect: String,
    environment: Vec<(String, Option<OsString>)>,
    seconds: u64,
    endless: bool,
}

/// How a run ended; no status where it was still at work and was stopped.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) status: Option<ExitStatus>,
    pub(super) said: String,
    pub(super) told: String,
    endless: bool,
}

impl Attempt {
    /// The command with words that are split at spaces.
    pub(super) fn new(text: &str) -> Self {
        let words = text.split_whitespace().map(OsString::from).collect();
        Self { words, seconds: 60, ..Self::default() }
    }

    /// One word more, as it is.
    pub(super) fn word(mut self, word: impl AsRef<OsStr>) -> Self {
        self.words.push(word.as_ref().to_owned());
        self
    }

    /// Another program that runs the command (`strace …`).
    pub(super) fn behind(mut self, words: &str) -> Self {
        self.before = words.split_whitespace().map(ToOwned::to_owned).collect();
        self
    }

    /// A line of the shell before the command starts.
    pub(super) fn after(mut self, prelude: &str) -> Self {
        prelude.clone_into(&mut self.prelude);
        self
    }

    /// Where its outputs go instead of into files: words of the shell.
    pub(super) fn into(mut self, redirect: &str) -> Self {
        redirect.clone_into(&mut self.redirect);
        self
    }

    /// A variable of the environment, or none of that name.
    pub(super) fn with(mut self, name: &str, value: Option<&OsStr>) -> Self {
        self.environment.push((name.to_owned(), value.map(ToOwned::to_owned)));
        self
    }

    /// How long it may take.
    pub(super) const fn within(mut self, seconds: u64) -> Self {
        self.seconds = seconds;
        self
    }

    /// What is asked for takes long on any machine: still being at work breaks nothing.
    pub(super) const fn endless(mut self) -> Self {
        self.endless = true;
        self
    }

    /// Its words as a report shows them.
    pub(super) fn shown(&self) -> String {
        let words: Vec<_> = self.words.iter().map(|word| word.to_string_lossy()).collect();
        let line = words.join(" ");
        let line = if line.len() > 200 { line.chars().take(200).collect() } else { line };
        line.escape_debug().to_string()
    }
}

impl Arena {
    pub(super) fn new(binary: PathBuf) -> anyhow::Result<Self> {
        let home = std::env::temp_dir().join(format!("niwaki-siege-{}", std::process::id()));
        fs::create_dir_all(&home).with_context(|| format!("cannot make {}", home.display()))?;
        Ok(Self { binary, home })
    }

    /// An empty folder of this name.
    pub(super) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.home.join(name);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }

    /// Runs the command in a folder.
    pub(super) fn run(&self, attempt: &Attempt, folder: &Path) -> anyhow::Result<Ended> {
        let [said, told] = ["said", "told"].map(|name| self.home.join(name));
        let Attempt { prelude, redirect, .. } = attempt;
        let script = format!("ulimit -v \"$0\"; ulimit -c 0; {prelude}\nexec \"$@\" {redirect}");
        let mut command = Command::new("bash");
        command.args(["-c", &script, &MEMORY.to_string()]).args(&attempt.before).arg(&self.binary);
        command.args(&attempt.words).current_dir(folder).env("RUST_BACKTRACE", "0");
        for (name, value) in &attempt.environment {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command.stdin(Stdio::null()).stdout(File::create(&told)?).stderr(File::create(&said)?);
        let mut child = command.spawn().context("cannot run bash")?;
        let end = Instant::now() + Duration::from_secs(attempt.seconds);
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break Some(status);
            }
            if Instant::now() >= end {
                child.kill()?;
                child.wait()?;
                break None;
            }
            std::thread::sleep(Duration::from_millis(3));
        };
        let text = |file| fs::read(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Ok(Ended { status, said: text(&said)?, told: text(&told)?, endless: attempt.endless })
    }

    /// What a run broke, with its words.
    pub(super) fn broken(&self, attempt: &Attempt, folder: &Path) -> anyhow::Result<Option<String>> {
        let broke = self.run(attempt, folder)?.broke();
        Ok(broke.map(|broke| format!("{}: {broke}", attempt.shown())))
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        // What is left lies in the folder for temporary files.
        let _ = fs::remove_dir_all(&self.home);
    }
}

impl Ended {
    /// The exit code, if it ended by itself.
    pub(super) fn code(&self) -> Option<i32> {
        self.status.and_then(|status| status.code())
    }

    /// What a run broke: it ends by itself with 0, 1, 2 or 74, a refusal is one line, and nothing that it says acts on a
    /// terminal.
    pub(super) fn broke(&self) -> Option<String> {
        let acts = |text: &str| text.chars().any(|c| c.is_control() && c != '\n' && c != '\t');
        if acts(&self.said) || acts(&self.told) {
            return Some("sent control characters".to_owned());
        }
        let Some(status) = self.status else {
            return (!self.endless).then(|| "did not end".to_owned());
        };
        match status.code() {
            Some(0 | 1) => None,
            Some(2 | 74) if self.said.lines().count() == 1 && self.said.starts_with("niwaki: ") => None,
            Some(code @ (2 | 74)) => Some(format!("ended with {code} and said {:?}", self.said)),
            _ => Some(format!("ended with {status}: {}", self.said.trim_end())),
        }
    }

    /// As [`Ended::broke`], and it must have been refused.
    pub(super) fn not_refused(&self) -> Option<String> {
        let other = || format!("was not refused: {:?} {:?}", self.code(), self.told.lines().next());
        self.broke().or_else(|| (self.code() != Some(2)).then(other))
    }
}

/// Every file below a folder, by name.
pub(super) fn files(folder: &Path) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let (mut found, mut folders) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                // A device has no end.
                let bytes = if path.is_file() { fs::read(&path)? } else { b"no file".to_vec() };
                found.insert(path.strip_prefix(folder)?.to_path_buf(), bytes);
            }
        }
    }
    Ok(found)
}
