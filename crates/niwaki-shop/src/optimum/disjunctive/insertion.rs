//! First orders by insertion: the longest operations first, each where the longest path through it is shortest, on whichever
//! of its machines that is.
//!
//! Method: the start of Nowicki and Smutnicki's tabu search (1996), in the order of times alone.

use super::orders::{Lengths, Orders, Routes};
use super::shop::Shop;
use niwaki_stream::Stream;

/// Orders by insertion, on given machines or on those that suit each operation best; `noise` scatters the order in which
/// operations are taken (0 to 16: from none to half).
pub(super) fn insert_all(
    shop: &Shop,
    routes: &Routes,
    given: Option<&[u32]>,
    noise: u64,
    stream: &mut Stream,
) -> Orders {
    let (count, nobody) = (routes.count(), routes.nobody());
    let mut now = Orders::empty(shop, routes);
    for (one, &choice) in given.into_iter().flatten().enumerate() {
        now.assign(shop, one as u32, choice);
    }
    let mut turn: Vec<(u64, u32)> = (0..nobody)
        .map(|one| {
            let scatter = 32 - noise + stream.below(2 * noise + 1);
            (u64::MAX - u64::from(now.time[one as usize]) * scatter, one)
        })
        .collect();
    turn.sort_unstable();
    let mut paths = Lengths::new(count);
    let mut first = vec![nobody; routes.machines];
    now.sort(routes);
    paths.compute_all(routes, &mut now);
    for (_, one) in turn {
        let mut best: Option<(u32, u32, Place)> = None;
        let only = given.map(|given| given[one as usize] as usize);
        let choices = only.map_or_else(|| shop.choices_of(one as usize), |only| only..only + 1);
        for choice in choices {
            let first = first[shop.choices[choice].machine as usize];
            let place = best_place(routes, &now, &paths, one, first);
            let through = place.around + shop.choices[choice].time;
            if best.as_ref().is_none_or(|known| through < known.0) {
                best = Some((through, choice as u32, place));
            }
        }
        let Some((_, choice, Place { before, after, .. })) = best else { continue };
        now.assign(shop, one, choice);
        now.link(one, before, after);
        if before == nobody {
            first[now.machine[one as usize] as usize] = one;
        }
        now.sort(routes);
        paths.compute_all(routes, &mut now);
    }
    now
}

/// Two neighbours on a machine, and the longest path through an operation between them, without its own time.
struct Place {
    before: u32,
    after: u32,
    around: u32,
}

/// The neighbours between which the longest path through an operation is shortest, on a machine that begins with `first`.
fn best_place(routes: &Routes, now: &Orders, paths: &Lengths, one: u32, first: u32) -> Place {
    let (index, nobody) = (one as usize, routes.nobody());
    let (ready, remains) = (paths.ready(routes, index), paths.remains(routes, index));
    let (job_before, job_after) = (routes.before[index], routes.after[index]);
    // A path from the job's next operation to another one shows in the latter's start.
    let may_precede = |other: u32| {
        other != job_after && (job_after == nobody || paths.head(now, other) < paths.end[job_after as usize])
    };
    let may_follow = |other: u32| {
        other != job_before
            && (job_before == nobody || paths.head(now, job_before) < paths.end[other as usize])
    };
    let around =
        |left: u32, right: u32| ready.max(paths.end[left as usize]) + remains.max(paths.out[right as usize]);
    let mut best: Option<Place> = None;
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
            let around = around(left, right);
            if best.as_ref().is_none_or(|known| around < known.around) {
                best = Some(Place { before: left, after: right, around });
            }
        }
        if right == nobody {
            break;
        }
        (left, right) = (right, now.after[right as usize]);
    }
    best.unwrap_or_else(|| Place {
        before: allowed.0,
        after: allowed.1,
        around: around(allowed.0, allowed.1),
    })
}
