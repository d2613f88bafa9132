//! Softmax attention within one item. Rows are few, so each score is one short sum.

use crate::cpu::Real;
use crate::cpu::kernels::{LANES, add_scaled, dot, larger, largest, sum};
use niwaki_simd::vectorised;
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

    /// Scales the scores of the keys within a query's reach, and hides those that its mask hides.
    #[inline(always)]
    fn finish_scores<F: Real>(&self, row: usize, scale: F, scores: &mut [F]) {
        for score in &mut *scores {
            *score *= scale;
        }
        let Some(mask) = self.mask else { return };
        for (score, &byte) in scores.iter_mut().zip(&mask[row * self.key_rows..]) {
            *score = if byte == 0 { F::LOWEST } else { *score };
        }
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

/// Folds a register's worth of scalars into one, half by half.
#[inline(always)]
fn fold<F: Real>(lanes: [F; LANES], join: impl Fn(F, F) -> F) -> F {
    /// One step, with constant bounds so that it is one instruction on registers.
    #[inline(always)]
    fn half<F: Real, const HALF: usize>(lanes: &[F], join: impl Fn(F, F) -> F) -> [F; HALF] {
        std::array::from_fn(|lane| join(lanes[lane], lanes[lane + HALF]))
    }
    let lanes = half::<F, 4>(&half::<F, 8>(&lanes, &join), &join);
    join(join(lanes[0], lanes[2]), join(lanes[1], lanes[3]))
}

/// `exp(score − highest)`, and 0 where the score is −∞.
#[inline(always)]
fn unscaled_weight<F: Real>(score: F, highest: F) -> F {
    let exponential = (score - highest).exponential();
    if score == F::LOWEST { F::ZERO } else { exponential }
}

#[inline(always)]
fn one_over<F: Real>(total: F) -> F {
    if total > F::ZERO { F::ONE / total } else { F::ZERO }
}

/// Turns scores into the weights of a softmax; a score of −∞ has weight 0.
#[inline(always)]
fn soften<F: Real>(scores: &mut [F]) {
    let highest = largest(scores);
    for score in &mut *scores {
        *score = unscaled_weight(*score, highest);
    }
    let share = one_over(sum(scores));
    for score in scores {
        *score *= share;
    }
}

/// [`soften`] for at most a register of scores, the others −∞.
#[inline(always)]
fn soften_lanes<F: Real>(mut scores: [F; LANES]) -> [F; LANES] {
    let highest = fold(scores, larger);
    for score in &mut scores {
        *score = unscaled_weight(*score, highest);
    }
    let share = one_over(fold(scores, |a, b| a + b));
    scores.map(|weight| weight * share)
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
        for row in rows.clone() {
            let reach = shape.reach(row);
            let weights = &mut weights[(head * shape.query_rows + row) * keys..][..keys];
            let q = query.row(row, head, width);
            if keys <= LANES {
                let mut lanes = [F::LOWEST; LANES];
                dots::<F, WIDTH>(q, key, key_head, width, room, &mut lanes[..reach]);
                shape.finish_scores(row, scale, &mut lanes[..reach]);
                weights.copy_from_slice(&soften_lanes(lanes)[..keys]);
            } else {
                let (seen, rest) = weights.split_at_mut(reach);
                rest.fill(F::ZERO);
                dots::<F, WIDTH>(q, key, key_head, width, room, seen);
                shape.finish_scores(row, scale, seen);
                soften(seen);
            }
            let out = &mut out[(row * shape.heads + head) * width..][..width];
            out.fill(F::ZERO);
            mix_row::<F, WIDTH>(weights[..reach].iter().copied(), 0, value, key_head, width, out);
        }
    }
}

/// `out += Σ_r factors[r] · other[first + r]` for one head.
#[inline(always)]
fn mix_row<F: Real, const WIDTH: usize>(
    factors: impl Iterator<Item = F>,
    first: usize,
    other: View<'_, F>,
    head: usize,
    width: usize,
    out: &mut [F],
) {
    let rows = factors.enumerate().map(|(row, factor)| (factor, other.row(first + row, head, width)));
    let (true, Some(out)) = (WIDTH > 0, out.first_chunk_mut::<WIDTH>()) else {
        rows.for_each(|(factor, row)| add_scaled(out, factor, row));
        return;
    };
    let mut sums = [F::ZERO; WIDTH];
    for (factor, row) in rows {
        if let Some(row) = row.first_chunk::<WIDTH>() {
            for i in 0..WIDTH {
                sums[i] += factor * row[i];
            }
        }
    }
    for i in 0..WIDTH {
        out[i] += sums[i];
    }
}

