//! Whether the lead follows the dose: correlations over seeds, cell by cell and over all.
//!
//! A point is a cell and a seed: the dose of the arm without correction, and the lead of the corrected arm in each half of
//! training. What a cell's difficulty does to both is taken out by z-scores within the cell.

use super::claims::Half;
use super::{Board, Endpoint, Run};
use crate::Error;
use niwaki_stats::Interval;

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

impl Board<'_> {
    /// Every cell and seed for which the three arms are finished; empty where the study asks for no regression.
    ///
    /// # Errors
    /// Where an arm is unknown.
    ///
    /// Paper: `fig:wincorr`, `app:sched-win`
    pub fn dose_points(&self) -> Result<Vec<DosePoint>, Error> {
        let Some(study) = &self.plan.study.dose else { return Ok(Vec::new()) };
        let (arm, over) = (self.plan.arm(&study.arm)?, self.plan.arm(&study.over)?);
        let of = self.plan.arm(&study.of)?;
        let mut points = Vec::new();
        for cell in 0..self.plan.cells.len() {
            let (base, dosed) = (self.runs(over, cell), self.runs(of, cell));
            for run in self.runs(arm, cell) {
                let twin = |runs: &[&Run], endpoint: Endpoint| {
                    runs.iter().find(|twin| twin.seed == run.seed).and_then(|twin| endpoint.of(twin))
                };
                let lead = |endpoint: Endpoint| Some(endpoint.of(run)? - twin(&base, endpoint)?);
                let found = twin(&dosed, Endpoint::Dose(study.iterations));
                let leads = lead(Endpoint::GreedyFirstHalf).zip(lead(Endpoint::GreedySecondHalf));
                if let Some((dose, (first, second))) = found.zip(leads) {
                    points.push(DosePoint { cell, seed: run.seed, dose, lead: [first, second] });
                }
            }
        }
        Ok(points)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn point(cell: usize, dose: f64, first: f64, second: f64) -> DosePoint {
        DosePoint { cell, seed: 0, dose, lead: [first, second] }
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
