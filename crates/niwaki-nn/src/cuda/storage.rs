//! Which values a program stores in halves.
//!
//! In bf16 a value and its cotangent are stored as bf16 where the op that makes it and all ops that read it can do so; the others
//! meet f32. The residual stream of a transformer is no exception: it is rounded as often as the operands of its products, and
//! a product's result and what it is added to must be stored alike. What the caller sees stays in f32, and so do parameters, the
//! optimiser's state, statistics of norms and partial sums; sums inside kernels are f32. A gradient is stored in halves where one
//! product of halves is all that makes it, and in f32 where several sums meet. A half takes the room of a float in the arena and
//! among gradients: what counts is the traffic.

use super::Precision;
use super::lower::padded;
use crate::graph::{Graph, Value};
use crate::layout::Slice;
use crate::ops::{Op, Operation, Perceptron, folded, products_of_halves};

/// Columns of which rows in halves have a multiple, so that they start on 16 bytes.
const COLUMNS: usize = 8;

/// For each value of a program, by position: whether it and its cotangent are stored in halves.
pub(crate) fn halves(graph: &Graph, outputs: &[Value], precision: Precision) -> Vec<bool> {
    let mut halves = vec![precision == Precision::Bf16; graph.values()];
    // A pass over fewer outputs may fold more ops into others, whose kernels read f32.
    let mut folded = folded(graph, &[]);
    for (end, op) in graph.ops().iter().enumerate() {
        let Op::Linear(last) = op else { continue };
        if let Some(perceptron) = Perceptron::ending_with(graph, &[], last) {
            perceptron.inner().into_iter().chain([end]).for_each(|position| folded[position] = true);
        }
    }
    let mut made = vec![false; graph.values()];
    let mut alike: Vec<Vec<Value>> = Vec::new();
    for (op, folded) in graph.ops().iter().zip(folded) {
        let able = if folded { Vec::new() } else { op.halves(graph) };
        let (operands, results) = (op.operands(), op.outputs());
        results.iter().for_each(|value| made[value.position()] = true);
        for value in operands.iter().chain(&results) {
            let aligned = graph.shape(*value).width.is_multiple_of(COLUMNS);
            halves[value.position()] &= aligned && able.iter().flatten().any(|one| one == value);
        }
        alike.extend(able);
        // Their cotangents may share a buffer.
        let through = operands.iter().enumerate().filter(|(place, _)| op.passes_through(*place));
        alike.extend(
            through.flat_map(|(_, &operand)| results.iter().map(move |&result| vec![operand, result])),
        );
    }
    for (half, made) in halves.iter_mut().zip(made) {
        *half &= made;
    }
    for value in outputs {
        halves[value.position()] = false;
    }
    for op in graph.ops() {
        for value in op.outputs() {
            halves[value.position()] &= !graph.is_shown(value);
        }
    }
    loop {
        let mut settled = true;
        for group in &alike {
            if group.iter().any(|value| halves[value.position()])
                && group.iter().any(|value| !halves[value.position()])
            {
                group.iter().for_each(|value| halves[value.position()] = false);
                settled = false;
            }
        }
        if settled {
            return halves;
        }
    }
}

/// Scalars of a group: gradients in halves begin and end with groups, counted in a member's flat parameters.
const GROUP: usize = 64;

/// Bytes in which kernels count where a group's gradient lies.
const STEP: usize = 128;

/// For each parameter of a program, by position: whether its gradient is stored in halves, side by side from where it would begin
/// in f32. `halves` says so of its values.
pub(crate) fn half_gradients(graph: &Graph, halves: &[bool]) -> Vec<bool> {
    let products = products_of_halves(graph, halves);
    let whole = |slice: &Slice| slice.offset.is_multiple_of(GROUP) && slice.len().is_multiple_of(GROUP);
    graph.layout().slices().iter().zip(products).map(|(slice, product)| product && whole(slice)).collect()
}

/// Where each group of a member's gradient lies, in steps of 128 bytes, and in the lowest bit whether it is in halves; nothing where all
/// are in f32. `halved` says which parameters' are not.
pub(crate) fn places(graph: &Graph, halved: &[bool]) -> Option<Vec<u32>> {
    let groups = padded(graph).div_ceil(GROUP);
    let steps = |bytes: usize| GROUP * bytes / STEP;
    let mut places: Vec<u32> = (0..groups).map(|group| (group * steps(4)) as u32 * 2).collect();
    for (slice, _) in graph.layout().slices().iter().zip(halved).filter(|(_, halved)| **halved) {
        let first = slice.offset / GROUP;
        for (group, place) in places[first..first + slice.len() / GROUP].iter_mut().enumerate() {
            *place = (first * steps(4) + group * steps(2)) as u32 * 2 + 1;
        }
    }
    halved.contains(&true).then_some(places)
}

