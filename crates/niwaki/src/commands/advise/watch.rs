//! A run that is still going: look again whenever its files have grown.

use super::{Args, Given};
use crate::terminal;
use anyhow::bail;
use niwaki_advise::Question;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

/// Shows the files' advice again and again, until the process is ended or nobody reads on. A file that cannot be read yet, half written for
/// example, leaves what was shown.
pub(super) fn follow(
    arguments: &Args,
    given: &Given,
    question: &Question,
    seconds: f64,
) -> anyhow::Result<ExitCode> {
    if !(seconds > 0.0 && seconds.is_finite()) {
        bail!("--watch {seconds}: give a number of seconds above 0");
    }
    let mut seen = Vec::new();
    while terminal::is_heard() {
        let runs = given.runs()?;
        let now = sizes(&runs);
        if now != seen {
            seen = now;
            terminal::clear();
            if let Err(error) = arguments.show(given, &runs, question) {
                terminal::warn(&format!("not yet: {error:#}"));
            }
        }
        std::thread::sleep(Duration::from_secs_f64(seconds));
    }
    Ok(ExitCode::SUCCESS)
}

/// Size and time of every file.
fn sizes(runs: &[Vec<PathBuf>]) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let files = runs.iter().flatten();
    let look = |file: &PathBuf| {
        let found = std::fs::metadata(file).ok();
        let size = found.as_ref().map_or(0, std::fs::Metadata::len);
        (file.clone(), size, found.and_then(|found| found.modified().ok()))
    };
    files.map(look).collect()
}
