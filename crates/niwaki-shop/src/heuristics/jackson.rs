//! Jackson's rule (1955): on one machine, earliest due date first minimises the greatest lateness, so it finds an
//! order in which every job is on time whenever there is one.

use crate::SingleMachine;

/// Jobs by rising due date; ties: the lower job first.
///
/// Paper: app:sched-boundary
#[must_use]
pub fn jackson(shop: &SingleMachine) -> Vec<u32> {
    let mut order: Vec<u32> = (0..shop.jobs() as u32).collect();
    order.sort_by_key(|&job| shop.due()[job as usize]);
    order
}

/// The greatest lateness (end − due date, negative when all are early) of the jobs in `order`.
#[must_use]
pub fn max_lateness(shop: &SingleMachine, order: &[u32]) -> i64 {
    let mut now = 0_i64;
    let mut worst = i64::MIN;
    for &job in order {
        now += i64::from(shop.times()[job as usize]);
        worst = worst.max(now - i64::from(shop.due()[job as usize]));
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;
    use niwaki_stream::Key;

    #[test]
    fn by_hand() {
        // Due 9, 4, 6; times 3, 2, 4. Order 1, 2, 0: ends 2, 6, 9; lateness −2, 0, 0.
        let shop = SingleMachine::new(vec![3, 2, 4], vec![9, 4, 6]).unwrap();
        let order = jackson(&shop);
        assert_eq!((order.as_slice(), max_lateness(&shop, &order)), ([1, 2, 0].as_slice(), 0));
    }

    #[test]
    fn no_sampled_order_is_less_late() {
        let mut stream = Key::new(9, "law").open();
        for _ in 0..50 {
            let times: Vec<u32> = (0..5).map(|_| 1 + stream.below(9) as u32).collect();
            let due = (0..5).map(|_| stream.below(25) as u32).collect();
            let shop = SingleMachine::new(times, due).unwrap();
            let least = max_lateness(&shop, &jackson(&shop));
            let mut order: Vec<u32> = (0..5).collect();
            for _ in 0..200 {
                stream.shuffle(&mut order);
                assert!(max_lateness(&shop, &order) >= least);
            }
        }
    }
}
