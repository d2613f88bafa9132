//! Kernels that a caller brings.

use super::{Addresses, Lowered, Lowering, Tools};
use crate::Result;
use crate::cuda::tape::Arguments;
use crate::extension::{Argument, Extension};
use cudarc::driver::sys::CUfunction;

/// A kernel that a caller brings, and where its arrays lie.
pub(crate) struct Brought<'a> {
    pub(crate) extension: &'a Extension,
    pub(crate) function: CUfunction,
    /// By position in [`Extension::given`].
    pub(crate) given: Vec<u64>,
    /// By position in [`Extension::answers`].
    pub(crate) answers: Vec<u64>,
}

impl<'a> Lowering<'a> {
    /// The forward pass of a plan, then the kernel.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels, or an argument names what is not there.
    pub(crate) fn extended(
        tools: Tools<'a>,
        addresses: &Addresses,
        brought: &Brought<'_>,
    ) -> Result<Lowered> {
        let mut lowering = Self::new(tools, addresses, None);
        for &position in tools.plan.forward() {
            lowering.op_forward(position)?;
        }
        let Extension { name, threads, shared, arguments, .. } = brought.extension;
        let mut packed = Arguments::default();
        for &argument in arguments {
            packed = match argument {
                Argument::Value(value) => packed.with(lowering.whole(value)?),
                Argument::Index(index) => packed.with(addresses.indices[index.position()]),
                Argument::Mask(mask) => packed.with(addresses.masks[mask.position()]),
                Argument::Param(param) => packed.with(lowering.param(param)),
                Argument::Stride => packed.with(lowering.length()),
                Argument::Items => packed.with(addresses.items),
                Argument::HostArray(place) => packed.with(brought.given[place]),
                Argument::Answer(place) => packed.with(brought.answers[place]),
                Argument::Null => packed.with(0_usize),
                Argument::Integer(number) => packed.with(number),
                Argument::Scalar(number) => packed.with(number),
            };
        }
        let grid = (lowering.items(), 1, 1);
        lowering.tape.kernel(name, brought.function, grid, *threads as u32, *shared as u32, packed)?;
        Ok(lowering.finish())
    }
}
