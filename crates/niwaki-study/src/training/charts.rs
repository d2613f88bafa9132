//! Charts over a numeric axis: endpoints and leads against a deadline, a reuse or a warmup.

use super::spec::{Against, Along};
use super::{Board, Endpoint};
use crate::Error;
use niwaki_page::{Axis, LineChart, Series, Tone};

/// A point of a chart with two standard errors either side; of a median, with 95% of resampled seeds.
type Barred = (f64, f64, f64, f64);

/// A chart that the study asks for; lines are arms or cells, bars two standard errors.
///
/// Paper: `fig:warm`, `fig:hardwin`, `fig:jssp`, `fig:ktol`, `fig:horizon-cal`
pub(super) fn against(board: &Board<'_>, wanted: &Against) -> Result<LineChart, Error> {
    let axis = |log: bool, name: String| if log { Axis::log(name) } else { Axis::linear(name) };
    let over = wanted.over.as_deref().map(|arm| board.plan.arm(arm)).transpose()?;
    let name = match over {
        None => wanted.endpoint.words(),
        Some(over) => format!("{}, less {}", wanted.endpoint.words(), board.plan.arm_label(over)),
    };
    let mut chart = LineChart::new(wanted.title.clone())
        .x(axis(wanted.log_x, wanted.x.clone()))
        .y(axis(wanted.log_y, name));
    if let Some(over) = over {
        chart = chart.level(0.0, board.plan.arm_label(over));
    }
    let arms: Vec<usize> = match &wanted.arms {
        Some(names) => names.iter().map(|name| board.plan.arm(name)).collect::<Result<_, _>>()?,
        None => (0..board.plan.study.arm.len()).filter(|arm| Some(*arm) != over).collect(),
    };
    let cells = 0..board.plan.cells.len();
    match wanted.along {
        Along::Arms => {
            for cell in cells {
                let mut points = Vec::new();
                for &arm in &arms {
                    let Some(x) = board.plan.study.arm[arm].x else { continue };
                    points.extend(barred(board, wanted.endpoint, arm, over, cell, x)?);
                }
                chart = with_line(chart, board.plan.cells[cell].clone(), &points, Tone::Hue(cell), false);
            }
        }
        Along::Cells => {
            let line = |cell: usize| board.plan.described(cell).and_then(|cell| cell.line.clone());
            let mut lines: Vec<Option<String>> = Vec::new();
            for line in cells.clone().map(line) {
                if !lines.contains(&line) {
                    lines.push(line);
                }
            }
            for &arm in &arms {
                for (place, wanted_line) in lines.iter().enumerate() {
                    let mut points = Vec::new();
                    for cell in cells.clone().filter(|&cell| line(cell) == *wanted_line) {
                        let Some(x) = board.plan.described(cell).and_then(|cell| cell.x) else { continue };
                        points.extend(barred(board, wanted.endpoint, arm, over, cell, x)?);
                    }
                    let arm_label = board.plan.arm_label(arm);
                    let name = match wanted_line {
                        Some(line) => format!("{arm_label}, {line}"),
                        None => arm_label,
                    };
                    chart = with_line(chart, name, &points, Tone::Hue(arm), place > 0);
                }
            }
        }
    }
    Ok(chart)
}

fn barred(
    board: &Board<'_>,
    endpoint: Endpoint,
    arm: usize,
    over: Option<usize>,
    cell: usize,
    x: f64,
) -> Result<Option<Barred>, Error> {
    Ok(match over {
        None => board.estimate(arm, cell, endpoint)?.map(|found| match endpoint {
            Endpoint::Drift => (x, found.value, found.interval.low, found.interval.high),
            _ => (x, found.value, found.value - 2.0 * found.sem, found.value + 2.0 * found.sem),
        }),
        Some(over) => board.compare(arm, over, cell, endpoint)?.map(|found| {
            (
                x,
                found.decision.mean,
                found.decision.mean - 2.0 * found.sem,
                found.decision.mean + 2.0 * found.sem,
            )
        }),
    })
}

fn with_line(chart: LineChart, name: String, points: &[Barred], tone: Tone, dashed: bool) -> LineChart {
    if points.is_empty() {
        return chart;
    }
    let series = Series::new(name, points.iter().map(|point| (point.0, point.1)))
        .errors(points.iter().map(|point| (point.0, point.2, point.3)))
        .markers()
        .tone(tone);
    chart.series(if dashed { series.dashed() } else { series })
}
