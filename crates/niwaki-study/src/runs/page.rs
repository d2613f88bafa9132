//! The page that a run ends with.

use super::Run;
use niwaki_correction::schedule::alpha_for_drift;
use niwaki_page::{
    Axis, Callout, Cell, Column, Figure, Format, Grid, LineChart, Made, Page, Section, Series, Table, Tile,
};
use niwaki_train::Record;

/// Effective sample size below which a full correction has collapsed.
const COLLAPSED: f64 = 0.1;

/// What a run came to: its curve, then drift, ESS and clipping on the way, and the strength that the drift licensed.
#[must_use]
pub fn run_page(run: &Run, made: Made) -> Page {
    let Run { spec, finished, .. } = run;
    let judged = run.judged();
    let curve = run.curve(judged);
    let last = curve.last().map_or(f64::NAN, |point| point.1);
    let best = curve.iter().map(|point| point.1).fold(f64::NAN, f64::max);
    let mean = curve.iter().map(|point| point.1).sum::<f64>() / curve.len().max(1) as f64;
    let number = |value: f64| Format::significant(3).text(value);
    let chart = LineChart::new("What the policy earns")
        .x(Axis::linear("iteration").whole())
        .y(Axis::linear(judged.words()))
        .series(Series::new(spec.update.correction.clone(), curve));
    let chart = if spec.warmup.iterations > 0 {
        chart.post(spec.warmup.iterations as f64, "warmup ends")
    } else {
        chart
    };
    let title = match spec.own {
        Some(_) => format!("A policy trained on {}", spec.task.kind),
        None => format!("A {} policy trained on {}", spec.policy.kind.words(), spec.task.kind),
    };
    // Another trainer may have measured what its policy earns and nothing else.
    let measured = spec.own.is_none() || finished.curve.iter().any(|record| record.kl != 0.0);
    let page = Page::new(title)
        .subtitle(format!(
            "{}, seed {}, {} of {} iterations",
            spec.update.correction, spec.seed, finished.summary.done, finished.summary.iterations
        ))
        .tile(Tile::new(format!("{} at the end", judged.words()), number(last)))
        .tile(Tile::new("best during the run", number(best)))
        .tile(Tile::new("mean over the run (AUC)", number(mean)))
        .tile(Tile::new("mean drift σ²T", number(finished.summary.mean_drift)))
        .section(
            Section::new("Result").callout(conclusion(run, last, best)).figure(
                Figure::new(&chart)
                    .caption("One point per evaluation of the policy.")
                    .hint("Drag over the plot to zoom in, double-click to zoom out."),
            ),
        );
    let page = if measured { page.section(on_the_way(&finished.curve)) } else { page };
    page.section(Section::new("What was run").table(settings(run))).made(made)
}

/// One sentence on the whole run.
fn conclusion(run: &Run, last: f64, best: f64) -> Callout {
    let summary = &run.finished.summary;
    if summary.diverged {
        return Callout::bad(
            format!("Training diverged after iteration {}.", summary.done),
            "The last good checkpoint is kept; the run can go on from there with a smaller `optimiser.rate`.",
        );
    }
    let passed = match (summary.broke_through, summary.solved) {
        (None, _) => "It never passed 0.3".to_owned(),
        (Some(at), None) => format!("It passed 0.3 at iteration {at} and never reached 0.95"),
        (Some(at), Some(solved)) => format!("It passed 0.3 at iteration {at} and reached 0.95 at {solved}"),
    };
    let earned = match summary.zero_reward_batches {
        0 => "every batch earned some reward".to_owned(),
        count => format!("{count} of {} batches earned no reward", summary.done),
    };
    let because = format!("{passed}; {earned}.");
    let says = format!("The run ended at {}.", Format::significant(3).text(last));
    if summary.zero_reward_batches == summary.done {
        Callout::bad(
            "No trajectory was ever rewarded.",
            "There was nothing to learn from: an easier start, more trajectories per batch or another reward may help.",
        )
    } else if run.spec.own.is_some() {
        // On whatever scale its task pays.
        Callout::neutral(
            says,
            format!("Its best on the way was {}; {earned}.", Format::significant(3).text(best)),
        )
    } else if summary.success {
        Callout::good(says, because)
    } else {
        Callout::neutral(says, because)
    }
}

/// How stale the batches became, iteration by iteration.
fn on_the_way(curve: &[Record]) -> Section {
    let series = |name: &str, value: &dyn Fn(&Record) -> Option<f64>| {
        let points = curve.iter().filter_map(|record| value(record).map(|y| (record.iteration as f64, y)));
        Series::new(name, points.collect::<Vec<_>>())
    };
    let panel =
        |title: &str, y: Axis| LineChart::new(title).x(Axis::linear("iteration").whole()).y(y).height(190.0);
    let share = |name: &str| Axis::linear(name).percent().include(0.0).include(1.0);
    let measured = curve.iter().any(|record| record.alpha.is_some());
    let mut strength = panel("Strength licensed by the drift", Axis::linear("α").include(0.0).include(1.0))
        .series(series("licensed, min(1, 1/σ²T)", &|record| Some(alpha_for_drift(record.drift))));
    if measured {
        strength = strength.series(series("used", &|record| record.alpha));
    }
    let grid = Grid::new("How stale each batch became")
        .columns(2)
        .panel(
            panel("Drift", Axis::linear("σ²T").include(0.0))
                .series(series("drift", &|record| Some(record.drift))),
        )
        .panel(
            panel("Effective sample size", share("share of the batch"))
                .series(series("with this loss's own weights", &|record| Some(record.ess)))
                .series(series("with the full correction", &|record| Some(record.prefix_ess)))
                .level(COLLAPSED, "collapsed"),
        )
        .panel(
            panel("Clipping", share("clipped steps"))
                .series(series("clipped", &|record| Some(record.clip_fraction))),
        )
        .panel(strength);
    Section::new("During the run").figure(Figure::new(&grid).caption(
        "Drift is the variance of the whole trajectory's log-ratio between the policy that sampled a batch and the one \
         after its last epoch. The effective sample size is the share of a batch that is left after weighting. The licensed \
         strength is the exponent α that the paper's rule allows at that drift.",
    ))
}

/// What the run was asked to do, beyond the defaults.
fn settings(run: &Run) -> Table {
    let title = match run.spec.own {
        Some(_) => "Settings",
        None => "Settings that differ from the paper's defaults",
    };
    let mut table = Table::new(title).column(Column::text("key")).column(Column::text("value"));
    for (key, value) in super::compare::settings(&run.spec) {
        table.push([Cell::code(key), Cell::code(value)]);
    }
    match run.spec.own {
        Some(_) => table.note("`spec.toml`, beside this page, has them too."),
        None => table.note("`spec.toml`, beside this page, has every key with a sentence for each."),
    }
}
