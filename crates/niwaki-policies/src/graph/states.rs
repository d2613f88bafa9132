//! What lanes show, as a network reads it: one state, and many of them one after the other.

use super::Widths;
use niwaki_tasks::GraphSizes;
use rayon::prelude::*;

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

    /// Keeps one state of each of so many trajectories, `[trajectory]`, as their step of so many: `[trajectory, step]`.
    pub(super) fn keep(&mut self, now: &Self, trajectories: usize, step: usize, steps: usize) {
        struct Keep(usize, usize, usize);
        impl Copying for Keep {
            fn copy<T: Copy + Default + Send + Sync>(&self, to: &mut Vec<T>, from: &[T]) {
                let Self(trajectories, step, steps) = *self;
                let size = from.len() / trajectories.max(1);
                to.resize(from.len() * steps, T::default());
                if size > 0 {
                    let all = to.par_chunks_exact_mut(steps * size).zip(from.par_chunks_exact(size));
                    let each = all.with_min_len(ALONE.div_ceil(size));
                    each.for_each(|(to, from)| to[step * size..(step + 1) * size].copy_from_slice(from));
                }
            }
        }
        self.copy_from(now, &Keep(trajectories, step, steps));
    }

    /// Becomes the states of some trajectories out of so many.
    pub(super) fn take(&mut self, all: &Self, of: usize, chosen: &[usize]) {
        struct Take<'a>(usize, &'a [usize]);
        impl Copying for Take<'_> {
            fn copy<T: Copy + Default + Send + Sync>(&self, to: &mut Vec<T>, from: &[T]) {
                let Self(of, chosen) = *self;
                let size = from.len() / of.max(1);
                to.resize(chosen.len() * size, T::default());
                if size > 0 {
                    let each = to.par_chunks_exact_mut(size).zip(chosen).with_min_len(ALONE.div_ceil(size));
                    each.for_each(|(to, &at)| to.copy_from_slice(&from[at * size..(at + 1) * size]));
                }
            }
        }
        self.copy_from(all, &Take(of, chosen));
    }

    /// Copies field by field.
    fn copy_from(&mut self, from: &Self, copying: &impl Copying) {
        copying.copy(&mut self.operations, &from.operations);
        copying.copy(&mut self.machines, &from.machines);
        copying.copy(&mut self.times, &from.times);
        copying.copy(&mut self.pairs, &from.pairs);
        copying.copy(&mut self.arcs, &from.arcs);
        copying.copy(&mut self.own_operations, &from.own_operations);
        copying.copy(&mut self.own_machines, &from.own_machines);
        copying.copy(&mut self.neighbours, &from.neighbours);
        copying.copy(&mut self.next, &from.next);
        copying.copy(&mut self.open, &from.open);
    }
}

/// Numbers from which on a copy is shared among threads.
const ALONE: usize = 1 << 14;

/// A way to fill a field of any type from another.
trait Copying {
    fn copy<T: Copy + Default + Send + Sync>(&self, to: &mut Vec<T>, from: &[T]);
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
        self.neighbours.fill(-1);
        self.next.fill(-1);
    }
}
