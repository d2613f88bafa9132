//! What every command shares of the terminal: results, one-line refusals, progress bars, and how a command ends.
//!
//! | exit code | what it says |
//! |---|---|
//! | 0 | done |
//! | 1 | done, and a condition that was asked for is met (`advise --fail-on`, `solve --deadline`, `verify`) |
//! | 2 | refused: a mistake in flags or files, one line with the mend |
//! | 70 | a defect of this program, one line with its place; or the system has no more memory |
//! | 74 | standard output took not all of the result |

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use niwaki_page::visible;
use std::borrow::Cow;
use std::fmt;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::panic::{self, PanicHookInfo};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Exit code of a refused input: nothing was written.
const REFUSED: u8 = 2;

/// Exit code of a defect of this program, as in `sysexits.h`.
const DEFECT: u8 = 70;

/// Exit code of a result that standard output did not take, as in `sysexits.h`.
const UNSAID: u8 = 74;

/// The first error of standard output; what comes after it is not tried.
static UNWRITTEN: Mutex<Option<io::Error>> = Mutex::new(None);

/// Whether a defect was shown: others are only its echo.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Whether only errors and warnings are wanted.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Whether progress is shown.
static PROGRESS: AtomicBool = AtomicBool::new(true);

/// How much a command says; every one takes these flags.
#[derive(clap::Args)]
pub(crate) struct Talk {
    /// Print only errors and warnings, and any JSON or CSV that was asked for.
    #[arg(long, short, global = true)]
    quiet: bool,
    /// Show no progress bar.
    #[arg(long, global = true)]
    no_progress: bool,
}

impl Talk {
    /// Holds for the rest of the process.
    pub(crate) fn settle(&self) {
        QUIET.store(self.quiet, Ordering::Relaxed);
        PROGRESS.store(!self.quiet && !self.no_progress, Ordering::Relaxed);
    }
}

/// Runs a command and turns a defect, or a result that could not be printed, into one line and an exit code.
pub(crate) fn run(command: impl FnOnce() -> ExitCode + panic::UnwindSafe) -> ExitCode {
    panic::set_hook(Box::new(show_defect));
    let ended = panic::catch_unwind(command);
    print(|out| out.flush());
    if BROKEN.load(Ordering::SeqCst) {
        return ExitCode::from(DEFECT);
    }
    let code = ended.unwrap_or_else(|_| ExitCode::from(DEFECT));
    match UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).take() {
        // The reader has seen enough (`niwaki … | head`).
        None => code,
        Some(error) if error.kind() == ErrorKind::BrokenPipe => code,
        Some(error) => {
            warn(&format!("standard output did not take all of the result: {error}"));
            ExitCode::from(UNSAID)
        }
    }
}

/// One line for a defect, however many threads fall with it; with RUST_BACKTRACE also where it came from.
fn show_defect(defect: &PanicHookInfo<'_>) {
    // That one is caught and told as the fault of a file.
    if niwaki_lm::within_tokenizer() || BROKEN.swap(true, Ordering::SeqCst) {
        return;
    }
    let place = defect.location().map_or_else(String::new, |at| format!(" at {}:{}", at.file(), at.line()));
    let words = defect.payload().downcast_ref::<String>().map(String::as_str);
    let what = words.or_else(|| defect.payload().downcast_ref::<&str>().copied()).unwrap_or("no words");
    let version = crate::VERSION;
    warn(&format!(
        "a defect of niwaki {version}{place}: {what}; please report this line with the command and its files"
    ));
    let trace = std::backtrace::Backtrace::capture();
    if trace.status() == std::backtrace::BacktraceStatus::Captured {
        let _ = writeln!(io::stderr(), "{trace}");
    }
}

/// Prints an error and its causes as one line on standard error.
pub(crate) fn refuse(error: &anyhow::Error) -> ExitCode {
    let mut line = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Some errors quote their cause.
        if !line.contains(&cause) {
            line += if line.is_empty() { "" } else { ": " };
            line += &cause;
        }
    }
    warn(&line);
    ExitCode::from(REFUSED)
}

/// Prints one line on standard error beside a result.
pub(crate) fn warn(line: &str) {
    // Where standard error takes nothing either, there is nobody to tell.
    let _ = writeln!(io::stderr(), "niwaki: {}", one_line(line));
}

