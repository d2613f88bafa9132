//! A program for each op and each of its variants, small but off the round sizes.

use crate::graph::{Activation, Attention, Columns, Graph, Point, Pooling, Value, Visible};
use crate::{Init, Param, Result};

type Case = fn(&mut Graph) -> Result<Vec<Value>>;

/// Names and programs.
pub(super) const CASES: &[(&str, Case)] = &[
    ("linear", |g| linear(g, 24, 20, Activation::None, true)),
    ("linear without bias", |g| linear(g, 24, 20, Activation::None, false)),
    ("linear, odd sizes", |g| linear(g, 7, 13, Activation::Gelu, true)),
    ("linear gelu", |g| linear(g, 64, 96, Activation::Gelu, true)),
    ("linear relu", |g| linear(g, 64, 160, Activation::Relu, true)),
    ("linear tanh", |g| linear(g, 32, 64, Activation::Tanh, true)),
    ("linear silu without bias", |g| linear(g, 32, 64, Activation::Silu, false)),
    ("linear, tiles", |g| linear(g, 128, 384, Activation::None, true)),
    ("linear gelu, tiles", |g| linear(g, 128, 512, Activation::Gelu, true)),
    ("linear narrow", |g| linear(g, 40, 4, Activation::None, true)),
    ("linear narrow without bias", |g| linear(g, 128, 3, Activation::None, false)),
    ("linear onto a residual", residual),
    ("linear tied to an embedding", tied),
    ("perceptron", |g| perceptron(g, 128, 512)),
    ("perceptron, odd tiles", |g| perceptron(g, 68, 132)),
    ("layer_norm 128", |g| norm(g, 128, true)),
    ("layer_norm 200", |g| norm(g, 200, true)),
    ("layer_norm 37", |g| norm(g, 37, true)),
    ("layer_norm 900", |g| norm(g, 900, true)),
    ("layer_norm 1000 + 3", |g| norm(g, 1003, true)),
    ("rms_norm 64", |g| norm(g, 64, false)),
    ("rms_norm 33", |g| norm(g, 33, false)),
    ("attention 8 × 32, causal", |g| attention(g, 8, (4, 4, 32), Which::Causal)),
    ("attention 8 × 32, all", |g| attention(g, 8, (2, 2, 32), Which::All)),
    ("attention 8 × 32, masked", |g| attention(g, 8, (2, 2, 32), Which::Masked)),
    ("attention 13 × 16, all", |g| attention(g, 13, (3, 3, 16), Which::All)),
    ("attention 11 × 12, causal, shared keys", |g| attention(g, 11, (6, 2, 12), Which::Causal)),
    ("attention 20 × 16, all", |g| attention(g, 20, (4, 4, 16), Which::All)),
    ("attention 20 × 16, masked", |g| attention(g, 20, (4, 4, 16), Which::Masked)),
    ("attention, wide heads", |g| attention(g, 9, (2, 2, 48), Which::All)),
    ("attention, cross, masked", cross),
    ("score", score),
    ("point", |g| point(g, 6, 7, (64, 4), false)),
    ("point, one head", |g| point(g, 45, 3, (12, 1), false)),
    ("point, several tiles", |g| point(g, 200, 20, (64, 4), false)),
    ("point, many keys", |g| point(g, 70, 50, (64, 4), false)),
    ("point, with its query", |g| point(g, 200, 20, (64, 4), true)),
    ("point, with its query, one head", |g| point(g, 45, 3, (12, 1), true)),
    ("point, queries made", |g| point_made(g, 200, 20, (64, 4), 14, false)),
    ("point, queries made, many keys", |g| point_made(g, 70, 50, (64, 4), 17, false)),
    ("point, queries made, odd sizes", |g| point_made(g, 45, 7, (12, 4), 5, false)),
    ("point, queries made, with its query", |g| point_made(g, 200, 20, (64, 4), 14, true)),
    ("point, queries made, with its query, many keys", |g| point_made(g, 70, 40, (64, 4), 18, true)),
    ("point, queries made, with its query, odd sizes", |g| point_made(g, 45, 7, (12, 4), 5, true)),
    ("embed", |g| embed(g, 9, 20)),
    ("embed, large table", |g| embed(g, 700, 20)),
    ("gather", |g| gather(g, 18)),
    ("gather, quads", |g| gather(g, 20)),
    ("pool", |g| pool(g, Pooling::Mean, false)),
    ("pool, masked mean", |g| pool(g, Pooling::Mean, true)),
    ("pool, masked sum", |g| pool(g, Pooling::Sum, true)),
    ("concat, add, mul, scale", entries),
    ("activate", activate),
    ("activate relu", activate_relu),
    ("rope", rope),
    ("pick_log_prob", |g| pick(g, 5, false)),
    ("pick_log_prob, masked", |g| pick(g, 6, true)),
    ("pick_log_prob, many, masked", |g| pick(g, 70, true)),
];

