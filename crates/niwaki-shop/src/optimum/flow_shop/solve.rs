//! Turns of iterated greedy and branch and bound until the bounds meet or time is up.

use super::branch::{Branch, Progress};
use crate::heuristics::{IteratedGreedy, neh};
use crate::optimum::clock::Clock;
use crate::optimum::dispatch::accepted;
use crate::optimum::result::{Bounds, Limits, Optimum, Watch};
use crate::{FlowShop, Instance, Schedule};
use niwaki_stream::Key;

/// The shortest order of a permutation flow shop, proven or as far as time allows.
#[must_use]
pub fn solve(shop: &FlowShop, limits: Limits, watch: Watch<'_>) -> Optimum {
    let clock = Clock::start(limits);
    let mut lower = Branch::root_bound(shop);
    let mut best = neh(shop);
    let mut upper = shop.makespan(&best);
    watch(Bounds { lower, upper });
    if lower < upper {
        let mut greedy = IteratedGreedy::new(shop, &best, Key::new(limits.seed, "optimum/greedy").open());
        let mut branch: Option<Branch> = None;
        let mut turn = 10;
        loop {
            for _ in 0..turn {
                if greedy.best().1 <= lower || clock.is_over() {
                    break;
                }
                greedy.step();
            }
            if greedy.best().1 < upper {
                upper = greedy.best().1;
                best.copy_from_slice(greedy.best().0);
                watch(Bounds { lower, upper });
            }
            if lower >= upper || clock.is_over() {
                break;
            }
            let branch = branch.get_or_insert_with(|| Branch::new(shop, upper));
            branch.require_below(upper);
            let mut nodes = turn * 100;
            while nodes > 0 && lower < upper && !clock.is_over() {
                let slice = nodes.min(1000);
                nodes -= slice;
                match branch.run(slice) {
                    Progress::Improved => {
                        best.copy_from_slice(branch.best());
                        upper = shop.makespan(&best);
                        watch(Bounds { lower, upper });
                    }
                    Progress::Exhausted => lower = upper,
                    Progress::Paused => {}
                }
            }
            if branch.lower() > lower {
                lower = branch.lower();
                watch(Bounds { lower, upper });
            }
            turn = turn * 3 / 2;
        }
    }
    let schedule = Schedule::of_order(shop, &best);
    debug_assert!(accepted(|| Instance::Flow(shop.clone()), &schedule), "the checker refuses the schedule");
    Optimum::new(lower, schedule)
}
