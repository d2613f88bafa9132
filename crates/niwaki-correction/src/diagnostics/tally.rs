//! The sums behind the diagnostics, taken tile by tile.

use super::CLAMP;
use crate::Real;
use crate::surrogate::tile::{Abreast, LANES, Tile, sum};
use crate::surrogate::turn::{PLAIN, SIDE, row_sums};

/// Some positions of a tile as the surrogate left them, `[steps]` each.
pub(crate) struct Columns<'a, F> {
    /// The first of the positions.
    pub(crate) first: usize,
    pub(crate) ell: &'a [Abreast<F>],
    pub(crate) ratio: &'a [Abreast<F>],
    /// The member's factors.
    pub(crate) factor: &'a [Abreast<F>],
    pub(crate) advantage: &'a [Abreast<F>],
    /// Its zeros say which steps are flat.
    pub(crate) own: &'a [Abreast<F>],
}

/// The running sums, weighted by trajectory.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// `[longest]`, named by [`Sum`].
    pub(super) by_position: Vec<[f64; SUMS]>,
    /// `[longest + 1]`: weight of the trajectories that have just `index` steps.
    pub(super) ended: Vec<f64>,
    /// Over all steps, named by [`Total`]; in parts that are added up last.
    pub(super) totals: [[f64; WIDTH]; TOTALS],
    /// Weight and whole log-ratio of each trajectory; a missing one weighs nothing and is infinitely small.
    pub(super) sequence_weight: Vec<Abreast<f64>>,
    pub(super) sequence: Vec<Abreast<f64>>,
    pub(super) steps: usize,
    /// Trajectories that have steps, and the weight of those that have no signal; in parts.
    pub(super) lanes: Abreast<usize>,
    pub(super) silent: Abreast<f64>,
    tile: Running,
}

/// What is summed at each position.
#[derive(Clone, Copy)]
pub(super) enum Sum {
    Ell,
    EllSquared,
    Prefix,
    PrefixSquared,
    Clamped,
    ClampedSquared,
    Witness,
    RolloutWitness,
}

/// How many [`Sum`]s there are.
pub(super) const SUMS: usize = SIDE;

/// What is summed over all steps: the step ratio, the member's factor, and their squares; the flat steps.
#[derive(Clone, Copy)]
pub(super) enum Total {
    Ratio,
    RatioSquared,
    Factor,
    FactorSquared,
    Flat,
}

const TOTALS: usize = 5;

/// Sums of one vector of the widest kind.
const WIDTH: usize = SIDE;

/// Below e to this power, and above its inverse, products lose digits that later factors could bring back.
const FAR: f64 = 660.0;

/// What a tile's earlier columns amount to.
#[derive(Clone, Copy, Debug, Default)]
struct Running {
    ell: Abreast<f64>,
    ratio: Abreast<f64>,
    /// Not zero once an advantage was.
    signal: Abreast<f64>,
}

impl Tally {
    pub(crate) fn reset(&mut self, longest: usize) {
        self.by_position.clear();
        self.by_position.resize(longest, [0.0; SUMS]);
        self.ended.clear();
        self.ended.resize(longest + 1, 0.0);
        self.sequence_weight.clear();
        self.sequence.clear();
        self.totals = [[0.0; WIDTH]; TOTALS];
        (self.lanes, self.steps, self.silent) = ([0; LANES], 0, [0.0; LANES]);
        self.start();
    }

    /// Inlined, so that what it stores is as wide as what is loaded next.
    #[inline(always)]
    fn start(&mut self) {
        self.tile = Running { ratio: [1.0; LANES], ..Running::default() };
    }

