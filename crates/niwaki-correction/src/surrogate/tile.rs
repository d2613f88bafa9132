//! The layout in which a batch is worked on: sixteen trajectories side by side.
//!
//! Sums along a trajectory wait for their last addition, and trajectories may be short; side by side, sixteen
//! trajectories make every pass a loop over vectors, whatever their length. Owns where steps lie, and the way in and
//! out; knows nothing of what they mean.

use super::turn::{SIDE, turn};
use crate::Real;
use std::ops::Range;

/// Trajectories side by side.
pub(crate) const LANES: usize = 16;

/// One position of [`LANES`] trajectories.
pub(crate) type Abreast<F> = [F; LANES];

/// Up to [`LANES`] trajectories, next to one another in the batch. Missing ones count as empty.
#[derive(Clone, Debug)]
pub(crate) struct Tile {
    /// The first step of each in the batch.
    starts: [usize; LANES],
    /// Steps of each.
    pub(crate) lengths: [usize; LANES],
    /// Steps of the longest, and of the shortest of each group that changes places together.
    pub(crate) horizon: usize,
    shortest: [usize; LANES / SIDE],
    /// Whether all that are not empty are equally long.
    pub(crate) even: bool,
    /// The steps of the batch that they cover.
    pub(crate) span: Range<usize>,
}

impl Tile {
    /// The trajectories `offsets[n]..offsets[n + 1]`.
    ///
    /// Shapes: `offsets [lanes + 1]`, from 2 to [`LANES`]` + 1` of them.
    #[inline(always)]
    pub(crate) fn new(offsets: &[usize]) -> Self {
        let lanes = offsets.len() - 1;
        let (mut starts, mut lengths) = ([0; LANES], [0; LANES]);
        starts[..lanes].copy_from_slice(&offsets[..lanes]);
        let mut horizon = 0;
        for lane in 0..lanes {
            lengths[lane] = offsets[lane + 1] - offsets[lane];
            horizon = horizon.max(lengths[lane]);
        }
        let mut shortest = [usize::MAX; LANES / SIDE];
        for lane in 0..LANES {
            shortest[lane / SIDE] = shortest[lane / SIDE].min(lengths[lane]);
        }
        let even = lengths.iter().fold(true, |even, &length| even & ((length == 0) | (length == horizon)));
        Self { starts, lengths, horizon, shortest, even, span: offsets[0]..offsets[lanes] }
    }

    /// `values` where a trajectory has the step, zero elsewhere.
    #[inline(always)]
    pub(crate) fn at_step<F: Real>(&self, step: usize, values: &Abreast<F>) -> Abreast<F> {
        let mut kept = [F::ZERO; LANES];
        for lane in 0..LANES {
            kept[lane] = if step < self.lengths[lane] { values[lane] } else { F::ZERO };
        }
        kept
    }

    /// Fetches some positions, zero where a trajectory has ended. `fill` writes the values at some steps of the batch
    /// that follow one another.
    ///
    /// Shapes: `to [positions]`, the first of them at `position`.
    #[inline(always)]
    pub(crate) fn fetch<F: Real, const AVX: bool>(
        &self,
        fill: impl Fn(Range<usize>, &mut [F]),
        position: usize,
        to: &mut [Abreast<F>],
    ) {
        for group in 0..LANES / SIDE {
            for square in squares(to.len()) {
                let (first, rows) = (position + square.start, &mut to[square]);
                if rows.len() < SIDE || first + SIDE > self.shortest[group] {
                    self.fetch_left(&fill, group, first, rows);
                    continue;
                }
                let mut lanes = [[F::ZERO; SIDE]; SIDE];
                for lane in 0..SIDE {
                    let start = self.step(group * SIDE + lane, first);
                    fill(start..start + SIDE, &mut lanes[lane]);
                }
                let (lanes, rows) = (lanes.as_flattened(), rows.as_flattened_mut());
                turn::<F, AVX>(lanes, &every(0, SIDE), rows, &every(group * SIDE, LANES));
            }
        }
    }

