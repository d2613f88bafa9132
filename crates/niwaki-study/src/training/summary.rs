//! An endpoint over the seeds of a cell, and paired comparisons between arms.

use super::{Endpoint, Plan, Results, Run};
use crate::Error;
use crate::ahead::Difference;
use niwaki_stats::{Bootstrap, Decision, Interval, SignTest};
use niwaki_train::reading::Course;

/// Resamples of the seeds behind an interval.
const RESAMPLES: usize = 2000;

/// Results asked by arm, cell and endpoint.
#[derive(Clone, Copy, Debug)]
pub struct Board<'a> {
    /// What was planned.
    pub plan: &'a Plan,
    /// What came of it.
    pub results: &'a Results,
}

/// An endpoint of an arm in a cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Of all seeds together.
    pub value: f64,
    /// Standard error over seeds; that of the resampled mean curve for `solved`.
    pub sem: f64,
    /// 95% interval from resampled seeds.
    pub interval: Interval,
    /// Lowest and highest seed.
    pub range: (f64, f64),
    /// One value per seed.
    pub seeds: Vec<f64>,
}

/// Two arms of a cell, paired by seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The arm.
    pub arm: usize,
    /// The arm it is held against.
    pub over: usize,
    /// The cell or pool.
    pub cell: usize,
    /// What was measured.
    pub endpoint: Endpoint,
    /// The verdict on the arm's value less the other's, with the sign turned where less is better.
    pub decision: Decision,
    /// The mean difference's standard error.
    pub sem: f64,
    /// Wins, losses and ties of the arm.
    pub signs: SignTest,
}

impl<'a> Board<'a> {
    /// The runs of an arm in a cell, or in the cells of a pool.
    #[must_use]
    pub fn runs(&self, arm: usize, cell: usize) -> Vec<&'a Run> {
        let here = |run: &&Run| run.arm == arm && self.plan.covers(cell, run.cell);
        self.results.runs.iter().filter(here).collect()
    }

    /// An endpoint of an arm in a cell; nothing where no run has it.
    ///
    /// # Errors
    /// Where a curve holds a value that is not a number.
    pub fn estimate(&self, arm: usize, cell: usize, endpoint: Endpoint) -> Result<Option<Estimate>, Error> {
        let runs = self.runs(arm, cell);
        let seeds: Vec<f64> = runs.iter().filter_map(|run| run.value(endpoint)).collect();
        let courses: Vec<&Course> = runs.iter().map(|run| &run.course).collect();
        let Some(value) = endpoint.over(&courses).filter(|_| !seeds.is_empty()) else { return Ok(None) };
        let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::from_seed(0) };
        let (interval, sem) = if endpoint == Endpoint::Solved {
            // Seeds are drawn by their number, so that the statistic can read whole curves.
            let numbers: Vec<f64> = (0..runs.len()).map(|number| number as f64).collect();
            let values = std::cell::RefCell::new(Vec::new());
            let bootstrap = Bootstrap { resamples: RESAMPLES / 10, ..bootstrap };
            let interval = bootstrap.percentile(&numbers, |drawn| {
                let drawn: Vec<&Course> = drawn.iter().map(|&number| courses[number as usize]).collect();
                let value = endpoint.over(&drawn).unwrap_or(value);
                values.borrow_mut().push(value);
                value
            })?;
            (interval, niwaki_stats::standard_deviation(&values.into_inner()).unwrap_or(0.0))
        } else {
            let centre = |drawn: &[f64]| endpoint.centre(drawn).unwrap_or(value);
            (bootstrap.percentile(&seeds, centre)?, niwaki_stats::sem(&seeds).unwrap_or(0.0))
        };
        let low = seeds.iter().copied().fold(f64::INFINITY, f64::min);
        let high = seeds.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(Some(Estimate { value, sem, interval, range: (low, high), seeds }))
    }

    /// Two arms of a cell over the seeds that both have, in a pool over cells and seeds; nothing where they share none.
    ///
    /// # Errors
    /// Where a curve holds a value that is not a number.
    pub fn compare(
        &self,
        arm: usize,
        over: usize,
        cell: usize,
        endpoint: Endpoint,
    ) -> Result<Option<Comparison>, Error> {
        let (first, second) = (self.runs(arm, cell), self.runs(over, cell));
        let mut pairs = Vec::new();
        for run in first {
            let twin = second.iter().find(|twin| (twin.cell, twin.seed) == (run.cell, run.seed));
            pairs.extend(run.value(endpoint).zip(twin.and_then(|twin| twin.value(endpoint))));
        }
        let found = Difference::of(&pairs, endpoint)?;
        Ok(found.map(|Difference { decision, sem, signs }| Comparison {
            arm,
            over,
            cell,
            endpoint,
            decision,
            sem,
            signs,
        }))
    }

    /// Every comparison that the study asks for.
    ///
    /// # Errors
    /// As [`Board::compare`].
    pub fn comparisons(&self) -> Result<Vec<Comparison>, Error> {
        let Some(compare) = &self.plan.study.compare else { return Ok(Vec::new()) };
        let against: Vec<usize> =
            compare.against.iter().map(|arm| self.plan.arm(arm)).collect::<Result<_, _>>()?;
        let mut comparisons = Vec::new();
        for &endpoint in &compare.endpoints {
            for (place, &over) in against.iter().enumerate() {
                for cell in 0..self.plan.places().count() {
                    let others =
                        (0..self.plan.study.arm.len()).filter(|arm| !against[..=place].contains(arm));
                    for arm in others {
                        comparisons.extend(self.compare(arm, over, cell, endpoint)?);
                    }
                }
            }
        }
        Ok(comparisons)
    }
}