const ROWS: usize = 6;

fn matrix(g: &mut Graph, name: &str, from: usize, to: usize) -> Result<Param> {
    g.param(name, &[from, to], Init::Linear { fan_in: from })
}

/// A value that leads back to a parameter, so that cotangents of it are computed: a linear map of an input.
fn grown(g: &mut Graph, name: &str, rows: usize, width: usize) -> Result<Value> {
    let x = g.scalars(name, rows, 12);
    let weight = matrix(g, &format!("{name}.weight"), 12, width)?;
    g.linear(x, weight, None, Activation::None)
}

fn linear(g: &mut Graph, from: usize, to: usize, activation: Activation, bias: bool) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, from)?;
    let weight = matrix(g, "weight", from, to)?;
    let bias = if bias { Some(g.param("bias", &[to], Init::Linear { fan_in: from })?) } else { None };
    // Two uses of the input and of the weight: cotangents and gradients must add up.
    let first = g.linear(x, weight, bias, activation)?;
    let second = g.linear(x, weight, None, Activation::None)?;
    Ok(vec![first, second])
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

fn tied(g: &mut Graph) -> Result<Vec<Value>> {
    let table = g.param("table", &[68, 64], Init::Normal { deviation: 1.0 })?;
    let tokens = g.indices("tokens", ROWS, 68);
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

fn norm(g: &mut Graph, width: usize, layer: bool) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, width)?;
    let gain = g.param("gain", &[width], Init::Ones)?;
    let bias = g.param("bias", &[width], Init::Zeros)?;
    let normed = if layer { g.layer_norm(x, gain, bias)? } else { g.rms_norm(x, gain, 1e-6)? };
    let both = g.add(normed, x)?;
    Ok(vec![both])
}

enum Which {
    All,
    Causal,
    Masked,
}

fn attention(g: &mut Graph, rows: usize, sizes: (usize, usize, usize), which: Which) -> Result<Vec<Value>> {
    let (heads, key_heads, head_width) = sizes;
    let (wide, narrow) = (heads * head_width, key_heads * head_width);
    let mixed = grown(g, "x", rows, wide + 2 * narrow)?;
    let visible = match which {
        Which::All => Visible::All,
        Which::Causal => Visible::Causal,
        Which::Masked => Visible::Masked(g.mask("seen", rows, rows)),
    };
    let out = g.attention(Attention {
        query: Columns { value: mixed, start: 0 },
        key: Columns { value: mixed, start: wide },
        value: Columns { value: mixed, start: wide + narrow },
        heads,
        key_heads,
        head_width,
        scale: 1.0 / (head_width as f64).sqrt(),
        visible,
    })?;
    Ok(vec![out])
}

fn cross(g: &mut Graph) -> Result<Vec<Value>> {
    let query = grown(g, "query", 3, 2 * 10)?;
    let both = grown(g, "both", 9, 4 * 10 + 4)?;
    let mask = g.mask("seen", 3, 9);
    let out = g.attention(Attention {
        query: query.into(),
        key: Columns { value: both, start: 4 },
        value: Columns { value: both, start: 24 },
        heads: 2,
        key_heads: 2,
        head_width: 10,
        scale: 0.4,
        visible: Visible::Masked(mask),
    })?;
    Ok(vec![out])
}

fn score(g: &mut Graph) -> Result<Vec<Value>> {
    let query = grown(g, "query", 3, 20)?;
    let key = grown(g, "key", 7, 20)?;
    Ok(vec![g.score(query, key, 0.3)?])
}

