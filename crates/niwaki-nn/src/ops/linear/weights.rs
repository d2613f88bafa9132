//! The weights of a member's products, laid out for the machine once for all blocks.

use crate::cpu::apart::runs;
use crate::cpu::panels;
use crate::cpu::product::{Matrix, product, transpose};
use crate::cpu::{Buffer, Real};
use crate::graph::Graph;
use crate::ops::Op;
use crate::plan::Plan;
use std::ops::Range;

/// A weight as the right factor of a product.
#[derive(Clone, Copy, Debug)]
pub(super) enum Weight<'a, F> {
    Plain(Matrix<'a, F>),
    Panels(&'a [F]),
}

impl<F: Real> Weight<'_, F> {
    /// Rows of a product that are best computed before something else is done to them: products from panels cost no
    /// more for a few rows at a time, and those rows are then still in the first cache.
    pub(super) fn strip(&self, rows: usize) -> usize {
        match self {
            Self::Plain(_) => rows.max(1),
            Self::Panels(_) => 2 * panels::ROWS,
        }
    }

    /// `out[m, n] (+)= left[m, k] · self[k, n]`, with `out` row-major and its rows `stride` apart.
    pub(super) fn product(
        self,
        shape: [usize; 3],
        left: Matrix<'_, F>,
        out: &mut [F],
        stride: usize,
        add: bool,
    ) {
        match self {
            Self::Plain(right) => product(shape, left, right, out, stride, add),
            Self::Panels(right) => panels::multiply(shape, left, right, out, stride, add),
        }
    }

    /// Whether a product can begin at a column.
    pub(super) fn cuts_at(&self, column: usize) -> bool {
        matches!(self, Self::Plain(_)) || column.is_multiple_of(panels::WIDTH)
    }

    /// Some columns of the listed rows of `out[_, n] = left[_, k] · self[k, n]`, all row-major without gaps. They begin where the product
    /// can, and end there or at the last column.
    pub(super) fn product_listed(
        self,
        [k, n]: [usize; 2],
        columns: Range<usize>,
        rows: &[u32],
        left: &[F],
        out: &mut [F],
    ) {
        match self {
            Self::Plain(right) => {
                for run in runs(rows) {
                    let left = Matrix::rows(&left[run.start * k..], k);
                    let (right, out) =
                        (right.from(0, columns.start), &mut out[run.start * n + columns.start..]);
                    product([run.len(), k, columns.len()], left, right, out, n, false);
                }
            }
            Self::Panels(right) => panels::multiply_listed([k, n], columns, rows, left, right, out),
        }
    }
}

/// Copies of weights: in panels where the machine multiplies faster so, otherwise transposed for the backward pass,
/// because products read contiguous columns faster than they can gather them.
#[derive(Debug, Default)]
pub(crate) struct Weights<F> {
    data: Buffer<F>,
    /// Where the copies of each op start: for the forward pass, for the backward pass.
    starts: Vec<[Option<usize>; 2]>,
    /// What was laid out last: whose parameters, after how many changes, and whether for a backward pass too.
    last: Option<(usize, u64, bool)>,
}

impl<F: Real> Weights<F> {
    /// Lays out the weights of a plan's products, once for all blocks of a member. Without this, products read the
    /// member's parameters as they are, and there can be no backward pass. What was laid out last stays where the member and the
    /// number of its changes are the same.
    pub(crate) fn lay_out(
        &mut self,
        graph: &Graph,
        plan: &Plan,
        parameters: &[F],
        (member, changes): (usize, u64),
    ) {
        let now = Some((member, changes, !plan.backward().is_empty()));
        if self.last == now {
            return;
        }
        self.last = now;
        let packs = panels::used();
        self.starts.clear();
        self.starts.resize(graph.ops().len(), [None; 2]);
        let mut length = 0;
        let mut take = |[k, n]: [usize; 2]| {
            let start = length;
            length += panels::size([k, n]);
            Some(start)
        };
        for &op in plan.forward() {
            if let Some(weight) = Stored::of(graph, op)
                && packs
            {
                self.starts[op][0] = take(weight.shape(false));
            }
        }
        for step in plan.backward() {
            if let Some(weight) = Stored::of(graph, step.op)
                && step.writes[0].is_some()
                && (packs || !weight.transposed)
            {
                self.starts[step.op][1] = take(weight.shape(true));
            }
        }
        self.data.reserve(length);
        for (op, starts) in self.starts.iter().enumerate() {
            for (backward, start) in [false, true].into_iter().zip(starts) {
                let (Some(start), Some(weight)) = (*start, Stored::of(graph, op)) else { continue };
                let (shape, matrix) = (weight.shape(backward), weight.matrix(parameters, backward));
                let out = &mut self.data[start..][..panels::size(shape)];
                if packs {
                    panels::pack(shape, matrix, out);
                } else {
                    transpose([shape[1], shape[0]], matrix.data, out);
                }
            }
        }
    }

    /// The weight of a linear op: the right factor of its forward product, or of the product that pulls a cotangent
    /// back.
    pub(super) fn of<'a>(
        &'a self,
        graph: &Graph,
        op: usize,
        parameters: &'a [F],
        backward: bool,
    ) -> Option<Weight<'a, F>> {
        let weight = Stored::of(graph, op)?;
        let start = self.starts.get(op).and_then(|starts| starts[usize::from(backward)]);
        Some(match start {
            None => Weight::Plain(weight.matrix(parameters, backward)),
            Some(start) if panels::used() => Weight::Panels(&self.data[start..]),
            Some(start) => Weight::Plain(Matrix::rows(&self.data[start..], weight.shape(backward)[1])),
        })
    }
}

/// Where a linear op's weight is, and its shape.
struct Stored {
    start: usize,
    inner: usize,
    outer: usize,
    transposed: bool,
}

impl Stored {
    fn of(graph: &Graph, op: usize) -> Option<Self> {
        let Op::Linear(linear) = &graph.ops()[op] else { return None };
        let (inner, outer) = (graph.shape(linear.input).width, graph.shape(linear.output).width);
        let start = graph.layout().slice(linear.weight).range().start;
        Some(Self { start, inner, outer, transposed: linear.transposed })
    }

    /// Rows and columns as a right factor.
    fn shape(&self, backward: bool) -> [usize; 2] {
        if backward { [self.outer, self.inner] } else { [self.inner, self.outer] }
    }

    /// The right factor within the parameters.
    fn matrix<'a, F: Real>(&self, parameters: &'a [F], backward: bool) -> Matrix<'a, F> {
        let data = &parameters[self.start..][..self.inner * self.outer];
        let [rows, columns] = self.shape(backward);
        if self.transposed == backward {
            Matrix::rows(data, columns)
        } else {
            Matrix::rows(data, rows).transposed()
        }
    }
}
