//! How an advantage scales with the axes of a grid: a straight line in logarithms.

use super::Analysis;
use crate::Error;
use crate::training::spec::Axis;
use crate::training::{Board, Comparison};
use niwaki_page::{Cell, Column, Figure, Format, Heatmap, Section, Table};

/// The analysis; a study asks for it with `scaling`.
pub(super) struct Scalings;

impl Analysis for Scalings {
    fn beside_leads(
        &self,
        mut section: Section,
        board: &Board<'_>,
        comparisons: &[Comparison],
    ) -> Result<Section, Error> {
        if !board.plan.study.scaling {
            return Ok(section);
        }
        for arm in 0..board.plan.study.arm.len() {
            let asked = comparisons.iter().any(|found| found.arm == arm);
            if let Some(map) = lead_map(board, arm, comparisons).filter(|_| asked) {
                section = section.figure(Figure::new(&map).caption("Mean lead over seeds in each cell."));
            }
        }
        let scalings = scalings(board, comparisons)?;
        if !scalings.is_empty() {
            let caption = "Power laws fitted to the leads that are positive";
            section = section.table(scaling_table(caption, board, &scalings));
        }
        Ok(section)
    }
}

/// Exponents of a power law `lead ∝ Π axis^exponent`, fitted over the cells with a positive lead.
///
/// Paper: `eq:peak-advantage`, `eq:dominance`
#[derive(Clone, Debug, PartialEq)]
struct Scaling {
    arm: usize,
    /// Names of the axes.
    axes: Vec<String>,
    /// One exponent per axis.
    exponents: Vec<f64>,
    /// Their standard errors, from the residuals.
    errors: Vec<f64>,
    /// Cells behind the fit, and cells left out because their lead was not positive.
    fitted: usize,
    left_out: usize,
}

/// One fit per arm of the comparisons; nothing where there are fewer cells with a lead than unknowns and one more.
fn scalings(board: &Board<'_>, comparisons: &[Comparison]) -> Result<Vec<Scaling>, Error> {
    let Some(endpoint) = comparisons.first().map(|first| first.endpoint) else { return Ok(Vec::new()) };
    let names: Vec<String> = board
        .plan
        .study
        .grid
        .iter()
        .map(|axis| axis.name.clone().unwrap_or_else(|| axis.key.clone()))
        .collect();
    let mut scalings = Vec::new();
    for arm in 0..board.plan.study.arm.len() {
        let here: Vec<&Comparison> =
            comparisons.iter().filter(|c| c.arm == arm && c.endpoint == endpoint).collect();
        let positive: Vec<&&Comparison> = here.iter().filter(|c| c.decision.mean > 0.0).collect();
        let points: Option<Vec<Point>> = positive
            .iter()
            .map(|c| Some((place(board, c.cell)?.iter().map(|x| x.ln()).collect(), c.decision.mean.ln())))
            .collect();
        let Some((exponents, errors)) = points.and_then(|points| regress(&points, names.len())) else {
            continue;
        };
        let (fitted, left_out) = (positive.len(), here.len() - positive.len());
        scalings.push(Scaling { arm, axes: names.clone(), exponents, errors, fitted, left_out });
    }
    Ok(scalings)
}

/// The values of the axes in a cell, where all are numbers.
fn place(board: &Board<'_>, cell: usize) -> Option<Vec<f64>> {
    let grid = &board.plan.study.grid;
    let mut rest = cell;
    let mut place = vec![0.0; grid.len()];
    for (axis, value) in grid.iter().zip(&mut place).rev() {
        let found = &axis.values[rest % axis.values.len()];
        *value = found.as_float().or_else(|| found.as_integer().map(|whole| whole as f64))?;
        rest /= axis.values.len();
    }
    Some(place)
}

/// The logarithms of a cell's axes, and of its lead.
type Point = (Vec<f64>, f64);

/// What a sum runs over.
type Read<'a> = &'a dyn Fn(&Point) -> f64;