    /// Puts back what was worked out, trajectory by trajectory.
    ///
    /// Shapes: `from [positions]`, the first of them at `position`; `to [steps of the batch]`.
    #[inline(always)]
    pub(super) fn put_back<F: Real, const AVX: bool>(
        &self,
        from: &[Abreast<F>],
        position: usize,
        to: &mut [F],
    ) {
        for group in 0..LANES / SIDE {
            for square in squares(from.len()) {
                let (first, rows) = (position + square.start, &from[square]);
                if rows.len() < SIDE || first + SIDE > self.shortest[group] {
                    self.put_back_left(rows, group, first, to);
                    continue;
                }
                let mut starts = [0; SIDE];
                for lane in 0..SIDE {
                    starts[lane] = self.step(group * SIDE + lane, first);
                }
                turn::<F, AVX>(rows.as_flattened(), &every(group * SIDE, LANES), to, &starts);
            }
        }
    }

    /// Fetches a square that the positions or some trajectories do not fill.
    #[inline(never)]
    fn fetch_left<F: Real>(
        &self,
        fill: impl Fn(Range<usize>, &mut [F]),
        group: usize,
        first: usize,
        rows: &mut [Abreast<F>],
    ) {
        for row in rows.iter_mut() {
            row.as_chunks_mut().0[group] = [F::ZERO; SIDE];
        }
        for lane in group * SIDE..(group + 1) * SIDE {
            for (step, row) in self.left(lane, first, rows.len()).zip(rows.iter_mut()) {
                fill(step..step + 1, &mut row[lane..=lane]);
            }
        }
    }

    /// Puts back a square that the positions or some trajectories do not fill.
    #[inline(never)]
    fn put_back_left<F: Real>(&self, rows: &[Abreast<F>], group: usize, first: usize, to: &mut [F]) {
        for lane in group * SIDE..(group + 1) * SIDE {
            for (step, row) in to[self.left(lane, first, rows.len())].iter_mut().zip(rows) {
                *step = row[lane];
            }
        }
    }

    /// Where a trajectory's steps from position `first` on, `most` at most, lie in the batch.
    #[inline(always)]
    fn left(&self, lane: usize, first: usize, most: usize) -> Range<usize> {
        let length = self.lengths[lane];
        self.step(lane, first.min(length))..self.step(lane, (first + most).min(length))
    }

    /// Where a trajectory's step lies in the batch.
    #[inline(always)]
    pub(super) fn step(&self, lane: usize, position: usize) -> usize {
        self.starts[lane] + position
    }
}

/// Squares that cover some rows: the last lies over the one before it where there are not enough rows for both.
#[inline(always)]
fn squares(rows: usize) -> impl Iterator<Item = Range<usize>> {
    let last = rows.saturating_sub(SIDE);
    (0..rows).step_by(SIDE).map(move |first| first.min(last)..(first.min(last) + SIDE).min(rows))
}

/// From `first` on, `span` apart.
#[inline(always)]
const fn every(first: usize, span: usize) -> [usize; SIDE] {
    let mut starts = [first; SIDE];
    let mut row = 1;
    while row < SIDE {
        starts[row] = starts[row - 1] + span;
        row += 1;
    }
    starts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_fetched_comes_back() {
        // Three lengths that make two whole squares, one or none; the missing lanes stay zero.
        for lengths in [vec![19; 16], vec![9; 16], vec![16; 3], vec![8, 0, 3, 11, 8, 25, 1]] {
            let mut offsets = vec![0];
            lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
            let tile = Tile::new(&offsets);
            let values: Vec<f64> = (0..tile.span.end).map(|step| step as f64 + 1.0).collect();
            let mut rows = vec![[-1.0; LANES]; tile.horizon];
            let (first, rest) = rows.split_at_mut(tile.horizon.min(SIDE));
            let fill = |steps: Range<usize>, to: &mut [f64]| to.copy_from_slice(&values[steps]);
            tile.fetch::<f64, false>(fill, 0, first);
            tile.fetch::<f64, false>(fill, first.len(), rest);
            for (t, row) in rows.iter().enumerate() {
                for lane in 0..LANES {
                    let there = lane < lengths.len() && t < lengths[lane];
                    assert_eq!(row[lane], if there { values[offsets[lane] + t] } else { 0.0 });
                }
            }
            let mut back = vec![0.0; values.len()];
            tile.put_back::<f64, false>(&rows[..SIDE.min(tile.horizon)], 0, &mut back);
            tile.put_back::<f64, false>(&rows[SIDE.min(tile.horizon)..], SIDE.min(tile.horizon), &mut back);
            assert_eq!(back, values);
        }
    }
}
