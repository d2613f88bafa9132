//! The page of one run.

use super::arms::beyond_defaults;
use niwaki_correction::schedule::{COLLAPSED, alpha_for_drift};
use niwaki_page::{
    Axis, Callout, Cell, Column, Figure, Format, Grid, LineChart, Made, Page, Section, Series, Table, Tile,
};
use niwaki_train::Record;
use niwaki_train::reading::{Endpoint, Judged, Run, Standing};

/// What a run came to, or how far it is: its curve, then drift, ESS and clipping on the way, and the strength that the drift
/// licensed.
#[must_use]
pub fn run_page(run: &Run, made: Made) -> Page {
    let Run { spec, course, standing, .. } = run;
    let judged = course.judged();
    let number =
        |value: Option<f64>| value.map_or("–".to_owned(), |value| Format::significant(3).text(value));
    let points = |points: Vec<(usize, f64)>| points.into_iter().map(|(at, value)| (at as f64, value));
    let measured = course.measured(judged);
    let best = measured.iter().map(|point| point.1).reduce(f64::max);
    let last = measured.last().map(|point| point.1);
    let chart = LineChart::new("What the policy earns")
        .x(Axis::linear("iteration").whole())
        .y(Axis::linear(judged.words()))
        .series(Series::new(spec.update.correction.clone(), points(measured).collect::<Vec<_>>()));
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
    let measured = spec.own.is_none() || course.curve.iter().any(|record| record.kl != 0.0);
    let page = Page::new(title).subtitle(format!(
        "{}, seed {}, {} of {} iterations",
        spec.update.correction,
        spec.seed,
        course.done(),
        course.iterations
    ));
    let [mean, end] = judged.endpoints();
    // What is not over has no endpoint yet.
    let page = match standing {
        Standing::Running => page
            .tile(Tile::new("iterations", format!("{} of {}", course.done(), course.iterations)))
            .tile(Tile::new(format!("{} so far", judged.words()), number(last))),
        _ => page
            .tile(Tile::new(format!("{} at the end", judged.words()), number(end.of(course))))
            .tile(Tile::new("mean over the run (AUC)", number(mean.of(course)))),
    };
    let page = page
        .tile(Tile::new("best during the run", number(best)))
        .tile(Tile::new("mean drift σ²T", number(Endpoint::MeanDrift.of(course))))
        .section(
            Section::new("Result").callout(conclusion(run, judged, best)).figure(
                Figure::new(&chart)
                    .caption("One point per evaluation of the policy.")
                    .hint("Drag over the plot to zoom in, double-click to zoom out."),
            ),
        );
    let page = if measured { page.section(on_the_way(&course.curve)) } else { page };
    page.section(Section::new("What was run").table(settings(run))).made(made)
}

/// One sentence on the whole run.
fn conclusion(run: &Run, judged: Judged, best: Option<f64>) -> Callout {
    let Run { course, standing, .. } = run;
    let done = course.done();
    match standing {
        Standing::Diverged => {
            return Callout::bad(
                format!("Training diverged after iteration {done}."),
                "What it did not come to counts as nothing earned. Where a good checkpoint is kept, the run can go on from there \
                 with a smaller `optimiser.rate`.",
            );
        }
        Standing::Running => {
            return Callout::neutral(
                format!("The run is not finished: {done} of {} iterations.", course.iterations),
                "This page is written again every minute while it trains. If it was stopped, the same command goes on.",
            );
        }
        Standing::Finished => {}
    }
    let at = |endpoint: Endpoint| endpoint.iteration(course);
    let passed = match (at(Endpoint::BreakThrough), at(Endpoint::Reached)) {
        (None, _) => "It never passed 0.3".to_owned(),
        (Some(at), None) => format!("It passed 0.3 at iteration {at} and never reached 0.95"),
        (Some(at), Some(solved)) => format!("It passed 0.3 at iteration {at} and reached 0.95 at {solved}"),
    };
    let silent = course.curve.iter().filter(|record| record.zero_reward).count();
    let earned = match silent {
        0 => "every batch earned some reward".to_owned(),
        count => format!("{count} of {done} batches earned no reward"),
    };
    let because = format!("{passed}; {earned}.");
    let last = judged.endpoints()[1].of(course).unwrap_or(f64::NAN);
    let says = format!("The run ended at {}.", Format::significant(3).text(last));
    if silent == done {
        Callout::bad(
            "No trajectory was ever rewarded.",
            "There was nothing to learn from: an easier start, more trajectories per batch or another reward may help.",
        )
    } else if run.spec.own.is_some() {
        // On whatever scale its task pays.
        Callout::neutral(
            says,
            format!(
                "Its best on the way was {}; {earned}.",
                Format::significant(3).text(best.unwrap_or(f64::NAN))
            ),
        )
    } else if Endpoint::Success.of(course) == Some(1.0) {
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
    for (key, value) in beyond_defaults(&run.spec) {
        table.push([Cell::code(key), Cell::code(value)]);
    }
    match run.spec.own {
        Some(_) => table.note("`spec.toml`, beside this page, has them too."),
        None => table.note("`spec.toml`, beside this page, has every key with a sentence for each."),
    }
}
