//! Charts over a numeric axis: endpoints and leads against a deadline, a reuse or a warmup, and leads against the dose.

use super::claims::Half;
use super::dose::{Correlated, DosePoint, correlation, partialled};
use super::spec::{Against, Along};
use super::{Board, Endpoint};
use crate::Error;
use niwaki_page::{Axis, Cloud, Format, Grid, LineChart, ScatterChart, Series, Tone};

/// A point of a chart with two standard errors either side; of a median, with 95% of resampled seeds.
type Barred = (f64, f64, f64, f64);

/// Points of a cell's axis and r, for the first half of training and the second.
type Halves = [Vec<(f64, f64)>; 2];

impl Board<'_> {
    /// A chart that the study asks for; lines are arms or cells, bars two standard errors.
    ///
    /// Paper: `fig:warm`, `fig:hardwin`, `fig:jssp`, `fig:ktol`, `fig:horizon-cal`
    pub(super) fn against(&self, wanted: &Against) -> Result<LineChart, Error> {
        let axis = |log: bool, name: String| if log { Axis::log(name) } else { Axis::linear(name) };
        let over = wanted.over.as_deref().map(|arm| self.plan.arm(arm)).transpose()?;
        let name = match over {
            None => wanted.endpoint.words(),
            Some(over) => format!("{}, less {}", wanted.endpoint.words(), self.plan.arm_label(over)),
        };
        let mut chart = LineChart::new(wanted.title.clone())
            .x(axis(wanted.log_x, wanted.x.clone()))
            .y(axis(wanted.log_y, name));
        if let Some(over) = over {
            chart = chart.level(0.0, self.plan.arm_label(over));
        }
        let arms: Vec<usize> = match &wanted.arms {
            Some(names) => names.iter().map(|name| self.plan.arm(name)).collect::<Result<_, _>>()?,
            None => (0..self.plan.study.arm.len()).filter(|arm| Some(*arm) != over).collect(),
        };
        let cells = 0..self.plan.cells.len();
        match wanted.along {
            Along::Arms => {
                for cell in cells {
                    let mut points = Vec::new();
                    for &arm in &arms {
                        let Some(x) = self.plan.study.arm[arm].x else { continue };
                        points.extend(self.barred(wanted.endpoint, arm, over, cell, x)?);
                    }
                    chart = with_line(chart, self.plan.cells[cell].clone(), &points, Tone::Hue(cell), false);
                }
            }
            Along::Cells => {
                let line = |cell: usize| self.plan.described(cell).and_then(|cell| cell.line.clone());
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
                            let Some(x) = self.plan.described(cell).and_then(|cell| cell.x) else { continue };
                            points.extend(self.barred(wanted.endpoint, arm, over, cell, x)?);
                        }
                        let arm_label = self.plan.arm_label(arm);
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
        &self,
        endpoint: Endpoint,
        arm: usize,
        over: Option<usize>,
        cell: usize,
        x: f64,
    ) -> Result<Option<Barred>, Error> {
        Ok(match over {
            None => self.estimate(arm, cell, endpoint)?.map(|found| match endpoint {
                Endpoint::Drift => (x, found.value, found.interval.low, found.interval.high),
                _ => (x, found.value, found.value - 2.0 * found.sem, found.value + 2.0 * found.sem),
            }),
            Some(over) => self
                .compare(arm, over, cell, endpoint)?
                .map(|found| (x, found.lead, found.lead - 2.0 * found.sem, found.lead + 2.0 * found.sem)),
        })
    }

    /// Leads against the dose, a cloud per cell, for one half of training; both correlations are in the title.
    ///
    /// Paper: `fig:wincorr`
    pub(super) fn dose_scatter(&self, points: &[DosePoint], half: Half) -> ScatterChart {
        let (name, place) = match half {
            Half::First => ("First half", 0),
            Half::Second => ("Second half", 1),
        };
        let shown = |found: Option<Correlated>| {
            found.map_or_else(|| "none".to_owned(), |found| Format::fixed(2).signed().text(found.r))
        };
        let mut chart = ScatterChart::new(format!(
            "{name}: r = {}, within cells {}",
            shown(correlation(points, half)),
            shown(partialled(points, half))
        ))
        .x(Axis::linear("dose Σ|b_t|"))
        .y(Axis::linear("lead in greedy success"));
        for (cell, name) in self.plan.cells.iter().enumerate() {
            let here = || points.iter().filter(|point| point.cell == cell);
            if here().next().is_some() {
                let cloud = Cloud::new(name.clone(), here().map(|point| (point.dose, point.lead[place])));
                let labels = here().map(|point| format!("{name}, seed {}", point.seed));
                chart = chart.cloud(cloud.labels(labels).tone(Tone::Hue(cell)));
            }
        }
        chart
    }

    /// The correlation of each cell along the cells' axis, a panel per line of cells; nothing where no cell has a place.
    ///
    /// Paper: `fig:wincorr-bycfg`
    pub(super) fn correlations(&self, points: &[DosePoint]) -> Option<Grid> {
        let mut panels: Vec<(String, Halves)> = Vec::new();
        for cell in 0..self.plan.cells.len() {
            let Some((described, x)) = self.plan.described(cell).and_then(|cell| Some((cell, cell.x?)))
            else {
                continue;
            };
            let name = described.line.clone().unwrap_or_default();
            let here: Vec<DosePoint> = points.iter().copied().filter(|point| point.cell == cell).collect();
            let place = panels.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                panels.push((name, Default::default()));
                panels.len() - 1
            });
            for (series, half) in panels[place].1.iter_mut().zip([Half::First, Half::Second]) {
                series.extend(correlation(&here, half).map(|found| (x, found.r)));
            }
        }
        let drawn = panels.iter().any(|(_, halves)| halves.iter().any(|points| !points.is_empty()));
        let mut grid = Grid::new("r of dose and lead in each cell").columns(2).share_y();
        for (name, [first, second]) in panels {
            let chart = LineChart::new(name.clone())
                .x(Axis::linear(name))
                .y(Axis::linear("r").range(-1.0, 1.0))
                .height(200.0)
                .series(Series::new("first half", first).markers().tone(Tone::Hue(1)))
                .series(Series::new("second half", second).markers().dashed().tone(Tone::Hue(0)));
            grid = grid.panel(chart);
        }
        drawn.then_some(grid)
    }
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
