//! Launches that several ops share.

use super::{Lowering, Once, SCALAR, View};
use crate::cuda::device::refused;
use crate::cuda::kernels::{File, ROWWISE, Unit};
use crate::cuda::tape::{Arguments, Queued, arguments};
use crate::graph::{Columns, Value};
use crate::layout::Param;
use crate::plan::Write;
use crate::{Error, Result};

/// What [`Lowering::combine`] computes.
#[derive(Clone, Copy)]
pub(crate) enum Combine {
    Scaled = 0,
    Sum = 1,
    Product = 2,
}

/// Partial sums `[member, blocks, columns]`, blocks `pitch` apart.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partial {
    pub(crate) blocks: usize,
    pub(crate) pitch: usize,
    pub(crate) columns: usize,
}

impl Partial {
    /// Blocks side by side.
    pub(crate) fn dense(blocks: usize, columns: usize) -> Self {
        Self { blocks, pitch: columns, columns }
    }
}

impl Lowering<'_> {
    /// A file whose arrays may be in halves, as this program's precision has it.
    pub(crate) fn mixed(&self, file: &'static File) -> Unit {
        Unit::mixed(file, self.tools.precision)
    }

    pub(crate) fn launch(
        &mut self,
        label: &'static str,
        (unit, name): (Unit, &'static str),
        grid: (usize, usize, usize),
        block: u32,
        shared: u32,
        arguments: Arguments,
    ) -> Result<()> {
        let function = self.tools.kernels.get(unit, name)?;
        let queued = Queued { aside: self.aside, early: self.early };
        self.tape.kernel_queued(label, function, grid, block, shared, arguments, queued)
    }

    /// Launches kernels that wait for the one before them by themselves, and so begin early.
    pub(crate) fn early<T>(&mut self, launches: impl FnOnce(&mut Self) -> T) -> T {
        self.early = true;
        let launched = launches(self);
        self.early = false;
        launched
    }

    /// A kernel with a thread per entry of `rows × width`.
    pub(crate) fn per_entry(
        &mut self,
        label: &'static str,
        kernel: (Unit, &'static str),
        rows: usize,
        width: usize,
        arguments: Arguments,
    ) -> Result<()> {
        if rows * width > i32::MAX as usize {
            let mend = "use fewer members or lanes";
            return Err(refused(format!("{label}: {rows} × {width} entries in one pass; {mend}")));
        }
        self.launch(label, kernel, ((rows * width).div_ceil(256), 1, 1), 256, 0, arguments)
    }

    /// Adds up partial sums into the gradient of one parameter, columns below `split`, and
    /// into that of another, the rest, where there is one.
    pub(crate) fn gather_partials(
        &mut self,
        label: &'static str,
        partial: u64,
        Partial { blocks, pitch, columns }: Partial,
        (first, split): (Param, usize),
        second: Option<Param>,
    ) -> Result<()> {
        let (at, add) = self.gradient(first);
        let (other, add_other) = match second {
            Some(param) => {
                let (at, add) = self.gradient(param);
                (Some(at), add)
            }
            None => (None, false),
        };
        let arguments =
            arguments![partial, blocks, pitch, columns, at, other, split, self.length(), add, add_other];
        let grid = (columns.div_ceil(128), self.addresses.members, 1);
        self.launch(label, (self.mixed(ROWWISE), "gather_partials"), grid, 128, 0, arguments)
    }

    /// Readies the cotangents of operands that are runs of columns, `(operand, width)` each, and says for each where it
    /// starts and whether to add. Where one op writes disjoint runs that fill a value, none of them adds.
    pub(crate) fn column_targets(
        &mut self,
        label: &'static str,
        operands: &[(Columns, usize)],
        writes: &[Option<Write>],
    ) -> Result<Vec<Option<(u64, bool)>>> {
        let mut targets = vec![None; operands.len()];
        for (place, &(columns, _)) in operands.iter().enumerate() {
            if writes[place].is_none() || targets[place].is_some() {
                continue;
            }
            let same: Vec<usize> =
                (place..operands.len()).filter(|&other| operands[other].0.value == columns.value).collect();
            let disjoint = same.iter().all(|&a| {
                same.iter().all(|&b| {
                    let (left, right) = (operands[a], operands[b]);
                    a == b
                        || left.0.start + left.1 <= right.0.start
                        || right.0.start + right.1 <= left.0.start
                })
            });
            if !disjoint {
                let reason =
                    "reads the same columns twice, which this device does not differentiate".to_owned();
                return Err(Error::Unsupported { op: label, reason });
            }
            let base = self.cotangent(columns.value)?;
            let covered: usize = same.iter().map(|&other| operands[other].1).sum();
            let whole = covered == self.shape(columns.value).width;
            let fresh = writes[place] == Some(Write::Set);
            if fresh && !whole {
                let bytes = self.cotangent_bytes(columns.value);
                self.tape.zero(label, base, bytes);
            }
            for other in same {
                let at = base + (operands[other].0.start * self.bytes(columns.value)) as u64;
                targets[other] = Some((at, !(fresh && whole)));
            }
        }
        Ok(targets)
    }

    /// `out (+)= factor · a`, `a + b` or `a · b`, entry by entry.
    pub(crate) fn combine(
        &mut self,
        label: &'static str,
        kind: Combine,
        a: View,
        b: View,
        factor: f64,
        out: View,
        add: bool,
    ) -> Result<()> {
        let arguments = arguments![
            kind as usize,
            a.at,
            a.pitch,
            b.at,
            b.pitch,
            out.at,
            out.pitch,
            factor as f32,
            add,
            a.rows,
            a.width,
            a.half,
            b.half,
            out.half,
        ];
        self.per_entry(label, (self.mixed(ROWWISE), "combine"), a.rows, a.width, arguments)
    }

    /// Where a value lies in f32, for kernels that know nothing else: where it is stored in halves, a copy of this pass's rows.
    pub(crate) fn whole(&mut self, value: Value) -> Result<u64> {
        if !self.is_half(value) {
            return self.base(value);
        }
        let bytes = self.shape(value).size() * self.items() * SCALAR;
        let (at, _) = self.once(Once::Whole(value.position()), bytes);
        let from = self.view(value)?;
        let first = self.row.map_or(0, |row| row * from.width);
        let to = View { at, half: false, ..from }.at_column(first);
        self.combine("whole", Combine::Scaled, from, from, 1.0, to, false)?;
        Ok(at)
    }

    /// Copies the rows of this pass to `place`, one after the other.
    pub(super) fn pack_row(&mut self, value: Value, place: u64) -> Result<()> {
        let from = self.view(value)?;
        let to = View { at: place, pitch: from.width, half: false, ..from };
        self.combine("pack", Combine::Scaled, from, from, 1.0, to, false)
    }

    pub(crate) fn cotangent_view(&self, value: Value) -> Result<View> {
        Ok(View { at: self.cotangent(value)?, ..self.view_shape(value) })
    }

    /// All rows of a value, without a place.
    pub(crate) fn view_shape(&self, value: Value) -> View {
        let shape = self.shape(value);
        let rows_per_member = self.addresses.items * shape.rows;
        View {
            at: 0,
            pitch: shape.width,
            rows: rows_per_member * self.addresses.members,
            rows_per_member,
            width: shape.width,
            half: self.is_half(value),
        }
    }

    /// `d operand (+)= factor · d output`.
    pub(crate) fn pass_on(
        &mut self,
        label: &'static str,
        operand: Value,
        output: Value,
        factor: f64,
        write: Write,
    ) -> Result<()> {
        if write == Write::Alias {
            return Ok(());
        }
        let (from, to) = (self.cotangent_view(output)?, self.cotangent_view(operand)?);
        self.combine(label, Combine::Scaled, from, from, factor, to, write == Write::Add)
    }
}
