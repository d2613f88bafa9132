//! First lists: priority rules over what is ready.

use super::list::{Flat, List, NONE, Pass};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

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

/// When an operation could start, then what decides ties.
type Rank = (i64, i64, i64, u32);

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

/// A list built in time: of all that is ready, on any of its machines, what can start first goes next, and the rule
/// decides among what could start within the shortest of these operations.
pub(super) fn dispatch(flat: &Flat<'_>, rule: Rule) -> List {
    let count = flat.count();
    let tails = tails(flat);
    let rank = |one: u32| -> i64 {
        let job = &flat.shop.jobs()[flat.job[one as usize] as usize];
        let tail = i64::from(tails[one as usize]);
        match rule {
            Rule::Due => job.due.map_or(i64::MAX / 2, i64::from) - tail,
            Rule::Work => -tail,
            Rule::Short => flat.modes[one as usize].iter().map(|mode| i64::from(mode.1)).min().unwrap_or(0),
            Rule::Deadline => job.deadline.or(job.due).map_or(i64::MAX / 2, i64::from) - tail,
        }
    };
    let mut list = List { order: Vec::with_capacity(count), mode: vec![0; count] };
    let mut waiting: Vec<usize> = flat.before.iter().map(Vec::len).collect();
    let mut at: Vec<u32> = flat.earliest.clone();
    let mut last = vec![NONE; flat.shop.machines().len()];
    let mut free: Vec<u32> = flat.shop.machines().iter().map(|machine| machine.available).collect();
    // Started operations go first, in the order of their starts.
    let mut ready: Vec<u32> = (0..count as u32).filter(|&one| waiting[one as usize] == 0).collect();
    while !ready.is_empty() {
        let mut best: Option<(Rank, usize, usize, u32)> = None;
        for (slot, &one) in ready.iter().enumerate() {
            let index = one as usize;
            for (mode, &(machine, time)) in flat.modes[index].iter().enumerate() {
                if let Some(here) = flat.fixed[index] {
                    if here.machine == machine {
                        let key = (i64::MIN, i64::from(here.start), 0, one);
                        if best.is_none_or(|known| key < known.0) {
                            best = Some((key, slot, mode, here.end));
                        }
                    }
                    continue;
                }
                let setup = flat.setup(machine, last[machine as usize], one);
                let from = at[index].max(free[machine as usize].saturating_add(setup));
                let interruptible = flat.shop.operation(index).interruptible;
                let span = flat.shop.machines()[machine as usize].calendar.place(from, time, interruptible);
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
    list
}

/// The least work from each operation's start to the end of its successors.
pub(super) fn tails(flat: &Flat<'_>) -> Vec<u32> {
    let order = by_priority(flat, |_| 0);
    let mut tails = vec![0_u32; flat.count()];
    for &one in order.iter().rev() {
        let least = flat.modes[one as usize].iter().map(|mode| mode.1).min().unwrap_or(0);
        let rest = flat.after[one as usize].iter();
        let rest = rest.map(|link| link.min.saturating_add(tails[link.other as usize])).max().unwrap_or(0);
        tails[one as usize] = least.saturating_add(rest);
    }
    tails
}

/// The best list of all rules, with its pass.
pub(super) fn best_of_rules(flat: &Flat<'_>) -> (List, Pass) {
    let mut best: Option<(List, Pass)> = None;
    for rule in RULES {
        let list = dispatch(flat, rule);
        let mut pass = Pass::default();
        flat.run(&list, &mut pass);
        if best.as_ref().is_none_or(|(_, known)| pass.cost < known.cost) {
            best = Some((list, pass));
        }
    }
    // There is at least one rule.
    best.unwrap_or_else(|| (dispatch(flat, Rule::Work), Pass::default()))
}
