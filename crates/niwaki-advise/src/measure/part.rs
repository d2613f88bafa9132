//! The sums of a set of trajectories: a fold of the run, or one of its iterations.

use super::amplification::STRENGTHS;
use super::position::Positions;
use super::scaled::{GRID, Moments, Tilted};
use super::steps::Steps;

/// Sums that add up: those of two disjoint sets of trajectories are the sums of both.
#[derive(Clone, Debug, Default)]
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
}

impl Part {
    /// An empty part whose positions share sums beyond `limit`.
    pub(crate) fn limited(limit: usize) -> Self {
        Self { positions: Positions::limited(limit), ..Self::default() }
    }

    /// Adds a trajectory; `squares` are those of its cotangent.
    pub(crate) fn add(&mut self, steps: &Steps, squares: &[f64; STRENGTHS.len()], weight: f64) {
        let (length, whole) = (steps.ell.len(), &steps.whole);
        if length == 0 || weight == 0.0 {
            return;
        }
        self.positions.add(steps, weight);
        self.lanes += 1;
        self.steps += length;
        self.lane_mass += weight;
        self.lane_mass_squared += weight * weight;
        self.step_mass += weight * length as f64;
        self.ratio += weight * whole.ratio;
        self.ratio_squared += weight * whole.ratio_squared;
        self.flat += weight * whole.flat;
        self.outside += weight * whole.outside;
        self.tilted.add(weight, &whole.tilted);
        self.whole.add(weight, whole.log_ratio, whole.log_ratio.exp());
        for k in 0..GRID {
            let estimate = whole.estimate[k];
            self.estimate[k] += weight * estimate;
            self.estimate_squared[k] += weight * estimate * estimate;
            self.estimate_with_full[k] += weight * estimate * whole.estimate[GRID - 1];
        }
        let difference = weight * (whole.estimate[0] - whole.estimate[GRID - 1]);
        self.difference[0] += difference.powi(2);
        self.difference[1] += difference.powi(4);
        self.routed += weight * whole.routed;
        self.routed_squared += weight * whole.routed * whole.routed;
        for (sum, square) in self.cotangent.iter_mut().zip(squares) {
            *sum += weight * weight * square;
        }
        self.silent += if whole.silent { weight } else { 0.0 };
        self.constant += if whole.constant { weight } else { 0.0 };
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.positions.merge(&other.positions);
        self.lanes += other.lanes;
        self.steps += other.steps;
        self.lane_mass += other.lane_mass;
        self.lane_mass_squared += other.lane_mass_squared;
        self.step_mass += other.step_mass;
        self.ratio += other.ratio;
        self.ratio_squared += other.ratio_squared;
        self.flat += other.flat;
        self.outside += other.outside;
        self.tilted.add(1.0, &other.tilted);
        self.whole.merge(&other.whole);
        for k in 0..GRID {
            self.estimate[k] += other.estimate[k];
            self.estimate_squared[k] += other.estimate_squared[k];
            self.estimate_with_full[k] += other.estimate_with_full[k];
        }
        self.difference[0] += other.difference[0];
        self.difference[1] += other.difference[1];
        self.routed += other.routed;
        self.routed_squared += other.routed_squared;
        self.cotangent.iter_mut().zip(other.cotangent).for_each(|(own, other)| *own += other);
        self.silent += other.silent;
        self.constant += other.constant;
    }
}
