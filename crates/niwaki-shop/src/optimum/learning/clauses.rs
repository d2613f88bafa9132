//! Clauses: at least one of these facts holds. Two of them are watched at any time.

use super::fact::Fact;
use super::trail::{Conflict, Reason, Trail};

#[derive(Clone, Copy)]
struct Clause {
    start: u32,
    len: u32,
    /// Number of levels among its facts when it was learnt; 0 for a clause of the problem.
    spread: u32,
}

/// A clause that must be looked at when a side's bound crosses a threshold.
#[derive(Clone, Copy)]
struct Watch {
    threshold: i32,
    clause: u32,
    /// Another fact of the clause: while it holds there is nothing to do.
    shortcut: Fact,
}

/// All clauses, given and learnt.
#[derive(Default)]
pub(super) struct Clauses {
    facts: Vec<Fact>,
    clauses: Vec<Clause>,
    watches: Vec<Vec<Watch>>,
    pub(super) learnt: usize,
}

impl Clauses {
    pub(super) fn add_variable(&mut self) {
        self.watches.push(Vec::new());
        self.watches.push(Vec::new());
    }

    pub(super) fn facts(&self, clause: u32) -> &[Fact] {
        let clause = self.clauses[clause as usize];
        &self.facts[clause.start as usize..(clause.start + clause.len) as usize]
    }

    /// Adds a clause of at least two facts and watches its first two; `spread` 0 keeps it for ever.
    pub(super) fn add(&mut self, facts: &[Fact], spread: u32) -> u32 {
        let number = self.clauses.len() as u32;
        self.clauses.push(Clause { start: self.facts.len() as u32, len: facts.len() as u32, spread });
        self.facts.extend_from_slice(facts);
        self.watch(number, facts[0], facts[1]);
        self.watch(number, facts[1], facts[0]);
        self.learnt += usize::from(spread > 0);
        number
    }

    fn watch(&mut self, clause: u32, fact: Fact, shortcut: Fact) {
        let lost = fact.negated();
        self.watches[lost.side as usize].push(Watch { threshold: lost.value, clause, shortcut });
    }

    /// Draws the conclusions of one bound's move from `old` to `new`.
    pub(super) fn propagate(
        &mut self,
        side: u32,
        old: i32,
        new: i32,
        trail: &mut Trail,
    ) -> Result<(), Conflict> {
        let mut list = std::mem::take(&mut self.watches[side as usize]);
        let (mut read, mut kept) = (0, 0);
        let mut result = Ok(());
        while read < list.len() {
            let watch = list[read];
            read += 1;
            list[kept] = watch;
            kept += 1;
            if watch.threshold <= old || watch.threshold > new || trail.holds(watch.shortcut) {
                continue;
            }
            let clause = self.clauses[watch.clause as usize];
            let facts = &mut self.facts[clause.start as usize..(clause.start + clause.len) as usize];
            let lost = Fact { side, value: watch.threshold }.negated();
            if facts[0] == lost {
                facts.swap(0, 1);
            }
            let first = facts[0];
            if trail.holds(first) {
                list[kept - 1].shortcut = first;
                continue;
            }
            if let Some(other) = (2..facts.len()).find(|&other| !trail.fails(facts[other])) {
                facts.swap(1, other);
                let lost = facts[1].negated();
                let watch = Watch { threshold: lost.value, clause: watch.clause, shortcut: first };
                kept -= 1;
                if lost.side == side {
                    // The new watch lies further along the same side.
                    list[kept] = watch;
                    kept += 1;
                } else {
                    self.watches[lost.side as usize].push(watch);
                }
                continue;
            }
            if trail.fails(first) {
                result = trail.contradict(facts.iter().map(|fact| fact.negated()));
                break;
            }
            trail.push(first, Reason::Clause(watch.clause));
        }
        list.copy_within(read.., kept);
        list.truncate(kept + list.len() - read);
        // Nothing was pushed onto this side's list meanwhile: such watches stay in `list`.
        self.watches[side as usize] = list;
        result
    }

    /// Forgets the wider half of the learnt clauses and all that hold for good. Only at level 0, where no clause
    /// is a reason that anyone will ask for.
    pub(super) fn forget(&mut self, trail: &Trail) {
        let mut order: Vec<u32> = (0..self.clauses.len() as u32)
            .filter(|&clause| self.clauses[clause as usize].spread > 2)
            .collect();
        // Narrow first; among equals the newer first.
        order.sort_unstable_by_key(|&clause| (self.clauses[clause as usize].spread, u32::MAX - clause));
        let mut doomed = vec![false; self.clauses.len()];
        for &clause in &order[order.len() / 2..] {
            doomed[clause as usize] = true;
        }
        let old = std::mem::take(&mut self.clauses);
        let facts = std::mem::take(&mut self.facts);
        self.watches.iter_mut().for_each(Vec::clear);
        self.learnt = 0;
        for (clause, doomed) in old.into_iter().zip(doomed) {
            let facts = &facts[clause.start as usize..(clause.start + clause.len) as usize];
            if !doomed && !facts.iter().any(|&fact| trail.holds(fact)) {
                self.add(facts, clause.spread);
            }
        }
    }
}
