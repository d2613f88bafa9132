//! Builds a program op by op and refuses shapes that do not fit.

use super::op::{Activation, Columns, Op, Pooling};
use super::shape::{Index, Mask, Shape, Value};
use crate::layout::{Layout, Param};
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
    pub(super) ops: Vec<Op>,
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

    /// Adds [`Op::Linear`] with a weight `[in, out]`, without residual.
    ///
    /// # Errors
    /// If the weight's first axis is not the input's width, or the bias is not `[out]`.
    pub fn linear(
        &mut self,
        input: Value,
        weight: Param,
        bias: Option<Param>,
        activation: Activation,
    ) -> Result<Value> {
        self.add_linear(input, weight, false, bias, activation, None)
    }

    /// Adds [`Op::Linear`] with a residual, without activation.
    ///
    /// # Errors
    /// As [`Graph::linear`], and if the residual's shape is not the output's.
    pub fn linear_onto(
        &mut self,
        residual: Value,
        input: Value,
        weight: Param,
        bias: Option<Param>,
    ) -> Result<Value> {
        self.add_linear(input, weight, false, bias, Activation::None, Some(residual))
    }

    /// Adds [`Op::Linear`] with a weight stored `[out, in]`, without bias: a head tied to an embedding.
    ///
    /// # Errors
    /// If the weight's second axis is not the input's width.
    pub fn linear_tied(&mut self, input: Value, weight: Param) -> Result<Value> {
        self.add_linear(input, weight, true, None, Activation::None, None)
    }

    fn add_linear(
        &mut self,
        input: Value,
        weight: Param,
        transposed: bool,
        bias: Option<Param>,
        activation: Activation,
        residual: Option<Value>,
    ) -> Result<Value> {
        let op = "linear";
        let Shape { rows, width } = self.shape(input);
        let [first, second] = self.matrix(op, weight)?;
        let (wanted, out) = if transposed { (second, first) } else { (first, second) };
        expect(op, "weight's input width", width, wanted)?;
        if let Some(bias) = bias {
            expect(op, "bias", out, self.layout.slice(bias).len())?;
        }
        if let Some(residual) = residual {
            self.same(op, residual, Shape { rows, width: out })?;
        }
        let output = self.value(rows, out);
        self.ops.push(Op::Linear { input, weight, transposed, bias, activation, residual, output });
        Ok(output)
    }

    /// Adds [`Op::LayerNorm`] with ε = 1e-5.
    ///
    /// # Errors
    /// If gain or bias is not as wide as the input.
    pub fn layer_norm(&mut self, input: Value, gain: Param, bias: Param) -> Result<Value> {
        let shape = self.shape(input);
        expect("layer_norm", "gain", shape.width, self.layout.slice(gain).len())?;
        expect("layer_norm", "bias", shape.width, self.layout.slice(bias).len())?;
        let output = self.value(shape.rows, shape.width);
        self.ops.push(Op::LayerNorm { input, gain, bias, epsilon: 1e-5, output });
        Ok(output)
    }

    /// Adds [`Op::RmsNorm`].
    ///
    /// # Errors
    /// If the gain is not as wide as the input.
    pub fn rms_norm(&mut self, input: Value, gain: Param, epsilon: f64) -> Result<Value> {
        let shape = self.shape(input);
        expect("rms_norm", "gain", shape.width, self.layout.slice(gain).len())?;
        let output = self.value(shape.rows, shape.width);
        self.ops.push(Op::RmsNorm { input, gain, epsilon, output });
        Ok(output)
    }

    /// Adds [`Op::Embed`].
    ///
    /// # Errors
    /// If the table is no matrix, or the indices may exceed it.
    pub fn embed(&mut self, table: Param, index: Index) -> Result<Value> {
        let [entries, width] = self.matrix("embed", table)?;
        self.bounded("embed", index, entries)?;
        let output = self.value(self.indices[index.0].rows(), width);
        self.ops.push(Op::Embed { table, index, output });
        Ok(output)
    }

    /// Adds [`Op::Gather`].
    ///
    /// # Errors
    /// If the indices may exceed the input's rows.
    pub fn gather(&mut self, input: Value, index: Index) -> Result<Value> {
        let Shape { rows, width } = self.shape(input);
        self.bounded("gather", index, rows)?;
        let output = self.value(self.indices[index.0].rows(), width);
        self.ops.push(Op::Gather { input, index, output });
        Ok(output)
    }

    /// Adds [`Op::Pool`].
    ///
    /// # Errors
    /// If `group` does not divide the rows, or the mask is not `[rows, 1]`.
    pub fn pool(
        &mut self,
        input: Value,
        group: usize,
        mask: Option<Mask>,
        pooling: Pooling,
    ) -> Result<Value> {
        let Shape { rows, width } = self.shape(input);
        if group == 0 || rows % group != 0 {
            let reason = format!("groups of {group} rows do not divide {rows}");
            return Err(Error::Unsupported { op: "pool", reason });
        }
        if let Some(mask) = mask {
            self.masked("pool", mask, Shape { rows, width: 1 })?;
        }
        let output = self.value(rows / group, width);
        self.ops.push(Op::Pool { input, group, mask, pooling, output });
        Ok(output)
    }

    /// Adds [`Op::Concat`].
    ///
    /// # Errors
    /// If there is no operand, or their rows differ.
    pub fn concat(&mut self, inputs: &[Value]) -> Result<Value> {
        let Some(&first) = inputs.first() else {
            return Err(Error::Unsupported { op: "concat", reason: "no operand".to_owned() });
        };
        for &input in inputs {
            expect("concat", "rows", self.shape(first).rows, self.shape(input).rows)?;
        }
        let width = inputs.iter().map(|&input| self.shape(input).width).sum();
        let output = self.value(self.shape(first).rows, width);
        self.ops.push(Op::Concat { inputs: inputs.to_vec(), output });
        Ok(output)
    }

    /// Adds [`Op::Add`].
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn add(&mut self, left: Value, right: Value) -> Result<Value> {
        self.same("add", right, self.shape(left))?;
        let output = self.like(left);
        self.ops.push(Op::Add { left, right, output });
        Ok(output)
    }

    /// Adds [`Op::Mul`].
    ///
    /// # Errors
    /// If the shapes differ.
    pub fn mul(&mut self, left: Value, right: Value) -> Result<Value> {
        self.same("mul", right, self.shape(left))?;
        let output = self.like(left);
        self.ops.push(Op::Mul { left, right, output });
        Ok(output)
    }

    /// Adds [`Op::Scale`].
    pub fn scale(&mut self, input: Value, factor: f64) -> Value {
        let output = self.like(input);
        self.ops.push(Op::Scale { input, factor, output });
        output
    }

    /// Adds [`Op::Activate`].
    pub fn activate(&mut self, input: Value, activation: Activation) -> Value {
        let output = self.like(input);
        self.ops.push(Op::Activate { input, activation, output });
        output
    }

    /// Adds [`Op::Rope`].
    ///
    /// # Errors
    /// If the heads do not fit the columns, a head's width is odd, or positions are not one per row.
    pub fn rope(
        &mut self,
        input: Columns,
        heads: usize,
        head_width: usize,
        base: f64,
        position: Index,
    ) -> Result<Value> {
        let rows = self.shape(input.value).rows;
        self.fits("rope", "columns", input, heads * head_width)?;
        if !head_width.is_multiple_of(2) {
            let reason = format!("a head of {head_width} columns has no pairs to turn");
            return Err(Error::Unsupported { op: "rope", reason });
        }
        expect("rope", "positions", rows, self.indices[position.0].rows())?;
        let output = self.value(rows, heads * head_width);
        self.ops.push(Op::Rope { input, heads, head_width, base, position, output });
        Ok(output)
    }

    /// Marks a value as one that is only read where it is an output: nothing flows back from it, and no surrogate is
    /// asked for its cotangent.
    pub fn show(&mut self, value: Value) {
        self.shown.push(value);
    }

    /// Whether a value is only read.
    #[must_use]
    pub fn is_shown(&self, value: Value) -> bool {
        self.shown.contains(&value)
    }

    /// Adds [`Op::Pick`]; returns the chosen log-probabilities and the entropies, `[rows, 1]` each.
    ///
    /// # Errors
    /// If actions are not one per row or may exceed the choices, or the mask is not `[rows, choices]`.
    pub fn pick_log_prob(
        &mut self,
        logits: Value,
        action: Index,
        mask: Option<Mask>,
    ) -> Result<(Value, Value)> {
        let shape = self.shape(logits);
        expect("pick_log_prob", "actions", shape.rows, self.indices[action.0].rows())?;
        self.bounded("pick_log_prob", action, shape.width)?;
        if let Some(mask) = mask {
            self.masked("pick_log_prob", mask, shape)?;
        }
        let (log_prob, entropy) = (self.value(shape.rows, 1), self.value(shape.rows, 1));
        self.ops.push(Op::Pick { logits, action, mask, log_prob, entropy });
        Ok((log_prob, entropy))
    }

    pub(super) fn value(&mut self, rows: usize, width: usize) -> Value {
        self.shapes.push(Shape { rows, width });
        Value(self.shapes.len() - 1)
    }

    fn like(&mut self, value: Value) -> Value {
        let Shape { rows, width } = self.shape(value);
        self.value(rows, width)
    }

    fn matrix(&self, op: &'static str, param: Param) -> Result<[usize; 2]> {
        let slice = self.layout.slice(param);
        <[usize; 2]>::try_from(slice.shape.as_slice()).map_err(|_| Error::Unsupported {
            op,
            reason: format!("{} must be a matrix, has shape {:?}", slice.name, slice.shape),
        })
    }

    fn same(&self, op: &'static str, value: Value, wanted: Shape) -> Result<()> {
        expect(op, "rows", wanted.rows, self.shape(value).rows)?;
        expect(op, "width", wanted.width, self.shape(value).width)
    }

    pub(super) fn masked(&self, op: &'static str, mask: Mask, wanted: Shape) -> Result<()> {
        expect(op, "mask rows", wanted.rows, self.masks[mask.0].what.rows)?;
        expect(op, "mask width", wanted.width, self.masks[mask.0].what.width)
    }

    pub(super) fn fits(
        &self,
        op: &'static str,
        axis: &'static str,
        columns: Columns,
        width: usize,
    ) -> Result<()> {
        let got = self.shape(columns.value).width.saturating_sub(columns.start);
        if got < width { Err(Error::Shape { op, axis, expected: width, got }) } else { Ok(()) }
    }

    fn bounded(&self, op: &'static str, index: Index, rows: usize) -> Result<()> {
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

pub(super) fn expect(op: &'static str, axis: &'static str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::Shape { op, axis, expected, got }) }
}
