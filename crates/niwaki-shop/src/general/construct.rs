//! First lists: priority rules over what is ready.

use super::list::{Flat, List, NONE, Pass};
use super::queues;
use crate::Limits;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// A list that respects the precedences and otherwise puts the least key first; operations that have started come before
/// all others.
pub(super) fn by_priority<K: Ord + Copy>(flat: &Flat<'_>, key: impl Fn(u32) -> K) -> Vec<u32> {
    let count = flat.count();
    let mut waiting: Vec<usize> = flat.before.iter().map(Vec::len).collect();
    let started = |one: u32| flat.fixed[one as usize].map_or((1, 0), |here| (0, here.start));
    let entry = |one: u32| Reverse((started(one), key(one), one));
    let mut ready: BinaryHeap<_> =
        (0..count as u32).filter(|&one| waiting[one as usize] == 0).map(entry).collect();
    let mut order = Vec::with_capacity(count);
    while let Some(Reverse((_, _, one))) = ready.pop() {
        order.push(one);
        for link in &flat.after[one as usize] {
            waiting[link.other as usize] -= 1;
            if waiting[link.other as usize] == 0 {
                ready.push(entry(link.other));
            }
        }
    }
    order
}

/// All operations, those first that come first in the shop, as far as the precedences allow.
pub(super) fn in_order(flat: &Flat<'_>) -> Vec<u32> {
    let is_sorted = (0..flat.count()).all(|one| {
        flat.fixed[one].is_none() && flat.before[one].iter().all(|link| (link.other as usize) < one)
    });
    if is_sorted { (0..flat.count() as u32).collect() } else { by_priority(flat, |_| 0) }
}

/// When an operation could start, then what decides ties.
pub(super) type Rank = (i64, i64, i64, u32);

/// An operation that has started: when, the operation, its mode, when it ends.
pub(super) type Began = (u32, u32, u32, u32);

/// The most operations of a shop that is given all rules without a look at the clock.
const ALL_RULES: usize = 2000;

/// Looks at what is ready, of all steps of one rule, after which a shop counts as large.
const LOOKS: u64 = 20_000_000;

/// What decides which operation goes next, beside when it could start.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    /// The earliest due date of its job, shifted by the work that is left after it.
    Due,
    /// The most work left in its job.
    Work,
    /// The least time.
    Short,
    /// The first deadline or window.
    Deadline,
}

pub(super) const RULES: [Rule; 4] = [Rule::Due, Rule::Work, Rule::Short, Rule::Deadline];

impl Rule {
    /// The rank of an operation, the least of which goes first.
    fn rank(self, flat: &Flat<'_>, tails: &[u32], one: u32) -> i64 {
        let job = &flat.shop.jobs()[flat.job[one as usize] as usize];
        let tail = i64::from(tails[one as usize]);
        match self {
            Self::Due => job.due_at().unwrap_or(i64::MAX / 2) - tail,
            Self::Work => -tail,
            Self::Short => flat.modes[one as usize].iter().map(|mode| i64::from(mode.1)).min().unwrap_or(0),
            Self::Deadline => job.deadline.map(i64::from).or(job.due_at()).unwrap_or(i64::MAX / 2) - tail,
        }
    }
}

impl Flat<'_> {
    /// An operation that has started, on a machine that can run it.
    pub(super) fn begun(&self, one: u32) -> Option<Began> {
        let here = self.fixed[one as usize]?;
        let mode = self.modes[one as usize].iter().position(|mode| mode.0 == here.machine)?;
        Some((here.start, one, mode as u32, here.end))
    }
}

/// A list built in time: of all that is ready, on any of its machines, what can start first goes next, and the rule
/// decides among what could start within the shortest of these operations.
pub(super) fn dispatch(flat: &Flat<'_>, rule: Rule) -> List {
    let tails = tails(flat);
    let rank = |one: u32| rule.rank(flat, &tails, one);
    // What is ready at first stays about as much for half of all steps.
    let first = flat.before.iter().filter(|links| links.is_empty()).count() as u64;
    let few = first * (flat.count() as u64) / 2 <= LOOKS;
    let list = if few { dispatch_by_looking(flat, rank, LOOKS) } else { None };
    list.unwrap_or_else(|| queues::dispatch(flat, rank))
}

