//! A glimpse and a pointer in one: many queries on few keys, so sixteen rows are worked side by side, one per lane.
//!
//! Lanes mix only in the sums of the keys' cotangents, so a row's result does not depend on the rows beside it.

use crate::cpu::Real;
use crate::cpu::kernels::LANES;
use niwaki_simd::vectorised;

/// One scalar of each of sixteen rows.
type Lane<F> = [F; LANES];

/// Rows of a matrix, `stride` apart.
#[derive(Clone, Copy)]
struct Matrix<'a, F> {
    data: &'a [F],
    stride: usize,
}

/// Sizes of a pointer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub(crate) keys: usize,
    pub(crate) width: usize,
    pub(crate) heads: usize,
    /// Whether the query is added to the glimpse before it is compared.
    pub(crate) residual: bool,
    /// Bound on the logits; none where it is zero.
    pub(crate) bound: f64,
}

impl Sizes {
    fn head_width(&self) -> usize {
        self.width / self.heads
    }

    /// Lanes that a tile's passes need: queries, glimpse, its cotangent, one of them by rows, the weights of all heads,
    /// scores and theirs.
    const fn tile(&self) -> usize {
        4 * self.width + self.heads * self.keys + 3 * self.keys
    }

    /// Scalars of scratch: a tile's and the transposed keys.
    pub(crate) const fn scratch(&self) -> usize {
        LANES * self.tile() + 3 * self.keys * self.width
    }
}

/// One item's operands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Operands<'a, F> {
    /// `[rows, width]`.
    pub(crate) query: &'a [F],
    /// `[keys, 2 · width]`.
    pub(crate) glimpse: &'a [F],
    /// `[keys, width]`.
    pub(crate) key: &'a [F],
    /// `[rows, keys]`.
    pub(crate) open: &'a [u8],
}

/// The keys, values and pointer keys of an item, `[width, keys]` each: what a lane of queries is multiplied by.
struct Transposed<'a, F> {
    keys: &'a [F],
    values: &'a [F],
    pointer: &'a [F],
}

impl<'a, F: Real> Transposed<'a, F> {
    #[inline(always)]
    fn new(sizes: &Sizes, item: &Operands<'_, F>, room: &'a mut [F]) -> Self {
        let Sizes { keys, width, .. } = *sizes;
        let (all, pointer) = room.split_at_mut(2 * keys * width);
        for key in 0..keys {
            for column in 0..2 * width {
                all[column * keys + key] = item.glimpse[key * 2 * width + column];
            }
            for column in 0..width {
                pointer[column * keys + key] = item.key[key * width + column];
            }
        }
        let (keys, values) = all.split_at(keys * width);
        Self { keys, values, pointer }
    }
}

/// A tile's room and an item's transposed keys.
#[inline(always)]
fn split<'a, F: Real>(
    sizes: &Sizes,
    item: &Operands<'_, F>,
    scratch: &'a mut [F],
) -> (Tile<'a, F>, Transposed<'a, F>) {
    let (tile, transposed) = scratch.split_at_mut(LANES * sizes.tile());
    let transposed = &mut transposed[..3 * sizes.keys * sizes.width];
    (Tile::new(sizes, tile.as_chunks_mut().0), Transposed::new(sizes, item, transposed))
}

/// The room of a tile.
struct Tile<'a, F> {
    query: &'a mut [Lane<F>],
    glimpse: &'a mut [Lane<F>],
    d_glimpse: &'a mut [Lane<F>],
    /// `[16, width]`: the glimpse, then its cotangent.
    rows: &'a mut [F],
    /// `[heads, keys]`: zero where closed.
    weights: &'a mut [Lane<F>],
    /// `[keys]`: zero or −∞.
    closed: &'a mut [Lane<F>],
    /// `[keys]` each: whatever a pass computes.
    scores: &'a mut [Lane<F>],
    d_scores: &'a mut [Lane<F>],
}

