//! Whether the lead follows the dose: correlations over seeds, cell by cell and over all.
//!
//! A point is a cell and a seed: the dose of the arm without correction, and the lead of the corrected arm in each half of
//! training. What a cell's difficulty does to both is taken out by z-scores within the cell.

use super::{Analysis, Place};
use crate::Error;
use crate::claim::{Judgement, Ours, Outcome, Printed, whole_pair};
use crate::training::claims::{CorrelationClaim, Half};
use crate::training::fisher::shares;
use crate::training::{Board, Endpoint, Run, Training};
use niwaki_page::{
    Axis, Cell, Cloud, Column, Figure, Format, Grid, LineChart, ScatterChart, Section, Series, Table, Tone,
};
use niwaki_stats::Interval;

/// The analysis; a study asks for it with `[dose]`.
pub(super) struct Dose;

impl Analysis for Dose {
    fn statements(&self, study: &Training) -> usize {
        study.correlation.len()
    }

    fn outcomes(&self, board: &Board<'_>) -> Result<Vec<Outcome>, Error> {
        let points = dose_points(board)?;
        let claims = board.plan.study.correlation.iter();
        let outcomes =
            claims.map(|claim| correlated(board, claim, &points)).collect::<Result<Vec<_>, _>>()?;
        Ok(outcomes.into_iter().flatten().collect())
    }

    fn section(&self, place: Place, board: &Board<'_>) -> Result<Option<Section>, Error> {
        if place != Place::Findings || board.plan.study.dose.is_none() {
            return Ok(None);
        }
        let points = dose_points(board)?;
        let mut section = Section::new("Lead and dose").id("dose");
        if points.is_empty() {
            return Ok(Some(section.prose("No seed has all three arms yet.")));
        }
        for half in [Half::First, Half::Second] {
            section = section.figure(
                Figure::new(&dose_scatter(board, &points, half))
                    .caption("A point is a seed of a cell: the dose is of the arm without correction, the lead of the one with it."),
            );
        }
        if let Some(grid) = correlations(board, &points) {
            section = section
                .figure(Figure::new(&grid).caption("Solid: first half of training; dashed: second half."));
        }
        Ok(Some(section.table(dose_table("Correlation of dose and lead over seeds", board, &points))))
    }
}

/// Points of a cell's axis and r, for the first half of training and the second.
type Halves = [Vec<(f64, f64)>; 2];

/// One cell and seed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DosePoint {
    /// The cell.
    pub cell: usize,
    /// The seed.
    pub seed: u64,
    /// Σ|b_t| at r_t = 1 on the arm without correction, mean over the warmup.
    pub dose: f64,
    /// The lead in the first half of training and in the second.
    pub lead: [f64; 2],
}

/// A correlation over seeds with its 95% interval, where there are points enough for one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Correlated {
    /// Pearson's r.
    pub r: f64,
    /// Fisher's interval.
    pub interval: Option<Interval>,
    /// Points behind it.
    pub points: usize,
}

/// The level of intervals.
const LEVEL: f64 = 0.95;

impl Half {
    fn place(self) -> usize {
        match self {
            Self::First => 0,
            Self::Second => 1,
        }
    }
}

/// Every cell and seed for which the three arms are finished; empty where the study asks for no regression.
///
/// # Errors
/// Where an arm is unknown.
///
/// Paper: `fig:wincorr`, `app:sched-win`
pub fn dose_points(board: &Board<'_>) -> Result<Vec<DosePoint>, Error> {
    let Some(study) = &board.plan.study.dose else { return Ok(Vec::new()) };
    let (arm, over) = (board.plan.arm(&study.arm)?, board.plan.arm(&study.over)?);
    let of = board.plan.arm(&study.of)?;
    let mut points = Vec::new();
    for cell in 0..board.plan.cells.len() {
        let (base, dosed) = (board.runs(over, cell), board.runs(of, cell));
        for run in board.runs(arm, cell) {
            let twin = |runs: &[&Run], endpoint: Endpoint| {
                runs.iter().find(|twin| twin.seed == run.seed).and_then(|twin| twin.value(endpoint))
            };
            let lead = |endpoint: Endpoint| Some(run.value(endpoint)? - twin(&base, endpoint)?);
            let found = twin(&dosed, Endpoint::Dose(study.iterations));
            let leads = lead(Endpoint::GreedyFirstHalf).zip(lead(Endpoint::GreedySecondHalf));
            if let Some((dose, (first, second))) = found.zip(leads) {
                points.push(DosePoint { cell, seed: run.seed, dose, lead: [first, second] });
            }
        }
    }
    Ok(points)
}

