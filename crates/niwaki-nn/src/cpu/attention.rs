//! Softmax attention within one item, and a pointer's scores. Rows are few, so each score is one short sum.

use super::Real;
use super::kernels::{LANES, add_scaled, dot, sum};
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

/// Calls a body with the head's width as a constant where it is a common one, so that its loops become registers.
macro_rules! with_width {
    ($width:expr, $name:ident($($arg:expr),* $(,)?)) => {
        match $width {
            16 => $name::<F, 16>($($arg),*),
            32 => $name::<F, 32>($($arg),*),
            64 => $name::<F, 64>($($arg),*),
            _ => $name::<F, 0>($($arg),*),
        }
    };
}

/// `y += factor · x` over `WIDTH` columns, or over all where it is 0.
#[inline(always)]
fn add_row<F: Real, const WIDTH: usize>(y: &mut [F], factor: F, x: &[F]) {
    match (y.first_chunk_mut::<WIDTH>(), x.first_chunk::<WIDTH>()) {
        (Some(y), Some(x)) if WIDTH > 0 => {
            // All is read before anything is written: no doubt about overlap keeps the compiler from registers.
            let mut sums = *y;
            for i in 0..WIDTH {
                sums[i] += factor * x[i];
            }
            *y = sums;
        }
        _ => add_scaled(y, factor, x),
    }
}

/// Adds columns `HALF..2 HALF` of each row to columns `0..HALF`.
#[inline(always)]
fn halve<F: Real, const HALF: usize>(room: &mut [[F; LANES]]) {
    for room in room {
        let mut sums = [F::ZERO; HALF];
        for i in 0..HALF {
            sums[i] = room[i] + room[HALF + i];
        }
        room[..HALF].copy_from_slice(&sums);
    }
}

/// `out[s] = row · other[s]` for the first rows of a head.
///
/// For constant widths the sums go through `room`, `[rows, 16]`: each pass is a plain loop over rows whose body is one
/// register, which the compiler sees; a sum taken in one go it would take scalar by scalar.
#[inline(always)]
fn dots<F: Real, const WIDTH: usize>(
    row: &[F],
    other: View<'_, F>,
    head: usize,
    width: usize,
    room: &mut [F],
    out: &mut [F],
) {
    let (true, Some(row)) = (WIDTH > 0, row.first_chunk::<WIDTH>()) else {
        for (place, out) in out.iter_mut().enumerate() {
            *out = dot(row, other.row(place, head, width));
        }
        return;
    };
    let room = &mut room.as_chunks_mut::<LANES>().0[..out.len()];
    for (place, room) in room.iter_mut().enumerate() {
        if let Some(other) = other.row(place, head, width).first_chunk::<WIDTH>() {
            let mut sums = [F::ZERO; LANES];
            for start in (0..WIDTH).step_by(LANES) {
                for i in 0..LANES {
                    sums[i] += row[start + i] * other[start + i];
                }
            }
            *room = sums;
        }
    }
    halve::<F, 8>(room);
    halve::<F, 4>(room);
    for (room, out) in room.iter().zip(out) {
        *out = (room[0] + room[2]) + (room[1] + room[3]);
    }
}