impl<'a, F: Real> Tile<'a, F> {
    #[inline(always)]
    fn new(sizes: &Sizes, room: &'a mut [Lane<F>]) -> Self {
        let (query, room) = room.split_at_mut(sizes.width);
        let (glimpse, room) = room.split_at_mut(sizes.width);
        let (d_glimpse, room) = room.split_at_mut(sizes.width);
        let (rows, room) = room.split_at_mut(sizes.width);
        let rows = rows.as_flattened_mut();
        let (weights, room) = room.split_at_mut(sizes.heads * sizes.keys);
        let (closed, room) = room.split_at_mut(sizes.keys);
        let (scores, room) = room.split_at_mut(sizes.keys);
        Self { query, glimpse, d_glimpse, rows, weights, closed, scores, d_scores: &mut room[..sizes.keys] }
    }
}

/// Transposes rows `first..` of a matrix into lanes by column; rows that are not there count as zero.
#[inline(always)]
fn turn_in<F: Real>(rows: &[F], width: usize, to: &mut [Lane<F>]) {
    let count = (rows.len() / width).min(LANES);
    if count < LANES {
        to.fill([F::ZERO; LANES]);
    }
    for (lane, row) in rows.chunks_exact(width).take(LANES).enumerate() {
        for (to, &x) in to.iter_mut().zip(row) {
            to[lane] = x;
        }
    }
}

/// Transposes lanes by column into rows; adds where asked.
#[inline(always)]
fn turn_out<F: Real>(from: &[Lane<F>], width: usize, rows: &mut [F], accumulate: bool) {
    for (lane, row) in rows.chunks_exact_mut(width).take(LANES).enumerate() {
        for (from, x) in from.iter().zip(row) {
            *x = if accumulate { *x + from[lane] } else { from[lane] };
        }
    }
}

/// `out[j] = Σ_i lanes[i] · matrix[i, j]` for `TOGETHER` columns from `place` on: enough for the multipliers, few enough
/// for the registers.
#[inline(always)]
fn mix_some<F: Real, const TOGETHER: usize>(
    lanes: &[Lane<F>],
    matrix: Matrix<'_, F>,
    place: usize,
    out: &mut [Lane<F>],
) {
    let mut sums = [[F::ZERO; LANES]; TOGETHER];
    for (i, lane) in lanes.iter().enumerate() {
        let Some(row) = matrix.data[i * matrix.stride + place..].first_chunk::<TOGETHER>() else { return };
        for j in 0..TOGETHER {
            for l in 0..LANES {
                sums[j][l] = lane[l].fused(row[j], sums[j][l]);
            }
        }
    }
    out[place..place + TOGETHER].copy_from_slice(&sums);
}

/// `out[j] = Σ_i lanes[i] · matrix[i, j]`.
#[inline(always)]
fn mix<F: Real>(lanes: &[Lane<F>], matrix: Matrix<'_, F>, out: &mut [Lane<F>]) {
    let mut place = 0;
    while place + 4 <= out.len() {
        mix_some::<F, 4>(lanes, matrix, place, out);
        place += 4;
    }
    while place < out.len() {
        mix_some::<F, 1>(lanes, matrix, place, out);
        place += 1;
    }
}

/// `out[s, d] += Σ_l left[s][l] · right[l, d]` for `rows` lanes: a tile's share in the cotangents of keys.
#[inline(always)]
fn add_products<F: Real>(
    left: &[Lane<F>],
    right: Matrix<'_, F>,
    [rows, columns]: [usize; 2],
    out: &mut [F],
    stride: usize,
) {
    let mut column = 0;
    while column + LANES <= columns {
        add_columns::<F, LANES>(left, right, rows, column, out, stride);
        column += LANES;
    }
    while column < columns {
        add_columns::<F, 1>(left, right, rows, column, out, stride);
        column += 1;
    }
}

/// [`add_products`] for `COLUMNS` columns from `column` on.
#[inline(always)]
fn add_columns<F: Real, const COLUMNS: usize>(
    left: &[Lane<F>],
    right: Matrix<'_, F>,
    rows: usize,
    column: usize,
    out: &mut [F],
    stride: usize,
) {
    let (tens, rest) = left.as_chunks::<10>();
    let (fives, ones) = rest.as_chunks::<5>();
    let mut place = column;
    for left in tens {
        add_block::<F, 10, COLUMNS>(left, right, rows, column, &mut out[place..], stride);
        place += 10 * stride;
    }
    for left in fives {
        add_block::<F, 5, COLUMNS>(left, right, rows, column, &mut out[place..], stride);
        place += 5 * stride;
    }
    for left in ones.as_chunks::<1>().0 {
        add_block::<F, 1, COLUMNS>(left, right, rows, column, &mut out[place..], stride);
        place += stride;
    }
}

