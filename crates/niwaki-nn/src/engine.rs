//! What every device offers: load, run forward, pull a cotangent back, step.
//!
//! A policy builds a [`crate::Graph`] and talks to an engine through this trait only, so it runs on every device.
//! Buffers on this side are `[member, item, rows, width]`, row-major. An engine allocates when it is made and when
//! the number of items changes, never in the hot loop.

use crate::extension::{Extension, HostArray};
use crate::graph::{Graph, Index, Mask, Value};
use crate::layout::Layout;
use crate::optimiser::Optimiser;
use crate::{Error, Result};
use std::any::Any;
use std::fmt;
use std::ops::Range;

/// Which part of the population a surrogate is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The member.
    pub member: usize,
    /// Items of that member.
    pub items: Range<usize>,
}

/// Turns the outputs of some items of one member into the cotangents of those outputs.
///
/// Called with the span, one slice `[items, rows, width]` for each output of the plan, and one slice of the same
/// shape for each cotangent, which it must fill whole (it holds rubbish before). An engine may call it once per
/// member or once per block of items, in any order and from several threads: an item's cotangent may depend on
/// that item's outputs only, and on what the caller knew before. The correction is such a function. The cotangent of an
/// output that no parameter reaches, or that the graph only shows, is an empty slice.
pub type CotangentFn<'a, F> = dyn Fn(Span, &[&[F]], &mut [&mut [F]]) + Sync + 'a;

/// A program that chooses its own next input: from a row's logits an action, which is the next row's token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choosing {
    /// `[rows, choices]`.
    pub logits: Value,
    /// `[rows]`: what is chosen.
    pub actions: Index,
    /// `[rows]`: entry `t` is what was chosen in row `t − 1`, entry 0 the beginning.
    pub tokens: Index,
}