    /// Adds the next positions of a tile.
    #[inline(always)]
    pub(crate) fn add<F: Real, const LEVEL: u8>(
        &mut self,
        tile: &Tile,
        columns: &Columns<'_, F>,
        weight: &Abreast<f64>,
    ) {
        if self.stays_near(columns) {
            self.add_positions::<F, LEVEL>(tile, columns, weight, |running, half| {
                *vector(&running.ratio, half)
            });
        } else {
            self.tile.ratio = [1.0; LANES];
            self.add_positions::<F, LEVEL>(tile, columns, weight, |running, half| {
                let mut ratio = *vector(&running.ell, half);
                ratio.iter_mut().for_each(|ratio| *ratio = ratio.exp());
                ratio
            });
            self.tile.ratio = self.tile.ell.map(Real::exp);
        }
    }

    /// Whether the prefix ratios of the next positions can be had as products, none of them [`FAR`] off.
    #[inline(always)]
    fn stays_near<F: Real>(&self, columns: &Columns<'_, F>) -> bool {
        let mut way = [F::ZERO; LANES];
        for ell in columns.ell {
            for lane in 0..LANES {
                way[lane] += ell[lane].larger(-ell[lane]);
            }
        }
        let mut near = true;
        for lane in 0..LANES {
            near &= self.tile.ell[lane].abs() + way[lane].to_f64() < FAR;
        }
        near
    }

    /// Adds the next positions of a tile; `prefix_ratio` finds the prefix ratios of a vector's worth of lanes.
    #[inline(always)]
    fn add_positions<F: Real, const LEVEL: u8>(
        &mut self,
        tile: &Tile,
        columns: &Columns<'_, F>,
        weight: &Abreast<f64>,
        prefix_ratio: impl Fn(&Running, usize) -> [f64; WIDTH],
    ) {
        let steps = columns.ell.len();
        let (ratio, factor) = (&columns.ratio[..steps], &columns.factor[..steps]);
        let (advantage, own) = (&columns.advantage[..steps], &columns.own[..steps]);
        let by_position = &mut self.by_position[columns.first..][..steps];
        let (mut totals, mut running) = (self.totals, self.tile);
        for t in 0..steps {
            // Minus zero gives way to whatever is added first.
            let mut sums = [[-0.0; WIDTH]; SUMS];
            for half in 0..LANES / WIDTH {
                let mut weight = *vector(weight, half);
                if !tile.even {
                    weight = at_step(columns.first + t, vector(&tile.lengths, half), &weight);
                }
                let step = Step {
                    weight,
                    ell: widened(vector(&columns.ell[t], half)),
                    ratio: widened(vector(&ratio[t], half)),
                    prefix: prefix_ratio(&running, half),
                    advantage: widened(vector(&advantage[t], half)),
                };
                step.add_to::<LEVEL>(&mut sums);
                let (factor, own) = (widened(vector(&factor[t], half)), vector(&own[t], half));
                step.add_to_totals::<F, LEVEL>(&mut totals, &factor, own);
                step.pass(&mut running, half);
            }
            // SAFETY: the caller is compiled for what the level says.
            let sums = unsafe { row_sums::<LEVEL>(&sums) };
            for sum in 0..SUMS {
                by_position[t][sum] += sums[sum];
            }
        }
        (self.totals, self.tile) = (totals, running);
    }

    /// Ends a tile: all its positions were added. Empty trajectories weigh nothing.
    #[inline(always)]
    pub(crate) fn end(&mut self, tile: &Tile, weight: &Abreast<f64>) {
        let mut sequence = self.tile.ell;
        for lane in 0..LANES {
            if tile.lengths[lane] == 0 {
                sequence[lane] = f64::NEG_INFINITY;
            }
        }
        self.sequence.push(sequence);
        self.sequence_weight.push(*weight);
        if tile.even {
            self.ended[tile.horizon] += sum(weight);
        } else {
            (0..LANES).for_each(|lane| self.ended[tile.lengths[lane]] += weight[lane]);
        }
        for lane in 0..LANES {
            self.lanes[lane] += usize::from(tile.lengths[lane] > 0);
            self.silent[lane] += if self.tile.signal[lane] == 0.0 { weight[lane] } else { 0.0 };
        }
        self.steps += tile.span.len();
        self.start();
    }
}

