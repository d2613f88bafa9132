//! MSE against α, sweeps over drift, channels and the bias witness.

use super::{Row, Spread, Summary};
use niwaki_correction::Surrogate;
use niwaki_page::{Axis, BarChart, Bars, Grid as Panels, Legend, LineChart, Series, Tone};

/// A bias below this is what sums of floating-point numbers leave of zero.
const ROUNDING: f64 = 1e-14;

/// MSE against the tempering coefficient, with PPO's level.
///
/// Paper: `fig:diag-mse-alpha`
#[must_use]
pub fn mse_against_alpha(summaries: &[Summary]) -> LineChart {
    let chart = LineChart::new("MSE against the tempering coefficient")
        .y(Axis::log("MSE of the single-trajectory estimate"));
    against_alpha(chart, summaries, |row| row.mse)
}

/// Alignment of a batch's update against the tempering coefficient, with PPO's level.
pub(super) fn alignment_against_alpha(summaries: &[Summary], batch: u64) -> LineChart {
    let chart = LineChart::new("Alignment against the tempering coefficient")
        .y(Axis::linear(format!("A({batch})")).include(0.0));
    against_alpha(chart, summaries, |row| row.alignment)
}

fn against_alpha(chart: LineChart, summaries: &[Summary], measure: impl Fn(&Summary) -> Spread) -> LineChart {
    let mut points: Vec<(f64, Spread)> = summaries
        .iter()
        .filter(|row| matches!(row.surrogate.correction.name(), "ppo" | "tempered" | "full"))
        .map(|row| (row.strength.mean, measure(row)))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let series = Series::new("tempered", points.iter().map(|&(alpha, at)| (alpha, at.mean)))
        .errors(points.iter().map(|&(alpha, at)| (alpha, at.mean - at.sem, at.mean + at.sem)))
        .markers();
    let chart = chart.x(Axis::linear("α")).series(series);
    match points.first().filter(|point| point.0 == 0.0) {
        Some((_, ppo)) => chart.level(ppo.mean, "PPO"),
        None => chart,
    }
}

/// Error, direction and ESS against the mean KL between the two policies.
///
/// Paper: `app:diagnostics`
#[must_use]
pub fn over_drift(summaries: &[Summary]) -> Panels {
    let panel = |title: &str, y: Axis, value: &dyn Fn(&Summary) -> f64| {
        let mut chart = LineChart::new(title).x(Axis::log("mean KL")).y(y).height(240.0);
        for (index, loss) in losses(summaries).into_iter().take(COLOURS).enumerate() {
            let points = summaries.iter().filter(|row| row.surrogate.correction.to_string() == loss);
            let points: Vec<_> = points.map(|row| (row.mean_kl.mean, value(row))).collect();
            let name = label(summaries, &loss);
            chart = chart.series(Series::new(name, points).markers().tone(Tone::Hue(index)));
        }
        chart
    };
    let ppo = |row: &Summary| {
        let same =
            |other: &&Summary| other.drift == row.drift && other.surrogate.correction.to_string() == "ppo";
        summaries.iter().find(same).map_or(f64::NAN, |ppo| ppo.mse.mean)
    };
    let mse = if summaries.iter().all(|row| ppo(row).is_nan()) {
        panel("MSE", Axis::log("MSE"), &|row| row.mse.mean)
    } else {
        panel("MSE, as a multiple of PPO's", Axis::log("MSE / PPO's"), &|row| row.mse.mean / ppo(row))
    };
    Panels::new("From no drift to the largest")
        .columns(2)
        .panel(mse)
        .panel(panel("Cosine with the gradient of η", Axis::linear("cosine"), &|row| row.cosine.mean))
        .panel(panel("Normalised ESS", Axis::linear("ESS").include(0.0), &|row| row.ess.mean))
        .panel(panel("Mean |bias|; losses without a line have none", Axis::log("mean |bias|"), &|row| {
            if row.absolute_bias.mean > ROUNDING { row.absolute_bias.mean } else { f64::NAN }
        }))
}

