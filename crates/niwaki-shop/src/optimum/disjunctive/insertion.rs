//! First orders by insertion: the longest operations first, each where the longest path through it is shortest.
//!
//! Method: the start of Nowicki and Smutnicki's tabu search (1996), in the order of times alone.

use super::orders::{Lengths, Orders, Routes};
use niwaki_stream::Stream;

/// Orders by insertion; `noise` scatters the order in which operations are taken (0 to 16: from none to half).
pub(super) fn insert_all(routes: &Routes, noise: u64, stream: &mut Stream) -> Orders {
    let (count, nobody) = (routes.count(), routes.nobody());
    let mut turn: Vec<(u64, u32)> = (0..nobody)
        .map(|one| {
            let scatter = 32 - noise + stream.below(2 * noise + 1);
            (u64::MAX - u64::from(routes.time[one as usize]) * scatter, one)
        })
        .collect();
    turn.sort_unstable();
    let mut now = Orders::empty(routes);
    let mut paths = Lengths::new(count);
    let mut first = vec![nobody; routes.machines];
    now.sort(routes);
    paths.compute_all(routes, &mut now);
    for (_, one) in turn {
        let machine = routes.machine[one as usize] as usize;
        let (before, after) = best_place(routes, &now, &paths, one, first[machine]);
        now.link(one, before, after);
        if before == nobody {
            first[machine] = one;
        }
        now.sort(routes);
        paths.compute_all(routes, &mut now);
    }
    now
}

/// The neighbours between which the longest path through an operation is shortest, on a machine that begins with `first`.
fn best_place(routes: &Routes, now: &Orders, paths: &Lengths, one: u32, first: u32) -> (u32, u32) {
    let (index, nobody) = (one as usize, routes.nobody());
    let (ready, remains) = (paths.ready(routes, index), paths.remains(routes, index));
    let (job_before, job_after) = (routes.before[index], routes.after[index]);
    // A path from the job's next operation to another one shows in the latter's start.
    let may_precede = |other: u32| {
        other != job_after
            && (job_after == nobody || paths.head(routes, other) < paths.end[job_after as usize])
    };
    let may_follow = |other: u32| {
        other != job_before
            && (job_before == nobody || paths.head(routes, job_before) < paths.end[other as usize])
    };
    let (mut best, mut least) = (None, u32::MAX);
    // The tests are strict where operations take no time; a place that the topological order allows is always there.
    let mut allowed = (nobody, first);
    let (mut left, mut right) = (nobody, first);
    let mut open = true;
    loop {
        if left != nobody {
            open = open && may_precede(left);
            if paths.rank[left as usize] < paths.rank[index] {
                allowed = (left, right);
            }
        }
        if open && (right == nobody || may_follow(right)) {
            let through = ready.max(paths.end[left as usize]) + remains.max(paths.out[right as usize]);
            if through < least {
                (best, least) = (Some((left, right)), through);
            }
        }
        if right == nobody {
            break;
        }
        (left, right) = (right, now.after[right as usize]);
    }
    best.unwrap_or(allowed)
}
