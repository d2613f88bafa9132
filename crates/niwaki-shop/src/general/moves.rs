//! Changes of a list that never contradict the precedences.
//!
//! To put an operation before another one, everything in between that it waits for is taken along, and with each of those
//! whatever runs before it on its machine; so machine orders change only where they are meant to.

use super::list::{Flat, List};

/// Room for marks, kept between moves.
pub(super) struct Mover {
    marked: Vec<u32>,
    machine_marked: Vec<u32>,
    stamp: u32,
    taken: Vec<u32>,
    left: Vec<u32>,
}

impl Mover {
    pub(super) fn new(flat: &Flat<'_>) -> Self {
        Self {
            marked: vec![0; flat.count()],
            machine_marked: vec![0; flat.shop.machines().len()],
            stamp: 0,
            taken: Vec::new(),
            left: Vec::new(),
        }
    }

    /// Puts the operation at place `from` right before the one at `to < from`; false, and nothing changes, if the latter
    /// must come first or has started already.
    pub(super) fn pull(&mut self, flat: &Flat<'_>, list: &mut List, from: usize, to: usize) -> bool {
        self.stamp += 1;
        self.taken.clear();
        self.left.clear();
        let pulled = list.order[from];
        let target = list.order[to];
        if flat.fixed[target as usize].is_some() {
            return false;
        }
        for link in &flat.before[pulled as usize] {
            self.marked[link.other as usize] = self.stamp;
        }
        self.taken.push(pulled);
        for &one in list.order[to..from].iter().rev() {
            let machine = flat.machine(list, one) as usize;
            if self.marked[one as usize] == self.stamp || self.machine_marked[machine] == self.stamp {
                if one == target {
                    return false;
                }
                self.machine_marked[machine] = self.stamp;
                for link in &flat.before[one as usize] {
                    self.marked[link.other as usize] = self.stamp;
                }
                self.taken.push(one);
            } else {
                self.left.push(one);
            }
        }
        let (taken, left) = (self.taken.iter().rev(), self.left.iter().rev());
        for (place, &one) in list.order[to..=from].iter_mut().zip(taken.chain(left)) {
            *place = one;
        }
        true
    }

    /// Puts the operation at place `from` right after the one at `to > from`; false, and nothing changes, if the latter must
    /// come later or the former has started already.
    pub(super) fn push(&mut self, flat: &Flat<'_>, list: &mut List, from: usize, to: usize) -> bool {
        self.stamp += 1;
        self.taken.clear();
        self.left.clear();
        let pushed = list.order[from];
        let target = list.order[to];
        if flat.fixed[pushed as usize].is_some() {
            return false;
        }
        for link in &flat.after[pushed as usize] {
            self.marked[link.other as usize] = self.stamp;
        }
        self.taken.push(pushed);
        for &one in &list.order[from + 1..=to] {
            let machine = flat.machine(list, one) as usize;
            if self.marked[one as usize] == self.stamp || self.machine_marked[machine] == self.stamp {
                if one == target {
                    return false;
                }
                self.machine_marked[machine] = self.stamp;
                for link in &flat.after[one as usize] {
                    self.marked[link.other as usize] = self.stamp;
                }
                self.taken.push(one);
            } else {
                self.left.push(one);
            }
        }
        for (place, &one) in list.order[from..=to].iter_mut().zip(self.left.iter().chain(&self.taken)) {
            *place = one;
        }
        true
    }

    /// Moves the operation at place `from` to place `to`, across nothing that it waits for or that waits for it.
    pub(super) fn slide(list: &mut List, from: usize, to: usize) {
        if from < to {
            list.order[from..=to].rotate_left(1);
        } else {
            list.order[to..=from].rotate_right(1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::construct::by_priority;
    use crate::general::{Job, Machine, Measure, Mode, Objective, Operation, Parts, Setups, Shop};
    use niwaki_stream::Key;

    /// Whether a list holds every operation once and respects all precedences.
    fn is_sound(flat: &Flat<'_>, list: &List) -> bool {
        let mut place = vec![usize::MAX; flat.count()];
        for (index, &one) in list.order.iter().enumerate() {
            place[one as usize] = index;
        }
        let kept =
            |link: &crate::general::Precedence| place[link.before as usize] < place[link.after as usize];
        list.order.len() == flat.count()
            && place.iter().all(|&place| place < usize::MAX)
            && flat.shop.precedences().iter().all(kept)
    }

    /// The operations of one machine in the list's order.
    fn on(flat: &Flat<'_>, list: &List, machine: u32) -> Vec<u32> {
        list.order.iter().copied().filter(|&one| flat.machine(list, one) == machine).collect()
    }

    #[test]
    fn moves_keep_precedences_and_the_orders_of_other_machines() {
        let mut stream = Key::new(3, "tests/moves").open();
        let job = |number: u32| {
            let operation = |index: u32| {
                Operation::new(
                    index.to_string(),
                    vec![Mode { machine: (number * (index + 1) + index) % 3, time: 1 }],
                )
            };
            Job::new(number.to_string(), (0..4).map(operation).collect())
        };
        let jobs: Vec<Job> = (0..5).map(job).collect();
        let parts = Parts {
            precedences: Parts::chains(&jobs),
            jobs,
            machines: (0..3).map(|machine| Machine::new(machine.to_string())).collect(),
            setups: Setups::default(),
            objective: Objective::only(Measure::Makespan),
            horizon: 1000,
        };
        let shop = Shop::new(parts).unwrap();
        let flat = Flat::new(&shop, None);
        let mut mover = Mover::new(&flat);
        let mut list = List { order: by_priority(&flat, |one| one % 4), mode: vec![0; flat.count()] };
        let mut made = 0;
        for _ in 0..2000 {
            let (low, high) = (stream.below(20) as usize, stream.below(20) as usize);
            if low >= high || flat.machine(&list, list.order[low]) != flat.machine(&list, list.order[high]) {
                continue;
            }
            let before = list.clone();
            let (first, last) = (list.order[low], list.order[high]);
            let pulls = stream.below(2) == 0;
            let done = if pulls {
                mover.pull(&flat, &mut list, high, low)
            } else {
                mover.push(&flat, &mut list, low, high)
            };
            assert!(is_sound(&flat, &list));
            if !done {
                assert_eq!(before.order, list.order, "a refused move changes nothing");
                continue;
            }
            made += 1;
            let place = |one: u32| list.order.iter().position(|&other| other == one);
            assert!(place(last) < place(first));
            let machine = flat.machine(&list, first);
            for other in (0..3).filter(|&other| other != machine) {
                assert_eq!(on(&flat, &before, other), on(&flat, &list, other));
            }
        }
        assert!(made > 100, "{made}");
    }
}
