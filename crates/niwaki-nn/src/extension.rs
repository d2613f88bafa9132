//! The point at which a task or a policy brings device work of its own: a kernel that runs behind some of a program's ops.
//!
//! An [`Extension`] is a description and nothing else: CUDA C++ with its constants, and what the kernel takes, in order.
//! It may read and write the program's values, inputs and parameters where they lie, so that nothing travels to the host
//! and back in between; what it is given besides, and what it answers, are plain arrays `[member, item, …]`. An engine
//! that does not know kernels leaves the work to its caller ([`crate::Engine::extend`]).
//!
//! The source is compiled behind the engine's own prelude (`common.cu`: activations, sums and maxima over a warp) and one
//! `#define` for each constant. The kernel is an `extern "C" __global__` function that is run with one block for each
//! item of every member, `blockIdx.x` = member · items + item.

use crate::graph::{Index, Mask, Value};
use crate::layout::Param;

/// A kernel and what it is called with.
#[derive(Clone, Debug, PartialEq)]
pub struct Extension {
    /// Its name in messages and profiles.
    pub name: &'static str,
    /// CUDA C++.
    pub source: &'static str,
    /// `#define`s that stand before the source.
    pub constants: Vec<(&'static str, usize)>,
    /// The kernel's name in the source.
    pub kernel: &'static str,
    /// Threads of a block.
    pub threads: usize,
    /// Bytes of shared memory of a block.
    pub shared: usize,
    /// Entries per item of each array that a run is given.
    pub given: Vec<usize>,
    /// What comes back.
    pub answers: Vec<Answer>,
    /// What the kernel takes, in order.
    pub arguments: Vec<Argument>,
}

/// An argument of a kernel: an address, or a number by value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Argument {
    /// `float*`: a value of the program, computed before the kernel runs, `[member, item, rows, width]`.
    Value(Value),
    /// `int*`: integers of the program, `[member, item, rows]`.
    Index(Index),
    /// `unsigned char*`: a mask of the program, `[member, item, rows, width]`.
    Mask(Mask),
    /// `float*`: a parameter of the first member.
    Param(Param),
    /// `long`: scalars from one member's parameter to the next one's.
    Stride,
    /// `int`: items per member.
    Items,
    /// `int*` or `float*`: an array that a run is given, by position in [`Extension::given`].
    HostArray(usize),
    /// `int*`: an answer, by position in [`Extension::answers`].
    Answer(usize),
    /// No address.
    Null,
    /// `int` or `long`.
    Integer(usize),
    /// `float`.
    Scalar(f32),
}

/// Integers that come back to the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The program's own, which stay loaded as the kernel left them.
    Index(Index),
    /// So many for each item, in a buffer of their own.
    PerItem(usize),
}

/// One array for one run.
#[derive(Clone, Copy, Debug)]
pub enum HostArray<'a> {
    /// Integers.
    Integers(&'a [i32]),
    /// Scalars.
    Scalars(&'a [f32]),
    /// Scalars that the kernel reads as f32.
    Doubles(&'a [f64]),
}

impl HostArray<'_> {
    /// Entries.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Integers(data) => data.len(),
            Self::Scalars(data) => data.len(),
            Self::Doubles(data) => data.len(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Extension {
    /// The source with its constants before it.
    #[must_use]
    pub fn code(&self) -> String {
        let constants = self.constants.iter().map(|(name, value)| format!("#define {name} {value}\n"));
        constants.chain([self.source.to_owned()]).collect()
    }
}
