//! A program and what all ops need to add themselves to it: inputs, values, and refusals of shapes that do not fit.

use super::shape::{Columns, Index, Mask, Shape, Value};
use crate::layout::{Layout, Param};
use crate::ops::{Op, Operation};
use crate::{Error, Init, Result};

/// An input with a name for messages.
#[derive(Clone, Debug, PartialEq)]
pub struct Named<T> {
    /// The input's name.
    pub name: String,
    /// What is known of it.
    pub what: T,
}

/// Where integers come from.
#[derive(Clone, Debug, PartialEq)]
pub enum IndexSource {
    /// Loaded for every item: `[member, item, rows]`, each below `bound`; negative means none.
    Input {
        /// The input's name.
        name: String,
        /// Rows per item.
        rows: usize,
        /// Exclusive upper bound.
        bound: usize,
    },
    /// The same for every item, part of the program.
    Constant(Vec<i32>),
}

impl IndexSource {
    /// Integers per item.
    #[must_use]
    pub fn rows(&self) -> usize {
        match self {
            Self::Input { rows, .. } => *rows,
            Self::Constant(entries) => entries.len(),
        }
    }
}

/// A policy's program for one item of one member, with the layout of its parameters.
///
/// Ops stand in the order in which they were added, which is an order in which they can run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Graph {
    layout: Layout,
    shapes: Vec<Shape>,
    inputs: Vec<Named<Value>>,
    indices: Vec<IndexSource>,
    masks: Vec<Named<Shape>>,
    ops: Vec<Op>,
    shown: Vec<Value>,
}

impl Graph {
    /// An empty program.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A program that reads the parameters of another (a step of a decoder, say): names and shapes are kept, and
    /// [`Graph::param`] finds them instead of adding new ones.
    #[must_use]
    pub fn sharing(layout: &Layout) -> Self {
        Self { layout: layout.clone(), ..Self::default() }
    }

    /// The layout of the parameters.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The ops, in order.
    #[must_use]
    pub fn ops(&self) -> &[Op] {
        &self.ops
    }

    /// The shape of a value.
    #[must_use]
    pub fn shape(&self, value: Value) -> Shape {
        self.shapes[value.0]
    }

    /// The number of values.
    #[must_use]
    pub fn values(&self) -> usize {
        self.shapes.len()
    }

    /// Rows of the tallest value.
    #[must_use]
    pub fn tallest(&self) -> usize {
        self.shapes.iter().map(|shape| shape.rows).max().unwrap_or(0)
    }

    /// The inputs of scalars, in order of declaration.
    #[must_use]
    pub fn inputs(&self) -> &[Named<Value>] {
        &self.inputs
    }

    /// All integers, by position of their handles.
    #[must_use]
    pub fn index_sources(&self) -> &[IndexSource] {
        &self.indices
    }

    /// All masks, by position of their handles.
    #[must_use]
    pub fn masks(&self) -> &[Named<Shape>] {
        &self.masks
    }

    /// Declares a parameter, or finds the one of that name and shape.
    ///
    /// # Errors
    /// If the name stands for another shape.
    pub fn param(&mut self, name: &str, shape: &[usize], init: Init) -> Result<Param> {
        match self.layout.find(name) {
            None => Ok(self.layout.push(name, shape, init)),
            Some(param) if self.layout.slice(param).shape == shape => Ok(param),
            Some(param) => Err(Error::Unsupported {
                op: "param",
                reason: format!("{name} has shape {:?}, asked for {shape:?}", self.layout.slice(param).shape),
            }),
        }
    }

    /// Declares an input of scalars `[rows, width]`.
    pub fn scalars(&mut self, name: &str, rows: usize, width: usize) -> Value {
        let value = self.value(rows, width);
        self.inputs.push(Named { name: name.to_owned(), what: value });
        value
    }

    /// Declares an input of integers `[rows]`, each below `bound`; a negative one means none.
    pub fn indices(&mut self, name: &str, rows: usize, bound: usize) -> Index {
        self.indices.push(IndexSource::Input { name: name.to_owned(), rows, bound });
        Index(self.indices.len() - 1)
    }

    /// Integers that are the same for every item.
    pub fn constant(&mut self, entries: &[i32]) -> Index {
        self.indices.push(IndexSource::Constant(entries.to_vec()));
        Index(self.indices.len() - 1)
    }

    /// Declares a mask `[rows, width]`.
    pub fn mask(&mut self, name: &str, rows: usize, width: usize) -> Mask {
        self.masks.push(Named { name: name.to_owned(), what: Shape { rows, width } });
        Mask(self.masks.len() - 1)
    }

    /// Marks a value as one that is only read where it is an output: nothing flows back from it, and no surrogate is
    /// asked for its cotangent.
    pub fn show(&mut self, value: Value) {
        self.shown.push(value);
    }

    /// Whether one op alone reads a parameter.
    #[must_use]
    pub fn has_one_reader(&self, param: Param) -> bool {
        self.ops.iter().filter(|op| op.reads().params.contains(&param)).count() == 1
    }

    /// Whether a value is only read.
    #[must_use]
    pub fn is_shown(&self, value: Value) -> bool {
        self.shown.contains(&value)
    }

    /// Adds an op.
    pub(crate) fn push(&mut self, op: impl Into<Op>) {
        self.ops.push(op.into());
    }

    /// Rows of an index.
    pub(crate) fn index_rows(&self, index: Index) -> usize {
        self.indices[index.0].rows()
    }

    pub(crate) fn value(&mut self, rows: usize, width: usize) -> Value {
        self.shapes.push(Shape { rows, width });
        Value(self.shapes.len() - 1)
    }

    pub(crate) fn like(&mut self, value: Value) -> Value {
        let Shape { rows, width } = self.shape(value);
        self.value(rows, width)
    }

    pub(crate) fn matrix(&self, op: &'static str, param: Param) -> Result<[usize; 2]> {
        let slice = self.layout.slice(param);
        <[usize; 2]>::try_from(slice.shape.as_slice()).map_err(|_| Error::Unsupported {
            op,
            reason: format!("{} must be a matrix, has shape {:?}", slice.name, slice.shape),
        })
    }

    pub(crate) fn same(&self, op: &'static str, value: Value, wanted: Shape) -> Result<()> {
        expect(op, "rows", wanted.rows, self.shape(value).rows)?;
        expect(op, "width", wanted.width, self.shape(value).width)
    }

    pub(crate) fn masked(&self, op: &'static str, mask: Mask, wanted: Shape) -> Result<()> {
        expect(op, "mask rows", wanted.rows, self.masks[mask.0].what.rows)?;
        expect(op, "mask width", wanted.width, self.masks[mask.0].what.width)
    }

    pub(crate) fn fits(
        &self,
        op: &'static str,
        axis: &'static str,
        columns: Columns,
        width: usize,
    ) -> Result<()> {
        let got = self.shape(columns.value).width.saturating_sub(columns.start);
        if got < width { Err(Error::Shape { op, axis, expected: width, got }) } else { Ok(()) }
    }

    pub(crate) fn bounded(&self, op: &'static str, index: Index, rows: usize) -> Result<()> {
        let bound = match &self.indices[index.0] {
            IndexSource::Input { bound, .. } => *bound,
            IndexSource::Constant(entries) => {
                entries.iter().max().map_or(0, |&last| (last + 1).max(0) as usize)
            }
        };
        if bound > rows {
            return Err(Error::Shape {
                op,
                axis: "rows to choose from, at least",
                expected: bound,
                got: rows,
            });
        }
        Ok(())
    }
}

pub(crate) fn expect(op: &'static str, axis: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { op, axis, expected, got }) }
}
