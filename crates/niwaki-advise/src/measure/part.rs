//! The sums of a set of trajectories: a fold of the run, or one of its iterations.

use super::amplification::STRENGTHS;
use super::exact::Exact;
use super::position::{Places, Positions};
use super::scaled::{GRID, Moments, POWERS, Tilted};
use super::steps::Steps;

/// Where the sums of what the engine has scored begin, those of an estimate at each strength, of its square, of its product with the estimate at 1, and those of the
/// squared cotangents.
const SCORED: usize = 13;
const ESTIMATE: usize = SCORED + 4;
const ESTIMATE_SQUARED: usize = ESTIMATE + GRID;
const ESTIMATE_WITH_FULL: usize = ESTIMATE_SQUARED + GRID;
const COTANGENT: usize = ESTIMATE_WITH_FULL + GRID;
pub(crate) const PLAIN: usize = COTANGENT + STRENGTHS.len();

/// Sums that may lie beyond floats: powers of the prefix ratios, then the whole trajectories' ratios and their squares.
const WHOLE: usize = POWERS;
pub(crate) const WIDE: usize = POWERS + 2;

/// Logs up to this are exponentiated as they are; their squares still fit.
const ROOM: f64 = 300.0;

/// Running sums that add up: those of two disjoint sets of trajectories are the sums of both, to the last bit and in any order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    pub(super) places: Places,
    /// Trajectories with at least one step.
    pub(crate) lanes: usize,
    pub(crate) steps: usize,
    pub(super) plain: Exact<PLAIN>,
    pub(super) wide: Exact<WIDE>,
}

impl Cell {
    /// An empty cell whose positions share sums beyond `limit`.
    pub(crate) fn limited(limit: usize) -> Self {
        let (plain, wide) = (Exact::default(), Exact::default());
        Self { places: Places::limited(limit), lanes: 0, steps: 0, plain, wide }
    }

    /// The positions, to share or limit them.
    pub(crate) fn places(&mut self) -> &mut Places {
        &mut self.places
    }

    /// Adds a trajectory; `squares` are those of its cotangent.
    pub(crate) fn add(&mut self, steps: &Steps, squares: &[f64; STRENGTHS.len()], weight: f64) {
        let (length, whole) = (steps.ell.len(), &steps.whole);
        if length == 0 || weight == 0.0 {
            return;
        }
        self.places.add(steps, weight);
        self.lanes += 1;
        self.steps += length;
        let difference = weight * (whole.estimate[0] - whole.estimate[GRID - 1]);
        let mut terms = [0.0; PLAIN];
        terms[..SCORED].copy_from_slice(&[
            weight,
            weight * weight,
            weight * length as f64,
            weight * whole.ratio,
            weight * whole.ratio_squared,
            weight * whole.flat,
            weight * whole.outside,
            difference.powi(2),
            difference.powi(4),
            weight * whole.routed,
            weight * whole.routed * whole.routed,
            if whole.silent { weight } else { 0.0 },
            if whole.constant { weight } else { 0.0 },
        ]);
        for (term, sum) in terms[SCORED..ESTIMATE].iter_mut().zip(whole.scored) {
            *term = weight * sum;
        }
        for k in 0..GRID {
            let estimate = whole.estimate[k];
            terms[ESTIMATE + k] = weight * estimate;
            terms[ESTIMATE_SQUARED + k] = weight * estimate * estimate;
            terms[ESTIMATE_WITH_FULL + k] = weight * estimate * whole.estimate[GRID - 1];
        }
        for (term, square) in terms[COTANGENT..].iter_mut().zip(squares) {
            *term = weight * weight * square;
        }
        self.plain.add(&terms);

        let near = whole.log_ratio.abs() <= ROOM;
        let mut terms = [0.0; WIDE];
        if whole.scale == 0.0 {
            terms[..POWERS].iter_mut().zip(whole.tilted).for_each(|(term, sum)| *term = weight * sum);
        }
        if near {
            let ratio = whole.log_ratio.exp();
            (terms[WHOLE], terms[WHOLE + 1]) = (weight * ratio, weight * ratio * ratio);
        }
        self.wide.add(&terms);
        if whole.scale != 0.0 {
            for (k, sum) in whole.tilted.iter().enumerate() {
                self.wide.add_far_one(k, weight * sum, super::scaled::strength(k) * whole.scale);
            }
        }
        if !near {
            self.wide.add_far_one(WHOLE, weight, whole.log_ratio);
            self.wide.add_far_one(WHOLE + 1, weight, 2.0 * whole.log_ratio);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.places.merge(&other.places);
        self.lanes += other.lanes;
        self.steps += other.steps;
        self.plain.merge(&other.plain);
        self.wide.merge(&other.wide);
    }

    /// Weight of the trajectories.
    pub(crate) fn mass(&self) -> f64 {
        self.plain.value(0)
    }

    /// The sums as floats.
    pub(crate) fn read(&self) -> Part {
        let at = |at: usize| self.plain.value(at);
        let grid = |first: usize| std::array::from_fn(|k| at(first + k));
        Part {
            positions: self.places.read(),
            lanes: self.lanes,
            steps: self.steps,
            lane_mass: at(0),
            lane_mass_squared: at(1),
            step_mass: at(2),
            ratio: at(3),
            ratio_squared: at(4),
            flat: at(5),
            outside: at(6),
            difference: [at(7), at(8)],
            routed: at(9),
            routed_squared: at(10),
            silent: at(11),
            constant: at(12),
            scored: std::array::from_fn(|sum| at(SCORED + sum)),
            estimate: grid(ESTIMATE),
            estimate_squared: grid(ESTIMATE_SQUARED),
            estimate_with_full: grid(ESTIMATE_WITH_FULL),
            cotangent: std::array::from_fn(|k| at(COTANGENT + k)),
            tilted: Tilted::new(&self.wide, 0),
            whole: Moments { first: self.wide.far(WHOLE), second: self.wide.far(WHOLE + 1) },
        }
    }
}

/// The sums of a [`Cell`], as they are read.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) positions: Positions,
    /// Trajectories with at least one step.
    pub(crate) lanes: usize,
    pub(crate) steps: usize,
    /// Weight of the trajectories, and of their steps.
    pub(crate) lane_mass: f64,
    pub(crate) lane_mass_squared: f64,
    pub(crate) step_mass: f64,
    pub(crate) ratio: f64,
    pub(crate) ratio_squared: f64,
    pub(crate) flat: f64,
    pub(crate) outside: f64,
    pub(crate) tilted: Tilted,
    pub(crate) whole: Moments,
    /// Weighted sums of the estimate at each strength, of its square, and of its product with the estimate at 1.
    pub(crate) estimate: [f64; GRID],
    pub(crate) estimate_squared: [f64; GRID],
    pub(crate) estimate_with_full: [f64; GRID],
    /// Sums of the squared difference between the estimates at 0 and 1, and of its fourth power.
    pub(crate) difference: [f64; 2],
    pub(crate) routed: f64,
    pub(crate) routed_squared: f64,
    /// Sums of the squared cotangent at each of the strengths.
    pub(crate) cotangent: [f64; STRENGTHS.len()],
    pub(crate) silent: f64,
    pub(crate) constant: f64,
    /// Steps that the engine has scored, and sums of the old policy's log-ratio to it.
    pub(crate) scored: [f64; 4],
}
