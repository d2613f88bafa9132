//! Programs in which tree attention on a device is compared with the CPU.

use super::TreeAttention;
use crate::Result;
use crate::cuda::check::{Case, followed, grown};
use crate::graph::{Columns, Graph, Index, Value};
use crate::ops::Rotary;

pub(super) const CASES: &[Case] = &[
    ("tree attention, any parents", |g| {
        let parent = g.indices("parent", 11, 11);
        program(g, parent, 11, (6, 2, 12), 3)
    }),
    ("tree attention, shared prompt", |g| {
        let parent = prompt(g);
        program(g, parent, 67, (3, 1, 64), 3)
    }),
    // More rows below a key than are searched at once, and ways up that are longer than what is found at once.
    ("tree attention, many rows", |g| {
        let parent = many(g);
        program(g, parent, 1400, (2, 1, 8), 3)
    }),
    ("tree attention, wide heads", |g| {
        let parent = g.constant(&[-1, 0, 1, 1, 3, 0, 5]);
        program(g, parent, 7, (2, 2, 128), 3)
    }),
    // The same with columns that halves can have.
    ("tree attention, any parents, inside", |g| {
        let parent = g.indices("parent", 43, 43);
        inside(g, parent, 43, (6, 2, 16))
    }),
    ("tree attention, shared prompt, inside", |g| {
        let parent = prompt(g);
        inside(g, parent, 67, (3, 1, 64))
    }),
    ("tree attention, many rows, inside", |g| {
        let parent = many(g);
        inside(g, parent, 1400, (2, 1, 16))
    }),
    ("tree attention, wide heads, inside", |g| {
        let parent = prompt(g);
        inside(g, parent, 67, (2, 2, 128))
    }),
    ("tree attention, turned", |g| {
        let parent = prompt(g);
        turned(g, parent, 67, (6, 2, 16))
    }),
    ("tree attention, turned, packed", |g| {
        let parent = prompt(g);
        turned(g, parent, 67, (6, 2, 64))
    }),
    ("tree attention, turned, packed, any parents", |g| {
        let parent = g.indices("parent", 201, 201);
        turned(g, parent, 201, (5, 1, 64))
    }),
];

/// A prompt of 40 rows and three continuations of 9.
fn prompt(g: &mut Graph) -> Index {
    let branch = |row: i32| if row >= 40 && (row - 40) % 9 == 0 { 39 } else { row - 1 };
    g.constant(&(0..67).map(branch).collect::<Vec<i32>>())
}

fn many(g: &mut Graph) -> Index {
    let branch = |row: i32| if row >= 300 && (row - 300) % 7 == 0 { 299 - row % 3 } else { row - 1 };
    g.constant(&(0..1400).map(branch).collect::<Vec<i32>>())
}

/// With so many columns between queries and keys that nobody reads.
fn program(
    g: &mut Graph,
    parent: Index,
    rows: usize,
    sizes: (usize, usize, usize),
    gap: usize,
) -> Result<Vec<Value>> {
    let (heads, key_heads, head_width) = sizes;
    let (wide, narrow) = (heads * head_width, key_heads * head_width);
    let mixed = grown(g, "x", rows, wide + 2 * narrow + gap)?;
    let columns = [0, wide + gap, wide + narrow + gap].map(|start| Columns { value: mixed, start });
    Ok(vec![attended(g, columns, sizes, parent)?])
}

/// What rows make of the columns of queries, keys and values.
fn attended(
    g: &mut Graph,
    [query, key, value]: [Columns; 3],
    (heads, key_heads, head_width): (usize, usize, usize),
    parent: Index,
) -> Result<Value> {
    let scale = 1.0 / (head_width as f64).sqrt();
    g.tree_attention(TreeAttention { query, key, value, heads, key_heads, head_width, scale, parent })
}

fn inside(g: &mut Graph, parent: Index, rows: usize, sizes: (usize, usize, usize)) -> Result<Vec<Value>> {
    let out = program(g, parent, rows, sizes, 8)?[0];
    Ok(vec![followed(g, out)?])
}

/// As in a decoder: queries and keys are turned, values are not.
fn turned(g: &mut Graph, parent: Index, rows: usize, sizes: (usize, usize, usize)) -> Result<Vec<Value>> {
    let (heads, key_heads, head_width) = sizes;
    let (wide, narrow) = (heads * head_width, key_heads * head_width);
    let mixed = grown(g, "x", rows, wide + 2 * narrow)?;
    let position = g.indices("position", rows, 50);
    let rotated = g.rope(mixed.into(), heads + key_heads, head_width, Rotary::plain(10_000.0), position)?;
    let columns = [(rotated, 0), (rotated, wide), (mixed, wide + narrow)];
    let out = attended(g, columns.map(|(value, start)| Columns { value, start }), sizes, parent)?;
    Ok(vec![followed(g, out)?])
}