/// The plain correlation of some points; nothing where there are fewer than three or one side does not vary.
#[must_use]
pub fn correlation(points: &[DosePoint], half: Half) -> Option<Correlated> {
    let (dose, lead) = sides(points, half);
    let r = (points.len() > 2).then(|| niwaki_stats::pearson(&dose, &lead).ok()).flatten()?;
    let interval = niwaki_stats::fisher_interval(r, points.len(), 0, LEVEL).ok();
    Some(Correlated { r, interval, points: points.len() })
}

/// The correlation over all points with the cell partialled out; cells in which a side does not vary say nothing.
#[must_use]
pub fn partialled(points: &[DosePoint], half: Half) -> Option<Correlated> {
    let mut cells: Vec<usize> = points.iter().map(|point| point.cell).collect();
    cells.dedup();
    cells.retain(|&cell| {
        let here: Vec<DosePoint> = points.iter().copied().filter(|point| point.cell == cell).collect();
        let (dose, lead) = sides(&here, half);
        [dose, lead].iter().all(|side| side.iter().any(|value| *value != side[0]))
    });
    let kept: Vec<DosePoint> = points.iter().copied().filter(|point| cells.contains(&point.cell)).collect();
    let groups: Vec<usize> = kept.iter().map(|point| point.cell).collect();
    let (dose, lead) = sides(&kept, half);
    let r = niwaki_stats::pearson_within(&dose, &lead, &groups).ok()?;
    let interval = niwaki_stats::fisher_interval(r, kept.len(), cells.len() - 1, LEVEL).ok();
    Some(Correlated { r, interval, points: kept.len() })
}

fn sides(points: &[DosePoint], half: Half) -> (Vec<f64>, Vec<f64>) {
    points.iter().map(|point| (point.dose, point.lead[half.place()])).unzip()
}

/// A printed correlation agrees where it lies within Fisher's interval of ours; where that holds zero as well, neither is decided.
fn size_of(printed: Printed, interval: Option<Interval>) -> Judgement {
    let Some(interval) = interval else { return Judgement::Open };
    let (low, high) = (printed.value - printed.half_unit, printed.value + printed.half_unit);
    match low <= interval.high && interval.low <= high {
        false => Judgement::Disagrees,
        true if interval.contains(0.0) && (low > 0.0 || high < 0.0) => Judgement::Open,
        true => Judgement::Agrees,
    }
}

fn correlated(
    board: &Board<'_>,
    claim: &CorrelationClaim,
    points: &[DosePoint],
) -> Result<Option<Outcome>, Error> {
    if let Some(printed) = whole_pair(&claim.paper, '/') {
        return Ok(positive(board, claim, points, printed));
    }
    let (found, place) = match claim.cell.as_deref() {
        None if claim.across => (correlation(points, claim.half), "all cells as they are".to_owned()),
        None => (partialled(points, claim.half), "all cells, z-scored within each".to_owned()),
        Some(name) => {
            let cell = board.plan.cell(Some(name))?;
            let here: Vec<DosePoint> =
                points.iter().copied().filter(|point| board.plan.covers(cell, point.cell)).collect();
            (correlation(&here, claim.half), name.to_owned())
        }
    };
    let Some(found) = found else { return Ok(None) };
    let printed = Printed::of(&board.plan.study.label, &claim.paper)?;
    let half = match claim.half {
        Half::First => "first",
        Half::Second => "second",
    };
    let judgement = size_of(printed, found.interval);
    let shown = found.interval.map_or_else(String::new, |interval| {
        let text = |value: f64| Format::fixed(2).signed().text(value);
        format!(" [{}, {}]", text(interval.low), text(interval.high))
    });
    Ok(Some(Outcome {
        group: format!("r of dose and lead, {half} half"),
        statement: format!("{place}: {} points{shown}", found.points),
        paper: Some(printed.value),
        paper_sem: None,
        ours: Ours::Number(found.r, 0.0),
        sems: None,
        judgement,
        remark: claim.remark.clone(),
    }))
}

/// In how many cells the correlation is positive.
fn positive(
    board: &Board<'_>,
    claim: &CorrelationClaim,
    points: &[DosePoint],
    (positive, of): (u64, u64),
) -> Option<Outcome> {
    let cells = 0..board.plan.cells.len();
    let each = cells.filter_map(|cell| {
        let here: Vec<DosePoint> = points.iter().copied().filter(|point| point.cell == cell).collect();
        correlation(&here, claim.half).map(|found| found.r > 0.0)
    });
    let each: Vec<bool> = each.collect();
    let (here, cells) = (each.iter().filter(|positive| **positive).count() as u64, each.len() as u64);
    let (p, judgement) = shares(here, cells, positive, of);
    (cells > 0).then(|| Outcome {
        group: String::new(),
        statement: format!("r of dose and lead is positive in {positive} of {of} cells"),
        paper: None,
        paper_sem: None,
        ours: Ours::Words(format!("{here} of {cells}, Fisher's p = {p:.2}")),
        sems: None,
        judgement,
        remark: claim.remark.clone(),
    })
}