/// Error, direction and ESS of each iteration of a run, and how far it drifted.
#[must_use]
pub fn over_iterations(rows: &[Row]) -> Panels {
    let mut losses: Vec<&Surrogate> = Vec::new();
    for row in rows {
        if !losses.contains(&&row.surrogate) {
            losses.push(&row.surrogate);
        }
    }
    losses.sort_by_key(|loss| after_the_papers(&loss.correction.to_string()));
    let iterations = || Axis::linear("iteration").whole();
    let panel = |title: &str, y: Axis, value: &dyn Fn(&Row) -> f64| {
        let mut chart = LineChart::new(title).x(iterations()).y(y).height(240.0);
        for (index, loss) in losses.iter().take(COLOURS).enumerate() {
            let of = rows.iter().filter(|row| row.surrogate == **loss);
            let points: Vec<_> = of.map(|row| (row.seed as f64, value(row))).collect();
            chart =
                chart.series(Series::new(loss.correction.label(), points).markers().tone(Tone::Hue(index)));
        }
        chart
    };
    let first = rows.first().map(|row| row.surrogate);
    let drift = rows.iter().filter(|row| Some(row.surrogate) == first);
    let drift: Vec<_> = drift.map(|row| (row.seed as f64, row.apart.drift)).collect();
    let drift = LineChart::new("Drift σ²T")
        .x(iterations())
        .y(Axis::log("σ²T"))
        .height(240.0)
        .series(Series::new("drift", drift).markers())
        .legend(Legend::None);
    Panels::new("What each loss was worth along the run")
        .columns(2)
        .panel(panel("MSE", Axis::log("MSE"), &|row| row.measured.mse))
        .panel(panel("Cosine with the gradient of η", Axis::linear("cosine"), &|row| row.measured.cosine))
        .panel(panel("Normalised ESS", Axis::linear("ESS").include(0.0), &|row| row.measured.ess))
        .panel(drift)
}

/// How much of the gradient of η each channel restores, per loss.
///
/// Paper: `eq:gradient-two-channels`
#[must_use]
pub fn channels(summaries: &[Summary]) -> BarChart {
    let shown: Vec<&Summary> =
        summaries.iter().filter(|row| row.surrogate.correction.to_string() != "ppo").collect();
    let errors = |spread: &dyn Fn(&Summary) -> (f64, f64)| {
        shown.iter().map(|row| spread(row)).map(|(mean, sem)| (mean - sem, mean + sem)).collect::<Vec<_>>()
    };
    BarChart::new(
        "What the two channels add along the gradient of η",
        shown.iter().map(|row| row.surrogate.correction.label()),
    )
    .lying()
    .values(Axis::linear("component along ∇η, in units of |∇η|").include(0.0))
    .bars(
        Bars::new("reweighting", shown.iter().map(|row| row.reweighting_along.mean))
            .errors(errors(&|row| (row.reweighting_along.mean, row.reweighting_along.sem))),
    )
    .bars(
        Bars::new("credit routing", shown.iter().map(|row| row.routing_along.mean))
            .errors(errors(&|row| (row.routing_along.mean, row.routing_along.sem))),
    )
}

/// The bias witness of each seed, and its mean, by position.
///
/// Paper: `eq:bias-witness`
#[must_use]
pub fn witness(rows: &[Row]) -> Option<LineChart> {
    let first = rows.first()?;
    let once: Vec<&Row> = rows
        .iter()
        .filter(|row| {
            row.surrogate == first.surrogate && row.reward == first.reward && row.drift == first.drift
        })
        .collect();
    let positions = first.conditions.bias_witness.len();
    let mean =
        |t: usize| once.iter().map(|row| row.conditions.bias_witness[t]).sum::<f64>() / once.len() as f64;
    let mut series = Series::new("mean over pairs", (0..positions).map(|t| (t as f64, mean(t)))).markers();
    if once.len() > 1 {
        for row in &once {
            series = series.run(row.conditions.bias_witness.iter().enumerate().map(|(t, &b)| (t as f64, b)));
        }
    }
    Some(
        LineChart::new("Bias witness by position")
            .x(Axis::linear("position t").whole())
            .y(Axis::linear("b_t = Cov(R_t, r_t A_t)"))
            .series(series)
            .level(0.0, "no bias")
            .legend(Legend::None),
    )
}

/// Losses in one chart, so that each keeps a colour of its own.
const COLOURS: usize = 8;

/// A clause that names the losses that [`over_drift`] has no colours for; empty where it shows all.
#[must_use]
pub fn left_out(summaries: &[Summary]) -> String {
    let names: Vec<String> =
        losses(summaries).iter().skip(COLOURS).map(|loss| label(summaries, loss)).collect();
    if names.is_empty() { String::new() } else { format!("; without {}", names.join(", ")) }
}

/// Names of the losses: the paper's spread first (PPO, the tempered members, full), then the rest as they appear.
fn losses(summaries: &[Summary]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for row in summaries {
        let name = row.surrogate.correction.to_string();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| after_the_papers(name));
    names
}

/// Whether a loss comes after those of the paper's spread.
fn after_the_papers(name: &str) -> bool {
    !(name == "ppo" || name == "full" || name.starts_with("tempered"))
}

fn label(summaries: &[Summary], loss: &str) -> String {
    let named = |row: &&Summary| row.surrogate.correction.to_string() == loss;
    summaries.iter().find(named).map_or_else(String::new, |row| row.surrogate.correction.label())
}
