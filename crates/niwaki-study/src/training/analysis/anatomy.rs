//! How runs fail on the two-branch reward: at the first token, or at the last.

use super::{Analysis, Place};
use crate::Error;
use crate::training::figures::SHOWN;
use crate::training::{Board, Endpoint, Run};
use niwaki_page::{Axis, Cell, Column, Figure, Format, LineChart, Section, Series, Table, Tone};
use niwaki_train::Record;

/// The analysis; a study asks for it with `anatomy`.
pub(super) struct Failures;

impl Analysis for Failures {
    fn section(&self, place: Place, board: &Board<'_>) -> Result<Option<Section>, Error> {
        if place != Place::Runs || !board.plan.study.anatomy {
            return Ok(None);
        }
        let mut section = Section::new("How runs fail").id("failures");
        let Some(table) = anatomy_table("Failed runs (final η at most a half)", board) else {
            return Ok(Some(section.prose("No run failed.")));
        };
        for (cell, name) in board.plan.cells.iter().enumerate() {
            if let Some(chart) = dead_starts(board, cell) {
                let caption = match board.plan.cells.len() {
                    1 => "All arms; thin lines are single runs, at most 80 of each kind.".to_owned(),
                    _ => format!("{name}, all arms; thin lines are single runs, at most 80 of each kind."),
                };
                section = section.figure(Figure::new(&chart).caption(caption));
            }
        }
        Ok(Some(section.table(table)))
    }
}

/// Tokens that no rewarded sequence starts with: B and D. Paper: `app:h`
const DEAD: [usize; 2] = [1, 3];
/// Share of the batch from which the first choice counts as committed.
const COMMITTED: f64 = 0.9;

/// The failures of an arm in a cell.
#[derive(Clone, Debug, PartialEq)]
struct Anatomy {
    runs: usize,
    failed: usize,
    /// Failed runs whose last batch mostly starts with a dead token.
    dead_start: usize,
    /// Failed runs whose last batch mostly starts well, so that the last token is at fault.
    wrong_end: usize,
    /// Failed runs whose last batch had no reward at all.
    silent: usize,
    /// For the failed runs with a dead start: the iteration at which they were committed to it.
    committed: Vec<f64>,
    /// Mean over failed runs of the last token's marginal at the end, `[vocab]`.
    last: Vec<f64>,
}

/// Share of a batch that starts with a dead token.
fn dead_share(record: &Record) -> f64 {
    DEAD.iter().filter_map(|&token| record.first.get(token)).sum()
}

/// Whether a run's final return is too low.
fn failed(run: &Run) -> bool {
    run.value(Endpoint::Success) != Some(1.0)
}

/// How the runs of an arm in a cell failed.
fn anatomy(board: &Board<'_>, arm: usize, cell: usize) -> Anatomy {
    let runs = board.runs(arm, cell);
    let lost: Vec<&Run> = runs.iter().copied().filter(|run| failed(run)).collect();
    let ends: Vec<&Record> = lost.iter().filter_map(|run| run.course.curve.last()).collect();
    let dead = |record: &&&Record| dead_share(record) > 0.5;
    let committed =
        lost.iter().filter(|run| run.course.curve.last().is_some_and(|end| dead_share(end) > 0.5));
    let committed = committed.filter_map(|run| {
        run.course
            .curve
            .iter()
            .find(|record| dead_share(record) >= COMMITTED)
            .map(|record| record.iteration as f64)
    });
    let vocab = ends.first().map_or(0, |end| end.last.len());
    let last = |token: usize| ends.iter().map(|end| end.last[token]).sum::<f64>() / ends.len() as f64;
    Anatomy {
        runs: runs.len(),
        failed: lost.len(),
        dead_start: ends.iter().filter(dead).count(),
        wrong_end: ends.iter().filter(|end| dead_share(end) <= 0.5).count(),
        silent: ends.iter().filter(|end| end.zero_reward).count(),
        committed: committed.collect(),
        last: (0..vocab).map(last).collect(),
    }
}

/// How much of the batch starts with a dead token, for runs that fail and runs that succeed.
fn dead_starts(board: &Board<'_>, cell: usize) -> Option<LineChart> {
    let runs: Vec<&Run> = board.results.runs.iter().filter(|run| run.cell == cell).collect();
    let (lost, won): (Vec<&Run>, Vec<&Run>) = runs.into_iter().partition(|run| failed(run));
    if lost.is_empty() {
        return None;
    }
    let curve = |run: &Run| -> Vec<(usize, f64)> {
        run.course.curve.iter().map(|record| (record.iteration, dead_share(record))).collect()
    };
    let mut chart = LineChart::new("Share of the batch that starts with B or D")
        .x(Axis::log("iteration"))
        .y(Axis::linear("P(first token ∈ {B, D})").range(0.0, 1.0));
    for (name, group, tone) in [("failed", lost, Tone::Hue(1)), ("succeeded", won, Tone::Hue(0))] {
        let Some(length) = group.iter().map(|run| run.course.curve.len()).min() else { continue };
        let mean = |place: usize| {
            group.iter().map(|run| dead_share(&run.course.curve[place])).sum::<f64>() / group.len() as f64
        };
        let points = (0..length).map(|place| (place as f64 + 1.0, mean(place)));
        let mut series = Series::new(format!("{name} ({})", group.len()), points).tone(tone);
        for run in group.iter().take(SHOWN) {
            series = series.run(curve(run).into_iter().map(|(iteration, share)| (iteration as f64, share)));
        }
        chart = chart.series(series);
    }
    Some(chart)
}

