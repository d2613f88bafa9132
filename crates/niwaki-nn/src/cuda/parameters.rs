//! The flat parameters of all members on the device, and their copy in bf16 where products read one; their gradients.

use super::blas::Precision;
use super::chunks::{chunks, resting};
use super::device::{Buffer, Device};
use super::kernels::{Kernels, STEP};
use super::lower::{SCALAR, padded};
use super::storage::{places, widen};
use super::tape::{Tape, arguments};
use crate::Result;
use crate::graph::Graph;
use std::ops::Range;

/// Parameters `[member, length]`. A writer of the exact ones updates the rounded ones, too.
pub(super) struct Parameters {
    exact: Buffer,
    /// The same in bf16; in other precisions there are none.
    rounded: Option<Buffer>,
    members: usize,
    /// Scalars of a member.
    length: usize,
}

impl Parameters {
    /// Room for the parameters of so many members, all zero.
    pub(super) fn new(device: &Device, members: usize, length: usize, precision: Precision) -> Result<Self> {
        let bytes = members * length * SCALAR;
        let exact = device.allocate(bytes)?;
        device.zero(exact.at, bytes)?;
        let rounded = match precision {
            Precision::Bf16 => {
                let rounded = device.allocate(bytes / 2)?;
                device.zero(rounded.at, bytes / 2)?;
                Some(rounded)
            }
            Precision::F32 | Precision::Tf32 => None,
        };
        Ok(Self { exact, rounded, members, length })
    }

    /// Where they start.
    pub(super) fn at(&self) -> u64 {
        self.exact.at
    }

    /// Where a member's start.
    pub(super) fn of(&self, member: usize) -> u64 {
        self.exact.at + (member * self.length * SCALAR) as u64
    }

    /// Where the rounded ones start.
    pub(super) fn rounded_at(&self) -> Option<u64> {
        self.rounded.as_ref().map(|rounded| rounded.at)
    }

    /// Bytes of all of them, exact.
    pub(super) fn bytes(&self) -> usize {
        self.members * self.length * SCALAR
    }

    /// Rounds those of some members anew, where products read them rounded.
    pub(super) fn round(&self, device: &Device, kernels: &Kernels, members: Range<usize>) -> Result<()> {
        let Some(rounded) = self.rounded_at() else { return Ok(()) };
        let to = rounded + (members.start * self.length * SCALAR / 2) as u64;
        let mut tape = Tape::default();
        let arguments = arguments![self.of(members.start), to, self.length / 4];
        let grid = ((self.length / 4).div_ceil(256), members.len(), 1);
        tape.kernel("round", kernels.get(STEP, "parameters_to_bf16")?, grid, 256, 0, arguments)?;
        tape.run(device)
    }

    /// Rounds all of them anew.
    pub(super) fn round_all(&self, device: &Device, kernels: &Kernels) -> Result<()> {
        self.round(device, kernels, 0..self.members)
    }
}

/// Gradients `[member, length]` with the sums of squares of their chunks. A writer of the ones updates the others, too.
pub(super) struct Gradient {
    entries: Buffer,
    /// Where groups of a member's lie, where not all are in f32.
    places: Option<Buffer>,
    /// The scalars whose gradients are stored in halves.
    halved: Vec<Range<usize>>,
    /// `[member, chunk]`, in f64.
    squares: Buffer,
    /// `[member, chunk]`, a byte each: whether a chunk does not rest.
    live: Buffer,
    members: usize,
    length: usize,
}

impl Gradient {
    /// Room for the gradients of so many members, all zero: those of parameters that no output reaches, and gaps between parameters,
    /// stay so.
    pub(super) fn new(device: &Device, graph: &Graph, members: usize, halved: &[bool]) -> Result<Self> {
        let length = padded(graph);
        let (bytes, of_squares) = (members * length * SCALAR, members * chunks(length) * size_of::<f64>());
        let (entries, squares) = (device.allocate(bytes)?, device.allocate(of_squares)?);
        device.zero(entries.at, bytes)?;
        device.zero(squares.at, of_squares)?;
        let awake: Vec<u8> = resting(graph).iter().map(|&rests| u8::from(!rests)).collect();
        let live = device.allocate(members * awake.len())?;
        device.write(live.at, &awake.repeat(members))?;
        let places = match places(graph, halved) {
            Some(places) => {
                let buffer = device.allocate(size_of_val(&*places))?;
                device.write(buffer.at, &places)?;
                Some(buffer)
            }
            None => None,
        };
        let slices = graph.layout().slices().iter().zip(halved).filter(|(_, halved)| **halved);
        let halved = slices.map(|(slice, _)| slice.range()).collect();
        Ok(Self { entries, places, halved, squares, live, members, length })
    }

    /// One member's, so many scalars of it.
    pub(super) fn read(&self, device: &Device, member: usize, scalars: usize) -> Result<Vec<f32>> {
        let mut flat = vec![0.0; scalars];
        device.read(self.entries.at + (member * self.length * SCALAR) as u64, &mut flat)?;
        self.halved.iter().for_each(|range| widen(&mut flat[range.clone()]));
        Ok(flat)
    }

    /// Where they start.
    pub(super) fn at(&self) -> u64 {
        self.entries.at
    }

    /// Where it is said in what places groups of a member's lie.
    pub(super) fn places_at(&self) -> Option<u64> {
        self.places.as_ref().map(|places| places.at)
    }

    /// Where the sums of squares start.
    pub(super) fn squares_at(&self) -> u64 {
        self.squares.at
    }

    /// Where it is said which chunks do not rest.
    pub(super) fn live_at(&self) -> u64 {
        self.live.at
    }

    /// Wakes some of a member's chunks.
    pub(super) fn wake(&self, device: &Device, member: usize, wanted: &[bool]) -> Result<()> {
        let at = self.live.at + (member * wanted.len()) as u64;
        let mut live = vec![0_u8; wanted.len()];
        device.read(at, &mut live)?;
        live.iter_mut().zip(wanted).for_each(|(live, &wanted)| *live |= u8::from(wanted));
        device.write(at, &live)
    }

    /// Sums the squares of all chunks anew, and finds those that rest no longer.
    pub(super) fn sum_squares(&self, device: &Device, kernels: &Kernels) -> Result<()> {
        let chunks = chunks(self.length);
        let mut tape = Tape::default();
        let (entries, places) = (self.entries.at, self.places_at());
        let arguments =
            arguments![entries, places, self.squares.at, self.live.at, true, 0_usize, chunks, self.length];
        let kernel = kernels.get(STEP, "sum_squares")?;
        tape.kernel("norm", kernel, (chunks, self.members, 1), 256, 0, arguments)?;
        tape.run(device)
    }
}