/// The same by a look at everything that is ready, before every step; nothing where that takes more looks than allowed.
fn dispatch_by_looking(flat: &Flat<'_>, rank: impl Fn(u32) -> i64, mut looks: u64) -> Option<List> {
    let count = flat.count();
    let mut list = List { order: Vec::with_capacity(count), mode: vec![0; count] };
    let mut waiting: Vec<usize> = flat.before.iter().map(Vec::len).collect();
    let mut at: Vec<u32> = flat.earliest.clone();
    let mut last = vec![NONE; flat.shop.machines().len()];
    let mut free: Vec<u32> = flat.shop.machines().iter().map(|machine| machine.available).collect();
    // Started operations go first, in the order of their starts.
    let mut ready: Vec<u32> = (0..count as u32).filter(|&one| waiting[one as usize] == 0).collect();
    while !ready.is_empty() {
        looks = looks.checked_sub(ready.len() as u64)?;
        let mut best: Option<(Rank, usize, usize, u32)> = None;
        for (slot, &one) in ready.iter().enumerate() {
            let index = one as usize;
            if flat.fixed[index].is_some() {
                if let Some((start, _, mode, end)) = flat.begun(one) {
                    let key = (i64::MIN, i64::from(start), 0, one);
                    if best.is_none_or(|known| key < known.0) {
                        best = Some((key, slot, mode as usize, end));
                    }
                }
                continue;
            }
            for (mode, &(machine, time)) in flat.modes[index].iter().enumerate() {
                let setup = flat.setup(machine, last[machine as usize], one);
                let from = at[index].max(free[machine as usize].saturating_add(setup));
                let span = flat.place(machine as usize, index, time, from);
                // A setup is idle time as well; an operation that could start a little later may come first.
                let key = (i64::from(span.start) + i64::from(setup), rank(one), i64::from(span.end), one);
                if best.is_none_or(|known| key < known.0) {
                    best = Some((key, slot, mode, span.end));
                }
            }
        }
        let Some((_, slot, mode, end)) = best else { break };
        let one = ready.swap_remove(slot);
        let machine = flat.modes[one as usize][mode].0 as usize;
        (free[machine], last[machine]) = (end, one);
        list.order.push(one);
        list.mode[one as usize] = mode as u32;
        for link in &flat.after[one as usize] {
            let next = link.other as usize;
            at[next] = at[next].max(end.saturating_add(link.min));
            waiting[next] -= 1;
            if waiting[next] == 0 {
                ready.push(link.other);
            }
        }
    }
    Some(list)
}

/// Whole jobs, by due date; each operation on the machine that is done with it first.
fn one_after_the_other(flat: &Flat<'_>) -> List {
    let mut jobs: Vec<usize> = (0..flat.shop.jobs().len()).collect();
    jobs.sort_by_key(|&number| {
        let job = &flat.shop.jobs()[number];
        (job.due_at().or(job.deadline.map(i64::from)).unwrap_or(i64::MAX), job.release)
    });
    let mut rank = vec![0; jobs.len()];
    for (place, job) in jobs.into_iter().enumerate() {
        rank[job] = place;
    }
    let order = by_priority(flat, |one| rank[flat.job[one as usize] as usize]);
    let mut list = List { order, mode: vec![0; flat.count()] };
    let mut at: Vec<u32> = flat.earliest.clone();
    let mut last = vec![NONE; flat.shop.machines().len()];
    let mut free: Vec<u32> = flat.shop.machines().iter().map(|machine| machine.available).collect();
    for &one in &list.order {
        let index = one as usize;
        let ends = flat.modes[index].iter().enumerate().map(|(mode, &(machine, time))| {
            let setup = flat.setup(machine, last[machine as usize], one);
            let from = at[index].max(free[machine as usize].saturating_add(setup));
            (flat.place(machine as usize, index, time, from).end, mode as u32)
        });
        let begun = flat.begun(one).map(|(_, _, mode, end)| (end, mode));
        let Some((end, mode)) = begun.or_else(|| ends.min()) else { continue };
        let machine = flat.modes[index][mode as usize].0 as usize;
        list.mode[index] = mode;
        (free[machine], last[machine]) = (end, one);
        for link in &flat.after[index] {
            let next = &mut at[link.other as usize];
            *next = (*next).max(end.saturating_add(link.min));
        }
    }
    list
}

/// The least work from each operation's start to the end of its successors.
pub(super) fn tails(flat: &Flat<'_>) -> Vec<u32> {
    let order = in_order(flat);
    let mut tails = vec![0_u32; flat.count()];
    for &one in order.iter().rev() {
        let least = flat.modes[one as usize].iter().map(|mode| mode.1).min().unwrap_or(0);
        let rest = flat.after[one as usize].iter();
        let rest = rest.map(|link| link.min.saturating_add(tails[link.other as usize])).max().unwrap_or(0);
        tails[one as usize] = least.saturating_add(rest);
    }
    tails
}