/// Leads against the dose, a cloud per cell, for one half of training; both correlations are in the title.
///
/// Paper: `fig:wincorr`
fn dose_scatter(board: &Board<'_>, points: &[DosePoint], half: Half) -> ScatterChart {
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
    for (cell, name) in board.plan.cells.iter().enumerate() {
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
fn correlations(board: &Board<'_>, points: &[DosePoint]) -> Option<Grid> {
    let mut panels: Vec<(String, Halves)> = Vec::new();
    for cell in 0..board.plan.cells.len() {
        let Some((described, x)) = board.plan.described(cell).and_then(|cell| Some((cell, cell.x?))) else {
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

/// How dose and lead go together in each cell, and over all of them.
fn dose_table(caption: &str, board: &Board<'_>, points: &[DosePoint]) -> Table {
    let mut table = Table::new(caption).columns([
        Column::text("cell"),
        Column::number("points").format(Format::fixed(0)),
        Column::number("dose").format(Format::significant(3)),
        Column::number("r, first half").format(Format::fixed(2).signed()),
        Column::number("r, second half").format(Format::fixed(2).signed()),
    ]);
    let shown = |found: Option<Correlated>| {
        let cell = found.map_or(Cell::blank(), |found| Cell::from(found.r));
        match found.and_then(|found| found.interval) {
            Some(interval) => cell.interval(interval.low, interval.high),
            None => cell,
        }
    };
    let halves = [Half::First, Half::Second];
    for (cell, name) in board.plan.cells.iter().enumerate() {
        let here: Vec<DosePoint> = points.iter().copied().filter(|point| point.cell == cell).collect();
        let doses: Vec<f64> = here.iter().map(|point| point.dose).collect();
        let Ok(dose) = niwaki_stats::mean(&doses) else { continue };
        let [first, second] = halves.map(|half| shown(correlation(&here, half)));
        let dose = Cell::from(dose).error(niwaki_stats::sem(&doses).unwrap_or(0.0));
        table.push([Cell::from(name.as_str()), Cell::from(here.len() as f64), dose, first, second]);
    }
    for (name, over) in [
        ("all, as they are", correlation as fn(&[DosePoint], Half) -> Option<Correlated>),
        ("all, z-scored within each cell", partialled),
    ] {
        let [first, second] = halves.map(|half| shown(over(points, half)));
        table.push([Cell::from(name), Cell::from(points.len() as f64), Cell::blank(), first, second]);
    }
    table.note(
        "Brackets: Fisher's 95% interval, with a degree of freedom less for every cell that is set aside.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(cell: usize, dose: f64, first: f64, second: f64) -> DosePoint {
        DosePoint { cell, seed: 0, dose, lead: [first, second] }
    }

    #[test]
    fn an_interval_that_holds_zero_and_the_print_decides_nothing() {
        let judged =
            |low, high| size_of(Printed::read("0.32").unwrap(), Some(Interval { low, high, level: LEVEL }));
        assert_eq!(judged(0.1, 0.6), Judgement::Agrees);
        assert_eq!(judged(-0.1, 0.6), Judgement::Open);
        assert_eq!(judged(-0.3, 0.2), Judgement::Disagrees);
        assert_eq!(size_of(Printed::read("0.32").unwrap(), None), Judgement::Open);
    }

    #[test]
    fn difficulty_is_taken_out() {
        // In each cell the lead rises with the dose; the cell with the larger doses has the smaller leads.
        let points = [
            point(0, 1.0, 0.5, 0.1),
            point(0, 2.0, 0.6, 0.1),
            point(0, 3.0, 0.7, 0.1),
            point(1, 11.0, 0.1, 0.3),
            point(1, 12.0, 0.2, 0.2),
            point(1, 13.0, 0.3, 0.1),
        ];
        assert!(correlation(&points, Half::First).unwrap().r < -0.8);
        let found = partialled(&points, Half::First).unwrap();
        assert!((found.r - 1.0).abs() < 1e-12 && found.points == 6);
        // In the second half cell 0 does not vary and says nothing: cell 1 alone falls.
        let late = partialled(&points, Half::Second).unwrap();
        assert!((late.r + 1.0).abs() < 1e-12 && late.points == 3);
        assert_eq!(correlation(&points[..3], Half::Second), None);
        assert_eq!(correlation(&points[..2], Half::First), None);
    }
}
