//! The sums behind the diagnostics, taken tile by tile.

use super::CLAMP;
use crate::Real;
use crate::surrogate::tile::{Abreast, LANES, Tile};

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
    /// `[steps]` of the columns in hand.
    prefix_ratio: Vec<Abreast<f64>>,
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
pub(super) const SUMS: usize = 8;

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
const WIDTH: usize = 8;

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

    fn start(&mut self) {
        self.tile = Running { ratio: [1.0; LANES], ..Running::default() };
    }

    /// Adds the next positions of a tile.
    #[inline(always)]
    pub(crate) fn add<F: Real>(&mut self, tile: &Tile, columns: &Columns<'_, F>, weight: &Abreast<f64>) {
        self.run_along(columns);
        let steps = columns.ell.len();
        let prefix_ratio = &self.prefix_ratio[..steps];
        let (ratio, factor) = (&columns.ratio[..steps], &columns.factor[..steps]);
        let (advantage, own) = (&columns.advantage[..steps], &columns.own[..steps]);
        let by_position = &mut self.by_position[columns.first..][..steps];
        let even = tile.even;
        let mut totals = self.totals;
        for t in 0..steps {
            let mut sums = [[0.0; WIDTH]; SUMS];
            for half in 0..LANES / WIDTH {
                let mut weight = *vector(weight, half);
                if !even {
                    weight = at_step(columns.first + t, vector(&tile.lengths, half), &weight);
                }
                let advantage = vector(&advantage[t], half);
                let ratio = vector(&ratio[t], half);
                let (ell, prefix) = (vector(&columns.ell[t], half), vector(&prefix_ratio[t], half));
                add_position(&mut sums, &weight, ell, ratio, prefix, advantage);
                let (factor, own) = (vector(&factor[t], half), vector(&own[t], half));
                add_totals(&mut totals, &weight, ratio, factor, own, advantage);
            }
            let sums = sum_each(&sums);
            for sum in 0..SUMS {
                by_position[t][sum] += sums[sum];
            }
        }
        self.totals = totals;
    }

    /// Prefix ratios of the next positions, and what they amount to.
    #[inline(always)]
    fn run_along<F: Real>(&mut self, columns: &Columns<'_, F>) {
        let steps = columns.ell.len();
        self.prefix_ratio.resize(steps.max(self.prefix_ratio.len()), [0.0; LANES]);
        let prefix_ratio = &mut self.prefix_ratio[..steps];
        let mut running = self.tile;
        let (mut least, mut most) = ([1.0; LANES], [1.0; LANES]);
        for t in 0..steps {
            prefix_ratio[t] = running.ratio;
            for lane in 0..LANES {
                least[lane] = running.ratio[lane].smaller(least[lane]);
                most[lane] = running.ratio[lane].larger(most[lane]);
                running.ratio[lane] *= columns.ratio[t][lane].to_f64();
                running.ell[lane] += columns.ell[t][lane].to_f64();
                let advantage = columns.advantage[t][lane].to_f64();
                running.signal[lane] = advantage.larger(-advantage).larger(running.signal[lane]);
            }
        }
        // Outside these a product has lost digits that later factors could bring back: from the logs, then.
        let lost = |least: f64, most: f64| (least < 1e-290) | (most > 1e290);
        if (0..LANES).any(|lane| lost(least[lane], most[lane])) {
            let mut log = self.tile.ell;
            for t in 0..steps {
                prefix_ratio[t] = log.map(Real::exp);
                (0..LANES).for_each(|lane| log[lane] += columns.ell[t][lane].to_f64());
            }
            running.ratio = log.map(Real::exp);
        }
        self.tile = running;
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

/// Adds one position of some trajectories.
#[inline(always)]
fn add_position<F: Real>(
    sums: &mut [[f64; WIDTH]; SUMS],
    weight: &[f64; WIDTH],
    ell: &[F; WIDTH],
    ratio: &[F; WIDTH],
    prefix: &[f64; WIDTH],
    advantage: &[F; WIDTH],
) {
    for lane in 0..WIDTH {
        let (ell, prefix, weight) = (ell[lane].to_f64(), prefix[lane], weight[lane]);
        let clamped = prefix.smaller(CLAMP);
        let excess = weight * (prefix - 1.0) * advantage[lane].to_f64();
        sums[Sum::Ell as usize][lane] += weight * ell;
        sums[Sum::EllSquared as usize][lane] += weight * ell * ell;
        sums[Sum::Prefix as usize][lane] += weight * prefix;
        sums[Sum::PrefixSquared as usize][lane] += weight * prefix * prefix;
        sums[Sum::Clamped as usize][lane] += weight * clamped;
        sums[Sum::ClampedSquared as usize][lane] += weight * clamped * clamped;
        sums[Sum::Witness as usize][lane] += excess * ratio[lane].to_f64();
        sums[Sum::RolloutWitness as usize][lane] += excess;
    }
}

/// Adds some steps to the totals, each to a part of its own.
#[inline(always)]
fn add_totals<F: Real>(
    totals: &mut [[f64; WIDTH]; TOTALS],
    weight: &[f64; WIDTH],
    ratio: &[F; WIDTH],
    factor: &[F; WIDTH],
    own: &[F; WIDTH],
    advantage: &[F; WIDTH],
) {
    for lane in 0..WIDTH {
        let weighted = weight[lane] * ratio[lane].to_f64();
        totals[Total::Ratio as usize][lane] += weighted;
        totals[Total::RatioSquared as usize][lane] += weighted * ratio[lane].to_f64();
    }
    for lane in 0..WIDTH {
        let weighted = weight[lane] * factor[lane].to_f64();
        totals[Total::Factor as usize][lane] += weighted;
        totals[Total::FactorSquared as usize][lane] += weighted * factor[lane].to_f64();
    }
    for lane in 0..WIDTH {
        let flat = (own[lane] == F::ZERO) & (advantage[lane] != F::ZERO);
        totals[Total::Flat as usize][lane] += if flat { weight[lane] } else { 0.0 };
    }
}

/// Adds neighbours `span` apart: the sums of the first vector and of the second take turns, `span` at a time.
#[inline(always)]
fn halve(span: usize, a: &[f64; WIDTH], b: &[f64; WIDTH]) -> [f64; WIDTH] {
    let mut halves = [0.0; WIDTH];
    for at in 0..WIDTH {
        let from = at / (2 * span) * (2 * span) + at % span;
        halves[at] =
            if (at / span).is_multiple_of(2) { a[from] + a[from + span] } else { b[from] + b[from + span] };
    }
    halves
}

/// The sum of each of eight vectors.
#[inline(always)]
fn sum_each([a, b, c, d, e, f, g, h]: &[[f64; WIDTH]; SUMS]) -> [f64; SUMS] {
    let (ab, cd, ef, gh) = (halve(1, a, b), halve(1, c, d), halve(1, e, f), halve(1, g, h));
    let (abcd, efgh) = (halve(2, &ab, &cd), halve(2, &ef, &gh));
    halve(4, &abcd, &efgh)
}

/// The sum over the lanes.
#[inline(always)]
pub(super) fn sum(values: &Abreast<f64>) -> f64 {
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
