//! Products of every shape and ending, for the comparison of a device with the CPU.

use crate::cuda::check::{Case, ROWS, followed, grown, matrix};
use crate::graph::{Graph, Value};
use crate::ops::Activation;
use crate::{Init, Result};

pub(super) const CASES: &[Case] = &[
    ("linear", |g| linear(g, 24, 20, Activation::None, true)),
    ("linear without bias", |g| linear(g, 24, 20, Activation::None, false)),
    ("linear, odd sizes", |g| linear(g, 7, 13, Activation::Gelu, true)),
    ("linear gelu", |g| linear(g, 64, 96, Activation::Gelu, true)),
    ("linear relu", |g| linear(g, 64, 160, Activation::Relu, true)),
    ("linear tanh", |g| linear(g, 32, 64, Activation::Tanh, true)),
    ("linear elu", |g| linear(g, 8, 128, Activation::Elu, true)),
    ("linear sigmoid", |g| linear(g, 32, 64, Activation::Sigmoid, true)),
    ("linear silu without bias", |g| linear(g, 32, 64, Activation::Silu, false)),
    ("linear, tiles", |g| linear(g, 128, 384, Activation::None, true)),
    ("linear gelu, tiles", |g| linear(g, 128, 512, Activation::Gelu, true)),
    ("linear narrow", |g| linear(g, 40, 4, Activation::None, true)),
    ("linear narrow without bias", |g| linear(g, 128, 3, Activation::None, false)),
    ("linear onto a residual", residual),
    ("linear tied to an embedding", |g| tied(g, 68)),
    ("linear onto a residual, inside", |g| inside(g, residual)),
    ("linear tied to an embedding, inside", |g| inside(g, |g| tied(g, 72))),
    ("linear, inside", |g| inside(g, |g| linear(g, 24, 40, Activation::None, true))),
    ("linear tanh, inside", |g| inside(g, |g| linear(g, 32, 64, Activation::Tanh, true))),
    ("linear silu without bias, inside", |g| inside(g, |g| linear(g, 32, 64, Activation::Silu, false))),
    ("linear gelu, inside", |g| inside(g, |g| linear(g, 128, 512, Activation::Gelu, true))),
    ("perceptron, inside", |g| inside(g, |g| perceptron(g, 128, 512))),
    ("perceptron, odd tiles, inside", |g| inside(g, |g| perceptron(g, 72, 136))),
    ("perceptron", |g| perceptron(g, 128, 512)),
    ("perceptron, odd tiles", |g| perceptron(g, 68, 132)),
    ("perceptron of three layers", |g| three_layers(g, [8, 128, 8], Activation::Elu)),
    ("perceptron of three layers, many inputs", |g| three_layers(g, [32, 128, 8], Activation::Elu)),
    // Not sigmoid: its layers are nearly constant, and what is left of their cotangents after cancelling is as small as tf32's
    // own rounding (2e-3 to 4e-3 of the gradient in a simulation with exact sums). Nor relu: at its kink rounding decides the side, and 4e-2
    // of the gradient came and went with it.
    ("perceptron of three layers, most inputs", |g| three_layers(g, [64, 64, 5], Activation::Tanh)),
    ("perceptron of three layers, few", |g| three_layers(g, [3, 64, 1], Activation::Tanh)),
];

fn linear(g: &mut Graph, from: usize, to: usize, activation: Activation, bias: bool) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, from)?;
    let weight = matrix(g, "weight", from, to)?;
    let bias = if bias { Some(g.param("bias", &[to], Init::Linear { fan_in: from })?) } else { None };
    // Two uses of the input and of the weight: cotangents and gradients must add up.
    let first = g.linear(x, weight, bias, activation)?;
    let second = g.linear(x, weight, None, Activation::None)?;
    Ok(vec![first, second])
}

/// A program with something behind each of its outputs, which may then be stored in halves.
fn inside(g: &mut Graph, program: impl Fn(&mut Graph) -> Result<Vec<Value>>) -> Result<Vec<Value>> {
    let values = program(g)?;
    values.into_iter().map(|value| followed(g, value)).collect()
}

fn residual(g: &mut Graph) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, 128)?;
    let weight = matrix(g, "weight", 128, 128)?;
    let bias = g.param("bias", &[128], Init::Linear { fan_in: 128 })?;
    let once = g.linear_onto(x, x, weight, Some(bias))?;
    let other = matrix(g, "other", 128, 128)?;
    let twice = g.linear_onto(x, once, other, None)?;
    Ok(vec![twice])
}

fn tied(g: &mut Graph, entries: usize) -> Result<Vec<Value>> {
    let table = g.param("table", &[entries, 64], Init::Normal { deviation: 1.0 })?;
    let tokens = g.indices("tokens", ROWS, entries);
    let x = g.embed(table, tokens)?;
    Ok(vec![g.linear_tied(x, table)?])
}

fn perceptron(g: &mut Graph, width: usize, hidden: usize) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, width)?;
    let up = matrix(g, "up", width, hidden)?;
    let up_bias = g.param("up.bias", &[hidden], Init::Linear { fan_in: width })?;
    let raised = g.linear(x, up, Some(up_bias), Activation::Gelu)?;
    let down = matrix(g, "down", hidden, width)?;
    let down_bias = g.param("down.bias", &[width], Init::Linear { fan_in: hidden })?;
    Ok(vec![g.linear_onto(x, raised, down, Some(down_bias))?])
}

fn three_layers(
    g: &mut Graph,
    [inner, hidden, outer]: [usize; 3],
    activation: Activation,
) -> Result<Vec<Value>> {
    // More rows than a block takes, and not a multiple of it.
    let x = grown(g, "x", 45, inner)?;
    let mut perceive = |name: &str, from: Value, to: usize| {
        let mut layer = |place: usize, from: Value, to: usize, activation: Activation| {
            let width = g.shape(from).width;
            let weight = matrix(g, &format!("{name}.{place}"), width, to)?;
            let bias = g.param(&format!("{name}.{place}.bias"), &[to], Init::Linear { fan_in: width })?;
            g.linear(from, weight, Some(bias), activation)
        };
        let first = layer(0, from, hidden, activation)?;
        let second = layer(1, first, hidden, activation)?;
        layer(2, second, to, Activation::None)
    };
    // The input is read twice, so that cotangents add up, and one perceptron reads the other's result.
    let once = perceive("once", x, outer)?;
    let twice = perceive("twice", x, outer)?;
    let after = perceive("after", once, outer)?;
    Ok(vec![twice, after])
}
