//! The current bounds and how each came about.

use super::fact::{Fact, Var};

/// Where a side has no entry yet.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Why a bound moved.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Reason {
    /// Chosen by the search, or given with the problem.
    Chosen,
    /// All other facts of this clause are false.
    Clause(u32),
    /// A difference constraint carried its other end's bound over.
    Difference(u32),
    /// The facts kept at this place of the trail's notes.
    Notes { start: u32, len: u32 },
}

/// One move of one bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) side: u32,
    pub(super) old: i32,
    pub(super) new: i32,
    /// The same side's entry before this one.
    pub(super) previous: u32,
    pub(super) level: u32,
    pub(super) reason: Reason,
}

/// A bound would pass its opposite: the facts in [`Trail::conflict`] cannot hold together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Conflict;

/// Bounds of all variables with the history that explains them.
#[derive(Default)]
pub(crate) struct Trail {
    bounds: Vec<i32>,
    last: Vec<u32>,
    pub(super) entries: Vec<Entry>,
    pub(super) notes: Vec<Fact>,
    /// For each open level, how long `entries` and `notes` were before it.
    marks: Vec<(u32, u32)>,
    /// Facts, all true, that cannot hold together.
    pub(super) conflict: Vec<Fact>,
}

impl Trail {
    /// A variable between two values.
    pub(super) fn variable(&mut self, low: i32, high: i32) -> Var {
        self.bounds.extend([low, -high]);
        self.last.extend([NOWHERE; 2]);
        (self.bounds.len() / 2 - 1) as Var
    }

    pub(super) fn variables(&self) -> usize {
        self.bounds.len() / 2
    }

    /// A side's bound.
    #[inline]
    pub(crate) fn bound(&self, side: u32) -> i32 {
        self.bounds[side as usize]
    }

    /// A variable's lower bound.
    #[inline]
    pub(crate) fn low(&self, var: Var) -> i32 {
        self.bounds[2 * var as usize]
    }

    /// A variable's upper bound.
    #[inline]
    pub(crate) fn high(&self, var: Var) -> i32 {
        -self.bounds[2 * var as usize + 1]
    }

    #[inline]
    pub(crate) fn holds(&self, fact: Fact) -> bool {
        self.bound(fact.side) >= fact.value
    }

    #[inline]
    pub(crate) fn fails(&self, fact: Fact) -> bool {
        self.bound(fact.side ^ 1) > -fact.value
    }

    /// Number of choices that are open.
    pub(crate) fn level(&self) -> u32 {
        self.marks.len() as u32
    }

    pub(super) fn open_level(&mut self) {
        self.marks.push((self.entries.len() as u32, self.notes.len() as u32));
    }

    /// Takes back everything above a level, telling each entry's side.
    pub(super) fn back_to(&mut self, level: u32, mut undone: impl FnMut(u32)) {
        let Some(&(entries, notes)) = self.marks.get(level as usize) else { return };
        for entry in self.entries.drain(entries as usize..).rev() {
            self.bounds[entry.side as usize] = entry.old;
            self.last[entry.side as usize] = entry.previous;
            undone(entry.side);
        }
        self.notes.truncate(notes as usize);
        self.marks.truncate(level as usize);
    }

    /// Keeps facts that explain a move still to come.
    pub(crate) fn note(&mut self, facts: impl IntoIterator<Item = Fact>) -> Reason {
        let start = self.notes.len() as u32;
        self.notes.extend(facts);
        Reason::Notes { start, len: self.notes.len() as u32 - start }
    }

    /// Makes a fact hold. The fact must not fail already.
    pub(super) fn push(&mut self, fact: Fact, reason: Reason) {
        let side = fact.side as usize;
        let entry = Entry {
            side: fact.side,
            old: self.bounds[side],
            new: fact.value,
            previous: self.last[side],
            level: self.level(),
            reason,
        };
        self.last[side] = self.entries.len() as u32;
        self.bounds[side] = fact.value;
        self.entries.push(entry);
    }

    /// Makes a fact hold for noted reasons, or records the conflict if it fails.
    ///
    /// # Errors
    /// If the fact fails.
    pub(crate) fn infer(
        &mut self,
        fact: Fact,
        reason: impl IntoIterator<Item = Fact>,
    ) -> Result<(), Conflict> {
        if self.holds(fact) {
            return Ok(());
        }
        if self.fails(fact) {
            self.conflict.clear();
            self.conflict.extend(reason);
            self.conflict.push(fact.negated());
            return Err(Conflict);
        }
        let reason = self.note(reason);
        self.push(fact, reason);
        Ok(())
    }

    /// Records facts, all true, that cannot hold together.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn contradict(&mut self, facts: impl IntoIterator<Item = Fact>) -> Result<(), Conflict> {
        self.conflict.clear();
        self.conflict.extend(facts);
        Err(Conflict)
    }

    /// The entry that made a fact hold, or [`NOWHERE`] if it held from the start.
    pub(super) fn origin(&self, fact: Fact) -> u32 {
        let mut at = self.last[fact.side as usize];
        while at != NOWHERE && self.entries[at as usize].old >= fact.value {
            at = self.entries[at as usize].previous;
        }
        at
    }

    /// The level at which a true fact became true.
    pub(super) fn level_of(&self, fact: Fact) -> u32 {
        let at = self.origin(fact);
        if at == NOWHERE { 0 } else { self.entries[at as usize].level }
    }
}
