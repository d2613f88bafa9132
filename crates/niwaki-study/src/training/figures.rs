//! The charts of a training study.

use super::spec::{Curve, Early};
use super::{Board, Comparison, Run};
use crate::Error;
use niwaki_page::{Axis, ForestChart, Grid, Interval, Legend, LineChart, Series, Tone};
use niwaki_train::reading::{Judged, mean_curve, mean_of};

/// Points of a curve that a chart keeps, so that a page with hundreds of seeds stays small.
pub(super) const SHOWN: usize = 80;

fn thinned(points: Vec<(usize, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(SHOWN).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate().filter(|(place, _)| place % step == 0 || *place == last);
    kept.map(|(_, (iteration, value))| (iteration as f64, value)).collect()
}

fn judged(board: &Board<'_>) -> Judged {
    if greedy(board) { Judged::Likeliest } else { Judged::Eta }
}

fn greedy(board: &Board<'_>) -> bool {
    board.plan.study.curve == Curve::Greedy
}

/// The mean curve of some runs.
fn mean(board: &Board<'_>, runs: &[&Run]) -> Vec<(usize, f64)> {
    mean_curve(&runs.iter().map(|run| &run.course).collect::<Vec<_>>(), judged(board))
}

fn y_axis(board: &Board<'_>, cell: usize) -> Axis {
    let name = if greedy(board) { "greedy success" } else { "η" };
    let share =
        |run: &Run| run.course.points(judged(board)).iter().all(|point| (0.0..=1.0).contains(&point.1));
    let here = |run: &&Run| board.plan.covers(cell, run.cell);
    // Where the reward is a makespan, values are not shares and the axis is left open.
    if board.results.runs.iter().filter(here).all(share) {
        Axis::linear(name).range(0.0, 1.0)
    } else {
        Axis::linear("greedy reward")
    }
}

/// The mean curve of every arm in a cell: with one or two arms the seeds are drawn too, with more of them twice the
/// standard error; a line stands where the warmup ends, if all that have one agree.
///
/// Paper: `fig:g-detail`, `fig:h-main`, `fig:i-detail`, `fig:curves`, `fig:bneck`
pub(super) fn curves(board: &Board<'_>, cell: usize) -> LineChart {
    let arms: Vec<usize> = arms_with_runs(board, cell);
    let mut chart = LineChart::new("Return over training, mean over seeds")
        .x(Axis::linear("iteration"))
        .y(y_axis(board, cell));
    for &arm in &arms {
        let runs = board.runs(arm, cell);
        let mut series =
            Series::new(board.plan.arm_label(arm), thinned(mean(board, &runs))).tone(Tone::Hue(arm));
        if arms.len() <= 2 {
            for run in &runs {
                series = series.run(thinned(run.course.points(judged(board))));
            }
        } else {
            series = series.band(band(board, &runs));
        }
        chart = chart.series(series);
    }
    match warmup(board, cell) {
        Some(end) => chart.post(end as f64, "warmup ends"),
        None => chart,
    }
}

/// What the lines of [`curves`] are.
pub(super) fn curves_caption(board: &Board<'_>, cell: usize) -> &'static str {
    if arms_with_runs(board, cell).len() <= 2 {
        "Bold lines are means over seeds, thin ones single seeds."
    } else {
        "Lines are means over seeds, ribbons two standard errors either side."
    }
}

/// The first iterations of some cells, a panel each: seeds thin, means bold, the untrained policy at 0.
///
/// Paper: `fig:easy-early`
pub(super) fn early(board: &Board<'_>, wanted: &Early) -> Result<Grid, Error> {
    let mut grid = Grid::new(wanted.title.clone()).columns(3).share_x().share_y();
    for name in &wanted.cells {
        let cell = board.plan.cell(Some(name))?;
        let first = |points: Vec<(usize, f64)>| {
            points.into_iter().filter(|point| point.0 <= wanted.last).map(|(at, value)| (at as f64, value))
        };
        let mut chart =
            LineChart::new(name.clone()).x(Axis::linear("iteration")).y(y_axis(board, cell)).height(190.0);
        for arm in arms_with_runs(board, cell) {
            let runs = board.runs(arm, cell);
            let curves: Vec<_> = runs.iter().map(|run| run.course.points_from_start(judged(board))).collect();
            let mean = first(mean_of(&curves));
            let mut series = Series::new(board.plan.arm_label(arm), mean).tone(Tone::Hue(arm));
            for curve in curves {
                series = series.run(first(curve));
            }
            chart = chart.series(series);
        }
        if let Some(level) = wanted.level {
            chart = chart.level(level, wanted.level_name.clone());
        }
        grid = grid.panel(chart);
    }
    Ok(grid)
}

/// Two standard errors either side of the mean, `(iteration, low, high)`; empty for one seed.
fn band(board: &Board<'_>, runs: &[&Run]) -> Vec<(f64, f64, f64)> {
    let curves: Vec<Vec<(f64, f64)>> =
        runs.iter().map(|run| thinned(run.course.points(judged(board)))).collect();
    let length = curves.iter().map(Vec::len).min().unwrap_or(0);
    let at = |place: usize| {
        let values: Vec<f64> = curves.iter().map(|curve| curve[place].1).collect();
        let (mean, sem) = (niwaki_stats::mean(&values).ok()?, niwaki_stats::sem(&values).ok()?);
        Some((curves[0][place].0, mean - 2.0 * sem, mean + 2.0 * sem))
    };
    (0..length).filter_map(at).collect()
}

/// Where the warmup of a cell's runs ends, where all that have one agree.
fn warmup(board: &Board<'_>, cell: usize) -> Option<usize> {
    let here = board.plan.runs.iter().filter(|run| board.plan.covers(cell, run.cell));
    let mut ends = here.map(|run| run.recipe.schedule.warmup).filter(|&warmup| warmup > 0);
    let first = ends.next()?;
    ends.all(|end| end == first).then_some(first)
}

/// One panel per arm: its seeds thin, its mean bold.
pub(super) fn seeds(board: &Board<'_>, cell: usize) -> Option<Grid> {
    let arms = arms_with_runs(board, cell);
    if arms.len() <= 2 {
        return None;
    }
    let mut grid = Grid::new("Every seed").columns(3).share_x().share_y();
    for arm in arms {
        let runs = board.runs(arm, cell);
        let mut series =
            Series::new(board.plan.arm_label(arm), thinned(mean(board, &runs))).tone(Tone::Hue(arm));
        for run in &runs {
            series = series.run(thinned(run.course.points(judged(board))));
        }
        let chart = LineChart::new(board.plan.arm_label(arm))
            .x(Axis::linear("iteration"))
            .y(y_axis(board, cell))
            .height(150.0)
            .legend(Legend::None)
            .series(series);
        grid = grid.panel(chart);
    }
    Some(grid)
}

fn arms_with_runs(board: &Board<'_>, cell: usize) -> Vec<usize> {
    (0..board.plan.study.arm.len()).filter(|&arm| !board.runs(arm, cell).is_empty()).collect()
}

/// The leads of one endpoint with their intervals; nothing where no lead has one.
pub(super) fn leads(board: &Board<'_>, comparisons: &[Comparison]) -> Option<ForestChart> {
    let first = comparisons.first()?;
    let over = board.plan.arm_label(first.over);
    let mut chart = ForestChart::new(format!("Lead over {over} in {}", first.endpoint.words()))
        .x(Axis::linear("mean lead, paired by seed"))
        .reference(0.0, over);
    let mut drawn = false;
    let alike = |found: &&Comparison| (found.endpoint, found.over) == (first.endpoint, first.over);
    for found in comparisons.iter().filter(alike) {
        let arm = board.plan.arm_label(found.arm);
        let name = match board.plan.place_name(found.cell) {
            None => arm,
            Some(place) => format!("{arm}, {place}"),
        };
        if let Some(interval) = found.decision.interval {
            let line = Interval::new(name, found.decision.mean, interval.low, interval.high);
            chart = chart.line(line.tone(Tone::Hue(found.arm)));
            drawn = true;
        }
    }
    drawn.then_some(chart)
}
