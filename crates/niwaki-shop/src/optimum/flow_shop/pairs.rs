//! Two machines of many: Johnson's rule with lags bounds what is left between a front and a back.
//!
//! For machines k < l, a job needs its time on k, then a lag (its times between k and l), then its time on l. All
//! other machines are taken to have no queue. Johnson's rule with lags orders any set of jobs optimally, and the
//! order of all jobs, filtered, is the order of any subset, so it is sorted once.

use crate::FlowShop;
use std::cmp::Reverse;

/// Times that all pairs together may hold. A shop with more has only its busiest machines paired: the bound is then a bound
/// of fewer pairs, and a small file with many machines does not fill the memory with their square.
const MOST: usize = 1 << 22;

/// One pair's jobs in Johnson's order.
struct Pair {
    first: u32,
    second: u32,
    /// How often it cut a node off.
    hits: u64,
    /// Job, time on the first machine, lag, time on the second.
    jobs: Vec<(u32, i32, i32, i32)>,
}

/// All pairs, the most useful first.
pub(super) struct Pairs {
    pairs: Vec<Pair>,
    calls: u64,
    /// How many pairs are tried at most on an ordinary call.
    tried: usize,
}

/// The machines whose pairs are bounded, in order: all of them, or the busiest ones where their pairs would hold more times
/// than `most`.
fn paired(shop: &FlowShop, most: usize) -> Vec<usize> {
    let fits = |count: usize| {
        let pairs = count.checked_mul(count.saturating_sub(1)).map(|twice| twice / 2);
        pairs.and_then(|pairs| pairs.checked_mul(shop.jobs())).is_some_and(|held| held <= most)
    };
    let count = (1..=shop.machines()).take_while(|&count| fits(count)).last().unwrap_or(0);
    let load = |machine: usize| (0..shop.jobs()).map(|job| u64::from(shop.job(job)[machine])).sum::<u64>();
    let mut machines: Vec<usize> = (0..shop.machines()).collect();
    if count < machines.len() {
        machines.sort_by_cached_key(|&machine| (Reverse(load(machine)), machine));
        machines.truncate(count);
        machines.sort_unstable();
    }
    machines
}

impl Pairs {
    pub(super) fn new(shop: &FlowShop) -> Self {
        let machines = paired(shop, MOST);
        // What a job has behind it when it leaves each machine.
        let done: Vec<Vec<u32>> = (0..shop.jobs())
            .map(|job| {
                let sum = |sum: &mut u32, &time: &u32| {
                    *sum += time;
                    Some(*sum)
                };
                shop.job(job).iter().scan(0, sum).collect()
            })
            .collect();
        let mut pairs = Vec::new();
        for (place, &second) in machines.iter().enumerate() {
            for &first in &machines[..place] {
                let mut jobs: Vec<_> = (0..shop.jobs())
                    .map(|job| {
                        let times = shop.job(job);
                        let lag = done[job][second] - times[second] - done[job][first];
                        (job as u32, times[first] as i32, lag as i32, times[second] as i32)
                    })
                    .collect();
                jobs.sort_by_key(
                    |&(job, a, lag, b)| if a < b { (0, a + lag, job) } else { (1, -(b + lag), job) },
                );
                pairs.push(Pair { first: first as u32, second: second as u32, hits: 0, jobs });
            }
        }
        let tried = shop.machines().max(4);
        Self { pairs, calls: 0, tried }
    }

    /// The best bound over the pairs tried, or the first one that reaches `upper`.
    pub(super) fn bound(&mut self, open: &[bool], front: &[i32], back: &[i32], upper: i32) -> i32 {
        self.calls += 1;
        // Now and then every pair has a chance, and the useful ones move up.
        let all = self.calls & 255 == 1;
        let tried = if all { self.pairs.len() } else { self.tried.min(self.pairs.len()) };
        let mut best = 0;
        for index in 0..tried {
            let pair = &mut self.pairs[index];
            let (mut first, mut second) = (front[pair.first as usize], front[pair.second as usize]);
            for &(job, a, lag, b) in &pair.jobs {
                if open[job as usize] {
                    first += a;
                    second = second.max(first + lag) + b;
                }
            }
            let bound = second + back[pair.second as usize];
            best = best.max(bound);
            if bound >= upper {
                pair.hits += 1;
                if index > 0 && self.pairs[index - 1].hits < self.pairs[index].hits {
                    self.pairs.swap(index - 1, index);
                }
                return best;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_machines_are_bounded_by_the_busiest_pairs() {
        // Loads 3, 9, 4, 8: three machines have three pairs of two jobs each, six times; four would have twelve.
        let shop = FlowShop::new(2, 4, vec![1, 4, 2, 3, 2, 5, 2, 5]).unwrap();
        assert_eq!((paired(&shop, 12), paired(&shop, 11)), (vec![0, 1, 2, 3], vec![1, 2, 3]));
        assert_eq!(
            (paired(&shop, 6), paired(&shop, 5), paired(&shop, 1)),
            (vec![1, 2, 3], vec![1, 3], vec![1])
        );
        // Machines 1 and 3 by hand, the second job first: 5, then 5 + 2 + 5 = 12; the first is done at 5 + 4 = 9 and waits
        // until 12, then 12 + 3 = 15.
        let (open, front, back) = ([true; 2], [0; 4], [0; 4]);
        let mut pairs = Pairs::new(&shop);
        pairs.pairs.retain(|pair| (pair.first, pair.second) == (1, 3));
        assert_eq!(pairs.bound(&open, &front, &back, i32::MAX), 15);
    }

    #[test]
    fn a_hundred_thousand_machines_take_no_square() {
        let shop = FlowShop::new(1, 100_000, vec![1; 100_000]).unwrap();
        let held: usize = Pairs::new(&shop).pairs.iter().map(|pair| pair.jobs.len()).sum();
        assert!((MOST / 2..=MOST).contains(&held), "{held}");
    }
}
