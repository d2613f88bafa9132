//! Another reading of a list: every operation goes into the first gap of its machine that holds it.
//!
//! Where machines close, what does not fit before the closing leaves a gap, and it takes many moves of the plain reading to
//! fill it. Here the list is a list of priorities. A schedule that was found so, sorted by start, is a list whose plain reading
//! is no worse: so it is handed on.

use super::list::{Flat, List, NONE, Pass};

impl Flat<'_> {
    /// Whether lists may be read so, and it pays: somewhere a machine closes, and nothing wants to start late.
    pub(super) fn fills_gaps(&self) -> bool {
        self.is_causal() && self.shop.machines().iter().any(|machine| !machine.calendar.is_always_open())
    }

    /// Places every operation in the first gap that holds it, and sums up.
    pub(super) fn run_filling(&self, list: &List, pass: &mut Pass) {
        self.make_room(pass);
        pass.lanes.resize(self.shop.machines().len(), Vec::new());
        pass.lanes.iter_mut().for_each(Vec::clear);
        for &operation in &list.order {
            self.fill_in(list, operation, pass);
        }
        pass.setup_time = 0;
        for (machine, lane) in pass.lanes.iter().enumerate() {
            let mut last = NONE;
            for &(_, _, operation) in lane {
                pass.setup_time += u64::from(self.setup(machine as u32, last, operation));
                pass.machine_before[operation as usize] = last;
                last = operation;
            }
        }
        self.sum_up(pass);
    }

    fn fill_in(&self, list: &List, operation: u32, pass: &mut Pass) {
        let index = operation as usize;
        let (machine, time) = self.modes[index][list.mode[index] as usize];
        let lane = &mut pass.lanes[machine as usize];
        if let Some(here) = self.fixed[index] {
            let slot = lane.partition_point(|&(start, _, _)| start <= here.start);
            lane.insert(slot, (here.start, here.end, operation));
            (pass.start[index], pass.end[index], pass.held_by[index]) = (here.start, here.end, NONE);
            return;
        }
        let (mut ready, mut held_by) = (self.earliest[index], NONE);
        for link in &self.before[index] {
            let from = pass.end[link.other as usize].saturating_add(link.min);
            if from >= ready {
                (ready, held_by) = (from, link.other);
            }
        }
        let mut slot = lane.partition_point(|&(_, end, _)| end <= ready);
        let (span, held_by) = loop {
            let (free, last) = match slot.checked_sub(1).map(|before| lane[before]) {
                Some((_, end, last)) => (end, last),
                None => (self.shop.machines()[machine as usize].available, NONE),
            };
            let free = free.saturating_add(self.setup(machine, last, operation));
            // Most gaps are too short whatever the calendar says.
            if lane.get(slot).is_some_and(|&(start, _, _)| free.max(ready).saturating_add(time) > start) {
                slot += 1;
                continue;
            }
            let span = self.place(machine as usize, index, time, free.max(ready));
            let fits = lane.get(slot).is_none_or(|&(start, _, next)| {
                span.end.saturating_add(self.setup(machine, operation, next)) <= start
            });
            if fits {
                break (span, if free >= ready && last != NONE { last } else { held_by });
            }
            slot += 1;
        };
        lane.insert(slot, (span.start, span.end, operation));
        (pass.start[index], pass.end[index], pass.held_by[index]) = (span.start, span.end, held_by);
    }

    /// The list of a pass: by start, what takes no time first, ties as they were.
    pub(super) fn by_start(&self, list: &List, pass: &Pass) -> List {
        let mut sorted = list.clone();
        sorted.order.sort_by_key(|&one| (pass.start[one as usize], pass.end[one as usize]));
        sorted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::general::construct::by_priority;
    use crate::general::{
        Calendar, Job, Machine, Measure, Mode, Objective, Operation, Parts, Setups, Shop, verify,
    };
    use niwaki_stream::Key;

    /// Four jobs on three machines that close, in three families with setups where asked for.
    fn shop(setups: bool) -> Shop {
        let mut stream = Key::new(5, "tests/gaps").open();
        let mut job = |number: u32| {
            let mut operation = |index: u32| {
                let time = 1 + stream.below(6) as u32;
                let mut made =
                    Operation::new(index.to_string(), vec![Mode { machine: (number + index) % 3, time }]);
                made.family = setups.then_some(number % 3);
                made.interruptible = number == 0;
                made
            };
            let mut made = Job::new(number.to_string(), (0..3).map(&mut operation).collect());
            made.due = Some(8);
            made
        };
        let jobs: Vec<Job> = (0..4).map(&mut job).collect();
        let closed =
            |machine: u32| (0..20).map(|day| (day * 10 + 6 + machine, day * 10 + 9 + machine)).collect();
        let machine = |number: u32| Machine { calendar: Calendar::new(closed(number)), ..Machine::new("m") };
        let names = ["a", "b", "c"].map(String::from).to_vec();
        let table = vec![0, 1, 2, 2, 0, 1, 1, 2, 0];
        let setups = if setups {
            Setups { families: names, tables: vec![table], of_machine: vec![Some(0); 3] }
        } else {
            Setups::default()
        };
        let objective = Objective::only(Measure::Tardiness);
        let machines = (0..3).map(machine).enumerate();
        let machines = machines.map(|(number, one)| Machine { name: number.to_string(), ..one }).collect();
        let parts =
            Parts { precedences: Parts::chains(&jobs), jobs, machines, setups, objective, horizon: 209 };
        Shop::new(parts).unwrap()
    }

    #[test]
    fn a_filled_schedule_is_sound_and_its_plain_reading_no_worse() {
        let mut stream = Key::new(7, "tests/gaps/lists").open();
        let mut filled = 0;
        for setups in [false, true] {
            let shop = shop(setups);
            let flat = Flat::new(&shop, None);
            assert!(flat.fills_gaps());
            for _ in 0..200 {
                let keys: Vec<u64> = (0..flat.count()).map(|_| stream.below(1000)).collect();
                let list =
                    List { order: by_priority(&flat, |one| keys[one as usize]), mode: vec![0; flat.count()] };
                let (mut gaps, mut plain, mut sorted) = (Pass::default(), Pass::default(), Pass::default());
                flat.run_filling(&list, &mut gaps);
                flat.run(&list, &mut plain);
                let found = verify(&shop, &flat.schedule(&list, &gaps)).unwrap();
                assert_eq!(found.values, gaps.cost[1..]);
                flat.run(&flat.by_start(&list, &gaps), &mut sorted);
                assert!(sorted.end.iter().zip(&gaps.end).all(|(sorted, gaps)| sorted <= gaps));
                assert!(sorted.cost <= gaps.cost);
                filled += usize::from(gaps.cost < plain.cost);
            }
        }
        assert!(filled > 50, "gaps were filled {filled} times");
    }
}