/// Least squares of `y` on the columns of `x` and a constant: slopes and their standard errors.
fn regress(points: &[Point], axes: usize) -> Option<(Vec<f64>, Vec<f64>)> {
    let count = points.len();
    if count < axes + 2 {
        return None;
    }
    let mean = |of: Read<'_>| points.iter().map(of).sum::<f64>() / count as f64;
    let centre: Vec<f64> = (0..axes).map(|axis| mean(&|point| point.0[axis])).collect();
    let level = mean(&|point| point.1);
    let dot = |f: Read<'_>, g: Read<'_>| points.iter().map(|point| f(point) * g(point)).sum::<f64>();
    let column = |axis: usize| {
        let at = centre[axis];
        move |point: &Point| point.0[axis] - at
    };
    let height = |point: &Point| point.1 - level;
    // The normal equations beside the identity, brought to the inverse by Gauss and Jordan.
    let mut rows: Vec<Vec<f64>> = (0..axes)
        .map(|i| {
            let mut row: Vec<f64> = (0..axes).map(|j| dot(&column(i), &column(j))).collect();
            row.extend((0..axes).map(|j| f64::from(u8::from(i == j))));
            row
        })
        .collect();
    for i in 0..axes {
        let pivot = rows[i][i];
        if pivot.abs() < 1e-12 {
            return None;
        }
        rows[i].iter_mut().for_each(|value| *value /= pivot);
        let lead = rows[i].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(j, _)| *j != i) {
            let factor = row[i];
            row.iter_mut().zip(&lead).for_each(|(value, lead)| *value -= factor * lead);
        }
    }
    let right: Vec<f64> = (0..axes).map(|i| dot(&column(i), &height)).collect();
    let inverse = |i: usize, j: usize| rows[i][axes + j];
    let slopes: Vec<f64> = (0..axes).map(|i| (0..axes).map(|j| inverse(i, j) * right[j]).sum()).collect();
    let residual =
        |point: &Point| height(point) - (0..axes).map(|i| slopes[i] * (point.0[i] - centre[i])).sum::<f64>();
    let spread = dot(&residual, &residual) / (count - axes - 1) as f64;
    let errors = (0..axes).map(|i| (spread * inverse(i, i)).sqrt()).collect();
    Some((slopes, errors))
}

/// The lead of an arm over a grid of two numeric axes.
fn lead_map(board: &Board<'_>, arm: usize, comparisons: &[Comparison]) -> Option<Heatmap> {
    let [rows, columns] = board.plan.study.grid.as_slice() else { return None };
    let endpoint = comparisons.first()?.endpoint;
    let lead = |cell: usize| {
        let found = comparisons.iter().find(|c| c.arm == arm && c.cell == cell && c.endpoint == endpoint);
        found.map_or(f64::NAN, |found| found.decision.mean)
    };
    let wide = columns.values.len();
    let values =
        (0..rows.values.len()).map(|row| (0..wide).map(|column| lead(row * wide + column)).collect());
    let name = |axis: &Axis| axis.name.clone().unwrap_or_else(|| axis.key.clone());
    Some(
        Heatmap::new(format!("Lead of {} in {}", board.plan.arm_label(arm), endpoint.words()), values)
            .rows(name(rows), rows.values.iter().map(ToString::to_string))
            .columns(name(columns), columns.values.iter().map(ToString::to_string))
            .name("lead")
            .centre(0.0),
    )
}

/// The exponents of each arm's power law.
fn scaling_table(caption: &str, board: &Board<'_>, scalings: &[Scaling]) -> Table {
    let mut table = Table::new(caption).column(Column::text("arm"));
    let axes = scalings.first().map(|scaling| scaling.axes.as_slice()).unwrap_or_default();
    for axis in axes {
        table = table.column(Column::number(format!("exponent of {axis}")).format(Format::fixed(2).signed()));
    }
    table = table.column(Column::text("cells"));
    for scaling in scalings {
        let mut cells = vec![Cell::from(board.plan.arm_label(scaling.arm))];
        cells.extend(
            scaling.exponents.iter().zip(&scaling.errors).map(|(e, error)| Cell::from(*e).error(*error)),
        );
        cells.push(Cell::from(format!("{} fitted, {} without a lead", scaling.fitted, scaling.left_out)));
        table.push(cells);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_power_law_is_found() {
        let mut points = Vec::new();
        for n in [64.0_f64, 256.0, 1024.0] {
            for t in [4.0_f64, 6.0, 8.0] {
                points.push((vec![n.ln(), t.ln()], (3.0 * n / (t * t)).ln()));
            }
        }
        let (slopes, errors) = regress(&points, 2).unwrap();
        assert!((slopes[0] - 1.0).abs() < 1e-12 && (slopes[1] + 2.0).abs() < 1e-12);
        assert!(errors.iter().all(|error| *error < 1e-9));
        // y = 0, 1, 0 over x = 0, 1, 2: flat, residuals −1/3, 2/3, −1/3, so 6/9 over one degree, over Σx² = 2: √(1/3).
        let points = [(vec![0.0], 0.0), (vec![1.0], 1.0), (vec![2.0], 0.0)];
        let (slopes, errors) = regress(&points, 1).unwrap();
        assert!(slopes[0].abs() < 1e-12 && (errors[0] - (1.0_f64 / 3.0).sqrt()).abs() < 1e-12);
        assert_eq!(regress(&points[..2], 1), None);
    }
}
