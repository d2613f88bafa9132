//! What lanes show, as a network reads it: one state, and many of them one after the other.

use super::Widths;
use niwaki_tasks::GraphSizes;

/// One state as a network reads it, with the rows of the largest shop: all of it zero until a policy fills it.
pub(crate) struct Shown<'a> {
    /// `[operation, width]`
    pub(crate) operations: &'a mut [f32],
    /// `[machine, width]`
    pub(crate) machines: &'a mut [f32],
    /// `[operation, machine]`, as are the arcs.
    pub(crate) times: &'a mut [f32],
    /// `[pair, width]`
    pub(crate) pairs: &'a mut [f32],
    pub(crate) arcs: &'a mut [u8],
    /// `[operation]`
    pub(crate) own_operations: &'a mut [u8],
    /// `[machine]`
    pub(crate) own_machines: &'a mut [u8],
    /// `[operation]`
    pub(crate) neighbours: &'a mut [i32],
    /// `[job]`
    pub(crate) next: &'a mut [i32],
    /// `[pair]`
    pub(crate) open: &'a mut [u8],
}

/// States one after the other, each with the rows of the largest shop.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct States {
    pub(super) operations: Vec<f32>,
    pub(super) machines: Vec<f32>,
    pub(super) times: Vec<f32>,
    pub(super) pairs: Vec<f32>,
    pub(super) arcs: Vec<u8>,
    pub(super) own_operations: Vec<u8>,
    pub(super) own_machines: Vec<u8>,
    pub(super) neighbours: Vec<i32>,
    pub(super) next: Vec<i32>,
    pub(super) open: Vec<u8>,
}

impl States {
    /// Forgets all states and keeps their room.
    pub(super) fn clear(&mut self) {
        let Self { operations, machines, times, pairs, arcs, own_operations, .. } = self;
        [operations, machines, times, pairs].into_iter().for_each(Vec::clear);
        let Self { own_machines, neighbours, next, open, .. } = self;
        [arcs, own_operations, own_machines, open].into_iter().for_each(Vec::clear);
        [neighbours, next].into_iter().for_each(Vec::clear);
    }

    /// Room for so many states, and each of them; what they were stays.
    pub(super) fn each(&mut self, states: usize, sizes: GraphSizes, widths: Widths) -> Vec<Shown<'_>> {
        fn cut<T: Copy + Default>(
            all: &mut Vec<T>,
            states: usize,
            size: usize,
        ) -> impl Iterator<Item = &mut [T]> {
            all.resize(states * size, T::default());
            let mut left = all.as_mut_slice();
            (0..states).map(move |_| left.split_off_mut(..size).unwrap_or_default())
        }
        let GraphSizes { jobs, machines, operations, .. } = sizes;
        let mut of_operations = cut(&mut self.operations, states, operations * widths.operations);
        let mut of_machines = cut(&mut self.machines, states, machines * widths.machines);
        let mut times = cut(&mut self.times, states, operations * machines);
        let mut pairs = cut(&mut self.pairs, states, sizes.pairs() * widths.pairs);
        let mut arcs = cut(&mut self.arcs, states, operations * machines);
        let mut own_operations = cut(&mut self.own_operations, states, operations);
        let mut own_machines = cut(&mut self.own_machines, states, machines);
        let mut neighbours = cut(&mut self.neighbours, states, operations);
        let mut next = cut(&mut self.next, states, jobs);
        let mut open = cut(&mut self.open, states, sizes.pairs());
        let one = || {
            Some(Shown {
                operations: of_operations.next()?,
                machines: of_machines.next()?,
                times: times.next()?,
                pairs: pairs.next()?,
                arcs: arcs.next()?,
                own_operations: own_operations.next()?,
                own_machines: own_machines.next()?,
                neighbours: neighbours.next()?,
                next: next.next()?,
                open: open.next()?,
            })
        };
        std::iter::from_fn(one).collect()
    }

    /// Appends one state.
    pub(super) fn push(&mut self, shown: &Shown<'_>) {
        self.operations.extend_from_slice(shown.operations);
        self.machines.extend_from_slice(shown.machines);
        self.times.extend_from_slice(shown.times);
        self.pairs.extend_from_slice(shown.pairs);
        self.arcs.extend_from_slice(shown.arcs);
        self.own_operations.extend_from_slice(shown.own_operations);
        self.own_machines.extend_from_slice(shown.own_machines);
        self.neighbours.extend_from_slice(shown.neighbours);
        self.next.extend_from_slice(shown.next);
        self.open.extend_from_slice(shown.open);
    }

    /// All states of some trajectories, one after the other.
    pub(super) fn joined<'a>(from: impl Iterator<Item = &'a Self> + Clone) -> Self {
        fn join<'a, T: Copy + 'a>(from: impl Iterator<Item = &'a Vec<T>>) -> Vec<T> {
            from.flatten().copied().collect()
        }
        Self {
            operations: join(from.clone().map(|one| &one.operations)),
            machines: join(from.clone().map(|one| &one.machines)),
            times: join(from.clone().map(|one| &one.times)),
            pairs: join(from.clone().map(|one| &one.pairs)),
            arcs: join(from.clone().map(|one| &one.arcs)),
            own_operations: join(from.clone().map(|one| &one.own_operations)),
            own_machines: join(from.clone().map(|one| &one.own_machines)),
            neighbours: join(from.clone().map(|one| &one.neighbours)),
            next: join(from.clone().map(|one| &one.next)),
            open: join(from.map(|one| &one.open)),
        }
    }
}

impl Shown<'_> {
    /// Nothing to see.
    pub(super) fn clear(&mut self) {
        [&mut *self.operations, self.machines, self.times, self.pairs]
            .into_iter()
            .for_each(|all| all.fill(0.0));
        [&mut *self.arcs, self.own_operations, self.own_machines, self.open]
            .into_iter()
            .for_each(|all| all.fill(0));
        self.neighbours.fill(0);
        self.next.fill(-1);
    }
}