/// Shows help and version as they are, and folds a mistake in the arguments into one line.
pub(crate) fn refuse_arguments(error: &clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp
            | ErrorKind::DisplayVersion
            | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
    ) {
        if matches!(error.kind(), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand) {
            // Shown on standard error, where nothing can be told of a failure.
            let _ = error.print();
            return ExitCode::from(REFUSED);
        }
        print(|_| error.print());
        return ExitCode::SUCCESS;
    }
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && let Some(now) = crate::commands::moved(name)
    {
        warn(&format!("'{name}' is now '{now}'; write niwaki {now}"));
        return ExitCode::from(REFUSED);
    }
    let text = error.to_string();
    let kept = text.split("\n\nUsage:").next().unwrap_or(&text);
    let kept = kept.split("\n\nFor more information").next().unwrap_or(kept);
    // A negative number is no value of any flag: the advice to force it in would not help.
    let kept = kept.split("\n\n  tip: to pass '-").next().unwrap_or(kept);
    warn(&format!("{} (see --help)", kept.trim_start_matches("error: ")));
    ExitCode::from(REFUSED)
}

/// Prints a result for people on standard output, unless --quiet; what it does not take is told when the command ends.
pub(crate) fn say(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        give(text);
    }
}

/// Prints what a program is to read on standard output.
pub(crate) fn give(text: &str) {
    print(|out| writeln!(out, "{}", visible(text)));
}

/// Prints a remark for people on standard error, where standard output is for a program.
pub(crate) fn remark(text: &str) {
    if !QUIET.load(Ordering::Relaxed) {
        let _ = writeln!(io::stderr(), "{}", visible(text));
    }
}

/// [`say`] with a text made of parts.
macro_rules! say_format {
    ($($part:tt)*) => {
        $crate::terminal::say(&format!($($part)*))
    };
}
pub(crate) use say_format;

/// Writes on standard output unless that has failed before.
fn print(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
    let mut unwritten = UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner);
    if unwritten.is_none() {
        *unwritten = write(&mut io::stdout()).err();
    }
}

/// Clears the screen, where standard output is one.
pub(crate) fn clear() {
    let screen = console::Term::stdout();
    if screen.is_term() {
        // A screen that cannot be cleared shows the next result below the last.
        let _ = screen.clear_screen();
    }
}

/// Whether standard output still takes what is printed.
pub(crate) fn is_heard() -> bool {
    UNWRITTEN.lock().unwrap_or_else(PoisonError::into_inner).is_none()
}

/// Columns of the terminal; 100 where there is none.
pub(crate) fn width() -> usize {
    let columns = usize::from(console::Term::stdout().size_checked().map_or(100, |(_, columns)| columns));
    columns.clamp(60, 140)
}

/// Joins the lines of a message with single spaces, and shows what would act on a terminal.
fn one_line(text: &str) -> String {
    visible(&text.split_whitespace().collect::<Vec<_>>().join(" ")).into_owned()
}

