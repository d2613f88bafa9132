//! First lists of large shops: as `construct::dispatch`, but each machine keeps what waits for it in order, so that a step costs
//! the logarithm of the operations rather than a look at all of them.
//!
//! Of what waits, a machine looks at few: the best by rule in the family that it is set up for and among those that need no
//! setup, the best of the other families, the shortest, and what comes next. Where machines close, or setups differ, that need
//! not be what a look at everything finds.

use super::construct::{Began, Rank};
use super::list::{Flat, List, NONE};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// The rank of an operation by the rule, its time on the machine, the operation, its mode.
type Entry = (i64, u32, u32, u32);

/// What waits for one machine. What has gone to another machine is still in there, and passed over.
#[derive(Clone, Default)]
struct Queue {
    /// Ready by when the machine is free, by family: the best by rule.
    ranked: BTreeMap<Option<u32>, BinaryHeap<Reverse<Entry>>>,
    /// The same, the shortest: time, rank, operation, mode.
    short: BinaryHeap<Reverse<(u32, i64, u32, u32)>>,
    /// Ready later than that: when, and the entry.
    later: BinaryHeap<Reverse<(u32, Entry)>>,
}

/// What goes next on a machine, and where it then lies.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Next {
    rank: Rank,
    mode: u32,
    end: u32,
}

struct Large<'a, 'f> {
    flat: &'a Flat<'f>,
    queues: Vec<Queue>,
    at: Vec<u32>,
    free: Vec<u32>,
    last: Vec<u32>,
    gone: Vec<bool>,
    /// For each machine what goes next, or what did before that became later; nothing else in `next` counts.
    known: Vec<Option<Next>>,
    next: BinaryHeap<Reverse<(Next, usize)>>,
}

impl Large<'_, '_> {
    fn next(&self, machine: usize, (rank, time, one, mode): Entry) -> Next {
        let setup = self.flat.setup(machine as u32, self.last[machine], one);
        let from = self.at[one as usize].max(self.free[machine].saturating_add(setup));
        let span = self.flat.place(machine, one as usize, time, from);
        let rank = (i64::from(span.start) + i64::from(setup), rank, i64::from(span.end), one);
        Next { rank, mode, end: span.end }
    }

    /// What goes next on a machine.
    fn best(&mut self, machine: usize) -> Option<Next> {
        let mut queue = std::mem::take(&mut self.queues[machine]);
        while let Some(&Reverse((ready, entry))) = queue.later.peek() {
            let one = entry.2;
            if !self.gone[one as usize] && ready > self.free[machine] {
                break;
            }
            queue.later.pop();
            if !self.gone[one as usize] {
                queue.ranked.entry(self.flat.family(one)).or_default().push(Reverse(entry));
                queue.short.push(Reverse((entry.1, entry.0, one, entry.3)));
            }
        }
        while queue.short.peek().is_some_and(|Reverse(top)| self.gone[top.2 as usize]) {
            queue.short.pop();
        }
        queue.ranked.retain(|_, ranked| {
            while ranked.peek().is_some_and(|Reverse(top)| self.gone[top.2 as usize]) {
                ranked.pop();
            }
            !ranked.is_empty()
        });
        let family = match self.last[machine] {
            NONE => self.flat.shop.machines()[machine].family,
            last => self.flat.family(last),
        };
        let top = |family: Option<u32>| Some(queue.ranked.get(&family)?.peek()?.0);
        let other = queue.ranked.values().filter_map(|ranked| Some(ranked.peek()?.0)).min();
        let short = queue.short.peek().map(|&Reverse((time, rank, one, mode))| (rank, time, one, mode));
        let later = queue.later.peek().map(|&Reverse((_, entry))| entry);
        let looked = [top(family), top(None), other, short, later];
        let best = looked.into_iter().flatten().map(|entry| self.next(machine, entry)).min();
        self.queues[machine] = queue;
        best
    }

    /// Notes what goes next on a machine.
    fn post(&mut self, machine: usize) {
        let best = self.best(machine);
        let known = &mut self.known[machine];
        if let Some(best) = best.filter(|&best| known.is_none_or(|known| best < known)) {
            *known = Some(best);
            self.next.push(Reverse((best, machine)));
        }
    }

    /// What goes next on any machine.
    fn first(&mut self) -> Option<(usize, Next)> {
        loop {
            let Reverse((known, machine)) = self.next.pop()?;
            if self.known[machine] != Some(known) {
                continue;
            }
            self.known[machine] = None;
            if self.best(machine) == Some(known) {
                return Some((machine, known));
            }
            self.post(machine);
        }
    }

    fn enter(&mut self, one: u32, rank: i64) {
        for (mode, &(machine, time)) in (0..).zip(&self.flat.modes[one as usize]) {
            self.queues[machine as usize]
                .later
                .push(Reverse((self.at[one as usize], (rank, time, one, mode))));
        }
    }
}

/// A list built in time, by the ranks that a rule gives.
pub(super) fn dispatch(flat: &Flat<'_>, rank: impl Fn(u32) -> i64) -> List {
    let (count, machines) = (flat.count(), flat.shop.machines());
    let mut large = Large {
        flat,
        queues: vec![Queue::default(); machines.len()],
        at: flat.earliest.clone(),
        free: machines.iter().map(|machine| machine.available).collect(),
        last: vec![NONE; machines.len()],
        gone: vec![false; count],
        known: vec![None; machines.len()],
        next: BinaryHeap::new(),
    };
    let mut list = List { order: Vec::with_capacity(count), mode: vec![0; count] };
    let mut waiting: Vec<usize> = flat.before.iter().map(Vec::len).collect();
    // Started operations go first, in the order of their starts.
    let mut begun: BinaryHeap<Reverse<Began>> = BinaryHeap::new();
    let mut ready: Vec<u32> = (0..count as u32).filter(|&one| waiting[one as usize] == 0).collect();
    let mut touched: Vec<usize> = Vec::new();
    loop {
        for one in ready.drain(..) {
            match flat.begun(one) {
                Some(here) => begun.push(Reverse(here)),
                None => {
                    large.enter(one, rank(one));
                    touched.extend(flat.modes[one as usize].iter().map(|mode| mode.0 as usize));
                }
            }
        }
        touched.sort_unstable();
        touched.dedup();
        touched.drain(..).for_each(|machine| large.post(machine));
        let (one, machine, mode, end) = if let Some(Reverse((_, one, mode, end))) = begun.pop() {
            (one, flat.modes[one as usize][mode as usize].0 as usize, mode, end)
        } else {
            let Some((machine, next)) = large.first() else { break };
            (next.rank.3, machine, next.mode, next.end)
        };
        large.gone[one as usize] = true;
        (large.free[machine], large.last[machine]) = (end, one);
        touched.push(machine);
        list.order.push(one);
        list.mode[one as usize] = mode;
        for link in &flat.after[one as usize] {
            let index = link.other as usize;
            large.at[index] = large.at[index].max(end.saturating_add(link.min));
            waiting[index] -= 1;
            if waiting[index] == 0 {
                ready.push(link.other);
            }
        }
    }
    list
}
