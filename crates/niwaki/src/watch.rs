//! Runs that go on, shown while one waits: score, rate and time left of each.

use crate::terminal::{self, pace, span};
use niwaki_page::{Cell, Column, Format, Table};
use niwaki_study::runs::Row;
use niwaki_train::reading::{Found, Reader, Standing};
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How often folders are looked at, and how many runs are shown.
const EVERY: Duration = Duration::from_secs(2);
const SHOWN: usize = 10;

/// Looks at runs from a thread of its own, until it is dropped.
pub(crate) struct Watch {
    quit: Arc<(Mutex<bool>, Condvar)>,
    looking: Option<JoinHandle<()>>,
}

impl Watch {
    /// Shows the runs below a folder, which need not be there yet; nothing is looked at where progress is not shown.
    pub(crate) fn begin(place: PathBuf, show: impl Fn(&str) + Send + 'static) -> Self {
        let quit = Arc::new((Mutex::new(!terminal::shows_progress()), Condvar::new()));
        let shared = quit.clone();
        let looking = std::thread::spawn(move || {
            let mut reader = Reader::new(Row::of);
            let places = [place];
            let mut over = shared.0.lock().unwrap_or_else(PoisonError::into_inner);
            while !*over {
                let waited = shared.1.wait_timeout_while(over, EVERY, |over| !*over);
                over = waited.unwrap_or_else(PoisonError::into_inner).0;
                if !*over && let Ok(found) = reader.below(&places) {
                    show(&table(&found, terminal::width()));
                }
            }
        });
        Self { quit, looking: Some(looking) }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        *self.quit.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.quit.1.notify_all();
        if let Some(looking) = self.looking.take() {
            // It only reads and shows.
            let _ = looking.join();
        }
    }
}

/// The runs that go on, and how many are over; empty where there are none.
pub(crate) fn table(found: &Found<Row>, width: usize) -> String {
    let count = |standing: Standing| found.runs.iter().filter(|row| row.standing == standing).count();
    let (finished, diverged) = (count(Standing::Finished), count(Standing::Diverged));
    let goes_on = |row: &&Arc<Row>| row.standing == Standing::Running && row.done > 0;
    let mut going: Vec<&Arc<Row>> = found.runs.iter().filter(goes_on).collect();
    if going.is_empty() {
        return String::new();
    }
    // The one that is over first comes first.
    going.sort_by_key(|row| (row.spec.iterations - row.done.min(row.spec.iterations), row.folder.clone()));
    let mut table = Table::new(format!(
        "{finished} {} finished, {} going on{}",
        if finished == 1 { "run" } else { "runs" },
        going.len(),
        if diverged > 0 { format!(", {diverged} diverged") } else { String::new() }
    ))
    .columns([
        Column::text("run"),
        Column::number("seed").format(Format::fixed(0)),
        Column::text("iterations"),
        Column::number("score").format(Format::fixed(3)),
        Column::text("rate"),
        Column::text("left"),
    ]);
    for row in going.iter().take(SHOWN) {
        let rate = row.seconds.filter(|seconds| *seconds > 0.0).map(|seconds| row.done as f64 / seconds);
        let left = row.spec.iterations.saturating_sub(row.done) as f64;
        table.push([
            Cell::from(row.spec.update.correction.as_str()),
            Cell::from(row.spec.seed as f64),
            Cell::from(format!("{} of {}", row.done, row.spec.iterations)),
            row.score().map_or(Cell::blank(), Cell::from),
            rate.map_or(Cell::blank(), |rate| Cell::from(pace(rate))),
            rate.map_or(Cell::blank(), |rate| Cell::from(span(left / rate))),
        ]);
    }
    let more = going.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!("\nand {more} more") } else { String::new() };
    format!("{}{more}", table.to_text(width).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_train::Record;
    use niwaki_train::Spec;
    use niwaki_train::reading::{Course, Run};

    #[test]
    fn runs_that_go_on_are_shown_and_counted() {
        let run = |seed: u64, done: usize, standing: Standing| {
            let record =
                |at: usize| Record { iteration: at, eta: Some(0.1 * at as f64), ..Record::default() };
            let course = Course { iterations: 8, curve: (1..=done).map(record).collect(), kept: None };
            let spec = Spec { seed, iterations: 8, ..Spec::default() };
            Arc::new(Row::of(Run { folder: PathBuf::from("nowhere"), spec, standing, course, summary: None }))
        };
        let runs = vec![
            run(0, 8, Standing::Finished),
            run(1, 2, Standing::Running),
            run(2, 4, Standing::Running),
            run(3, 0, Standing::Running),
        ];
        let said = table(&Found { runs, damaged: Vec::new(), changed: true }, 80);
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[0], "1 run finished, 2 going on");
        let places = ["4 of 8", "2 of 8"].map(|words| said.find(words).unwrap());
        assert!(places[0] < places[1] && said.contains("0.400") && said.contains("0.200"), "{said}");
        assert_eq!(table(&Found::default(), 80), "");
    }
}
