//! The layout in which a batch is worked on: sixteen trajectories side by side.
//!
//! Sums along a trajectory wait for their last addition, and trajectories may be short; side by side, sixteen
//! trajectories make every pass a loop over vectors, whatever their length. Owns where steps lie, and the way in and
//! out; knows nothing of what they mean.

use super::turn::{SIDE, turned};
use crate::Real;
use std::ops::Range;

/// Trajectories side by side.
pub(crate) const LANES: usize = 16;

/// One position of [`LANES`] trajectories.
pub(crate) type Abreast<F> = [F; LANES];

/// Squares that are fetched from a trajectory before the next has its turn: sixteen `f32` fill a cache line, and lines
/// of equally long trajectories drive each other out of the cache.
const LINE: usize = 2;

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

    /// Fetches some positions of `from`, zero where a trajectory has ended.
    ///
    /// Shapes: `from [steps of the batch]`, `to [positions]`, the first of them at `position`.
    #[inline(always)]
    pub(crate) fn fetch<F: Real, const AVX: bool>(&self, from: &[F], position: usize, to: &mut [Abreast<F>]) {
        let (squares, rest) = to.as_chunks_mut::<SIDE>();
        let left = position + squares.len() * SIDE;
        for (line, squares) in squares.chunks_mut(LINE).enumerate() {
            for group in 0..LANES / SIDE {
                for (square, rows) in squares.iter_mut().enumerate() {
                    let first = position + (line * LINE + square) * SIDE;
                    let mut lanes = [[F::ZERO; SIDE]; SIDE];
                    if first + SIDE <= self.shortest[group] {
                        for lane in 0..SIDE {
                            let start = self.starts[group * SIDE + lane] + first;
                            lanes[lane].copy_from_slice(&from[start..start + SIDE]);
                        }
                    } else {
                        self.fetch_left(from, group, first, &mut lanes);
                    }
                    let steps = turned::<F, AVX>(&lanes);
                    for t in 0..SIDE {
                        rows[t].as_chunks_mut().0[group] = steps[t];
                    }
                }
            }
        }
        for (t, row) in (left..).zip(rest) {
            for lane in 0..LANES {
                row[lane] = if t < self.lengths[lane] { from[self.step(lane, t)] } else { F::ZERO };
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
        let (squares, rest) = from.as_chunks::<SIDE>();
        for (line, squares) in squares.chunks(LINE).enumerate() {
            for group in 0..LANES / SIDE {
                for (square, rows) in squares.iter().enumerate() {
                    let first = position + (line * LINE + square) * SIDE;
                    let mut steps = [[F::ZERO; SIDE]; SIDE];
                    for t in 0..SIDE {
                        steps[t] = rows[t].as_chunks().0[group];
                    }
                    let lanes = turned::<F, AVX>(&steps);
                    if first + SIDE <= self.shortest[group] {
                        for lane in 0..SIDE {
                            let start = self.starts[group * SIDE + lane] + first;
                            to[start..start + SIDE].copy_from_slice(&lanes[lane]);
                        }
                    } else {
                        self.put_back_left(&lanes, group, first, to);
                    }
                }
            }
        }
        for (t, row) in (position + squares.len() * SIDE..).zip(rest) {
            for lane in 0..LANES {
                if t < self.lengths[lane] {
                    to[self.step(lane, t)] = row[lane];
                }
            }
        }
    }

    /// Fetches a square that some trajectories do not fill.
    #[inline(never)]
    fn fetch_left<F: Real>(&self, from: &[F], group: usize, first: usize, lanes: &mut [[F; SIDE]; SIDE]) {
        for (lane, values) in lanes.iter_mut().enumerate() {
            let left = self.left(group * SIDE + lane, first);
            values[..left.len()].copy_from_slice(&from[left]);
        }
    }

    /// Puts back a square that some trajectories do not fill.
    #[inline(never)]
    fn put_back_left<F: Real>(&self, lanes: &[[F; SIDE]; SIDE], group: usize, first: usize, to: &mut [F]) {
        for (lane, values) in lanes.iter().enumerate() {
            let left = self.left(group * SIDE + lane, first);
            to[left.clone()].copy_from_slice(&values[..left.len()]);
        }
    }

    /// Where a trajectory's step lies in the batch.
    #[inline(always)]
    pub(super) fn step(&self, lane: usize, position: usize) -> usize {
        self.starts[lane] + position
    }

    /// Where a trajectory's steps, from position `first` to the end of the square, lie in the batch.
    fn left(&self, lane: usize, first: usize) -> Range<usize> {
        let length = self.lengths[lane];
        self.step(lane, first.min(length))..self.step(lane, (first + SIDE).min(length))
    }
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
            tile.fetch::<f64, false>(&values, 0, first);
            tile.fetch::<f64, false>(&values, first.len(), rest);
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