/// Spreads the halves of a parameter's gradient, as they came from the device, over the floats that they take the room of.
pub(crate) fn widen(stored: &mut [f32]) {
    let words: Vec<u32> = stored[..stored.len() / 2].iter().map(|two| two.to_bits()).collect();
    for (to, two) in stored.chunks_exact_mut(2).zip(words) {
        to.copy_from_slice(&[f32::from_bits(two << 16), f32::from_bits(two & 0xffff_0000)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Init;
    use crate::ops::Activation;

    #[test]
    fn halves_where_all_ops_can() {
        let mut g = Graph::new();
        let x = g.scalars("x", 3, 16);
        let gain = g.param("gain", &[16], Init::Ones).unwrap();
        let weight = g.param("weight", &[16, 16], Init::Zeros).unwrap();
        let narrow = g.param("narrow", &[16, 12], Init::Zeros).unwrap();
        let first = g.linear(x, weight, None, Activation::None).unwrap();
        let normed = g.rms_norm(first, gain, 1e-6).unwrap();
        // Onto an input: neither is in halves.
        let onto = g.linear_onto(x, normed, weight, None).unwrap();
        // Read by an op that cannot, or of a width that does not fit, or given to the caller.
        let scored = g.rms_norm(normed, gain, 1e-6).unwrap();
        let score = g.score(scored, normed, 1.0).unwrap();
        let odd = g.linear(normed, narrow, None, Activation::None).unwrap();
        let square = g.mul(odd, odd).unwrap();
        let last = g.linear(onto, weight, None, Activation::None).unwrap();
        let of = |outputs: &[Value], precision| {
            let halves = halves(&g, outputs, precision);
            [x, first, normed, onto, scored, score, odd, square, last].map(|value| halves[value.position()])
        };
        let expected = [false, true, false, false, false, false, false, false, false];
        assert_eq!(of(&[score, square, last], Precision::Bf16), expected);
        assert_eq!(of(&[score, square, last], Precision::Tf32), [false; 9]);
        assert_eq!(of(&[score, square, last, first], Precision::Bf16), [false; 9]);
    }

    #[test]
    fn what_shares_a_cotangent_is_stored_alike() {
        let mut g = Graph::new();
        let x = g.scalars("x", 2, 16);
        let weight = g.param("weight", &[16, 16], Init::Zeros).unwrap();
        let mut stream = vec![g.linear(x, weight, None, Activation::None).unwrap()];
        for _ in 0..3 {
            let before = stream[stream.len() - 1];
            let raised = g.linear(before, weight, None, Activation::Tanh).unwrap();
            stream.push(g.linear_onto(before, raised, weight, None).unwrap());
        }
        let end = g.linear(stream[3], weight, None, Activation::None).unwrap();
        let stored = |outputs: &[Value]| {
            let halves = halves(&g, outputs, Precision::Bf16);
            stream.iter().map(|value| halves[value.position()]).collect::<Vec<_>>()
        };
        assert_eq!(stored(&[end]), [true; 4]);
        // One of them is the caller's: then all are.
        assert_eq!(stored(&[end, stream[2]]), [false; 4]);
    }

    #[test]
    fn gradients_that_one_product_makes_are_in_halves() {
        let mut g = Graph::new();
        let mut weight = |name: &str, to: usize| g.param(name, &[16, to], Init::Zeros).unwrap();
        let [first, shared, odd, alone, last] =
            [("first", 16), ("shared", 16), ("odd", 24), ("alone", 16), ("last", 16)]
                .map(|(name, to)| weight(name, to));
        let gain = g.param("gain", &[16], Init::Ones).unwrap();
        let moved = g.param("moved", &[16, 16], Init::Zeros).unwrap();
        let x = g.scalars("x", 2, 16);
        let mut stream = g.linear(x, first, None, Activation::None).unwrap();
        stream = g.rms_norm(stream, gain, 1e-6).unwrap();
        for weight in [shared, shared, alone, moved] {
            stream = g.linear(stream, weight, None, Activation::None).unwrap();
        }
        let ends = [odd, last].map(|weight| g.linear(stream, weight, None, Activation::None).unwrap());
        let halves = halves(&g, &ends, Precision::Bf16);
        let halved = half_gradients(&g, &halves);
        // The first reads f32, the shared one's is a sum of two, what the caller sees is in f32, and the gain's 16 scalars move what lies
        // behind off the groups of 64.
        assert_eq!(halved, [false, false, false, true, false, false, false]);
        // Four groups each, six for the odd one: the fourth begins with group 14, at 28 steps of 128 bytes.
        let places = places(&g, &halved).unwrap();
        assert_eq!(places[12..20], [48, 52, 57, 59, 61, 63, 72, 76]);
        assert_eq!(super::places(&g, &[false; 7]), None);
    }

    #[test]
    fn halves_are_spread_over_floats() {
        // 1.0 and -2.5 are 0x3f80 and 0xc020 in bf16.
        let mut stored = [f32::from_bits(0xc020_3f80), 7.0];
        widen(&mut stored);
        assert_eq!(stored, [1.0, -2.5]);
    }
}
