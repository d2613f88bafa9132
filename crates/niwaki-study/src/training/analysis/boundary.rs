//! Two orders and how much slack their due dates leave: which share of all ways to run them is on time.
//!
//! Nothing is trained for this: every drawn pair is run both ways.

use super::{Analysis, Place};
use crate::Error;
use crate::claim::{Ours, Outcome};
use crate::training::spec::Feasible;
use crate::training::{Board, Training};
use niwaki_page::{Axis, Figure, Format, LineChart, Section, Series};
use niwaki_tasks::two_orders::feasible_by_slack;

/// The analysis; a study asks for it with `[feasible]`.
pub(super) struct Boundary;

impl Analysis for Boundary {
    fn statements(&self, study: &Training) -> usize {
        study.feasible.as_ref().map_or(0, |feasible| 1 + usize::from(feasible.lands.is_some()))
    }

    fn outcomes(&self, board: &Board<'_>) -> Result<Vec<Outcome>, Error> {
        let Some(feasible) = &board.plan.study.feasible else { return Ok(Vec::new()) };
        let shares = feasible.shares()?;
        Ok([Some(feasible.judge(&shares)), feasible.landing(&shares)].into_iter().flatten().collect())
    }

    fn section(&self, place: Place, board: &Board<'_>) -> Result<Option<Section>, Error> {
        let Some(feasible) = board.plan.study.feasible.as_ref().filter(|_| place == Place::Findings) else {
            return Ok(None);
        };
        let caption =
            format!("Every one of {} drawn pairs is run both ways; nothing is trained.", feasible.pairs);
        let figure = Figure::new(&feasible.chart(&feasible.shares()?)).caption(caption);
        Ok(Some(Section::new("Feasible shares").id("feasible").figure(figure)))
    }
}

/// How near to a depth a share must come to count as reaching it.
const NEAR: f64 = 0.025;

/// The seed of the pairs, which is that of the instances that are trained on.
const SEED: u64 = 0;

/// The share of ways that are on time at each slack.
#[derive(Clone, Debug, PartialEq)]
struct Shares {
    /// Where only the lag-critical order has a due date.
    one: Vec<(f64, f64)>,
    /// Where both have.
    both: Vec<(f64, f64)>,
}

impl Feasible {
    fn shares(&self) -> Result<Shares, Error> {
        let by_slack = |both: bool| -> Result<Vec<(f64, f64)>, Error> {
            let shares = feasible_by_slack(both, &self.slacks, self.pairs, SEED)?;
            Ok(self.slacks.iter().map(|&slack| f64::from(slack)).zip(shares).collect())
        };
        Ok(Shares { one: by_slack(false)?, both: by_slack(true)? })
    }

    /// The curves with the depth that they are said to pass by.
    fn chart(&self, shares: &Shares) -> LineChart {
        LineChart::new("Share of the ways to run two orders that are on time, against slack")
            .x(Axis::linear("slack, units of time"))
            .y(Axis::linear("share on time").range(0.0, 1.0))
            .level(self.avoids, "two-branch depth")
            .series(Series::new("only the lag-critical order is due", shares.one.iter().copied()).markers())
            .series(Series::new("both orders are due", shares.both.iter().copied()).markers())
    }

    /// Whether no slack brings the share near the depth.
    fn judge(&self, shares: &Shares) -> Outcome {
        let near = shares.both.iter().filter(|(_, share)| (share - self.avoids).abs() <= NEAR);
        let near: Vec<String> = near.map(|point| said(*point)).collect();
        let below = shares.both.iter().copied().rfind(|point| point.1 < self.avoids);
        let above = shares.both.iter().copied().find(|point| point.1 > self.avoids);
        let passed: Vec<String> = below.into_iter().chain(above).map(said).collect();
        let words = match near.as_slice() {
            [] => format!("passed by: {}", passed.join(", ")),
            near => format!("reached: {}", near.join(", ")),
        };
        Outcome {
            group: String::new(),
            statement: format!(
                "With both orders due, the share on time jumps past {} and no slack comes within {NEAR} of it",
                self.avoids
            ),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(words),
            sems: None,
            judgement: near.is_empty().into(),
            remark: "The paper has a jump from 0 to 0.68. A single pair can only be at 0, a half or 1; a mean over \
                     pairs can be anywhere"
                .to_owned(),
        }
    }

    /// Whether the first share beyond the depth is the one that was printed.
    fn landing(&self, shares: &Shares) -> Option<Outcome> {
        let printed = self.lands?;
        let above = shares.both.iter().copied().find(|point| point.1 > self.avoids)?;
        Some(Outcome {
            group: String::new(),
            statement: format!("With both orders due, the share on time jumps from 0 to {printed}"),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(said(above)),
            sems: None,
            judgement: ((above.1 - printed).abs() <= NEAR).into(),
            remark: String::new(),
        })
    }
}

fn said((slack, share): (f64, f64)) -> String {
    format!("{} at slack {slack}", Format::fixed(3).text(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Judgement;

    #[test]
    fn a_depth_is_passed_by_or_reached() {
        let feasible = Feasible { slacks: vec![], pairs: 1, avoids: 0.125, lands: Some(0.68) };
        let shares = |both: &[f64]| Shares {
            one: Vec::new(),
            both: both.iter().enumerate().map(|(slack, &share)| (slack as f64, share)).collect(),
        };
        let passed = feasible.judge(&shares(&[0.0, 0.05, 0.68]));
        assert_eq!(passed.judgement, Judgement::Agrees);
        let landing = |both: &[f64]| feasible.landing(&shares(both)).unwrap().judgement;
        assert_eq!(landing(&[0.0, 0.05, 0.66]), Judgement::Agrees);
        assert_eq!(landing(&[0.0, 0.05, 0.5, 0.68]), Judgement::Disagrees);
        assert_eq!(passed.ours, Ours::Words("passed by: 0.050 at slack 1, 0.680 at slack 2".to_owned()));
        let reached = feasible.judge(&shares(&[0.0, 0.11, 0.68]));
        assert_eq!(reached.judgement, Judgement::Disagrees);
        assert_eq!(reached.ours, Ours::Words("reached: 0.110 at slack 1".to_owned()));
    }

    #[test]
    fn slack_never_hurts_and_one_due_date_is_easier() {
        let feasible = Feasible { slacks: vec![0, 10, 20, 1000], pairs: 40, avoids: 0.125, lands: None };
        let Shares { one, both } = feasible.shares().unwrap();
        assert_eq!((one[0].1, both[0].1), (0.5, 0.0));
        assert_eq!((one[3].1, both[3].1), (1.0, 1.0));
        assert!(both.windows(2).all(|pair| pair[0].1 <= pair[1].1));
    }
}
