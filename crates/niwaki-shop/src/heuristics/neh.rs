//! NEH (Nawaz, Enscore and Ham, 1983): jobs by falling total time, each inserted where it hurts least.

use super::Insertion;
use crate::FlowShop;

/// The NEH order of a flow shop. Ties: the lower job first, the earlier position first.
#[must_use]
pub fn neh(shop: &FlowShop) -> Vec<u32> {
    let mut jobs: Vec<u32> = (0..shop.jobs() as u32).collect();
    let total = |job: u32| shop.job(job as usize).iter().map(|&time| u64::from(time)).sum::<u64>();
    jobs.sort_by_key(|&job| std::cmp::Reverse(total(job)));
    neh_from(shop, &jobs, &mut Insertion::new(shop))
}

/// Inserts `jobs`, in the order given, each at its first best position.
#[must_use]
pub fn neh_from(shop: &FlowShop, jobs: &[u32], insertion: &mut Insertion) -> Vec<u32> {
    let mut order = Vec::with_capacity(jobs.len());
    for &job in jobs {
        let (position, _) = insertion.best(shop, &order, job);
        order.insert(position, job);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_jobs_by_hand() {
        // Totals: job 0 = 5, job 1 = 5, job 2 = 4, job 3 = 10 → order 3, 0, 1, 2.
        // [3] = 10. Insert 0 = (3, 2): before 3 = (6, 4): ends 3 | 5, then 9 | 13. After: 6 | 10, 9 | 12. → [3, 0], 12.
        // Insert 1 = (1, 4): at 0: 1 | 5, 7 | 11, 10 | 13 → 13. At 1: 6 | 10, 7 | 14, 10 | 16 → 16.
        //   At 2: 6 | 10, 9 | 12, 10 | 16 → 16. → [1, 3, 0], 13.
        // Insert 2 = (2, 2): at 0: 2 | 4, 3 | 8, 9 | 13, 12 | 15 → 15. At 1: 1 | 5, 3 | 7, 9 | 13, 12 | 15 → 15.
        //   At 2: 1 | 5, 7 | 11, 9 | 13, 12 | 15 → 15. At 3: 1 | 5, 7 | 11, 10 | 13, 12 | 15 → 15. First: position 0.
        let shop = FlowShop::new(4, 2, vec![3, 2, 1, 4, 2, 2, 6, 4]).unwrap();
        let order = neh(&shop);
        assert_eq!((order.as_slice(), shop.makespan(&order)), ([2, 1, 3, 0].as_slice(), 15));
    }
}
