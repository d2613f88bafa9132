//! One instance in, a checked schedule out, with what it was judged by.

use super::Method;
use crate::optimum::{Watch, single_machine};
use crate::{Bounds, Error, Instance, Limits, Optimum, Result, Schedule, Verification, verify};

/// One number that a schedule was judged by: its name says what is minimised, and proofs speak of it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Score {
    /// What is minimised, in words.
    pub objective: &'static str,
    /// What the schedule reaches.
    pub value: u64,
    /// No schedule reaches less.
    pub bound: u64,
}

impl Score {
    /// Whether no schedule reaches less.
    #[must_use]
    pub const fn proven(&self) -> bool {
        self.value == self.bound
    }

    /// How far the value may be above the least, as a share of the bound.
    #[must_use]
    pub fn gap(&self) -> f64 {
        (self.value - self.bound.min(self.value)) as f64 / self.bound.max(1) as f64
    }
}

/// A schedule that has passed the checker, and how good it is.
#[derive(Clone, Debug)]
pub struct Solved {
    /// The schedule.
    pub schedule: Schedule,
    /// What the checker found out about it.
    pub verdict: Verification,
    /// What it was judged by.
    pub score: Score,
    /// What is known of the makespan, whatever was minimised.
    pub makespan: Bounds,
}

/// Schedules an instance; the result has passed the checker.
///
/// # Errors
/// If the method does not know the problem.
pub fn solve(instance: &Instance, method: Method, limits: Limits, watch: Watch<'_>) -> Result<Solved> {
    judge(instance, method.run(instance, limits, watch)?)
}

/// Checks a schedule and says what it was judged by: on a single machine the number of late jobs, since every order
/// without a pause has the same makespan; elsewhere the makespan.
///
/// # Errors
/// If the checker refuses the schedule.
pub fn judge(instance: &Instance, found: Optimum) -> Result<Solved> {
    let verdict = verify(instance, &found.schedule).map_err(|fault| {
        Error::Schedule(format!("the checker refused the schedule that was found: {fault}"))
    })?;
    let score = match instance {
        Instance::Single(shop) => {
            let best = Schedule::of_single_order(shop, &single_machine::fewest_late(shop));
            let bound = verify(instance, &best)?.late as u64;
            Score { objective: "late jobs", value: verdict.late as u64, bound }
        }
        _ => Score { objective: "makespan", value: found.upper.into(), bound: found.lower.into() },
    };
    let makespan = found.bounds();
    Ok(Solved { schedule: found.schedule, verdict, score, makespan })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SingleMachine;
    use std::time::Duration;

    #[test]
    fn proven_speaks_of_what_is_minimised() {
        // Times 4, 2, 3, due 4, 5, 6: at best one job is late (see `single_machine`). By due date 0 ends 4, 1 ends 6 > 5
        // and 2 ends 9 > 6: two are late, and nothing is proven although the makespan 9 cannot be less.
        let shop = Instance::Single(SingleMachine::new(vec![4, 2, 3], vec![4, 5, 6]).unwrap());
        let limits = Limits::new(Duration::from_secs(1), 0);
        let by_date = solve(&shop, Method::Jackson, limits, &mut |_| {}).unwrap();
        assert_eq!(by_date.score, Score { objective: "late jobs", value: 2, bound: 1 });
        assert!(!by_date.score.proven() && by_date.makespan.proven());
        let best = solve(&shop, Method::Exact, limits, &mut |_| {}).unwrap();
        assert_eq!((best.score.value, best.score.proven()), (1, true));
    }
}