/// An input, and what is loaded into it.
#[derive(Clone, Copy, Debug)]
pub enum Load<'a, S> {
    /// As [`Engine::load_scalars`] takes them.
    Scalars(Value, &'a [S]),
    /// As [`Engine::load_indices`] takes them.
    Indices(Index, &'a [i32]),
    /// As [`Engine::load_mask`] takes it.
    Mask(Mask, &'a [u8]),
}

/// An engine of any device, as policies, players and commands hold it; what runs on it is compiled in this crate, once.
pub type DynEngine = dyn Engine<Scalar = f32>;

/// A population of members that run one program on one device.
///
/// Outputs are those named when the engine was made; `output` is a position in that list.
pub trait Engine: Any + fmt::Debug + Send {
    /// The scalar type on the host's side.
    type Scalar: Copy;

    /// Members.
    fn members(&self) -> usize;

    /// Items per member, as last set.
    fn items(&self) -> usize;

    /// The program.
    fn graph(&self) -> &Graph;

    /// The layout of a member's parameters.
    fn layout(&self) -> &Layout {
        self.graph().layout()
    }

    /// Sets the number of items per member. Inputs must be loaded anew.
    ///
    /// # Errors
    /// If the device has no room.
    fn set_items(&mut self, items: usize) -> Result<()>;

    /// Makes ready to be used from the calling thread, where that is not the one that made the engine.
    ///
    /// # Errors
    /// If the device fails.
    fn move_here(&self) -> Result<()> {
        Ok(())
    }

    /// Whether another number of items costs nothing, so that a caller with fewer should say so.
    fn resizes_freely(&self) -> bool {
        false
    }

    /// Sets the number of items per member, and which of them stay together: `ends[member]` are where that member's runs of
    /// items end, in order, the last of them at the number of items, which is the same for all. A [`CotangentFn`] is then
    /// called with whole runs only, so that a cotangent may depend on all items of its run.
    ///
    /// With [`Engine::set_items`] every item stands alone: right where an item is a whole trajectory. Where an item is one
    /// decision, the runs are trajectories, and their ends are a rollout's offsets without the first. Members that have
    /// fewer items than others are filled up with a run of idle ones.
    ///
    /// # Errors
    /// If there is not one list per member, runs do not go forward or do not end together, or the device has no room.
    fn set_runs(&mut self, ends: &[Vec<usize>]) -> Result<()> {
        // A device that asks about whole members splits nothing.
        self.set_items(check_runs(self.members(), ends)?)
    }

    /// Loads an input of scalars, `[member, item, rows, width]`.
    ///
    /// # Errors
    /// If the length is wrong.
    fn load_scalars(&mut self, input: Value, data: &[Self::Scalar]) -> Result<()>;

    /// Loads integers, `[member, item, rows]`.
    ///
    /// # Errors
    /// If the length is wrong or an index is out of bounds.
    fn load_indices(&mut self, index: Index, data: &[i32]) -> Result<()>;

    /// Loads a mask, `[member, item, rows, width]`.
    ///
    /// # Errors
    /// If the length is wrong.
    fn load_mask(&mut self, mask: Mask, data: &[u8]) -> Result<()>;

    /// Loads several inputs, on one way where a device is far: each by itself costs more than what it carries.
    ///
    /// # Errors
    /// If a length is wrong or an index is out of bounds.
    fn load(&mut self, inputs: &[Load<'_, Self::Scalar>]) -> Result<()> {
        inputs.iter().try_for_each(|input| match *input {
            Load::Scalars(input, data) => self.load_scalars(input, data),
            Load::Indices(index, data) => self.load_indices(index, data),
            Load::Mask(mask, data) => self.load_mask(mask, data),
        })
    }

    /// Writes a member's flat parameters, `[layout.len()]`.
    ///
    /// # Errors
    /// If the length is wrong.
    fn set_parameters(&mut self, member: usize, flat: &[Self::Scalar]) -> Result<()>;

    /// Reads a member's flat parameters.
    ///
    /// # Errors
    /// If the device fails.
    fn parameters(&self, member: usize) -> Result<Vec<Self::Scalar>>;

    /// Waits until everything that was asked for has been done: a step may still go on when [`Engine::step`] has returned.
    ///
    /// # Errors
    /// If something failed.
    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    /// Computes all outputs.
    ///
    /// # Errors
    /// If the device fails.
    fn forward(&mut self) -> Result<()>;

    /// Begins to; they are there after [`Engine::synchronize`], and nothing else may be asked before.
    ///
    /// # Errors
    /// If the device fails.
    fn start_forward(&mut self) -> Result<()> {
        self.forward()
    }

    /// Computes all outputs for row `row` only, after rows `0..row` (see [`crate::Plan::stepping`]).
    ///
    /// # Errors
    /// If the program cannot run row by row, or the device fails.
    fn forward_row(&mut self, row: usize) -> Result<()>;

    /// Runs all rows one after the other, choosing in each the first entry at which the running sum of probabilities
    /// exceeds the row's uniform; returns the actions, `[member, item, row]`.
    ///
    /// `beginning` is the token before the first row, `uniforms` is `[member, item, row]`. `None` says that the device leaves this to its caller, who then runs
    /// [`Engine::forward_row`] and chooses.
    ///
    /// # Errors
    /// If the program cannot run row by row, or the device fails.
    fn choose_rows(
        &mut self,
        choosing: Choosing,
        beginning: i32,
        uniforms: &[f64],
    ) -> Result<Option<Vec<i32>>> {
        let _ = (choosing, beginning, uniforms);
        Ok(None)
    }

    /// Runs a kernel that the caller brings behind the ops whose values it reads, with the arrays that it is given; `answers` are
    /// filled in the order of [`Extension::answers`]. The inputs that those ops read must have been loaded; what the kernel
    /// writes into others stays loaded. `false` says that the device leaves this to its caller.
    ///
    /// # Errors
    /// If lengths are wrong, the kernel does not compile, or the device fails.
    fn extend(
        &mut self,
        extension: &Extension,
        given: &[HostArray<'_>],
        answers: &mut [Vec<i32>],
    ) -> Result<bool> {
        let _ = (extension, given, answers);
        Ok(false)
    }

    /// Takes over the parameters of an engine whose program has the same layout.
    ///
    /// # Errors
    /// If members or lengths differ, or a device fails.
    fn copy_parameters(&mut self, from: &dyn Engine<Scalar = Self::Scalar>) -> Result<()> {
        check_members("parameters", self.members(), from.members())?;
        for member in 0..from.members() {
            self.set_parameters(member, &from.parameters(member)?)?;
        }
        Ok(())
    }

    /// Says which items will be asked for nothing, because their cotangents are known to be zero: `silent` is
    /// `[member][item]`. Until inputs are loaded again, [`Engine::pull_back`] may leave them out: it then does not call the
    /// surrogate about them and does not refresh outputs. The gradient is the same.
    ///
    /// # Errors
    /// If there is not one list per member and one entry per item, or the device has no room.
    fn leave_out(&mut self, silent: &[Vec<bool>]) -> Result<()> {
        check_silent(self.members(), self.items(), silent)
    }

    /// Computes all outputs, asks the surrogate for their cotangents, and pulls these back into the gradient.
    ///
    /// # Errors
    /// If the device fails.
    fn pull_back(&mut self, surrogate: &CotangentFn<'_, Self::Scalar>) -> Result<()>;

    /// A member's output of the last run, `[item, rows, width]`. [`Engine::pull_back`] need not refresh an output that
    /// the graph only shows, nor any once items are left out.
    fn output(&self, member: usize, output: usize) -> &[Self::Scalar];

    /// A member's flat gradient, as [`Engine::pull_back`] left it.
    ///
    /// # Errors
    /// If the device fails.
    fn gradient(&self, member: usize) -> Result<Vec<Self::Scalar>>;

    /// One step of every member with its own learning rate; returns the norm of each member's gradient.
    ///
    /// # Errors
    /// If there is not one rate per member, or the device fails.
    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>>;

    /// A member's optimiser state: steps taken and its moments (see [`Optimiser::moments`]), each as long as the
    /// parameters.
    ///
    /// # Errors
    /// If the device fails.
    fn state(&self, member: usize) -> Result<(u64, Vec<Vec<Self::Scalar>>)>;

    /// Puts a member's optimiser state back.
    ///
    /// # Errors
    /// If a moment's length is wrong, or the device fails.
    fn set_state(&mut self, member: usize, steps: u64, moments: &[Vec<Self::Scalar>]) -> Result<()>;
}

/// Refuses runs of items that are none; gives the number of items.
///
/// # Errors
/// If there is not one list per member, runs do not go forward or do not end together.
pub(crate) fn check_runs(members: usize, ends: &[Vec<usize>]) -> Result<usize> {
    check_members("ends of runs", members, ends.len())?;
    let last = |ends: &Vec<usize>| ends.last().copied().unwrap_or(0);
    let items = ends.first().map_or(0, last);
    for ends in ends {
        if !ends.is_sorted_by(|one, next| one < next) || ends.first() == Some(&0) {
            let reason = "every run of items needs at least one".to_owned();
            return Err(Error::Unsupported { op: "set_runs", reason });
        }
        if last(ends) != items {
            let (expected, got) = (items, last(ends));
            return Err(Error::Shape { op: "set_runs", axis: "items of every member", expected, got });
        }
    }
    Ok(items)
}

/// Refuses a choice of items that does not speak of all of them.
///
/// # Errors
/// If there is not one list per member and one entry per item.
pub(crate) fn check_silent(members: usize, items: usize, silent: &[Vec<bool>]) -> Result<()> {
    check_members("silent items", members, silent.len())?;
    match silent.iter().find(|silent| silent.len() != items) {
        Some(silent) => Err(Error::Shape {
            op: "leave_out",
            axis: "items of every member",
            expected: items,
            got: silent.len(),
        }),
        None => Ok(()),
    }
}

/// Refuses per-member data of another length.
///
/// # Errors
/// If `got` is not `members`.
pub fn check_members(what: &'static str, members: usize, got: usize) -> Result<()> {
    if members == got { Ok(()) } else { Err(Error::Members { what, members, got }) }
}
