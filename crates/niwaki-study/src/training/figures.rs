//! The charts of a training study.

use super::anatomy::{dead_share, failed};
use super::endpoint::mean_curve;
use super::spec::Curve;
use super::{Board, Comparison, Run};
use niwaki_page::{Axis, ForestChart, Grid, Heatmap, Interval, Legend, LineChart, Series, Tone};

/// Points of a curve that a chart keeps, so that a page with hundreds of seeds stays small.
const SHOWN: usize = 80;

fn thinned(points: Vec<(usize, f64)>) -> Vec<(f64, f64)> {
    let step = points.len().div_ceil(SHOWN).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points.into_iter().enumerate().filter(|(place, _)| place % step == 0 || *place == last);
    kept.map(|(_, (iteration, value))| (iteration as f64, value)).collect()
}

impl Board<'_> {
    fn greedy(&self) -> bool {
        self.plan.study.curve == Curve::Greedy
    }

    fn y_axis(&self, cell: usize) -> Axis {
        let name = if self.greedy() { "greedy success" } else { "η" };
        let share = |run: &Run| run.points(self.greedy()).iter().all(|point| (0.0..=1.0).contains(&point.1));
        let here = |run: &&Run| self.plan.covers(cell, run.cell);
        // A makespan is no share of anything.
        if self.results.runs.iter().filter(here).all(share) {
            Axis::linear(name).range(0.0, 1.0)
        } else {
            Axis::linear("greedy reward")
        }
    }

    /// The mean curve of every arm in a cell: with one or two arms the seeds are drawn too, with more of them twice the
    /// standard error; a line stands where the warmup ends, if all that have one agree.
    ///
    /// Paper: `fig:g-detail`, `fig:h-main`, `fig:i-detail`, `fig:curves`, `fig:bneck`
    pub(super) fn curves(&self, cell: usize) -> LineChart {
        let arms: Vec<usize> = self.arms_with_runs(cell);
        let mut chart = LineChart::new("Return over training, mean over seeds")
            .x(Axis::linear("iteration"))
            .y(self.y_axis(cell));
        for &arm in &arms {
            let runs = self.runs(arm, cell);
            let mut series = Series::new(self.plan.arm_label(arm), thinned(mean_curve(&runs, self.greedy())))
                .tone(Tone::Hue(arm));
            if arms.len() <= 2 {
                for run in &runs {
                    series = series.run(thinned(run.points(self.greedy())));
                }
            } else {
                series = series.band(self.band(&runs));
            }
            chart = chart.series(series);
        }
        match self.warmup(cell) {
            Some(end) => chart.post(end as f64, "warmup ends"),
            None => chart,
        }
    }

    /// Two standard errors either side of the mean, `(iteration, low, high)`; empty for one seed.
    fn band(&self, runs: &[&Run]) -> Vec<(f64, f64, f64)> {
        let curves: Vec<Vec<(f64, f64)>> =
            runs.iter().map(|run| thinned(run.points(self.greedy()))).collect();
        let length = curves.iter().map(Vec::len).min().unwrap_or(0);
        let at = |place: usize| {
            let values: Vec<f64> = curves.iter().map(|curve| curve[place].1).collect();
            let (mean, sem) = (niwaki_stats::mean(&values).ok()?, niwaki_stats::sem(&values).ok()?);
            Some((curves[0][place].0, mean - 2.0 * sem, mean + 2.0 * sem))
        };
        (0..length).filter_map(at).collect()
    }

    /// Where the warmup of a cell's runs ends, where all that have one agree.
    fn warmup(&self, cell: usize) -> Option<usize> {
        let here = self.plan.runs.iter().filter(|run| self.plan.covers(cell, run.cell));
        let mut ends = here.map(|run| run.recipe.schedule.warmup).filter(|&warmup| warmup > 0);
        let first = ends.next()?;
        ends.all(|end| end == first).then_some(first)
    }

    /// One panel per arm: its seeds thin, its mean bold.
    pub(super) fn seeds(&self, cell: usize) -> Option<Grid> {
        let arms = self.arms_with_runs(cell);
        if arms.len() <= 2 {
            return None;
        }
        let mut grid = Grid::new("Every seed").columns(3).share_x().share_y();
        for arm in arms {
            let runs = self.runs(arm, cell);
            let mut series = Series::new(self.plan.arm_label(arm), thinned(mean_curve(&runs, self.greedy())))
                .tone(Tone::Hue(arm));
            for run in &runs {
                series = series.run(thinned(run.points(self.greedy())));
            }
            let chart = LineChart::new(self.plan.arm_label(arm))
                .x(Axis::linear("iteration"))
                .y(self.y_axis(cell))
                .height(150.0)
                .legend(Legend::None)
                .series(series);
            grid = grid.panel(chart);
        }
        Some(grid)
    }

    fn arms_with_runs(&self, cell: usize) -> Vec<usize> {
        (0..self.plan.study.arm.len()).filter(|&arm| !self.runs(arm, cell).is_empty()).collect()
    }

    /// How much of the batch starts with a dead token, for runs that fail and runs that succeed.
    pub(super) fn dead_starts(&self, cell: usize) -> Option<LineChart> {
        let runs: Vec<&Run> = self.results.runs.iter().filter(|run| run.cell == cell).collect();
        let (lost, won): (Vec<&Run>, Vec<&Run>) = runs.into_iter().partition(|run| failed(run));
        if lost.is_empty() {
            return None;
        }
        let curve = |run: &Run| -> Vec<(usize, f64)> {
            run.curve.iter().map(|record| (record.iteration, dead_share(record))).collect()
        };
        let mut chart = LineChart::new("Share of the batch that starts with B or D")
            .x(Axis::log("iteration"))
            .y(Axis::linear("P(first token ∈ {B, D})").range(0.0, 1.0));
        for (name, group, tone) in [("failed", lost, Tone::Hue(1)), ("succeeded", won, Tone::Hue(0))] {
            let Some(length) = group.iter().map(|run| run.curve.len()).min() else { continue };
            let mean = |place: usize| {
                group.iter().map(|run| dead_share(&run.curve[place])).sum::<f64>() / group.len() as f64
            };
            let points = (0..length).map(|place| (place as f64 + 1.0, mean(place)));
            let mut series = Series::new(format!("{name} ({})", group.len()), points).tone(tone);
            for run in group.iter().take(SHOWN) {
                series =
                    series.run(curve(run).into_iter().map(|(iteration, share)| (iteration as f64, share)));
            }
            chart = chart.series(series);
        }
        Some(chart)
    }

    /// The leads of one endpoint with their intervals.
    pub(super) fn leads(&self, comparisons: &[Comparison]) -> Option<ForestChart> {
        let first = comparisons.first()?;
        let over = self.plan.arm_label(first.over);
        let mut chart = ForestChart::new(format!("Lead over {over} in {}", first.endpoint.words()))
            .x(Axis::linear("mean lead, paired by seed"))
            .reference(0.0, over);
        let alike = |found: &&Comparison| (found.endpoint, found.over) == (first.endpoint, first.over);
        for found in comparisons.iter().filter(alike) {
            let arm = self.plan.arm_label(found.arm);
            let name = match self.plan.place_name(found.cell) {
                None => arm,
                Some(place) => format!("{arm}, {place}"),
            };
            let tone = Tone::Hue(found.arm);
            chart = chart
                .line(Interval::new(name, found.lead, found.interval.low, found.interval.high).tone(tone));
        }
        Some(chart)
    }

    /// The lead of an arm over a grid of two numeric axes.
    pub(super) fn lead_map(&self, arm: usize, comparisons: &[Comparison]) -> Option<Heatmap> {
        let [rows, columns] = self.plan.study.grid.as_slice() else { return None };
        let endpoint = comparisons.first()?.endpoint;
        let lead = |cell: usize| {
            let found = comparisons.iter().find(|c| c.arm == arm && c.cell == cell && c.endpoint == endpoint);
            found.map_or(f64::NAN, |found| found.lead)
        };
        let wide = columns.values.len();
        let values =
            (0..rows.values.len()).map(|row| (0..wide).map(|column| lead(row * wide + column)).collect());
        let name = |axis: &super::spec::Axis| axis.name.clone().unwrap_or_else(|| axis.key.clone());
        Some(
            Heatmap::new(format!("Lead of {} in {}", self.plan.arm_label(arm), endpoint.words()), values)
                .rows(name(rows), rows.values.iter().map(ToString::to_string))
                .columns(name(columns), columns.values.iter().map(ToString::to_string))
                .name("lead")
                .centre(0.0),
        )
    }
}
