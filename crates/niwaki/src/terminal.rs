//! What every command shares of the terminal: results, one-line refusals and progress bars.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::borrow::Cow;
use std::process::ExitCode;
use std::time::Duration;

/// Exit code of a refused input: nothing was written.
const REFUSED: u8 = 2;

/// Prints an error and its causes as one line on standard error.
#[expect(clippy::print_stderr, reason = "the one place where a refusal is shown")]
pub(crate) fn refuse(error: &anyhow::Error) -> ExitCode {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Some errors quote their cause.
        if !line.contains(&cause) {
            line += if line.is_empty() { "" } else { ": " };
            line += &cause;
        }
    }
    eprintln!("niwaki: {}", one_line(&line));
    ExitCode::from(REFUSED)
}

/// Prints one line on standard error beside a result.
#[expect(clippy::print_stderr, reason = "the one place where a warning is shown")]
pub(crate) fn warn(line: &str) {
    eprintln!("niwaki: {}", one_line(line));
}

/// Shows help and version as they are, and folds a mistake in the arguments into one line.
#[expect(clippy::print_stderr, reason = "the one place where a refusal is shown")]
pub(crate) fn refuse_arguments(error: &clap::Error) -> ExitCode {
    use clap::error::ErrorKind;
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        let asked = !matches!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
        return match error.print() {
            Ok(()) if asked => ExitCode::SUCCESS,
            _ => ExitCode::from(REFUSED),
        };
    }
    let text = error.to_string();
    let kept = text.split("\n\nUsage:").next().unwrap_or(&text);
    let kept = kept.split("\n\nFor more information").next().unwrap_or(kept);
    eprintln!("niwaki: {} (see --help)", one_line(kept.trim_start_matches("error: ")));
    ExitCode::from(REFUSED)
}

/// Prints a result on standard output. A reader that has gone away (`niwaki … | head`) is no error.
pub(crate) fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}

/// Columns of the terminal; 100 where there is none.
pub(crate) fn width() -> usize {
    let columns = usize::from(console::Term::stdout().size_checked().map_or(100, |(_, columns)| columns));
    columns.clamp(60, 140)
}

/// Joins the lines of a message with single spaces.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A line that turns while something of unknown length goes on, with the time it has taken; silent where standard error
/// is no terminal.
pub(crate) fn waiting(what: String) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}  {elapsed}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A progress bar with an estimate of the time left; it stays silent where standard error is no terminal, and
/// for work that ends within the first half second.
pub(crate) fn progress(total: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    bar(Some(total), what, "{msg} [{bar:32}] {pos}/{len}  {elapsed} < {eta}")
}

/// The same over run-iterations, with how many are done per second; its length is set once it is known.
pub(crate) fn run_progress(what: impl Into<Cow<'static, str>>) -> ProgressBar {
    bar(None, what, "{msg} [{bar:32}] {pos}/{len} run-iterations  {per_sec}  {elapsed} < {eta}")
}

fn bar(total: Option<u64>, what: impl Into<Cow<'static, str>>, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}
