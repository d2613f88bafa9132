//! A peer's script as a child process that steps when told, so that its steps and ours alternate.

use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A running peer.
pub(crate) struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// The library's version.
    pub(crate) version: String,
}

/// How to start a peer.
#[derive(Clone, Debug)]
pub(crate) struct Start<'a> {
    pub(crate) python: &'a Path,
    pub(crate) script: PathBuf,
    pub(crate) arguments: Vec<String>,
}

impl Peer {
    /// Starts a peer and waits until it has warmed up; `None` where its library is not installed.
    pub(crate) fn start(start: &Start<'_>) -> Result<Option<Self>> {
        if !start.script.is_file() {
            bail!("{} is not there: run from the root of the repository", start.script.display());
        }
        let mut child = Command::new(start.python)
            .arg(&start.script)
            .args(&start.arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("{} does not start: name one with --python", start.python.display()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            bail!("the peer has no pipes");
        };
        let mut peer = Self { child, input, output: BufReader::new(output), version: String::new() };
        let Ok(line) = peer.line() else { return Ok(None) };
        match line.strip_prefix("ready") {
            Some(version) => peer.version = version.trim().to_owned(),
            None => return Ok(None),
        }
        Ok(Some(peer))
    }

    /// Tells the peer to step, without waiting for it.
    pub(crate) fn begin(&mut self) -> Result<()> {
        writeln!(self.input, "step").context("the peer has ended")
    }

    /// Waits for the step; wall and processor seconds.
    pub(crate) fn end(&mut self) -> Result<[f64; 2]> {
        self.pair()
    }

    /// Peak resident bytes, and those after the imports.
    pub(crate) fn memory(&mut self) -> Result<[f64; 2]> {
        writeln!(self.input, "memory").context("the peer has ended")?;
        self.pair()
    }

    fn pair(&mut self) -> Result<[f64; 2]> {
        let line = self.line()?;
        let numbers: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        <[f64; 2]>::try_from(numbers)
            .map_err(|_| anyhow::anyhow!("the peer said {line:?}, expected two numbers"))
    }

    fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        if self.output.read_line(&mut line)? == 0 {
            bail!("the peer has ended");
        }
        Ok(line.trim().to_owned())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The script ends with its input; this only saves waiting for it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