/// [`attend_backward`] for heads of `WIDTH` columns; 0 stands for any.
#[inline(always)]
fn pull_scores<F: Real, const WIDTH: usize>(
    shape: &Heads<'_>,
    scale: F,
    value: View<'_, F>,
    weights: &[F],
    d_out: View<'_, F>,
    room: &mut [F],
    d_scores: &mut [F],
) {
    let (width, keys) = (if WIDTH == 0 { shape.width } else { WIDTH }, shape.key_rows);
    for head in 0..shape.heads {
        for row in 0..shape.query_rows {
            let at = (head * shape.query_rows + row) * keys;
            let (weights, d_scores) = (&weights[at..at + keys], &mut d_scores[at..at + keys]);
            let seen = shape.reach(row);
            let d = d_out.row(row, head, width);
            dots::<F, WIDTH>(d, value, shape.key_head(head), width, room, &mut d_scores[..seen]);
            // Keys out of reach have no weight, so what stands there does not count, as long as it is a number.
            d_scores[seen..].fill(F::ZERO);
            let centre = dot(weights, d_scores);
            for (d, &weight) in d_scores.iter_mut().zip(weights) {
                *d = scale * weight * (*d - centre);
            }
        }
    }
}

/// [`mix`] for heads of `WIDTH` columns; 0 stands for any.
#[inline(always)]
fn mix_heads<F: Real, const WIDTH: usize>(
    shape: &Heads<'_>,
    factors: &[F],
    to_keys: bool,
    [other_heads, out_heads]: [usize; 2],
    other: View<'_, F>,
    out: &mut [F],
    [stride, start]: [usize; 2],
) {
    let (width, queries, keys) =
        (if WIDTH == 0 { shape.width } else { WIDTH }, shape.query_rows, shape.key_rows);
    for head in 0..shape.heads {
        let factors = &factors[head * queries * keys..][..queries * keys];
        let (from, to) = (head / (shape.heads / other_heads), head / (shape.heads / out_heads));
        for row in 0..if to_keys { keys } else { queries } {
            let out = &mut out[row * stride + start + to * width..][..width];
            if to_keys {
                // The queries that reach this key.
                let first = if shape.causal { row.min(queries) } else { 0 };
                let column = factors[first * keys..].iter().skip(row).step_by(keys).copied();
                mix_row::<F, WIDTH>(column, first, other, from, width, out);
            } else {
                let seen = factors[row * keys..][..shape.reach(row)].iter().copied();
                mix_row::<F, WIDTH>(seen, 0, other, from, width, out);
            }
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

    /// The cotangents of one item's scores, `[heads, query rows, key rows]`, from those of its result; `room` is
    /// `[key rows, 16]`.
    pub(crate) fn attend_backward<F: Real>(
        shape: &Heads<'_>,
        scale: F,
        value: View<'_, F>,
        weights: &[F],
        d_out: View<'_, F>,
        room: &mut [F],
        d_scores: &mut [F],
    ) {
        with_width!(shape.width, pull_scores(shape, scale, value, weights, d_out, room, d_scores));
    }

    /// Adds rows of one item, mixed by `factors`, `[heads, query rows, key rows]`, to columns of `out`, whose rows are
    /// `place[0]` apart and begin at `place[1]`: `out[r] += Σ_s factors[r, s] other[s]`, or with `to_keys`
    /// `out[s] += Σ_r factors[r, s] other[r]`. `heads` are those of `other` and of `out`.
    pub(crate) fn mix<F: Real>(
        shape: &Heads<'_>,
        factors: &[F],
        to_keys: bool,
        heads: [usize; 2],
        other: View<'_, F>,
        out: &mut [F],
        place: [usize; 2],
    ) {
        with_width!(shape.width, mix_heads(shape, factors, to_keys, heads, other, out, place));
    }
}