/// One vector's worth of lanes.
#[inline(always)]
fn vector<X>(lanes: &Abreast<X>, index: usize) -> &[X; WIDTH] {
    &lanes.as_chunks().0[index]
}

/// `weight` where a trajectory has the step, zero elsewhere.
#[inline(always)]
fn at_step(step: usize, lengths: &[usize; WIDTH], weight: &[f64; WIDTH]) -> [f64; WIDTH] {
    let mut kept = [0.0; WIDTH];
    for lane in 0..WIDTH {
        kept[lane] = if step < lengths[lane] { weight[lane] } else { 0.0 };
    }
    kept
}

/// The same values as `f64`.
#[inline(always)]
fn widened<F: Real>(values: &[F; WIDTH]) -> [f64; WIDTH] {
    let mut wide = [0.0; WIDTH];
    for lane in 0..WIDTH {
        wide[lane] = values[lane].to_f64();
    }
    wide
}

/// `sum + a·b`, fused where the processor is known to fuse.
#[inline(always)]
fn plus<const LEVEL: u8>(sum: f64, a: f64, b: f64) -> f64 {
    if LEVEL > PLAIN { a.mul_add(b, sum) } else { sum + a * b }
}

/// One position of some trajectories.
struct Step {
    weight: [f64; WIDTH],
    ell: [f64; WIDTH],
    ratio: [f64; WIDTH],
    prefix: [f64; WIDTH],
    advantage: [f64; WIDTH],
}

impl Step {
    /// Adds to the position's sums.
    #[inline(always)]
    fn add_to<const LEVEL: u8>(&self, sums: &mut [[f64; WIDTH]; SUMS]) {
        for lane in 0..WIDTH {
            let (weight, ell, prefix) = (self.weight[lane], self.ell[lane], self.prefix[lane]);
            let clamped = prefix.smaller(CLAMP);
            let excess = weight * (prefix - 1.0) * self.advantage[lane];
            let mut add = |sum: Sum, a: f64, b: f64| {
                sums[sum as usize][lane] = plus::<LEVEL>(sums[sum as usize][lane], a, b);
            };
            add(Sum::Ell, weight, ell);
            add(Sum::EllSquared, weight * ell, ell);
            add(Sum::Prefix, weight, prefix);
            add(Sum::PrefixSquared, weight * prefix, prefix);
            add(Sum::Clamped, weight, clamped);
            add(Sum::ClampedSquared, weight * clamped, clamped);
            add(Sum::Witness, excess, self.ratio[lane]);
            add(Sum::RolloutWitness, 1.0, excess);
        }
    }

    /// Adds to the sums over all steps, each lane to a part of its own.
    #[inline(always)]
    fn add_to_totals<F: Real, const LEVEL: u8>(
        &self,
        totals: &mut [[f64; WIDTH]; TOTALS],
        factor: &[f64; WIDTH],
        own: &[F; WIDTH],
    ) {
        for lane in 0..WIDTH {
            let (weight, ratio, factor) = (self.weight[lane], self.ratio[lane], factor[lane]);
            let mut add = |total: Total, a: f64, b: f64| {
                totals[total as usize][lane] = plus::<LEVEL>(totals[total as usize][lane], a, b);
            };
            add(Total::Ratio, weight, ratio);
            add(Total::RatioSquared, weight * ratio, ratio);
            add(Total::Factor, weight, factor);
            add(Total::FactorSquared, weight * factor, factor);
            let flat = (own[lane] == F::ZERO) & (self.advantage[lane] != 0.0);
            totals[Total::Flat as usize][lane] += if flat { weight } else { 0.0 };
        }
    }

    /// Passes on to the next position.
    #[inline(always)]
    fn pass(&self, running: &mut Running, half: usize) {
        for lane in 0..WIDTH {
            let at = half * WIDTH + lane;
            running.ratio[at] *= self.ratio[lane];
            running.ell[at] += self.ell[lane];
            running.signal[at] = self.advantage[lane].abs().larger(running.signal[at]);
        }
    }
}
