//! Two machines of many: Johnson's rule with lags bounds what is left between a front and a back.
//!
//! For machines k < l, a job needs its time on k, then a lag (its times between k and l), then its time on l. All
//! other machines are taken to have no queue. Johnson's rule with lags orders any set of jobs optimally, and the
//! order of all jobs, filtered, is the order of any subset, so it is sorted once.

use crate::FlowShop;

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

impl Pairs {
    pub(super) fn new(shop: &FlowShop) -> Self {
        let mut pairs = Vec::new();
        for second in 1..shop.machines() {
            for first in 0..second {
                let mut jobs: Vec<_> = (0..shop.jobs())
                    .map(|job| {
                        let times = shop.job(job);
                        let lag: u32 = times[first + 1..second].iter().sum();
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
