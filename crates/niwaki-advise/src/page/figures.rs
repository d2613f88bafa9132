//! The curves of the page.

use super::deciding::Curve;
use crate::measure::{IterationRow, Measured, PositionRow, REACHED};
use niwaki_page::{Axis, Figure, LineChart, Section, Series, Tone};

/// Positions that a curve shows at most.
const POINTS: usize = 400;

/// The positions that a tenth of the trajectories reach: beyond, an ESS is that of a handful.
pub(crate) fn reached(rows: &[PositionRow]) -> &[PositionRow] {
    let first = rows.first().map_or(0.0, |row| row.mass);
    let end = rows.iter().rposition(|row| row.mass >= REACHED * first).map_or(0, |last| last + 1);
    &rows[..end]
}

/// Positions spread evenly, the last one kept.
fn thinned(rows: &[PositionRow]) -> Vec<&PositionRow> {
    let step = rows.len().div_ceil(POINTS).max(1);
    let last = rows.len().saturating_sub(1);
    rows.iter().enumerate().filter(|(at, _)| at % step == 0 || *at == last).map(|(_, row)| row).collect()
}

fn place() -> Axis {
    Axis::linear("steps of the policy before it").whole()
}

type Band = Vec<(f64, f64, f64)>;

/// A curve along the trajectory.
fn curve(rows: &[&PositionRow], of: fn(&PositionRow) -> f64) -> Vec<(f64, f64)> {
    rows.iter().map(|row| (row.position as f64, of(row))).collect()
}

/// Its interval, within the range that it cannot leave.
fn band(rows: &[&PositionRow], of: fn(&PositionRow) -> (f64, Option<f64>), least: f64, most: f64) -> Band {
    let reach = |row: &&PositionRow| {
        let (value, error) = of(row);
        let error = error?;
        Some((row.position as f64, (value - error).max(least), (value + error).min(most)))
    };
    rows.iter().filter_map(reach).collect()
}

/// What a full correction would leave of the batch.
pub(super) fn ess(measured: &Measured) -> Figure {
    let rows = thinned(reached(&measured.positions));
    let chart = LineChart::new("Effective sample size of the prefix ratio")
        .x(place())
        .y(Axis::linear("share of the batch").percent().include(0.0).include(1.0))
        .series(
            Series::new("raw", curve(&rows, |row| row.prefix_ess))
                .band(band(&rows, |row| (row.prefix_ess, row.prefix_ess_error), 0.0, 1.0))
                .tone(Tone::Hue(0)),
        )
        .series(
            Series::new("ratios clamped at 2", curve(&rows, |row| row.prefix_ess_clamped))
                .dashed()
                .tone(Tone::Hue(1)),
        )
        .level(0.1, "collapsed");
    Figure::new(&chart).caption(
        "What a full correction would leave of the batch at each step. Clamped weights look healthy however stale the data is; \
         only the raw curve can warn. Curves end where fewer than a tenth of the trajectories are left.",
    )
}

/// Where drift meets the advantage, with the level below which there is nothing to correct.
pub(super) fn lives(measured: &Measured, level: Option<f64>) -> Figure {
    let rows = thinned(reached(&measured.positions));
    let mut chart = LineChart::new("Where drift meets the advantage")
        .x(place())
        .y(Axis::linear("root mean square").include(0.0))
        .series(Series::new("prefix log-ratio", curve(&rows, |row| row.prefix_rms)).tone(Tone::Hue(0)))
        .series(Series::new("advantage", curve(&rows, |row| row.advantage_rms)).tone(Tone::Hue(1)))
        .height(220.0);
    if let Some(level) = level {
        chart = chart.level(level, "matters above");
    }
    Figure::new(&chart).caption("A correction acts where both are large (condition C1).")
}

/// What happens along the trajectory, but for the curve that is shown already.
pub(super) fn along(measured: &Measured, shown: Curve) -> Section {
    let rows = thinned(reached(&measured.positions));
    let any = (f64::NEG_INFINITY, f64::INFINITY);
    let witness = LineChart::new("Bias witness b")
        .x(place())
        .y(Axis::linear("b").include(0.0))
        .series(
            Series::new("b with its 95% interval", curve(&rows, |row| row.bias_witness))
                .band(band(&rows, |row| (row.bias_witness, row.bias_witness_error), any.0, any.1))
                .tone(Tone::Hue(0)),
        )
        .level(0.0, "no bias");
    let mut section = Section::new("Along the trajectory").figure(Figure::new(&witness).caption(
        "The covariance of the prefix ratio with what the step adds to the objective: zero where upweighted and downweighted \
         prefixes are worth the same. The ribbon is its 95% interval.",
    ));
    if shown != Curve::Lives {
        section = section.figure(lives(measured, None));
    }
    if shown != Curve::Ess {
        section = section.figure(ess(measured));
    }
    section
}

/// A curve over the run.
fn over(measured: &Measured, of: fn(&IterationRow) -> f64) -> Vec<(f64, f64)> {
    let there = measured.iterations.iter().filter(|row| row.lanes > 0);
    there.map(|row| (row.iteration as f64, of(row))).collect()
}

fn iteration() -> Axis {
    Axis::linear("iteration").whole()
}