/// How the runs of each arm and cell failed; nothing where none did.
fn anatomy_table(caption: &str, board: &Board<'_>) -> Option<Table> {
    let mut table = Table::new(caption).columns([
        Column::text("arm"),
        Column::number("runs").format(Format::fixed(0)),
        Column::number("failed").format(Format::fixed(0)),
        Column::number("dead first token").format(Format::fixed(0)),
        Column::number("wrong last token").format(Format::fixed(0)),
        Column::number("no reward at the end").format(Format::fixed(0)),
        Column::text("committed at"),
        Column::text("last token A, B, C, D"),
    ]);
    let mut any = false;
    for (cell, name) in board.plan.cells.iter().enumerate() {
        let found: Vec<(usize, Anatomy)> =
            (0..board.plan.study.arm.len()).map(|arm| (arm, anatomy(board, arm, cell))).collect();
        if found.iter().all(|(_, anatomy)| anatomy.failed == 0) {
            continue;
        }
        any = true;
        if board.plan.cells.len() > 1 {
            table.push_heading(name);
        }
        for (arm, anatomy) in found.into_iter().filter(|(_, anatomy)| anatomy.failed > 0) {
            let count = |count: usize| Cell::from(count as f64);
            let quantile = |share: f64| niwaki_stats::quantile(&anatomy.committed, share);
            let committed = match (quantile(0.0), quantile(0.5), quantile(1.0)) {
                (Ok(low), Ok(middle), Ok(high)) => format!("{middle:.0} ({low:.0} to {high:.0})"),
                _ => String::new(),
            };
            let last: Vec<String> = anatomy.last.iter().map(|share| format!("{share:.2}")).collect();
            table.push([
                Cell::from(board.plan.arm_label(arm)),
                count(anatomy.runs),
                count(anatomy.failed),
                count(anatomy.dead_start),
                count(anatomy.wrong_end),
                count(anatomy.silent),
                Cell::from(committed),
                Cell::from(last.join(", ")),
            ]);
        }
    }
    any.then_some(table.note(
        "Dead first token: most of the last batch starts with B or D. Committed at: the iteration at which 90% of the batch \
         first did, median and range over those runs. No reward at the end: the last batch held no rewarded trajectory, so \
         its gradient is zero. The last column is the mean over failed runs of the last token's share in the last batch.",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::{Plan, Results};
    use niwaki_train::reading::Course;

    fn run(seed: u64, eta: f64, first: [f64; 4]) -> Run {
        let end = Record {
            iteration: 3,
            eta: Some(eta),
            first: first.to_vec(),
            last: vec![0.25; 4],
            zero_reward: eta == 0.0,
            ..Record::default()
        };
        let course = Course { iterations: 3, curve: vec![end], kept: None };
        Run { seed, course, ..Run::default() }
    }

    #[test]
    fn failures_are_told_apart() {
        let text = "label = \"x\"\ntitle = \"\"\nquestion = \"\"\nseeds = 4\nendpoints = []\n[[arm]]\nname = \"ppo\"\n";
        let plan = Plan::new(toml::from_str(text).unwrap(), None).unwrap();
        let runs = vec![
            run(0, 1.0, [0.5, 0.0, 0.5, 0.0]),
            run(1, 0.0, [0.0, 0.6, 0.0, 0.4]),
            run(2, 0.25, [1.0, 0.0, 0.0, 0.0]),
            run(3, 0.1, [0.4, 0.6, 0.0, 0.0]),
        ];
        let results = Results { planned: runs.len(), runs, speed: None };
        let anatomy = anatomy(&Board { plan: &plan, results: &results }, 0, 0);
        // Seed 0 succeeds; 1 and 3 start dead, of which only 1 is committed (0.6 + 0.4); 2 ends wrongly.
        let counts = (anatomy.runs, anatomy.failed, anatomy.dead_start, anatomy.wrong_end, anatomy.silent);
        assert_eq!(counts, (4, 3, 2, 1, 1));
        assert_eq!((anatomy.committed, anatomy.last), (vec![3.0], vec![0.25; 4]));
    }
}