/// [`add_products`] for sums that stay in registers while the rows run. Eight keys would be as good, but of those the
/// compiler makes vectors that it has to gather.
#[inline(always)]
fn add_block<F: Real, const KEYS: usize, const COLUMNS: usize>(
    left: &[Lane<F>; KEYS],
    right: Matrix<'_, F>,
    rows: usize,
    column: usize,
    out: &mut [F],
    stride: usize,
) {
    let mut sums = [[F::ZERO; COLUMNS]; KEYS];
    for lane in 0..rows.min(LANES) {
        let Some(right) = right.data[lane * right.stride + column..].first_chunk::<COLUMNS>() else { return };
        for key in 0..KEYS {
            for i in 0..COLUMNS {
                sums[key][i] = left[key][lane].fused(right[i], sums[key][i]);
            }
        }
    }
    for key in 0..KEYS {
        let Some(out) = out[key * stride..].first_chunk_mut::<COLUMNS>() else { return };
        for i in 0..COLUMNS {
            out[i] += sums[key][i];
        }
    }
}

/// `to[j] += from[j]`.
#[inline(always)]
fn add<F: Real>(from: &[Lane<F>], to: &mut [Lane<F>]) {
    for (from, to) in from.iter().zip(to) {
        for l in 0..LANES {
            to[l] += from[l];
        }
    }
}

/// Whether rows have something to decide: one for a row with two open keys or more, zero for others.
#[inline(always)]
fn choices<F: Real>(open: &[u8], keys: usize) -> Lane<F> {
    let mut lanes = [F::ZERO; LANES];
    for (lane, open) in lanes.iter_mut().zip(open.chunks_exact(keys)) {
        if open.iter().filter(|&&open| open != 0).count() > 1 {
            *lane = F::ONE;
        }
    }
    lanes
}

/// The glimpse of a tile: fills queries, weights of all heads and the glimpse.
#[inline(always)]
fn look<F: Real>(
    sizes: &Sizes,
    item: &Operands<'_, F>,
    transposed: &Transposed<'_, F>,
    first: usize,
    tile: &mut Tile<'_, F>,
) {
    let Sizes { keys, width, .. } = *sizes;
    turn_in(&item.query[first * width..], width, tile.query);
    tile.closed.fill([F::LOWEST; LANES]);
    for (lane, open) in item.open[first * keys..].chunks_exact(keys).take(LANES).enumerate() {
        for (closed, &open) in tile.closed.iter_mut().zip(open) {
            closed[lane] = if open == 0 { F::LOWEST } else { F::ZERO };
        }
    }
    let head_width = sizes.head_width();
    let scale = F::from_f64(1.0 / (head_width as f64).sqrt());
    for head in 0..sizes.heads {
        let columns = head * head_width..(head + 1) * head_width;
        let weights = &mut tile.weights[head * keys..(head + 1) * keys];
        let matrix = Matrix { data: &transposed.keys[columns.start * keys..], stride: keys };
        mix(&tile.query[columns.clone()], matrix, weights);
        let mut highest = [F::LOWEST; LANES];
        for (weight, closed) in weights.iter_mut().zip(&*tile.closed) {
            for l in 0..LANES {
                weight[l] = scale.fused(weight[l], closed[l]);
                highest[l] = if weight[l] > highest[l] { weight[l] } else { highest[l] };
            }
        }
        // A row that sees nothing has no highest score.
        highest.iter_mut().for_each(|high| *high = if *high > F::LOWEST { *high } else { F::ZERO });
        let mut total = [F::ZERO; LANES];
        for (weight, closed) in weights.iter_mut().zip(&*tile.closed) {
            for l in 0..LANES {
                // The fast exponential of −∞ is not quite nothing.
                let exponential = (weight[l] - highest[l]).exponential();
                weight[l] = if closed[l] < F::ZERO { F::ZERO } else { exponential };
                total[l] += weight[l];
            }
        }
        let share = total.map(|total| if total > F::ZERO { F::ONE / total } else { F::ZERO });
        for weight in &mut *weights {
            for l in 0..LANES {
                weight[l] *= share[l];
            }
        }
        let matrix = Matrix { data: &item.glimpse[width + columns.start..], stride: 2 * width };
        mix(weights, matrix, &mut tile.glimpse[columns]);
    }
}