/// Weights, clip and trajectories without an advantage over the run.
pub(super) fn shares(measured: &Measured) -> Figure {
    let chart = LineChart::new("Weights and clip over the run")
        .x(iteration())
        .y(Axis::linear("share").percent().include(0.0).include(1.0))
        .series(Series::new("ESS of a full correction", over(measured, |row| row.ess)).tone(Tone::Hue(0)))
        .series(
            Series::new("flat side of the clip", over(measured, |row| row.clip_fraction)).tone(Tone::Hue(1)),
        )
        .series(
            Series::new("zero advantage", over(measured, |row| row.zero_signal)).tone(Tone::Hue(2)).dashed(),
        );
    Figure::new(&chart).caption(
        "What a full correction would leave of each batch, the steps that the clip silences, and the trajectories without an \
         advantage.",
    )
}

/// Rewards over the run beside the highest, where there are any and several iterations.
pub(super) fn rewards(measured: &Measured) -> Option<Figure> {
    let rows: Vec<(f64, f64)> =
        measured.iterations.iter().filter_map(|row| Some((row.iteration as f64, row.mean_reward?))).collect();
    if rows.len() < 2 {
        return None;
    }
    let chart = LineChart::new("Mean reward over the run")
        .x(iteration())
        .y(Axis::linear("mean reward"))
        .series(Series::new("mean reward", rows).tone(Tone::Hue(0)))
        .height(220.0);
    Some(
        Figure::new(&chart)
            .caption("Where the highest reward in the dump is near, a correction has little to speed up."),
    )
}

/// What happens over the run, but for the curve that is shown already.
pub(super) fn course(measured: &Measured, shown: Curve) -> Section {
    let drifts = || measured.iterations.iter().map(|row| row.drift).filter(|drift| drift.is_finite());
    let ends =
        drifts().fold((f64::INFINITY, 0.0_f64), |(low, high), drift| (low.min(drift), high.max(drift)));
    // Decades only where there are some.
    let wide = ends.0 > 0.0 && ends.1 > 10.0 * ends.0;
    let scale = if wide { Axis::log("σ²T") } else { Axis::linear("σ²T").include(0.0) };
    let drift = LineChart::new("Drift over the run")
        .x(iteration())
        .y(scale)
        .series(Series::new("drift", over(measured, |row| row.drift)).tone(Tone::Hue(0)));
    let mut section = Section::new("Over the run").figure(
        Figure::new(&drift).caption("Drift of the policy from the one that sampled, after its updates."),
    );
    if shown != Curve::Shares {
        section = section.figure(shares(measured));
    }
    if measured.iterations.iter().all(|row| row.rewarded.is_some()) {
        let rewarded = LineChart::new("Rewarded trajectories")
            .x(iteration())
            .y(Axis::linear("share").percent().include(0.0))
            .series(
                Series::new("rewarded", over(measured, |row| row.rewarded.unwrap_or(f64::NAN)))
                    .tone(Tone::Hue(0)),
            )
            .height(200.0);
        section =
            section.figure(Figure::new(&rewarded).caption("Scarce rewards can trap a run (condition C3)."));
    }
    section
}

/// Variances of log-ratios by the age of the policy that sampled.
pub(super) fn by_age(measured: &Measured) -> Figure {
    let of = |value: fn(&crate::measure::AgeRow) -> Option<f64>| -> Vec<(f64, f64)> {
        measured.ages.iter().filter_map(|row| Some((row.age as f64, value(row)?))).collect()
    };
    let mut chart = LineChart::new("What makes a step's ratio differ from one")
        .x(Axis::linear("versions between the sampling policy and the newest").whole())
        .y(Axis::linear("variance of the log-ratio").include(0.0));
    let sampler = of(|row| row.sampler);
    if !sampler.is_empty() {
        let name = "old policy against the engine: mismatch, and staleness";
        chart = chart.series(Series::new(name, sampler).markers().tone(Tone::Hue(0)));
    }
    chart = chart.series(
        Series::new("policy now against the old one: reuse", of(|row| Some(row.reuse)))
            .markers()
            .dashed()
            .tone(Tone::Hue(1)),
    );
    Figure::new(&chart).caption(
        "At age 0 the engine that sampled and the trainer hold the same weights, so that what is left there is what the engines differ \
         by. What rises with age is staleness.",
    )
}

/// The histogram of log-ratios.
pub(super) fn ratios(measured: &Measured, clip: (f64, f64)) -> Section {
    let bins = &measured.log_ratios;
    // The outline of the histogram, filled from zero.
    let outline = bins.iter().flat_map(|bin| [(bin.from, bin.share), (bin.to, bin.share)]);
    let filled = bins.iter().flat_map(|bin| [(bin.from, 0.0, bin.share), (bin.to, 0.0, bin.share)]);
    let mut chart = LineChart::new("Log-ratios of the steps")
        .x(Axis::linear("log π_new − log π_old"))
        .y(Axis::linear("share of the steps").percent().include(0.0))
        .series(Series::new("", outline).band(filled).tone(Tone::Hue(0)))
        .height(240.0);
    let reach = bins.last().map_or(0.0, |bin| bin.to);
    for (bound, name) in [((1.0 - clip.0).ln(), "clip"), ((1.0 + clip.1).ln(), "clip")] {
        if bound.abs() <= reach {
            chart = chart.post(bound, name);
        }
    }
    Section::new("Ratios").figure(Figure::new(&chart).caption(
        "All but a thousandth of the steps on either side. Steps beyond the clip may carry no gradient.",
    ))
}
