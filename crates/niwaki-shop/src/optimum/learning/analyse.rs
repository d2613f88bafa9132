//! What a conflict teaches: the first cut through its reasons that leaves one fact of the last level.

use super::clauses::Clauses;
use super::difference::Difference;
use super::fact::Fact;
use super::trail::{NOWHERE, Reason, Trail};

/// Working memory of the analysis.
#[derive(Default)]
pub(super) struct Analysis {
    /// For each entry of the trail, the value of its side that is needed, and whether it is marked.
    marked: Vec<Option<i32>>,
    reasons: Vec<Fact>,
    /// Marked entries below the last level.
    lower: Vec<u32>,
    /// For each side, the strongest fact of the lesson and its level.
    best: Vec<Option<(i32, u32)>>,
    /// The clause learnt: its first fact becomes true after going back, its second has the highest level left.
    pub(super) lesson: Vec<Fact>,
    /// Variables that took part.
    pub(super) touched: Vec<u32>,
}

/// Where to go back to and how many levels the lesson spans.
pub(super) struct Verdict {
    pub(super) level: u32,
    pub(super) spread: u32,
}

impl Analysis {
    /// Learns from [`Trail::conflict`], which must involve the last level.
    pub(super) fn learn(&mut self, trail: &Trail, clauses: &Clauses, differences: &[Difference]) -> Verdict {
        self.marked.clear();
        self.marked.resize(trail.entries.len(), None);
        self.lower.clear();
        self.lesson.clear();
        self.touched.clear();
        self.best.resize(2 * trail.variables(), None);
        let level = trail.level();
        let mut open = 0;
        for &fact in &trail.conflict {
            open += self.mark(trail, fact, level);
        }
        let mut at = trail.entries.len();
        loop {
            at -= 1;
            let Some(value) = self.marked[at] else { continue };
            let entry = trail.entries[at];
            if entry.level < level {
                continue;
            }
            open -= 1;
            let fact = Fact { side: entry.side, value };
            if open == 0 {
                self.lesson.push(fact.negated());
                break;
            }
            self.explain(trail, clauses, differences, at as u32, fact);
            let reasons = std::mem::take(&mut self.reasons);
            for &reason in &reasons {
                open += self.mark(trail, reason, level);
            }
            self.reasons = reasons;
        }
        self.reduce(trail, clauses, differences);
        self.finish(trail)
    }

    /// Marks the entry behind a fact; 1 if it is new and of the last level.
    fn mark(&mut self, trail: &Trail, fact: Fact, level: u32) -> u32 {
        let at = trail.origin(fact);
        if at == NOWHERE {
            return 0;
        }
        let entry = trail.entries[at as usize];
        if entry.level == 0 {
            return 0;
        }
        let known = &mut self.marked[at as usize];
        if let Some(value) = known {
            *value = (*value).max(fact.value);
            return 0;
        }
        *known = Some(fact.value);
        self.touched.push(fact.var());
        if entry.level == level {
            return 1;
        }
        self.lower.push(at);
        0
    }

    /// Fills `reasons` with facts that imply `fact`, which the entry at `at` made true.
    fn explain(&mut self, trail: &Trail, clauses: &Clauses, differences: &[Difference], at: u32, fact: Fact) {
        self.reasons.clear();
        let entry = trail.entries[at as usize];
        match entry.reason {
            Reason::Chosen => {}
            Reason::Clause(clause) => {
                let made = Fact { side: entry.side, value: entry.new };
                let others = clauses.facts(clause).iter().filter(|&&other| other != made);
                self.reasons.extend(others.map(|other| other.negated()));
            }
            Reason::Difference(number) => self.reasons.extend(differences[number as usize].explain(fact)),
            Reason::Notes { start, len } => {
                self.reasons.extend_from_slice(&trail.notes[start as usize..(start + len) as usize]);
            }
        }
    }

    /// Drops facts of lower levels whose own reasons are all part of the lesson.
    fn reduce(&mut self, trail: &Trail, clauses: &Clauses, differences: &[Difference]) {
        for index in (0..self.lower.len()).rev() {
            let at = self.lower[index];
            let entry = trail.entries[at as usize];
            let Some(value) = self.marked[at as usize] else { continue };
            if matches!(entry.reason, Reason::Chosen) {
                continue;
            }
            self.explain(trail, clauses, differences, at, Fact { side: entry.side, value });
            let implied = self.reasons.iter().all(|&reason| {
                let origin = trail.origin(reason);
                origin == NOWHERE
                    || trail.entries[origin as usize].level == 0
                    || self.marked[origin as usize].is_some_and(|value| value >= reason.value)
            });
            if implied {
                self.lower.swap_remove(index);
            }
        }
    }

    /// Gathers the lesson: for each side the strongest fact only.
    fn finish(&mut self, trail: &Trail) -> Verdict {
        let top = self.lesson[0];
        for &at in &self.lower {
            let entry = trail.entries[at as usize];
            let Some(value) = self.marked[at as usize] else { continue };
            let known = &mut self.best[entry.side as usize];
            if known.is_none_or(|(other, _)| value > other) {
                *known = Some((value, entry.level));
            }
        }
        let own = top.negated();
        self.best[own.side as usize] = None;
        let mut levels: Vec<u32> = Vec::with_capacity(self.lower.len());
        let mut highest = (0, 0);
        for &at in &self.lower {
            let side = trail.entries[at as usize].side;
            if let Some((value, level)) = self.best[side as usize].take() {
                self.lesson.push(Fact { side, value }.negated());
                levels.push(level);
                if level > highest.0 {
                    highest = (level, self.lesson.len() - 1);
                }
            }
        }
        if self.lesson.len() > 1 {
            self.lesson.swap(1, highest.1);
        }
        levels.sort_unstable();
        levels.dedup();
        Verdict { level: highest.0, spread: levels.len() as u32 + 1 }
    }
}
