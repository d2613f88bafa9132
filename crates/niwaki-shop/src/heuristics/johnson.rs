//! Johnson's rule (1954) for two machines, and Mitten's extension (1959) to lags: among permutation schedules,
//! ordering by Johnson's rule on (first + lag, lag + second) is optimal.

use crate::{Error, FlowShop, Result, TwoMachineLags};

/// An optimal order of a two-machine flow shop.
///
/// # Errors
/// If the shop does not have two machines.
pub fn johnson(shop: &FlowShop) -> Result<Vec<u32>> {
    if shop.machines() != 2 {
        return Err(Error::Instance(format!(
            "Johnson's rule: expected a flow shop with 2 machines, got {}",
            shop.machines()
        )));
    }
    Ok(rule(shop.times().chunks_exact(2).map(|job| (job[0], job[1]))))
}

/// An optimal order of a two-machine flow shop with lags.
#[must_use]
pub fn johnson_with_lags(shop: &TwoMachineLags) -> Vec<u32> {
    rule(shop.all().iter().map(|job| (job.first + job.lag, job.lag + job.second)))
}

/// Jobs that are shorter on the first machine come first, shortest first; then the others, longest second first.
fn rule(jobs: impl Iterator<Item = (u32, u32)>) -> Vec<u32> {
    let mut keyed: Vec<_> = jobs
        .enumerate()
        .map(
            |(job, (a, b))| {
                if a < b { (0, i64::from(a), job as u32) } else { (1, -i64::from(b), job as u32) }
            },
        )
        .collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, _, job)| job).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LaggedJob;
    use niwaki_stream::Key;

    /// The least of `value` over all orders of `jobs`.
    fn least(jobs: usize, value: &dyn Fn(&[u32]) -> u32) -> u32 {
        fn visit(order: &mut Vec<u32>, at: usize, value: &dyn Fn(&[u32]) -> u32) -> u32 {
            if at == order.len() {
                return value(order);
            }
            let mut best = u32::MAX;
            for other in at..order.len() {
                order.swap(at, other);
                best = best.min(visit(order, at + 1, value));
                order.swap(at, other);
            }
            best
        }
        visit(&mut (0..jobs as u32).collect(), 0, value)
    }

    #[test]
    fn no_order_is_shorter() {
        let mut stream = Key::new(5, "law").open();
        for _ in 0..60 {
            let jobs = 2 + stream.below(5) as usize;
            let times = (0..2 * jobs).map(|_| stream.below(15) as u32).collect();
            let shop = FlowShop::new(jobs, 2, times).unwrap();
            let order = johnson(&shop).unwrap();
            assert_eq!(shop.makespan(&order), least(jobs, &|order| shop.makespan(order)));
            let mut draw = || stream.below(15) as u32;
            let lagged = (0..jobs)
                .map(|_| LaggedJob { first: draw(), lag: 2 * draw(), second: draw(), due: None })
                .collect();
            let shop = TwoMachineLags::new(lagged).unwrap();
            let order = johnson_with_lags(&shop);
            assert_eq!(shop.makespan(&order), least(jobs, &|order| shop.makespan(order)));
        }
    }

    #[test]
    fn three_machines_are_refused() {
        let shop = FlowShop::new(1, 3, vec![1, 1, 1]).unwrap();
        let line = johnson(&shop).unwrap_err().to_string();
        assert_eq!(line, "Johnson's rule: expected a flow shop with 2 machines, got 3");
    }
}
