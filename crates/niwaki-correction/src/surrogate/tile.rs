//! The layout in which a batch is worked on: sixteen trajectories side by side.
//!
//! Sums along a trajectory wait for their last addition, and trajectories may be short; side by side, sixteen
//! trajectories make every pass a loop over vectors, whatever their length. Owns where steps lie, and the way in and
//! out; knows nothing of what they mean.

use super::turn::{SIDE, turn};
use crate::Real;
use crate::log_ratio::log_ratios;
use std::ops::Range;

/// Trajectories side by side.
pub(crate) const LANES: usize = 16;

/// One position of [`LANES`] trajectories.
pub(crate) type Abreast<F> = [F; LANES];

/// The sum over the lanes.
#[inline(always)]
pub(crate) fn sum(values: &Abreast<f64>) -> f64 {
    let mut values = *values;
    let mut half = LANES / 2;
    while half > 0 {
        for lane in 0..half {
            values[lane] += values[lane + half];
        }
        half /= 2;
    }
    values[0]
}

/// What is fetched: the steps' values in one slice, or what is left of them without those in another.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, F> {
    pub(crate) plus: &'a [F],
    pub(crate) minus: Option<&'a [F]>,
}

impl<F: Real> Source<'_, F> {
    /// The values at some steps.
    #[inline(always)]
    fn fill(&self, steps: Range<usize>, to: &mut [F]) {
        match self.minus {
            Some(minus) => log_ratios(&self.plus[steps.clone()], &minus[steps], to),
            None => to.copy_from_slice(&self.plus[steps]),
        }
    }
}

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
    /// The trajectories `offsets[n]..offsets[n + 1]`; the offsets never fall.
    ///
    /// Shapes: `offsets [lanes + 1]`, from 2 to [`LANES`]` + 1` of them.
    #[inline(always)]
    pub(crate) fn new(offsets: &[usize]) -> Self {
        let span = offsets[0]..offsets[offsets.len() - 1];
        let mut starts = [span.end; LANES];
        let mut ends = starts;
        if let Some(whole) = offsets.first_chunk::<{ LANES + 1 }>() {
            for lane in 0..LANES {
                (starts[lane], ends[lane]) = (whole[lane], whole[lane + 1]);
            }
        } else {
            for (lane, row) in offsets.windows(2).take(LANES).enumerate() {
                (starts[lane], ends[lane]) = (row[0], row[1]);
            }
        }
        let (mut lengths, mut within) = ([0; LANES], true);
        for lane in 0..LANES {
            within &= (starts[lane] <= ends[lane]) & (ends[lane] <= span.end);
            lengths[lane] = ends[lane].wrapping_sub(starts[lane]);
        }
        // What is read and written without a look at lengths relies on it.
        assert!(within, "offsets fall");
        let horizon = lengths.iter().fold(0, |longest, &length| length.max(longest));
        let shortest = std::array::from_fn(|group| {
            lengths[group * SIDE..(group + 1) * SIDE]
                .iter()
                .fold(usize::MAX, |least, &length| length.min(least))
        });
        let even = lengths.iter().fold(true, |even, &length| even & ((length == 0) | (length == horizon)));
        Self { starts, lengths, horizon, shortest, even, span }
    }

    /// Goes on to trajectories of the same lengths; stays, and says so, if the next ones' are others.
    #[inline(always)]
    pub(crate) fn follow(&mut self, offsets: &[usize]) -> bool {
        let Some(offsets) = offsets.first_chunk::<{ LANES + 1 }>() else { return false };
        let mut same = offsets[0] == self.span.end;
        for lane in 0..LANES {
            same &= offsets[lane + 1].wrapping_sub(offsets[lane]) == self.lengths[lane];
        }
        if same {
            self.starts.copy_from_slice(&offsets[..LANES]);
            self.span = offsets[0]..offsets[LANES];
        }
        same
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

    /// Fetches some positions, zero where a trajectory has ended.
    ///
    /// Shapes: `to [positions]`, the first of them at `position`.
    #[inline(always)]
    pub(crate) fn fetch<F: Real, const LEVEL: u8>(
        &self,
        source: Source<'_, F>,
        position: usize,
        to: &mut [Abreast<F>],
    ) {
        let Source { plus, minus } = source;
        let shortest = minus.map_or(plus.len(), |minus| plus.len().min(minus.len()));
        assert!(self.span.end <= shortest, "a trajectory lies outside of the batch");
        for group in 0..LANES / SIDE {
            let starts = &self.starts.as_chunks::<SIDE>().0[group];
            for square in squares(to.len()) {
                let (first, rows) = (position + square.start, &mut to[square]);
                if rows.len() < SIDE || first + SIDE > self.shortest[group] {
                    self.fetch_left(source, group, first, rows);
                    continue;
                }
                let to = rows.as_flattened_mut()[group * SIDE..].as_mut_ptr();
                // SAFETY: `SIDE` steps from `first` on are each trajectory's, hence in both slices; there are as many
                // rows, and the lanes of a group in each. The caller says what the processor has.
                unsafe {
                    let column = |position: usize| to.add(position * LANES);
                    let plus = |lane: usize| plus.as_ptr().add(starts[lane] + first);
                    let Some(minus) = minus else {
                        turn::<F, LEVEL>(plus, column);
                        continue;
                    };
                    let mut lanes = [[F::ZERO; SIDE]; SIDE];
                    for lane in 0..SIDE {
                        let minus = &*minus.as_ptr().add(starts[lane] + first).cast::<[F; SIDE]>();
                        log_ratios(&*plus(lane).cast::<[F; SIDE]>(), minus, &mut lanes[lane]);
                    }
                    turn::<F, LEVEL>(|lane| lanes[lane].as_ptr(), column);
                }
            }
        }
    }

    /// Puts back what was worked out, trajectory by trajectory.
    ///
    /// Shapes: `from [positions]`, the first of them at `position`; `to [steps of the batch]`.
    #[inline(always)]
    pub(super) fn put_back<F: Real, const LEVEL: u8>(
        &self,
        from: &[Abreast<F>],
        position: usize,
        to: &mut [F],
    ) {
        assert!(self.span.end <= to.len(), "a trajectory lies outside of the batch");
        for group in 0..LANES / SIDE {
            let starts = &self.starts.as_chunks::<SIDE>().0[group];
            for square in squares(from.len()) {
                let (first, rows) = (position + square.start, &from[square]);
                if rows.len() < SIDE || first + SIDE > self.shortest[group] {
                    self.put_back_left(rows, group, first, to);
                    continue;
                }
                let (rows, to) = (rows.as_flattened()[group * SIDE..].as_ptr(), to.as_mut_ptr());
                // SAFETY: as for `fetch`, the other way round.
                unsafe { turn::<F, LEVEL>(|row| rows.add(row * LANES), |lane| to.add(starts[lane] + first)) };
            }
        }
    }

    /// Fetches a square that the positions or some trajectories do not fill.
    #[inline(never)]
    fn fetch_left<F: Real>(
        &self,
        source: Source<'_, F>,
        group: usize,
        first: usize,
        rows: &mut [Abreast<F>],
    ) {
        for row in rows.iter_mut() {
            row.as_chunks_mut().0[group] = [F::ZERO; SIDE];
        }
        for lane in self.lanes_left(group, first) {
            let steps = self.left(lane, first, rows.len());
            let mut values = [F::ZERO; SIDE];
            match steps.len() {
                // A length that the compiler knows.
                SIDE => source.fill(steps, &mut values),
                there => source.fill(steps, &mut values[..there]),
            }
            for (row, value) in rows.iter_mut().zip(values) {
                row[lane] = value;
            }
        }
    }

    /// Puts back a square that the positions or some trajectories do not fill.
    #[inline(never)]
    fn put_back_left<F: Real>(&self, rows: &[Abreast<F>], group: usize, first: usize, to: &mut [F]) {
        for lane in self.lanes_left(group, first) {
            let steps = self.left(lane, first, rows.len());
            for (step, row) in to[steps].iter_mut().zip(rows) {
                *step = row[lane];
            }
        }
    }

    /// The lanes of a group whose trajectories have position `first`.
    #[inline(always)]
    fn lanes_left(&self, group: usize, first: usize) -> impl Iterator<Item = usize> {
        (group * SIDE..(group + 1) * SIDE).filter(move |&lane| self.lengths[lane] > first)
    }

    /// Where a trajectory's steps from position `first`, which it has, on lie in the batch, `most` at most.
    #[inline(always)]
    fn left(&self, lane: usize, first: usize, most: usize) -> Range<usize> {
        let length = self.lengths[lane];
        self.step(lane, first)..self.step(lane, (first + most).min(length))
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

#[cfg(test)]
mod tests {
    use super::super::turn::PLAIN;
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
            let source = Source { plus: &values, minus: None };
            tile.fetch::<f64, PLAIN>(source, 0, first);
            tile.fetch::<f64, PLAIN>(source, first.len(), rest);
            for (t, row) in rows.iter().enumerate() {
                for lane in 0..LANES {
                    let there = lane < lengths.len() && t < lengths[lane];
                    assert_eq!(row[lane], if there { values[offsets[lane] + t] } else { 0.0 });
                }
            }
            let mut back = vec![0.0; values.len()];
            tile.put_back::<f64, PLAIN>(&rows[..SIDE.min(tile.horizon)], 0, &mut back);
            tile.put_back::<f64, PLAIN>(&rows[SIDE.min(tile.horizon)..], SIDE.min(tile.horizon), &mut back);
            assert_eq!(back, values);
        }
    }

    #[test]
    fn follows_where_lengths_are_the_same() {
        // Sixteen trajectories of 3 and 1 steps in turn, then the same again, then one that is longer.
        let mut offsets = vec![0];
        for lane in 0..48 {
            offsets.push(offsets[lane] + if lane == 40 { 4 } else { 3 - 2 * (lane % 2) });
        }
        let mut tile = Tile::new(&offsets[..=16]);
        assert!(tile.follow(&offsets[16..]));
        let placed = Tile::new(&offsets[16..=32]);
        assert_eq!((tile.starts, tile.span.clone()), (placed.starts, placed.span));
        assert!(!tile.follow(&offsets[32..]) && tile.span.end == offsets[32]);
        // Fewer than sixteen are not the same, whatever their lengths.
        assert!(!tile.follow(&offsets[32..40]));
    }
}