vectorised! {
    /// One item's logits, `[rows, keys]`.
    pub(crate) fn point<F: Real>(sizes: &Sizes, item: &Operands<'_, F>, scratch: &mut [F], out: &mut [F]) {
        let Sizes { keys, width, bound, .. } = *sizes;
        let (bound, scale) = (F::from_f64(bound), F::from_f64(1.0 / (width as f64).sqrt()));
        let (mut tile, transposed) = split(sizes, item, scratch);
        for first in (0..item.query.len() / width).step_by(LANES) {
            let choices = choices::<F>(&item.open[first * keys..], keys);
            if choices.iter().all(|&choice| choice == F::ZERO) {
                let end = out.len().min((first + LANES) * keys);
                out[first * keys..end].fill(F::ZERO);
                continue;
            }
            look(sizes, item, &transposed, first, &mut tile);
            if sizes.residual {
                add(tile.query, tile.glimpse);
            }
            mix(tile.glimpse, Matrix { data: transposed.pointer, stride: keys }, tile.scores);
            for score in &mut *tile.scores {
                for l in 0..LANES {
                    let compared = scale * score[l];
                    let logit = if bound > F::ZERO { bound * compared.tangent() } else { compared };
                    score[l] = if choices[l] > F::ZERO { logit } else { F::ZERO };
                }
            }
            turn_out(tile.scores, keys, &mut out[first * keys..], false);
        }
    }

    /// One item's backward pass from its logits and their cotangent, `[rows, keys]` each: writes or adds the query's
    /// and adds those of the glimpse's keys and values, side by side, and of the pointer's. An empty slice is a
    /// cotangent that nobody wants.
    pub(crate) fn point_backward<F: Real>(
        sizes: &Sizes,
        item: &Operands<'_, F>,
        out: &[F],
        d_out: &[F],
        scratch: &mut [F],
        d_query: &mut [F],
        accumulate: bool,
        d_pairs: &mut [F],
        d_key: &mut [F],
    ) {
        let Sizes { keys, width, bound, heads, residual } = *sizes;
        // A group without signal asks for nothing.
        if d_out.iter().all(|&d| d == F::ZERO) {
            if !accumulate {
                d_query.fill(F::ZERO);
            }
            return;
        }
        let (bound, scale) = (F::from_f64(bound), F::from_f64(1.0 / (width as f64).sqrt()));
        let head_width = sizes.head_width();
        let inner = F::from_f64(1.0 / (head_width as f64).sqrt());
        // bound · tanh' = bound − out² / bound; a score that is its own logit has a slope of one.
        let (steepest, rate) = if bound > F::ZERO { (bound, F::ONE / bound) } else { (F::ONE, F::ZERO) };
        let (mut tile, transposed) = split(sizes, item, scratch);
        let rows = item.query.len() / width;
        for first in (0..rows).step_by(LANES) {
            let rows = LANES.min(rows - first);
            let asked = &d_out[first * keys..(first + rows) * keys];
            if asked.iter().all(|&d| d == F::ZERO) {
                if let Some(d_query) = d_query.get_mut(first * width..(first + rows) * width).filter(|_| !accumulate) {
                    d_query.fill(F::ZERO);
                }
                continue;
            }
            let choices = choices::<F>(&item.open[first * keys..], keys);
            look(sizes, item, &transposed, first, &mut tile);
            turn_in(&out[first * keys..], keys, tile.scores);
            turn_in(&d_out[first * keys..], keys, tile.d_scores);
            for (out, d) in tile.scores.iter().zip(&mut *tile.d_scores) {
                for l in 0..LANES {
                    let slope = d[l] * (steepest - out[l] * out[l] * rate) * scale;
                    d[l] = if choices[l] > F::ZERO { slope } else { F::ZERO };
                }
            }
            mix(tile.d_scores, Matrix { data: item.key, stride: width }, tile.d_glimpse);
            if !d_key.is_empty() {
                turn_out(tile.glimpse, width, tile.rows, false);
                if residual {
                    turn_out(tile.query, width, tile.rows, true);
                }
                let glimpse = Matrix { data: tile.rows, stride: width };
                add_products(tile.d_scores, glimpse, [rows, width], d_key, width);
            }
            if !d_pairs.is_empty() {
                turn_out(tile.d_glimpse, width, tile.rows, false);
            }
            for head in 0..heads {
                let columns = head * head_width..(head + 1) * head_width;
                let weights = &tile.weights[head * keys..(head + 1) * keys];
                let (glimpse, d_glimpse) = (&tile.glimpse[columns.clone()], &tile.d_glimpse[columns.clone()]);
                // Σ_s p dp = d glimpse · glimpse.
                let mut centre = [F::ZERO; LANES];
                for (glimpse, d) in glimpse.iter().zip(d_glimpse) {
                    for l in 0..LANES {
                        centre[l] = glimpse[l].fused(d[l], centre[l]);
                    }
                }
                let matrix = Matrix { data: &transposed.values[columns.start * keys..], stride: keys };
                mix(d_glimpse, matrix, tile.scores);
                for (weight, d) in weights.iter().zip(&mut *tile.scores) {
                    for l in 0..LANES {
                        d[l] = inner * weight[l] * (d[l] - centre[l]);
                    }
                }
                if !d_pairs.is_empty() {
                    let query = Matrix { data: &item.query[first * width + columns.start..], stride: width };
                    let d_keys = &mut d_pairs[columns.start..];
                    add_products(tile.scores, query, [rows, head_width], d_keys, 2 * width);
                    let d_glimpse = Matrix { data: &tile.rows[columns.start..], stride: width };
                    let d_values = &mut d_pairs[width + columns.start..];
                    add_products(weights, d_glimpse, [rows, head_width], d_values, 2 * width);
                }
                // The queries of this head are not read again.
                let matrix = Matrix { data: &item.glimpse[columns.start..], stride: 2 * width };
                mix(tile.scores, matrix, &mut tile.query[columns]);
            }
            if residual {
                add(tile.d_glimpse, tile.query);
            }
            if let Some(rows) = d_query.get_mut(first * width..) {
                turn_out(tile.query, width, rows, accumulate);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_head_of_one_column() {
        // Query 2 on keys 0, ln 3 / 2 and 0: scores 0, ln 3 and 0. With the last closed, weights 1/4 and 3/4; values 4
        // and 8 give a glimpse of 7; with the second closed instead, 4 and 8 give 6. Pointer keys are 0, 0.1 and 0. A row
        // with one open key, or none, decides nothing.
        let sizes = Sizes { keys: 3, width: 1, heads: 1, residual: false, bound: 10.0 };
        let half = 3.0_f64.ln() / 2.0;
        let item = Operands {
            query: &[2.0; 4],
            glimpse: &[0.0, 4.0, half, 8.0, 0.0, 8.0],
            key: &[0.0, 0.1, 0.0],
            open: &[1, 1, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0],
        };
        let (mut scratch, mut out) = (vec![0.0; sizes.scratch()], [1.0; 12]);
        // With the query added, glimpses of 9 and 8 are compared.
        for (residual, glimpses) in [(false, [0.7_f64, 0.6]), (true, [0.9, 0.8])] {
            for bound in [10.0, 0.0] {
                let [first, second] = glimpses.map(|x| if bound > 0.0 { bound * x.tanh() } else { x });
                let expected = [0.0, first, 0.0, 0.0, second, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
                point(&Sizes { residual, bound, ..sizes }, &item, &mut scratch, &mut out);
                for (out, expected) in out.iter().zip(expected) {
                    assert!((out - expected).abs() < 1e-12, "{out} {expected}");
                }
            }
        }
    }
}
