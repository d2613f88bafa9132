//! A decoder's layer, which a device may compute in fewer kernels than it has ops.

#[cfg(feature = "cuda")]
mod cuda;
#[cfg(feature = "cuda")]
mod sizes;

use super::{Activation, AttendTree, Linear, Op, RmsNorm, Rope, Swiglu, TreeAttention};
use crate::graph::{Graph, Value};
#[cfg(any(test, feature = "cuda"))]
use crate::{Init, Result, graph::Columns, ops::Rotary};

#[cfg(feature = "cuda")]
pub(crate) use {cuda::CASES, sizes::units};

/// Ops of a layer.
pub(crate) const OPS: usize = 9;

/// Columns of a head, and what all widths are multiples of.
const HEAD: usize = 64;

/// Nine ops in a row: norm, queries with keys and values, rotary positions, attention along a tree, a projection onto the stream,
/// norm, gate with up, SwiGLU, a projection onto the stream. Nobody else reads what lies between them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Layer {
    /// Position of the first.
    pub(crate) first: usize,
    /// What stands before queries and before the gate.
    norms: [RmsNorm; 2],
    mixed: Linear,
    rope: Rope,
    attend: AttendTree,
    out: Linear,
    wide: Linear,
    gate: Swiglu,
    down: Linear,
}

impl Layer {
    /// All layers of a program.
    pub(crate) fn all(graph: &Graph, outputs: &[Value]) -> Vec<Self> {
        let mut readers = vec![0; graph.values()];
        for operand in graph.ops().iter().flat_map(Op::operands) {
            readers[operand.position()] += 1;
        }
        let last = graph.ops().len().saturating_sub(OPS - 1);
        let found = (0..last).filter_map(|first| Self::starting_at(graph, first));
        let alone = |layer: &Self| {
            layer.between().iter().all(|&(value, count)| {
                readers[value.position()] == count && !outputs.contains(&value) && !graph.is_shown(value)
            })
        };
        found.filter(|layer| alone(layer) && layer.fits(graph)).collect()
    }

    fn starting_at(graph: &Graph, first: usize) -> Option<Self> {
        let layer = match &graph.ops()[first..first + OPS] {
            &[
                Op::RmsNorm(norm),
                Op::Linear(mixed),
                Op::Rope(rope),
                Op::TreeAttention(attend),
                Op::Linear(out),
                Op::RmsNorm(second),
                Op::Linear(wide),
                Op::Swiglu(gate),
                Op::Linear(down),
            ] => Self { first, norms: [norm, second], mixed, rope, attend, out, wide, gate, down },
            _ => return None,
        };
        let [first, second] = layer.norms;
        let chained = layer.mixed.input == first.output
            && layer.rope.input.value == layer.mixed.output
            && layer.out.input == layer.attend.output
            && second.input == layer.out.output
            && layer.wide.input == second.output
            && layer.gate.input == layer.wide.output
            && layer.down.input == layer.gate.output;
        let plain = |of: &Linear| of.bias.is_none() && of.activation == Activation::None && !of.transposed;
        let all = [layer.mixed, layer.out, layer.wide, layer.down];
        let onto = all.map(|of| of.residual) == [None, Some(first.input), None, Some(second.input)];
        (chained && onto && all.iter().all(plain)).then_some(layer)
    }

    /// Whether heads and widths are such that tiles are whole, and attention reads what was rotated and what was not.
    fn fits(&self, graph: &Graph) -> bool {
        let TreeAttention { query, key, value, heads, key_heads, head_width, scale, .. } =
            self.attend.attention;
        let (queries, keys) = (heads * head_width, key_heads * head_width);
        let rotated = (self.rope.heads, self.rope.head_width, self.rope.input.start)
            == (heads + key_heads, head_width, 0)
            && [query.value, key.value] == [self.rope.output; 2]
            && (query.start, key.start) == (0, queries);
        let straight = value.value == self.mixed.output
            && value.start == queries + keys
            && graph.shape(self.mixed.output).width == queries + 2 * keys;
        let widths = [self.norms[0].input, self.gate.output].map(|of| graph.shape(of).width);
        let even = head_width == HEAD && widths.iter().all(|width| width.is_multiple_of(HEAD));
        rotated && straight && even && heads / key_heads <= HEAD && scale > 0.0
    }

    /// What lies between its ops, and how often that is read.
    fn between(&self) -> [(Value, usize); 8] {
        [
            (self.norms[0].output, 1),
            (self.mixed.output, 2),
            (self.rope.output, 2),
            (self.attend.output, 1),
            (self.out.output, 2),
            (self.norms[1].output, 1),
            (self.wide.output, 1),
            (self.gate.output, 1),
        ]
    }

    /// What a device may write with an op before the one that writes it: the value, and that op's position.
    pub(crate) fn made_early(&self) -> [(Value, usize); 4] {
        [
            (self.norms[0].output, self.first.saturating_sub(1)),
            (self.rope.output, self.first + 1),
            (self.norms[1].output, self.first + 4),
            (self.gate.output, self.first + 6),
        ]
    }

