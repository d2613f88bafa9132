//! The curve of a group at the points that its runs share: mean, interquartile mean and median with their bands.

use crate::runs::{Group, Row};
use niwaki_stats::{Bootstrap, Scores};
use niwaki_train::reading::Standing;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Resamples of the seeds behind a band.
const RESAMPLES: usize = 200;

/// A statistic with its 95% interval over resampled seeds.
pub(super) type Band = [f64; 3];

/// The curve of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Bands {
    /// Iterations at which every run of the group was measured.
    pub(super) iterations: Vec<usize>,
    /// Seconds since the runs began, on average.
    pub(super) seconds: Vec<f64>,
    /// Mean, interquartile mean and median.
    pub(super) bands: [Vec<Band>; 3],
}

impl Bands {
    /// The curve of the runs of a group that are over, or of all as far as they came where none is; a run that diverged has
    /// earned nothing from there on, as in every endpoint.
    pub(super) fn of(group: &Group) -> Self {
        let rows: &[Arc<Row>] = if group.runs.is_empty() { &group.unfinished } else { &group.runs };
        let mut columns: BTreeMap<usize, Vec<(f64, f64)>> = BTreeMap::new();
        for row in rows.iter().filter(|row| !row.curve.is_empty()) {
            for point in &row.curve {
                columns.entry(point.iteration).or_default().push((point.value, point.seconds));
            }
        }
        let grid: Vec<usize> = columns.keys().copied().collect();
        for row in rows.iter().filter(|row| row.standing == Standing::Diverged) {
            let lost = row.curve.iter().map(|point| point.value).fold(0.0, f64::min);
            for at in grid.iter().filter(|at| **at > row.done) {
                columns.entry(*at).or_default().push((lost, f64::NAN));
            }
        }
        let there =
            rows.iter().filter(|row| !row.curve.is_empty() || row.standing == Standing::Diverged).count();
        let mut found = Self::default();
        for (iteration, column) in columns {
            // Where some runs have not come, the others' mean would jump.
            if column.len() != there {
                continue;
            }
            let values: Vec<f64> = column.iter().map(|point| point.0).collect();
            let Ok(scores) = Scores::new(&values, values.len(), 1) else { continue };
            let timed: Vec<f64> =
                column.iter().map(|point| point.1).filter(|time| time.is_finite()).collect();
            found.iterations.push(iteration);
            found.seconds.push(niwaki_stats::mean(&timed).unwrap_or(f64::NAN));
            let statistics: [fn(Scores<'_>) -> f64; 3] = [|s| s.mean(), |s| s.iqm(), |s| median(s.values())];
            for (bands, statistic) in found.bands.iter_mut().zip(statistics) {
                bands.push(band(scores, statistic));
            }
        }
        found
    }
}

fn median(values: &[f64]) -> f64 {
    niwaki_stats::median(values).unwrap_or(f64::NAN)
}

/// A statistic over seeds, with its percentile interval.
fn band(scores: Scores<'_>, statistic: fn(Scores<'_>) -> f64) -> Band {
    let middle = statistic(scores);
    let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::from_seed(0) };
    match scores.interval(&bootstrap, statistic) {
        Ok(interval) if scores.runs() > 1 => [middle, interval.low, interval.high],
        _ => [middle; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_band_holds_its_middle_and_one_run_has_none() {
        let values = [0.0, 1.0, 2.0, 9.0];
        let scores = Scores::new(&values, 4, 1).unwrap();
        let [mean, low, high] = band(scores, |s| s.mean());
        assert!(mean == 3.0 && low < mean && mean < high && low >= 0.0 && high <= 9.0, "{low} {high}");
        // The middle half of four is 1 and 2.
        assert_eq!(band(scores, |s| s.iqm())[0], 1.5);
        assert_eq!(band(scores, |s| median(s.values()))[0], 1.5);
        let alone = Scores::new(&values[3..], 1, 1).unwrap();
        assert_eq!(band(alone, |s| s.mean()), [9.0; 3]);
    }
}