fn point(
    g: &mut Graph,
    rows: usize,
    keys: usize,
    (width, heads): (usize, usize),
    residual: bool,
) -> Result<Vec<Value>> {
    let query = grown(g, "query", rows, width)?;
    let glimpse = grown(g, "glimpse", keys, 2 * width)?;
    let key = grown(g, "key", keys, width)?;
    let open = g.mask("open", rows, keys);
    let once = g.point(Point { query, glimpse, key, heads, residual, bound: 10.0, open })?;
    let again = g.point(Point { query, glimpse, key, heads, residual, bound: 2.0, open })?;
    Ok(vec![once, again])
}

/// Queries of a last choice and a context, which nothing else reads.
fn point_made(
    g: &mut Graph,
    rows: usize,
    keys: usize,
    (width, heads): (usize, usize),
    context: usize,
    residual: bool,
) -> Result<Vec<Value>> {
    let known = grown(g, "known", keys + 1, width)?;
    let glimpse = grown(g, "glimpse", keys, 2 * width)?;
    let key = grown(g, "key", keys, width)?;
    let last = g.indices("last", rows, keys + 1);
    let state = g.scalars("state", rows, context);
    let open = g.mask("open", rows, keys);
    let weight = g.param("weight", &[context, width], Init::Linear { fan_in: context })?;
    let bias = g.param("bias", &[width], Init::Linear { fan_in: context })?;
    let gathered = g.gather(known, last)?;
    let query = g.linear_onto(gathered, state, weight, Some(bias))?;
    let once = g.point(Point { query, glimpse, key, heads, residual, bound: 10.0, open })?;
    Ok(vec![once, known])
}

fn embed(g: &mut Graph, entries: usize, width: usize) -> Result<Vec<Value>> {
    let table = g.param("table", &[entries, width], Init::Normal { deviation: 1.0 })?;
    let places = g.param("places", &[ROWS, width], Init::Normal { deviation: 1.0 })?;
    let tokens = g.indices("tokens", ROWS, entries);
    let positions = g.constant(&[0, 1, 2, 3, 4, 5]);
    let token = g.embed(table, tokens)?;
    let place = g.embed(places, positions)?;
    Ok(vec![g.add(token, place)?])
}

fn gather(g: &mut Graph, width: usize) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, width)?;
    let index = g.indices("index", 9, ROWS);
    Ok(vec![g.gather(x, index)?, x])
}

fn pool(g: &mut Graph, pooling: Pooling, masked: bool) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, 18)?;
    let mask = masked.then(|| g.mask("seen", ROWS, 1));
    Ok(vec![g.pool(x, 3, mask, pooling)?, x])
}

fn entries(g: &mut Graph) -> Result<Vec<Value>> {
    let a = grown(g, "a", ROWS, 10)?;
    let b = grown(g, "b", ROWS, 10)?;
    let twice = g.add(a, a)?;
    let product = g.mul(a, b)?;
    let square = g.mul(b, b)?;
    let scaled = g.scale(product, -1.7);
    let sum = g.add(twice, scaled)?;
    Ok(vec![g.concat(&[sum, b, square, sum])?])
}

fn activate(g: &mut Graph) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, 10)?;
    let kinds = [Activation::None, Activation::Gelu, Activation::Tanh, Activation::Silu];
    Ok(kinds.into_iter().map(|activation| g.activate(x, activation)).collect())
}

fn activate_relu(g: &mut Graph) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, 10)?;
    Ok(vec![g.activate(x, Activation::Relu)])
}

fn rope(g: &mut Graph) -> Result<Vec<Value>> {
    let x = grown(g, "x", ROWS, 3 * 8 + 5)?;
    let position = g.indices("position", ROWS, 50);
    Ok(vec![g.rope(Columns { value: x, start: 5 }, 3, 8, 10_000.0, position)?])
}

fn pick(g: &mut Graph, choices: usize, masked: bool) -> Result<Vec<Value>> {
    let logits = grown(g, "x", ROWS, choices)?;
    let action = g.indices("action", ROWS, choices);
    let mask = masked.then(|| g.mask("seen", ROWS, choices));
    let (log_prob, entropy) = g.pick_log_prob(logits, action, mask)?;
    Ok(vec![log_prob, entropy])
}