    /// What a device may read with the backward pass of an op before those that keep it: values, and that op's position.
    pub(crate) fn read_late(&self) -> ([Value; 3], usize) {
        ([self.gate.output, self.norms[1].output, self.attend.output], self.first + 1)
    }

    /// Whether another layer begins where this one ends.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        self.first + OPS == other.first && self.down.output == other.norms[0].input
    }

    /// Whether two layers have the same sizes, so that they can take turns in the same places.
    #[cfg(feature = "cuda")]
    pub(crate) fn is_like(&self, other: &Self, graph: &Graph) -> bool {
        let values = |layer: &Self| [layer.norms[0].input, layer.mixed.output, layer.wide.output];
        let shapes = |layer: &Self| values(layer).map(|value| graph.shape(value));
        let heads = |layer: &Self| (layer.attend.attention.heads, layer.attend.attention.key_heads);
        shapes(self) == shapes(other) && heads(self) == heads(other)
    }
}

/// A program of layers, one behind the other, over rows that branch off the fourth part of them.
#[cfg(any(test, feature = "cuda"))]
pub(crate) fn stacked(
    g: &mut Graph,
    rows: usize,
    layers: usize,
    [width, heads, key_heads, hidden]: [usize; 4],
) -> Result<Value> {
    let matrix = |g: &mut Graph, layer: usize, name: &str, from: usize, to: usize| {
        g.param(&format!("{layer}.{name}"), &[from, to], Init::Linear { fan_in: from })
    };
    let (queries, keys, prompt) = (heads * HEAD, key_heads * HEAD, rows / 4);
    let tokens = g.indices("token", rows, 7);
    let table = g.param("table", &[7, width], Init::Normal { deviation: 1.0 })?;
    let mut stream = g.embed(table, tokens)?;
    // Behind the prompt, branches of five.
    let branches = |row: usize| row >= prompt && (row - prompt).is_multiple_of(5);
    let parent = |row: usize| if branches(row) { prompt as i32 - 1 } else { row as i32 - 1 };
    let position = |row: usize| if row < prompt { row } else { prompt + (row - prompt) % 5 } as i32;
    let parent = g.constant(&(0..rows).map(parent).collect::<Vec<i32>>());
    let position = g.constant(&(0..rows).map(position).collect::<Vec<i32>>());
    for layer in 0..layers {
        let gain = Init::Normal { deviation: 1.0 };
        let first = g.param(&format!("{layer}.first"), &[width], gain)?;
        let mixed = matrix(g, layer, "mixed", width, queries + 2 * keys)?;
        let out = matrix(g, layer, "out", queries, width)?;
        let second = g.param(&format!("{layer}.second"), &[width], gain)?;
        let wide = matrix(g, layer, "wide", width, 2 * hidden)?;
        let down = matrix(g, layer, "down", hidden, width)?;
        let normed = g.rms_norm(stream, first, 1e-5)?;
        let mixed = g.linear(normed, mixed, None, Activation::None)?;
        let rotated = g.rope(mixed.into(), heads + key_heads, HEAD, Rotary::plain(1e4), position)?;
        let [query, key, value] = [(rotated, 0), (rotated, queries), (mixed, queries + keys)]
            .map(|(value, start)| Columns { value, start });
        let (head_width, scale) = (HEAD, 0.125);
        let attention = TreeAttention { query, key, value, heads, key_heads, head_width, scale, parent };
        let attended = g.tree_attention(attention)?;
        stream = g.linear_onto(stream, attended, out, None)?;
        let normed = g.rms_norm(stream, second, 1e-5)?;
        let both = g.linear(normed, wide, None, Activation::None)?;
        let gated = g.swiglu(both)?;
        stream = g.linear_onto(stream, gated, down, None)?;
    }
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, Region};

    #[test]
    fn layers_are_found_where_nobody_looks_between() {
        let mut graph = Graph::new();
        let stream = stacked(&mut graph, 20, 3, [128, 2, 1, 192]).unwrap();
        let found = |outputs: &[Value]| -> Vec<usize> {
            Layer::all(&graph, outputs).iter().map(|layer| layer.first).collect()
        };
        assert_eq!(found(&[stream]), [1, 10, 19]);
        let inside = Layer::all(&graph, &[stream])[1].wide.output;
        assert_eq!(found(&[stream, inside]), [1, 19]);
        // What a device writes early lies apart from what it reads meanwhile.
        let plan = Plan::training(&graph, &[stream]);
        let apart = |one: Region, other: Region| {
            one.offset + one.size <= other.offset || other.offset + other.size <= one.offset
        };
        for layer in Layer::all(&graph, &[stream]) {
            for (value, maker) in layer.made_early() {
                let read =
                    graph.ops()[maker].operands().into_iter().filter_map(|operand| plan.value(operand));
                let made = plan.value(value).unwrap();
                assert!(read.into_iter().all(|region| apart(made, region)), "{value:?}");
            }
        }
        let mut odd = Graph::new();
        let stream = stacked(&mut odd, 20, 1, [96, 2, 1, 192]).unwrap();
        assert_eq!(Layer::all(&odd, &[stream]), []);
    }
}
