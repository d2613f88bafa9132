//! Softmax attention within one item, and a pointer's scores. Rows are few, so each score is one short sum.

use super::Real;
use super::kernels::{add_scaled, dot, sum};
use super::simd::vectorised;
use std::ops::Range;

/// Columns of a value of one item: rows `stride` apart, the first column at `start`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View<'a, F> {
    pub(crate) data: &'a [F],
    pub(crate) stride: usize,
    pub(crate) start: usize,
}

impl<'a, F> View<'a, F> {
    #[inline(always)]
    fn row(&self, row: usize, head: usize, width: usize) -> &'a [F] {
        &self.data[row * self.stride + self.start + head * width..][..width]
    }
}

/// Sizes of an attention, and which keys a query may see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heads<'a> {
    pub(crate) heads: usize,
    pub(crate) key_heads: usize,
    pub(crate) width: usize,
    pub(crate) query_rows: usize,
    pub(crate) key_rows: usize,
    pub(crate) causal: bool,
    /// `[query rows, key rows]` of this item.
    pub(crate) mask: Option<&'a [u8]>,
}

impl Heads<'_> {
    #[inline(always)]
    fn key_head(&self, head: usize) -> usize {
        head / (self.heads / self.key_heads)
    }

    /// Keys after these cannot be seen by the query.
    #[inline(always)]
    fn reach(&self, row: usize) -> usize {
        if self.causal { row + 1 } else { self.key_rows }
    }

    #[inline(always)]
    fn hidden(&self, row: usize, key: usize) -> bool {
        self.mask.is_some_and(|mask| mask[row * self.key_rows + key] == 0)
    }
}

vectorised! {
    /// Query rows `rows` of one item. `weights` is `[heads, query rows, key rows]`, or `[key rows]` when `brief`.
    pub(crate) fn attend<F: Real>(
        shape: &Heads<'_>,
        scale: F,
        query: View<'_, F>,
        key: View<'_, F>,
        value: View<'_, F>,
        rows: Range<usize>,
        weights: &mut [F],
        brief: bool,
        out: &mut [F],
    ) {
        let (width, keys) = (shape.width, shape.key_rows);
        for head in 0..shape.heads {
            let key_head = shape.key_head(head);
            for row in rows.clone() {
                let at = if brief { 0 } else { (head * shape.query_rows + row) * keys };
                let weights = &mut weights[at..at + keys];
                let (seen, rest) = weights.split_at_mut(shape.reach(row));
                let q = query.row(row, head, width);
                let mut highest = F::LOWEST;
                for (place, weight) in seen.iter_mut().enumerate() {
                    let score = scale * dot(q, key.row(place, key_head, width));
                    *weight = if shape.hidden(row, place) { F::LOWEST } else { score };
                    if *weight > highest {
                        highest = *weight;
                    }
                }
                let out = &mut out[row * shape.heads * width + head * width..][..width];
                out.fill(F::ZERO);
                rest.fill(F::ZERO);
                if highest == F::LOWEST {
                    seen.fill(F::ZERO);
                    continue;
                }
                for weight in seen.iter_mut() {
                    let hidden = *weight == F::LOWEST;
                    let exponential = (*weight - highest).exponential();
                    *weight = if hidden { F::ZERO } else { exponential };
                }
                let share = F::ONE / sum(seen);
                for (place, weight) in seen.iter_mut().enumerate() {
                    *weight *= share;
                    add_scaled(out, *weight, value.row(place, key_head, width));
                }
            }
        }
    }

    /// The backward pass of one head of one item: writes the head's cotangents of query, key and value as
    /// `[rows, width]` each; keys and values are added to, as several heads may share them.
    pub(crate) fn attend_backward<F: Real>(
        shape: &Heads<'_>,
        head: usize,
        scale: F,
        query: View<'_, F>,
        key: View<'_, F>,
        value: View<'_, F>,
        weights: &[F],
        d_out: &[F],
        d_query: &mut [F],
        d_key: &mut [F],
        d_value: &mut [F],
        d_weights: &mut [F],
    ) {
        let (width, keys) = (shape.width, shape.key_rows);
        let key_head = shape.key_head(head);
        for row in 0..shape.query_rows {
            let seen = shape.reach(row);
            let weights = &weights[(head * shape.query_rows + row) * keys..][..seen];
            let d_weights = &mut d_weights[..seen];
            let d_out = &d_out[row * shape.heads * width + head * width..][..width];
            for place in 0..seen {
                d_weights[place] = dot(d_out, value.row(place, key_head, width));
                add_scaled(&mut d_value[place * width..][..width], weights[place], d_out);
            }
            let centre = dot(weights, d_weights);
            let q = query.row(row, head, width);
            let d_query = &mut d_query[row * width..][..width];
            d_query.fill(F::ZERO);
            for place in 0..seen {
                let d_score = scale * weights[place] * (d_weights[place] - centre);
                add_scaled(d_query, d_score, key.row(place, key_head, width));
                add_scaled(&mut d_key[place * width..][..width], d_score, q);
            }
        }
    }

    /// Adds `[rows, width]` of one head to that head's columns of a whole value.
    pub(crate) fn add_head<F: Real>(part: &[F], width: usize, whole: &mut [F], stride: usize, start: usize) {
        for (part, whole) in part.chunks_exact(width).zip(whole.chunks_exact_mut(stride)) {
            for (whole, &part) in whole[start..start + width].iter_mut().zip(part) {
                *whole += part;
            }
        }
    }

    /// `out[r, s] = scale · query[r] · key[s]` for one item.
    pub(crate) fn score<F: Real>(query: &[F], key: &[F], width: usize, scale: F, out: &mut [F]) {
        let keys = key.len() / width;
        for (query, out) in query.chunks_exact(width).zip(out.chunks_exact_mut(keys)) {
            for (key, out) in key.chunks_exact(width).zip(out) {
                *out = scale * dot(query, key);
            }
        }
    }

    /// Adds `scale · Σ_s d[r, s] other[s]`, or with `transposed` `scale · Σ_r d[r, s] other[r]`, for one item.
    pub(crate) fn score_backward<F: Real>(
        d: &[F],
        keys: usize,
        other: &[F],
        width: usize,
        scale: F,
        transposed: bool,
        out: &mut [F],
    ) {
        for (row, d) in d.chunks_exact(keys).enumerate() {
            for (key, &d) in d.iter().enumerate() {
                let (to, from) = if transposed { (key, row) } else { (row, key) };
                add_scaled(&mut out[to * width..][..width], scale * d, &other[from * width..][..width]);
            }
        }
    }
}
