//! Two orders and their due dates: what fraction of all ways to run them is on time, by enumeration.
//!
//! Owns the dial of the boundary experiment, the slack of the due dates. It must not know policies.

use crate::Error;
use niwaki_shop::generate::{Task, generate};
use niwaki_shop::{Instance, LaggedJob, Schedule, TwoMachineLags, verify};

/// The same jobs, where each that has a due date gets the earliest end it could have alone, and `slack` more.
///
/// # Errors
/// As [`TwoMachineLags::new`].
pub fn with_slack(shop: &TwoMachineLags, slack: u32) -> Result<TwoMachineLags, Error> {
    let date = |job: &LaggedJob| LaggedJob {
        due: job
            .due
            .map(|_| job.first.saturating_add(job.lag).saturating_add(job.second).saturating_add(slack)),
        ..*job
    };
    Ok(TwoMachineLags::new(shop.all().iter().map(date).collect())?)
}

/// The share of the two orders of a shop with two jobs in which nobody is late.
///
/// # Errors
/// If the shop has another number of jobs.
pub fn feasible_fraction(shop: &TwoMachineLags) -> Result<f64, Error> {
    if shop.jobs() != 2 {
        return Err(Error::TwoOrders { came: shop.jobs() });
    }
    let mut on_time = 0.0;
    for order in [[0, 1], [1, 0]] {
        let schedule = Schedule::of_lagged_order(shop, &order);
        let verdict = verify(&Instance::Lags(shop.clone()), &schedule)?;
        on_time += f64::from(u8::from(verdict.late == 0)) / 2.0;
    }
    Ok(on_time)
}

/// The mean feasible fraction of drawn pairs of orders at each slack: what a policy earns that runs either first by
/// the toss of a coin. With `both`, either order has a due date.
///
/// # Errors
/// As [`generate`].
///
/// Paper: `app:sched-boundary`
pub fn feasible_by_slack(both: bool, slacks: &[u32], instances: usize, seed: u64) -> Result<Vec<f64>, Error> {
    let task = if both { Task::TwoOrdersBoth } else { Task::TwoOrders };
    let mut totals = vec![0.0; slacks.len()];
    for index in 0..instances as u64 {
        let Instance::Lags(shop) = generate(task, task.size(), seed, index)? else { continue };
        for (total, &slack) in totals.iter_mut().zip(slacks) {
            *total += feasible_fraction(&with_slack(&shop, slack)?)?;
        }
    }
    Ok(totals.into_iter().map(|total| total / instances.max(1) as f64).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fractions_by_hand() {
        // a = 2, lag 5, 1 ends at 8 alone; b = 3, lag 0, 2 at 5. a then b: 8 and 10, so b is 5 late; b then a: 5 and
        // 11, so a is 3 late. Slack 2 allows neither, 3 and 4 the second, 5 both.
        let job = |first, lag, second| LaggedJob { first, lag, second, due: Some(0) };
        let shop = TwoMachineLags::new(vec![job(2, 5, 1), job(3, 0, 2)]).unwrap();
        let fraction = |slack| feasible_fraction(&with_slack(&shop, slack).unwrap()).unwrap();
        assert_eq!([0, 2, 3, 4, 5].map(fraction), [0.0, 0.0, 0.5, 0.5, 1.0]);
        let one = TwoMachineLags::new(vec![job(1, 1, 1)]).unwrap();
        assert_eq!(feasible_fraction(&one).unwrap_err().to_string(), "two orders: expected 2 jobs, got 1");
    }

    #[test]
    fn looser_due_dates_never_hurt_and_one_is_easier_than_two() {
        let slacks: Vec<u32> = (0..=60).step_by(4).collect();
        let one = feasible_by_slack(false, &slacks, 200, 3).unwrap();
        let two = feasible_by_slack(true, &slacks, 200, 3).unwrap();
        for at in 0..slacks.len() {
            assert!(two[at] <= one[at], "slack {}", slacks[at]);
            assert!(at == 0 || one[at - 1] <= one[at] && two[at - 1] <= two[at], "slack {}", slacks[at]);
        }
        // Without slack the lag-critical order must be first, and the other one too: half and none of the orders.
        assert_eq!((one[0], two[0]), (0.5, 0.0));
        // At the end every order of every pair is on time.
        assert_eq!(feasible_by_slack(true, &[10_000], 20, 3).unwrap(), [1.0]);
    }
}
