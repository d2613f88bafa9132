//! The page: verdict, plots and every number, in one file.

use crate::measure::{AlphaRow, Measured, PositionRow, REACHED};
use crate::text::{facts, formulas, number_table};
use crate::verdict::{Action, Verdict};
use niwaki_page::{
    Axis, Callout, Cell, Column, Figure, Format, LineChart, Made, Page, Section, Series, Table, Tile, Tone,
};

/// Positions that a curve shows at most.
const POINTS: usize = 400;

/// The page of a dump.
#[must_use]
pub fn page(title: &str, measured: &Measured, verdict: &Verdict, clip: (f64, f64), made: Made) -> Page {
    let number = |name: &str| measured.numbers.iter().find(|number| number.name == name);
    let tile = |label: &str, name: &str, format: Format| {
        let (value, low, high) = number(name).map_or((f64::NAN, None, None), |n| (n.value, n.low, n.high));
        let tile = Tile::new(label, format.text(value));
        match (low, high) {
            (Some(low), Some(high)) if low < high => {
                tile.note(format!("95%: {} to {}", format.text(low), format.text(high)))
            }
            _ => tile,
        }
    };
    let short = Format::significant(2);
    let mut page = Page::new(title)
        .subtitle(facts(measured))
        .lead(format!("**{}**", capital(&verdict.says)))
        .tile(tile("Drift σ²T", "drift", short))
        .tile(tile("ESS of a full correction", "ess", Format::percent(0)))
        .tile(tile("Bias Σ b", "bias_total", short.signed()))
        .section(verdict_section(verdict))
        .section(along(measured));
    if measured.iterations.len() > 1 {
        page = page.section(course(measured));
    }
    page.section(ratios(measured, clip))
        .section(strengths(measured, verdict))
        .section(
            Section::new("Every number")
                .table(number_table(measured))
                .folded("How each number is made", formulas(measured)),
        )
        .section(verl(measured))
        .made(made)
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn verdict_section(verdict: &Verdict) -> Section {
    let says = capital(&verdict.says);
    let mut reasons = verdict.because.iter().cloned();
    let because = reasons.next().unwrap_or_default();
    let mut plain =
        vec![format!("**How sure:** {}", verdict.sure), format!("**If nothing changes:** {}", verdict.idle)];
    plain.extend(
        verdict.set.iter().map(|advised| format!("**In {}:** {}", advised.trainer.name(), advised.what)),
    );
    let callout = match verdict.action {
        Action::CorrectionWasted => Callout::good(says, because),
        Action::ShortWarmup { .. } | Action::NotEnoughData { .. } => Callout::neutral(says, because),
        Action::ReduceReuse | Action::NoSignal => Callout::bad(says, because),
    };
    Section::new("Verdict").callout(callout).list(plain).list(reasons)
}

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

fn along(measured: &Measured) -> Section {
    let rows = thinned(reached(&measured.positions));
    let curve = |of: fn(&PositionRow) -> f64| -> Vec<(f64, f64)> {
        rows.iter().map(|row| (row.position as f64, of(row))).collect()
    };
    let band = |of: fn(&PositionRow) -> (f64, Option<f64>), least: f64, most: f64| -> Vec<(f64, f64, f64)> {
        let reach = |row: &&PositionRow| {
            let (value, error) = of(row);
            let error = error?;
            Some((row.position as f64, (value - error).max(least), (value + error).min(most)))
        };
        rows.iter().filter_map(reach).collect()
    };
    let place = || Axis::linear("steps of the policy before it").whole();
    let ess = LineChart::new("Effective sample size of the prefix ratio")
        .x(place())
        .y(Axis::linear("share of the batch").percent().include(0.0).include(1.0))
        .series(
            Series::new("raw", curve(|row| row.prefix_ess))
                .band(band(|row| (row.prefix_ess, row.prefix_ess_error), 0.0, 1.0))
                .tone(Tone::Hue(0)),
        )
        .series(
            Series::new("ratios clamped at 2", curve(|row| row.prefix_ess_clamped))
                .dashed()
                .tone(Tone::Hue(1)),
        )
        .level(0.1, "collapsed");
    let any = (f64::NEG_INFINITY, f64::INFINITY);
    let witness = LineChart::new("Bias witness b")
        .x(place())
        .y(Axis::linear("b").include(0.0))
        .series(
            Series::new("b with its 95% interval", curve(|row| row.bias_witness))
                .band(band(|row| (row.bias_witness, row.bias_witness_error), any.0, any.1))
                .tone(Tone::Hue(0)),
        )
        .level(0.0, "no bias");
    let lives = LineChart::new("Where drift meets the advantage")
        .x(place())
        .y(Axis::linear("root mean square").include(0.0))
        .series(Series::new("prefix log-ratio", curve(|row| row.prefix_rms)).tone(Tone::Hue(0)))
        .series(Series::new("advantage", curve(|row| row.advantage_rms)).tone(Tone::Hue(1)))
        .height(220.0);
    Section::new("Along the trajectory")
        .figure(Figure::new(&ess).caption(
            "What a full correction would leave of the batch at each step. Clamped weights look healthy however \
             stale the data is; only the raw curve can warn. The figures end where fewer than a tenth of the trajectories \
             are left.",
        ))
        .figure(Figure::new(&witness).caption(
            "The covariance of the prefix ratio with what the step adds to the objective: zero where upweighted and \
             downweighted prefixes are worth the same. The ribbon is its 95% interval.",
        ))
        .figure(Figure::new(&lives).caption("A correction acts where both are large (condition C1)."))
}

fn course(measured: &Measured) -> Section {
    let rows = &measured.iterations;
    let curve = |of: fn(&crate::measure::IterationRow) -> f64| -> Vec<(f64, f64)> {
        rows.iter().map(|row| (row.iteration as f64, of(row))).collect()
    };
    let iteration = || Axis::linear("iteration").whole();
    let ends = rows
        .iter()
        .fold((f64::INFINITY, 0.0_f64), |(low, high), row| (low.min(row.drift), high.max(row.drift)));
    // Decades only where there are some.
    let wide = ends.0 > 0.0 && ends.1 > 10.0 * ends.0;
    let scale = if wide { Axis::log("σ²T") } else { Axis::linear("σ²T").include(0.0) };
    let drift = LineChart::new("Drift over the run")
        .x(iteration())
        .y(scale)
        .series(Series::new("drift", curve(|row| row.drift)).tone(Tone::Hue(0)));
    let shares = LineChart::new("Weights and clip over the run")
        .x(iteration())
        .y(Axis::linear("share").percent().include(0.0).include(1.0))
        .series(Series::new("ESS of a full correction", curve(|row| row.ess)).tone(Tone::Hue(0)))
        .series(Series::new("flat side of the clip", curve(|row| row.clip_fraction)).tone(Tone::Hue(1)))
        .series(Series::new("zero advantage", curve(|row| row.zero_signal)).tone(Tone::Hue(2)).dashed());
    let mut section = Section::new("Over the run")
        .figure(
            Figure::new(&drift).caption("Drift of the policy from the one that sampled, after its updates."),
        )
        .figure(Figure::new(&shares).caption(
            "What a full correction would leave of each batch, the steps that the clip silences, and the trajectories \
             without an advantage.",
        ));
    if rows.iter().all(|row| row.rewarded.is_some()) {
        let rewarded = LineChart::new("Rewarded trajectories")
            .x(iteration())
            .y(Axis::linear("share").percent().include(0.0))
            .series(Series::new("rewarded", curve(|row| row.rewarded.unwrap_or(f64::NAN))).tone(Tone::Hue(0)))
            .height(200.0);
        section =
            section.figure(Figure::new(&rewarded).caption("Scarce rewards can trap a run (condition C3)."));
    }
    section
}

fn ratios(measured: &Measured, clip: (f64, f64)) -> Section {
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

fn strengths(measured: &Measured, verdict: &Verdict) -> Section {
    let mut table = Table::new("A batch's estimate at each strength, the full correction taken as the truth")
        .column(Column::number("α").format(Format::fixed(1)))
        .column(Column::number("bias").format(Format::significant(2)))
        .column(Column::number("variance").format(Format::significant(3)))
        .column(Column::number("squared error").format(Format::significant(3)))
        .column(Column::number("ESS").format(Format::percent(0)));
    // The advised row is marked, so that table and verdict tell one story.
    let advised = match verdict.action {
        Action::ShortWarmup { alpha, .. } => alpha,
        _ => 0.0,
    };
    let away = |row: &AlphaRow| (row.alpha - advised).abs();
    let nearest = measured.alphas.iter().min_by(|one, other| away(one).total_cmp(&away(other)));
    let marked = nearest.map(|row| row.alpha);
    for row in &measured.alphas {
        let error = Cell::from(row.error);
        table.push([
            Cell::from(row.alpha),
            Cell::from(row.bias),
            Cell::from(row.variance),
            if Some(row.alpha) == marked { error.best() } else { error },
            Cell::from(row.ess),
        ]);
    }
    let mut longer = Table::new("How many times as long as PPO's the gradient is")
        .column(Column::number("α").format(Format::significant(2)))
        .column(Column::number("amplification").format(Format::significant(3)));
    for row in &measured.amplifications {
        longer.push([Cell::from(row.alpha), Cell::from(row.amplification)]);
    }
    Section::new("Strengths").table(table).table(longer).note(
        "The row nearest to the advice is marked. Squared error of the mean over one batch: squared bias, less the noise of \
         its estimate, plus variance over N. It scores the estimate of the objective, and so asks for more strength than \
         an update can use: the gradient also routes credit back, whose variance this table does not hold.",
    )
}

fn verl(measured: &Measured) -> Section {
    let mut table = Table::new(format!("`rollout_corr/*`, {}", measured.facts.verl_pair))
        .column(Column::text("metric"))
        .column(Column::number("value").format(Format::significant(4)));
    for (name, value) in &measured.verl {
        table.push([Cell::code(format!("rollout_corr/{name}")), Cell::from(*value)]);
    }
    Section::new("verl's metrics").table(table).note(
        "By verl's definitions over all of the data as one batch; names that end in `_raw` are the same without its \
         clamp and truncation.",
    )
}
