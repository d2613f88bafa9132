//! One trajectory's ratios and sums, taken once for all who add them.

use super::scaled::{GRID, POWERS};
use niwaki_correction::log_ratio::{exclusive_prefix, log_ratios};
use niwaki_correction::{Clip, Real};

/// Prefix log-ratios up to this are tilted as they are; beyond, the trajectory carries its own scale.
const ROOM: f64 = 300.0;

/// Steps that are tilted together, so that the loop vectorises.
const LANES: usize = 8;

/// A trajectory as the sums need it.
///
/// Shapes: the vectors are `[steps]`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Steps {
    pub(crate) ell: Vec<f64>,
    pub(crate) ratio: Vec<f64>,
    pub(crate) prefix: Vec<f64>,
    pub(crate) prefix_ratio: Vec<f64>,
    pub(crate) advantage: Vec<f64>,
    pub(crate) whole: Whole,
}

/// What the whole trajectory adds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Whole {
    /// Log-ratio of the whole trajectory.
    pub(crate) log_ratio: f64,
    /// Σ r, Σ r², and steps on the flat side of the clip, and outside it whatever the advantage.
    pub(crate) ratio: f64,
    pub(crate) ratio_squared: f64,
    pub(crate) flat: f64,
    pub(crate) outside: f64,
    /// Σ_t e^{aL_t} for a = 0, 0.1, …, 2, each divided by e^{a · scale}; the scale is 0 but for huge ratios.
    pub(crate) tilted: [f64; POWERS],
    pub(crate) scale: f64,
    /// Σ_t e^{αL_t} r_t A_t, the single-trajectory estimate at each strength. Paper: `eq:Lhat`
    pub(crate) estimate: [f64; GRID],
    /// Σ_t L_t r_t A_t, its slope at α = 0. Paper: `eq:dominance`
    pub(crate) routed: f64,
    /// Steps that the engine has scored; Σ m, Σ m² and Σ (e^m − 1 − m) over them, with m = log old − log engine.
    pub(crate) scored: [f64; 4],
    /// Whether the advantage is zero throughout.
    pub(crate) silent: bool,
    /// Whether the advantage is the same at all of its (two or more) steps.
    pub(crate) constant: bool,
}

impl Steps {
    /// Takes a trajectory.
    ///
    /// Shapes: `old`, `new`, `advantage` `[steps]`
    pub(crate) fn fill(&mut self, old: &[f64], new: &[f64], advantage: &[f64], clip: Clip) {
        let length = old.len();
        for values in [&mut self.ell, &mut self.ratio, &mut self.prefix, &mut self.prefix_ratio] {
            values.resize(length, 0.0);
        }
        self.advantage.clear();
        self.advantage.extend_from_slice(advantage);
        log_ratios(new, old, &mut self.ell);
        let log_ratio = exclusive_prefix(&self.ell, &mut self.prefix);
        self.ratio.iter_mut().zip(&self.ell).for_each(|(ratio, &ell)| *ratio = Real::exp(ell));
        self.prefix_ratio.iter_mut().zip(&self.prefix).for_each(|(ratio, &log)| *ratio = Real::exp(log));
        let bounds = clip.bounds::<f64>(0, false);
        let whole = &mut self.whole;
        *whole = Whole { log_ratio, silent: true, constant: length > 1, ..Whole::default() };
        for t in 0..length {
            let (ratio, advantage) = (self.ratio[t], self.advantage[t]);
            whole.ratio += ratio;
            whole.ratio_squared += ratio * ratio;
            let (below, above) = (ratio < bounds.low, ratio > bounds.high);
            let flat = (above & (advantage > 0.0))
                | (below & (advantage < 0.0))
                | ((ratio > bounds.dual) & (advantage < 0.0));
            whole.flat += f64::from(u8::from(flat));
            whole.outside += f64::from(u8::from(below | above));
            whole.routed += self.prefix[t] * ratio * advantage;
            whole.silent &= advantage == 0.0;
            whole.constant &= advantage == self.advantage[0];
        }
        self.tilt();
    }

    /// Compares with the engine that sampled, at the steps that it has scored.
    ///
    /// Shapes: `old` `[steps]`; `engine` `[steps]`, or empty
    pub(crate) fn compare(&mut self, old: &[f64], engine: &[f64]) {
        for (old, engine) in old.iter().zip(engine).filter(|(_, engine)| !engine.is_nan()) {
            let apart = old - engine;
            let terms = [1.0, apart, apart * apart, Real::exp(apart) - 1.0 - apart];
            self.whole.scored.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
        }
    }

    /// Fills the sums over powers of the prefix ratio.
    fn tilt(&mut self) {
        let highest = self.prefix.iter().fold(0.0, |high: f64, &log| log.larger(high));
        let scale = if highest > ROOM { highest } else { 0.0 };
        let mut sums = [[0.0; LANES]; POWERS];
        let mut estimates = [[0.0; LANES]; GRID];
        for start in (0..self.prefix.len()).step_by(LANES) {
            let count = (self.prefix.len() - start).min(LANES);
            let (mut power, mut content, mut base) = ([0.0; LANES], [0.0; LANES], [0.0; LANES]);
            for lane in 0..count {
                power[lane] = 1.0;
                content[lane] = self.ratio[start + lane] * self.advantage[start + lane];
                base[lane] = self.prefix[start + lane];
            }
            for lane in 0..LANES {
                base[lane] = Real::exp((base[lane] - scale) * (1.0 / (GRID - 1) as f64));
            }
            for k in 0..POWERS {
                for lane in 0..LANES {
                    sums[k][lane] += power[lane];
                }
                if k < GRID {
                    for lane in 0..LANES {
                        estimates[k][lane] += power[lane] * content[lane];
                    }
                }
                for lane in 0..LANES {
                    power[lane] *= base[lane];
                }
            }
        }
        let total = |parts: [f64; LANES]| parts.iter().sum::<f64>();
        self.whole.tilted = sums.map(total);
        self.whole.scale = scale;
        self.whole.estimate = estimates.map(total);
        if scale > 0.0 {
            for (k, estimate) in self.whole.estimate.iter_mut().enumerate() {
                *estimate *= Real::exp(super::scaled::strength(k) * scale);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trajectory_by_hand() {
        // Ratios 2 and ½ with A = 3 and −1: prefix ratios 1 and 2, L = 0 and ln 2.
        let two = std::f64::consts::LN_2;
        let mut steps = Steps::default();
        steps.fill(&[-2.0, -1.0], &[-2.0 + two, -1.0 - two], &[3.0, -1.0], Clip::PPO);
        let whole = &steps.whole;
        let close = |came: f64, expected: f64| assert!((came - expected).abs() < 1e-12, "{came} {expected}");
        close(whole.log_ratio, 0.0);
        close(whole.ratio, 2.5);
        close(whole.ratio_squared, 4.25);
        // 2 > 1.2 with a gain, ½ < 0.8 with a loss: both flat.
        close(whole.flat, 2.0);
        // α = 0: 2·3 − ½ = 5.5; α = 1: 6 − 2·½ = 5; slope at 0: −½ ln 2.
        close(whole.estimate[0], 5.5);
        close(whole.estimate[10], 5.0);
        close(whole.routed, -0.5 * two);
        // Σ e^{aL}: 1 + 2^a.
        close(whole.tilted[10], 3.0);
        close(whole.tilted[20], 5.0);
        assert!(!whole.silent && !whole.constant);
    }
}
