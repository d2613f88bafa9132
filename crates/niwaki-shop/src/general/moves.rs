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
    /// Where what is taken should go.
    wanted: Vec<usize>,
}

impl Mover {
    pub(super) fn new(flat: &Flat<'_>) -> Self {
        Self {
            marked: vec![0; flat.count()],
            machine_marked: vec![0; flat.shop.machines().len()],
            stamp: 0,
            taken: Vec::new(),
            left: Vec::new(),
            wanted: Vec::new(),
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

    /// Moves the operations of a job from place `from` on up to `reach` places ahead, each behind what it waits for and none
    /// before place `begun`, where all have started; false if nothing moves.
    pub(super) fn hurry(
        &mut self,
        flat: &Flat<'_>,
        list: &mut List,
        place: &[u32],
        from: usize,
        reach: usize,
        begun: usize,
    ) -> bool {
        let job = flat.job[list.order[from] as usize];
        self.take_job(flat, list, job, from..list.order.len());
        // Where each goes: between what stands before that place and at it.
        let (mut least, mut left) = (begun, 0);
        let mut low = list.order.len();
        self.wanted.clear();
        for &one in &self.taken {
            let at = place[one as usize] as usize;
            for link in &flat.before[one as usize] {
                if !self.taken.contains(&link.other) {
                    least = least.max(place[link.other as usize] as usize + 1);
                }
            }
            let goal = at.saturating_sub(reach).max(least).min(at);
            least = goal;
            low = low.min(goal);
            self.wanted.push(goal);
        }
        let high = place[self.taken[self.taken.len() - 1] as usize] as usize;
        // Merged from the front: what is taken goes before the others that stand at its goal.
        self.left.clear();
        for at in low..=high {
            while left < self.taken.len() && self.wanted[left] <= at {
                self.left.push(self.taken[left]);
                left += 1;
            }
            let one = list.order[at];
            if flat.job[one as usize] != job || at < from {
                self.left.push(one);
            }
        }
        let moves = list.order[low..=high] != self.left[..];
        list.order[low..=high].copy_from_slice(&self.left);
        moves
    }

    /// Moves the operations of a job from place `from` on up to `reach` places back, each before what waits for it;
    /// false if nothing moves.
    pub(super) fn delay(
        &mut self,
        flat: &Flat<'_>,
        list: &mut List,
        place: &[u32],
        from: usize,
        reach: usize,
    ) -> bool {
        let job = flat.job[list.order[from] as usize];
        let end = list.order.len() - 1;
        self.take_job(flat, list, job, from..end + 1);
        let mut most = end;
        let mut high = from;
        self.wanted.clear();
        for &one in self.taken.iter().rev() {
            let at = place[one as usize] as usize;
            for link in &flat.after[one as usize] {
                if !self.taken.contains(&link.other) {
                    most = most.min(place[link.other as usize] as usize - 1);
                }
            }
            let goal = (at + reach).min(most).max(at);
            most = goal;
            high = high.max(goal);
            self.wanted.push(goal);
        }
        self.left.clear();
        let mut left = self.taken.len();
        for at in (from..=high).rev() {
            while left > 0 && self.wanted[self.taken.len() - left] >= at {
                left -= 1;
                self.left.push(self.taken[left]);
            }
            let one = list.order[at];
            if flat.job[one as usize] != job {
                self.left.push(one);
            }
        }
        self.left.reverse();
        let moves = list.order[from..=high] != self.left[..];
        list.order[from..=high].copy_from_slice(&self.left);
        moves
    }

    /// Takes the operations of a job that stand in a stretch of the list.
    fn take_job(&mut self, flat: &Flat<'_>, list: &List, job: u32, stretch: std::ops::Range<usize>) {
        self.taken.clear();
        let mine = |one: &&u32| flat.job[**one as usize] == job;
        self.taken.extend(list.order[stretch].iter().filter(mine));
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
    use crate::general::{
        Job, Machine, Measure, Mode, Objective, Operation, Parts, Precedence, Setups, Shop,
    };
    use niwaki_stream::Key;

    /// Whether a list holds every operation once and respects all precedences.
    fn is_sound(flat: &Flat<'_>, list: &List) -> bool {
        let mut place = vec![usize::MAX; flat.count()];
        for (index, &one) in list.order.iter().enumerate() {
            place[one as usize] = index;
        }
        let kept = |link: &Precedence| place[link.before as usize] < place[link.after as usize];
        list.order.len() == flat.count()
            && place.iter().all(|&place| place < usize::MAX)
            && flat.shop.precedences().iter().all(kept)
    }

    /// The operations of one machine in the list's order.
    /// A shop in which nothing but routes and precedences matter.
    fn plain(precedences: Vec<Precedence>, jobs: Vec<Job>, machines: u32) -> Shop {
        let parts = Parts {
            precedences,
            jobs,
            machines: (0..machines).map(|machine| Machine::new(machine.to_string())).collect(),
            setups: Setups::default(),
            objective: Objective::only(Measure::Makespan),
            horizon: 1000,
        };
        Shop::new(parts).unwrap()
    }

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
        let shop = plain(Parts::chains(&jobs), jobs, 3);
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

    #[test]
    fn jobs_shift_as_a_whole_and_the_others_keep_their_order() {
        let mut stream = Key::new(4, "tests/shifts").open();
        let operation =
            |index: u32| Operation::new(index.to_string(), vec![Mode { machine: index, time: 1 }]);
        let job = |number: u32| Job::new(number.to_string(), (0..4).map(operation).collect());
        let jobs: Vec<Job> = (0..5).map(job).collect();
        let mut precedences = Parts::chains(&jobs);
        // The second job's third operation waits for the first job's second one.
        precedences.push(Precedence { before: 1, after: 6, min: 0, max: None });
        let shop = plain(precedences, jobs, 4);
        let flat = Flat::new(&shop, None);
        let mut mover = Mover::new(&flat);
        let mut list = List { order: by_priority(&flat, |one| one % 4), mode: vec![0; flat.count()] };
        let (mut ahead, mut back) = (0, 0);
        for _ in 0..2000 {
            let mut place = vec![0; flat.count()];
            for (index, &one) in list.order.iter().enumerate() {
                place[one as usize] = index as u32;
            }
            let before = list.clone();
            let (from, reach) = (stream.below(20) as usize, 1 + stream.below(8) as usize);
            let job = flat.job[list.order[from] as usize];
            let hurries = stream.below(2) == 0;
            let moved = if hurries {
                mover.hurry(&flat, &mut list, &place, from, reach, 0)
            } else {
                mover.delay(&flat, &mut list, &place, from, reach)
            };
            assert!(is_sound(&flat, &list));
            assert_eq!(moved, before.order != list.order);
            let others = |list: &List| -> Vec<u32> {
                list.order.iter().copied().filter(|&one| flat.job[one as usize] != job).collect()
            };
            assert_eq!(others(&before), others(&list));
            let first = list.order.iter().position(|&one| one == before.order[from]).unwrap();
            assert!(if hurries { first <= from && from - first <= reach } else { first >= from });
            *(if hurries { &mut ahead } else { &mut back }) += usize::from(moved);
        }
        assert!(ahead > 200 && back > 200, "{ahead}, {back}");
    }
}
