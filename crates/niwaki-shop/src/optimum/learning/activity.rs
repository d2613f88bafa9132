//! Which variable to decide next: those that took part in recent conflicts first.

use super::fact::Var;

const NOT_QUEUED: u32 = u32::MAX;

/// A heap of variables by activity; ties go to the lower number, so that the order is one.
#[derive(Default)]
pub(super) struct Activity {
    score: Vec<f64>,
    heap: Vec<Var>,
    place: Vec<u32>,
    decided: Vec<bool>,
    step: f64,
}

impl Activity {
    pub(super) fn new() -> Self {
        Self { step: 1.0, ..Self::default() }
    }

    /// Adds the next variable, with a first score; `queued` if the search may decide it.
    pub(super) fn add(&mut self, queued: bool, score: f64) {
        let var = self.score.len() as Var;
        self.score.push(score);
        self.place.push(NOT_QUEUED);
        self.decided.push(queued);
        self.insert(var);
    }

    /// Puts a variable back, if the search decides it.
    pub(super) fn insert(&mut self, var: Var) {
        if self.decided[var as usize] && self.place[var as usize] == NOT_QUEUED {
            self.place[var as usize] = self.heap.len() as u32;
            self.heap.push(var);
            self.rise(self.heap.len() - 1);
        }
    }

    /// Takes the most active variable out.
    pub(super) fn pop(&mut self) -> Option<Var> {
        let &top = self.heap.first()?;
        self.place[top as usize] = NOT_QUEUED;
        let last = self.heap.pop()?;
        if let Some(first) = self.heap.first_mut() {
            *first = last;
            self.place[last as usize] = 0;
            self.sink(0);
        }
        Some(top)
    }

    pub(super) fn bump(&mut self, var: Var) {
        self.score[var as usize] += self.step;
        if self.score[var as usize] > 1e100 {
            self.score.iter_mut().for_each(|score| *score *= 1e-100);
            self.step *= 1e-100;
        }
        if self.place[var as usize] != NOT_QUEUED {
            self.rise(self.place[var as usize] as usize);
        }
    }

    pub(super) fn decay(&mut self) {
        self.step /= 0.95;
    }

    fn before(&self, a: Var, b: Var) -> bool {
        let (x, y) = (self.score[a as usize], self.score[b as usize]);
        x > y || (x == y && a < b)
    }

    fn rise(&mut self, mut at: usize) {
        let var = self.heap[at];
        while at > 0 && self.before(var, self.heap[(at - 1) / 2]) {
            self.heap[at] = self.heap[(at - 1) / 2];
            self.place[self.heap[at] as usize] = at as u32;
            at = (at - 1) / 2;
        }
        self.heap[at] = var;
        self.place[var as usize] = at as u32;
    }

    fn sink(&mut self, mut at: usize) {
        let var = self.heap[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.before(self.heap[child + 1], self.heap[child]) {
                child += 1;
            }
            if !self.before(self.heap[child], var) {
                break;
            }
            self.heap[at] = self.heap[child];
            self.place[self.heap[at] as usize] = at as u32;
            at = child;
        }
        self.heap[at] = var;
        self.place[var as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_active_comes_first_and_ties_by_number() {
        let mut activity = Activity::new();
        for queued in [true, false, true, true] {
            activity.add(queued, 0.0);
        }
        activity.bump(3);
        assert_eq!(activity.pop(), Some(3));
        assert_eq!(activity.pop(), Some(0));
        activity.insert(3);
        assert_eq!((activity.pop(), activity.pop(), activity.pop()), (Some(3), Some(2), None));
    }
}