/// A line that turns while something of unknown length goes on, with the time it has taken; silent where standard error
/// is not a terminal.
pub(crate) fn waiting(what: String) -> ProgressBar {
    let bar = bar(None, what, "{spinner} {msg}  {elapsed}");
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

/// A progress bar with an estimate of the time left; silent where standard error is not a terminal, and under
/// --no-progress.
pub(crate) fn progress(total: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    bar(Some(total), what, "{msg} [{bar:32}] {human_pos} of {human_len}{left}")
}

/// The same over bytes.
pub(crate) fn byte_progress(total: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    bar(Some(total), what, "{msg} [{bar:32}] {decimal_bytes} of {decimal_total_bytes}{left}")
}

/// The same over iterations of one run or of many, with how many are done per second.
pub(crate) fn run_progress(total: u64, what: impl Into<Cow<'static, str>>) -> ProgressBar {
    bar(Some(total), what, "{msg} [{bar:32}] {human_pos} of {human_len} iterations{rate}{left}")
}

/// The same over the seconds of a search that may end sooner, or that does not look at the clock.
pub(crate) fn search_progress(limit: Option<Duration>) -> ProgressBar {
    let shape = limit.map_or("{msg}, {pos} s", |_| "{msg} [{bar:32}] {pos} of at most {len} s");
    bar(limit.map(|limit| limit.as_secs().max(1)), "searching", shape)
}

/// Whether progress is shown: standard error is a terminal, and it was not switched off.
pub(crate) fn shows_progress() -> bool {
    PROGRESS.load(Ordering::Relaxed) && io::stderr().is_terminal()
}

/// The progress bar of whatever a door is doing, one after the other.
#[derive(Default)]
pub(crate) struct Bar(Mutex<Option<(ProgressBar, String)>>);

impl Bar {
    /// Shows a bar in the place of the last one.
    pub(crate) fn begin(&self, bar: ProgressBar) {
        self.end();
        let what = bar.message();
        *self.held() = Some((bar, what));
    }

    /// Shows a text above it, in the place of the last one.
    pub(crate) fn above(&self, text: &str) {
        let under = |what: &str| if text.is_empty() { what.to_owned() } else { format!("{text}\n\n{what}") };
        self.held().iter().for_each(|(bar, what)| bar.set_message(visible(&under(what)).into_owned()));
    }

    /// Moves it on.
    pub(crate) fn inc(&self, by: u64) {
        self.held().iter().for_each(|(bar, _)| bar.inc(by));
    }

    /// Moves it to a place.
    pub(crate) fn at(&self, place: u64) {
        self.held().iter().for_each(|(bar, _)| bar.set_position(place));
    }

    /// Takes it away.
    pub(crate) fn end(&self) {
        self.held().take().iter().for_each(|(bar, _)| bar.finish_and_clear());
    }

    fn held(&self) -> MutexGuard<'_, Option<(ProgressBar, String)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn bar(total: Option<u64>, what: impl Into<Cow<'static, str>>, template: &str) -> ProgressBar {
    let target = if PROGRESS.load(Ordering::Relaxed) {
        ProgressDrawTarget::stderr_with_hz(10)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(total, target);
    if let Ok(style) = ProgressStyle::with_template(template) {
        // Before a second has passed, rate and time left are guesses.
        let known = |state: &ProgressState| state.elapsed().as_secs_f64() > 1.0 && state.pos() > 0;
        let left = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            if known(state) {
                let _ = write!(out, ", {} left", span(state.eta().as_secs_f64()));
            }
        };
        let rate = move |state: &ProgressState, out: &mut dyn fmt::Write| {
            if known(state) {
                let _ = write!(out, ", {}", pace(state.per_sec()));
            }
        };
        bar.set_style(style.with_key("left", left).with_key("rate", rate).progress_chars("=> "));
    }
    bar.set_message(visible(&what.into()).into_owned());
    bar.enable_steady_tick(Duration::from_millis(500));
    bar
}

/// A stretch of time as people say it.
pub(crate) fn span(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 90.0 => format!("{seconds:.0} s"),
        seconds if seconds < 5400.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// Iterations per second, or seconds per iteration where those are few.
pub(crate) fn pace(rate: f64) -> String {
    match rate {
        rate if rate >= 10.0 => format!("{rate:.0} it/s"),
        rate if rate >= 1.0 => format!("{rate:.1} it/s"),
        rate if rate > 0.0 => format!("{} per iteration", span(1.0 / rate)),
        _ => "not moving".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Set where the test runs in a process of its own, which may break.
    const ALONE: &str = "NIWAKI_TEST_ALONE";

    #[test]
    fn times_and_rates_as_people_say_them() {
        assert_eq!([3.4, 89.0, 600.0, 9000.0].map(span), ["3 s", "89 s", "10 min", "2.5 h"]);
        assert_eq!(
            [636.2, 2.26, 0.1, 0.0].map(pace),
            ["636 it/s", "2.3 it/s", "10 s per iteration", "not moving"]
        );
    }

    #[test]
    fn a_defect_is_one_line_and_an_exit_code_of_its_own() {
        if std::env::var_os(ALONE).is_some() {
            let code = run(|| {
                let _ = std::thread::spawn(|| panic!("a law is\nbroken")).join();
                panic!("only an echo of it");
            });
            assert_eq!(code, ExitCode::from(DEFECT));
            return;
        }
        let name = "terminal::tests::a_defect_is_one_line_and_an_exit_code_of_its_own";
        let mut alone = Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", name, "--nocapture"]).env(ALONE, "1").env("RUST_BACKTRACE", "0");
        let output = alone.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(
            said.starts_with("niwaki: a defect of niwaki ") && said.contains(": a law is broken; "),
            "{said}"
        );
    }
}
