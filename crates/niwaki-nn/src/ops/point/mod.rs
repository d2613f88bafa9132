//! A pointer's logits.

mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod kernel;
#[cfg(test)]
mod law;

#[cfg(feature = "cuda")]
pub(crate) use cuda::folded;

use super::{Activation, Op, Operation, Pick, Reads, Rows};
use crate::graph::{Graph, Mask, Shape, Value, expect};
use crate::{Error, Result};

/// The operands of [`PointAt`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// `[query rows, width]`.
    pub query: Value,
    /// `[key rows, 2 · width]`: the glimpse's keys, then its values.
    pub glimpse: Value,
    /// `[key rows, width]`: what a glimpse is compared with.
    pub key: Value,
    /// Heads of the glimpse; divides `width`.
    pub heads: usize,
    /// Whether the query is added to the glimpse before it is compared.
    pub residual: bool,
    /// Bound on the logits; none where it is zero.
    pub bound: f64,
    /// `[query rows, key rows]`: which keys a glimpse may see.
    pub open: Mask,
}

/// A pointer's logits, `[query rows, key rows]`: `output[r, s] = bound · tanh(glimpse[r] · key[s] / √width)`, or the scores
/// `glimpse[r] · key[s] / √width` themselves where `bound` is zero; `glimpse` is the [`super::Attend`] of the queries to the
/// open keys, scaled by `1/√(width / heads)`.
///
/// A row with fewer than two open keys has nothing to decide: its logits are zero, and their cotangents are not read. In
/// other rows logits of closed keys are computed like the others. One op, because queries are many and keys few: nothing of
/// `[query rows, width]` is kept but the queries. Backward: as those of score and attention, recomputed; the slope of tanh
/// follows from `output`. Rows whose cotangents are all zero cost no more than reading them. Saved: nothing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PointAt {
    /// The operands.
    pub point: Point,
    /// The result.
    pub output: Value,
}

/// The ops that make a pointer's queries, where it alone reads them: a `linear` of an input onto rows gathered from one for each
/// key and one for none, right before the pointer; positions of `linear` and `gather`. A device may do all three in the
/// pointer's kernels.
pub(crate) fn query_makers(graph: &Graph, outputs: &[Value], point: &Point) -> Option<[usize; 2]> {
    let alone = |value: Value| {
        let readers = graph.ops().iter().flat_map(Op::operands).filter(|operand| *operand == value);
        readers.count() == 1 && !outputs.contains(&value)
    };
    let position = |value: Value| graph.ops().iter().position(|op| op.outputs().contains(&value));
    let at = position(point.query)?;
    let Op::Linear(linear) = &graph.ops()[at] else { return None };
    let (_, residual) = (linear.bias?, linear.residual?);
    let before = position(residual)?;
    let Op::Gather(gather) = &graph.ops()[before] else { return None };
    let given = graph.inputs().iter().any(|named| named.what == linear.input);
    // Their backward passes then follow each other, so that all may be one.
    let next = matches!(graph.ops().get(at + 1), Some(Op::Point(next)) if next.point == *point);
    let plain = !linear.transposed && linear.activation == Activation::None;
    let rows = graph.shape(gather.input).rows == graph.shape(point.key).rows + 1;
    (plain && given && next && before + 1 == at && rows && alone(point.query) && alone(residual))
        .then_some([at, before])
}

/// The op that picks from a pointer's logits, right behind it, where it alone reads them and sees what the pointer sees; its
/// position. A device may do both in the pointer's kernels.
pub(crate) fn picked_by(graph: &Graph, outputs: &[Value], of: &Op) -> Option<(usize, Pick)> {
    let Op::Point(PointAt { point, output }) = of else { return None };
    let next = 1 + graph.ops().iter().position(|op| op == of)?;
    let Some(Op::Pick(pick)) = graph.ops().get(next) else { return None };
    let readers = graph.ops().iter().flat_map(Op::operands).filter(|operand| operand == output);
    let alone = readers.count() == 1 && !outputs.contains(output);
    (alone && pick.logits == *output && pick.mask == Some(point.open)).then_some((next, *pick))
}

/// The value that a pointer's queries are made of, where a device may make them itself.
pub(crate) fn queries_of(graph: &Graph, outputs: &[Value], point: &Point) -> Option<Value> {
    let [_, gather] = query_makers(graph, outputs, point)?;
    match &graph.ops()[gather] {
        Op::Gather(gather) => Some(gather.input),
        _ => None,
    }
}

impl Graph {
    /// Adds [`PointAt`].
    ///
    /// # Errors
    /// If widths, heads or the mask do not fit.
    pub fn point(&mut self, point: Point) -> Result<Value> {
        let op = "point";
        let (query, glimpse, key) =
            (self.shape(point.query), self.shape(point.glimpse), self.shape(point.key));
        if point.heads == 0 || !query.width.is_multiple_of(point.heads) {
            let reason = format!("{} columns cannot be shared by {} heads evenly", query.width, point.heads);
            return Err(Error::Unsupported { op, reason });
        }
        expect(op, "glimpse width", 2 * query.width, glimpse.width)?;
        expect(op, "key width", query.width, key.width)?;
        expect(op, "key rows", glimpse.rows, key.rows)?;
        self.masked(op, point.open, Shape { rows: query.rows, width: key.rows })?;
        let output = self.value(query.rows, key.rows);
        self.push(PointAt { point, output });
        Ok(output)
    }
}

impl Operation for PointAt {
    fn name(&self) -> &'static str {
        "point"
    }

    fn reads(&self) -> Reads {
        let Point { query, glimpse, key, open, .. } = self.point;
        Reads { mask: Some(open), ..Reads::values([query, glimpse, key]) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        let Point { query, glimpse, key, .. } = self.point;
        vec![query, glimpse, key, self.output]
    }

    fn saved(&self, _: &Graph) -> usize {
        0
    }

    fn rows(&self) -> Rows {
        Rows::Mixed
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}