/// [`attend`] for heads of `WIDTH` columns; 0 stands for any.
#[inline(always)]
fn attend_heads<F: Real, const WIDTH: usize>(
    shape: &Heads<'_>,
    scale: F,
    [query, key, value]: [View<'_, F>; 3],
    rows: Range<usize>,
    weights: &mut [F],
    room: &mut [F],
    out: &mut [F],
) {
    let (width, keys) = (if WIDTH == 0 { shape.width } else { WIDTH }, shape.key_rows);
    for head in 0..shape.heads {
        let key_head = shape.key_head(head);
        let first = head * shape.query_rows;
        // One pass for the scores, one for all exponentials, one for the sums: each row is short, so what fills
        // registers and hides latency is to do the same thing for many rows.
        for row in rows.clone() {
            let (seen, rest) = weights[(first + row) * keys..][..keys].split_at_mut(shape.reach(row));
            rest.fill(F::LOWEST);
            dots::<F, WIDTH>(query.row(row, head, width), key, key_head, width, room, seen);
            let mut highest = F::LOWEST;
            for (place, weight) in seen.iter_mut().enumerate() {
                *weight = if shape.hidden(row, place) { F::LOWEST } else { scale * *weight };
                highest = if *weight > highest { *weight } else { highest };
            }
            if highest > F::LOWEST {
                seen.iter_mut().for_each(|weight| *weight = *weight - highest);
            }
        }
        for weight in &mut weights[(first + rows.start) * keys..(first + rows.end) * keys] {
            let exponential = weight.exponential();
            *weight = if *weight == F::LOWEST { F::ZERO } else { exponential };
        }
        for row in rows.clone() {
            let seen = &mut weights[(first + row) * keys..][..shape.reach(row)];
            let total = sum(seen);
            let share = if total > F::ZERO { F::ONE / total } else { F::ZERO };
            let out = &mut out[(row * shape.heads + head) * width..][..width];
            out.fill(F::ZERO);
            for (place, weight) in seen.iter_mut().enumerate() {
                *weight *= share;
                add_row::<F, WIDTH>(out, *weight, value.row(place, key_head, width));
            }
        }
    }
}

/// [`attend_backward`] for heads of `WIDTH` columns; 0 stands for any.
#[inline(always)]
fn attend_head_backward<F: Real, const WIDTH: usize>(
    shape: &Heads<'_>,
    head: usize,
    scale: F,
    [query, key, value]: [View<'_, F>; 3],
    weights: &[F],
    d_out: &[F],
    [d_query, d_key, d_value, d_weights, room]: [&mut [F]; 5],
) {
    let (width, keys) = (if WIDTH == 0 { shape.width } else { WIDTH }, shape.key_rows);
    let key_head = shape.key_head(head);
    for row in 0..shape.query_rows {
        let seen = shape.reach(row);
        let weights = &weights[(head * shape.query_rows + row) * keys..][..seen];
        let d_weights = &mut d_weights[..seen];
        let d_out = &d_out[(row * shape.heads + head) * width..][..width];
        dots::<F, WIDTH>(d_out, value, key_head, width, room, d_weights);
        for place in 0..seen {
            add_row::<F, WIDTH>(&mut d_value[place * width..][..width], weights[place], d_out);
        }
        let centre = dot(weights, d_weights);
        let q = query.row(row, head, width);
        let d_query = &mut d_query[row * width..][..width];
        d_query.fill(F::ZERO);
        for place in 0..seen {
            let d_score = scale * weights[place] * (d_weights[place] - centre);
            add_row::<F, WIDTH>(d_query, d_score, key.row(place, key_head, width));
            add_row::<F, WIDTH>(&mut d_key[place * width..][..width], d_score, q);
        }
    }
}

vectorised! {
    /// Query rows `rows` of one item; the views are queries, keys and values. `weights` is `[heads, query rows, key
    /// rows]`, `room` is `[key rows, 16]`.
    pub(crate) fn attend<F: Real>(
        shape: &Heads<'_>,
        scale: F,
        views: [View<'_, F>; 3],
        rows: Range<usize>,
        weights: &mut [F],
        room: &mut [F],
        out: &mut [F],
    ) {
        with_width!(shape.width, attend_heads(shape, scale, views, rows, weights, room, out));
    }

    /// The backward pass of one head of one item: `parts` are the head's cotangents of query (written), key and value
    /// (added to, as several heads may share them), `[rows, width]` each, and room for `[key rows]` and `[key rows, 16]`.
    pub(crate) fn attend_backward<F: Real>(
        shape: &Heads<'_>,
        head: usize,
        scale: F,
        views: [View<'_, F>; 3],
        weights: &[F],
        d_out: &[F],
        parts: [&mut [F]; 5],
    ) {
        with_width!(shape.width, attend_head_backward(shape, head, scale, views, weights, d_out, parts));
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