/// The best list of all rules, with its pass; of fewer rules where time is up, but of one at least.
pub(super) fn best_of_rules(flat: &Flat<'_>, limits: Limits, began: Instant) -> (List, Pass) {
    let mut best: Option<(List, Pass)> = None;
    for rule in RULES {
        // A shop of any usual size has all rules whatever the time, so that what comes of none is what it always was.
        let is_late = || limits.is_stopped() || began.elapsed() >= limits.time;
        if best.is_some() && flat.count() > ALL_RULES && is_late() {
            break;
        }
        let list = dispatch(flat, rule);
        let mut pass = Pass::default();
        flat.run(&list, &mut pass);
        if best.as_ref().is_none_or(|(_, known)| pass.cost < known.cost) {
            best = Some((list, pass));
        }
    }
    // Lists that mix jobs can wait too long whatever starts later; jobs one after the other keep every longest wait.
    if !flat.bounded.is_empty() && best.as_ref().is_some_and(|(_, pass)| pass.cost[0] > 0) {
        let list = one_after_the_other(flat);
        let mut pass = Pass::default();
        flat.run(&list, &mut pass);
        if best.as_ref().is_none_or(|(_, known)| pass.cost < known.cost) {
            best = Some((list, pass));
        }
    }
    // There is at least one rule.
    best.unwrap_or_else(|| (dispatch(flat, Rule::Work), Pass::default()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::Shop;
    use crate::plan::Plan;

    fn shop(jobs: usize, about: impl Fn(usize) -> String) -> Shop {
        let rows: String = (0..jobs).map(about).collect();
        let text = format!(
            "[operations]\njob,operation,machine,time,family,release\n{rows}[setups]\nmachine,from,to,time\n,x,y,2\n,y,x,3\n"
        );
        Plan::read(&text).unwrap().shop
    }

    fn orders(flat: &Flat<'_>, rule: Rule) -> (List, List) {
        let tails = tails(flat);
        let rank = |one: u32| rule.rank(flat, &tails, one);
        (dispatch_by_looking(flat, rank, u64::MAX).unwrap(), queues::dispatch(flat, rank))
    }

    #[test]
    fn queues_give_what_a_look_at_everything_gives_where_nothing_closes_or_is_set_up() {
        let shop = shop(40, |job| {
            let (one, other) = (job % 3, (job * 7 + 1) % 4);
            format!(
                "{job},a,m{one} | m{other}x,{} | {},,{}\n{job},b,m{other},{},,\n",
                job % 5,
                job % 4 + 1,
                job % 6,
                job % 7
            ) + if job == 39 { "p,a,m0,1,x,\nq,a,m1,1,y,\n" } else { "" }
        });
        let flat = Flat::new(&shop, None);
        for rule in RULES {
            let (slow, fast) = orders(&flat, rule);
            assert_eq!((slow.order, slow.mode), (fast.order, fast.mode));
        }
    }

    #[test]
    fn jobs_that_may_not_wait_long_are_scheduled_whatever_rules_find() {
        use crate::general::{Past, solve, verify};
        // Routes that cross on few machines, with a longest wait behind every operation, and machines that close at night.
        let rows = |jobs: u32| -> String {
            let row = |job: u32, index: u32| {
                let (machine, time) =
                    ((job * (index + 3) + index * index) % 7, (job * 13 + index * 29) % 50 + 5);
                format!("{job},{index},m{machine} | m{},{time},10\n", (machine + 1) % (7 + job % 2))
            };
            (0..jobs).flat_map(|job| (0..8).map(move |index| row(job, index))).collect()
        };
        let dated = "[settings]\nsetting,value\nunit,min\nstart,2026-11-16\n[shifts]\nmachine,days,from,to\n*,,06:00,18:00\n";
        for head in ["", dated] {
            let text = format!("{head}[operations]\njob,operation,machine,time,max wait\n{}", rows(16));
            let shop = Plan::read(&text).unwrap().shop;
            let flat = Flat::new(&shop, None);
            for rule in RULES {
                let mut pass = Pass::default();
                flat.run(&dispatch(&flat, rule), &mut pass);
                assert!(pass.cost[0] > 0);
            }
            let solved = |rounds: u32| {
                let mut limits = Limits::new(std::time::Duration::from_secs(u64::from(rounds) * 100), 1);
                limits.rounds = Some(rounds);
                solve(&shop, limits, Past::default(), &mut |_| {}).unwrap()
            };
            let first = solved(0);
            assert_eq!(verify(&shop, &first.schedule).unwrap().values, first.verdict.values);
            assert!(solved(1).verdict.values < first.verdict.values);
        }
    }

    #[test]
    fn queues_keep_everything_and_save_setups() {
        let shop = shop(60, |job| format!("{job},a,m,3,{},\n", if job % 2 == 0 { "x" } else { "y" }));
        let flat = Flat::new(&shop, None);
        let (slow, fast) = orders(&flat, Rule::Work);
        let mut pass = Pass::default();
        flat.run(&fast, &mut pass);
        // All of one family, one setup, all of the other one.
        assert!(fast.order.len() == 60 && pass.setup_time == 2, "{}", pass.setup_time);
        flat.run(&slow, &mut pass);
        assert_eq!(pass.setup_time, 2);
    }

    #[test]
    fn a_shop_too_large_for_looks_has_a_list_in_the_time_of_its_first_one() {
        // Every look at everything would be five thousand million.
        let shop = shop(100_000, |job| {
            format!("{job},a,m{},{},{},\n", job % 3, 1 + job % 9, if job < 2 { ["x", "y"][job] } else { "" })
        });
        let flat = Flat::new(&shop, None);
        let limits = Limits::new(std::time::Duration::ZERO, 0);
        let (list, pass) = best_of_rules(&flat, limits, Instant::now());
        assert_eq!((list.order.len(), pass.cost[0]), (100_000, 0));
        assert!(dispatch_by_looking(&flat, |_| 0, 1000).is_none());
    }
}
