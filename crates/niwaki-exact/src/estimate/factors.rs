//! What a member reads at each prefix, and the factors it makes of it.

use super::Workspace;
use crate::sum::{dot, highest, sum};
use crate::wide::{exp_all, wide};
use crate::{Error, Pair};
use niwaki_correction::family::Reads;
use niwaki_correction::{Real, Rule, Surrogate};

wide! {
    /// Log-factors and slopes of readings. Shapes: all the same
    fn log_factors(rule: &Rule, reading: &[f64], log_factor: &mut [f64], slope: &mut [f64]) {
        for ((log_factor, slope), &reading) in log_factor.iter_mut().zip(slope).zip(reading) {
            let factor = rule.factor(reading);
            (*log_factor, *slope) = (factor.log_factor, factor.slope);
        }
    }
}

impl Pair<'_> {
    /// Readings, log-factors and slopes of every prefix, for members that the prefix decides.
    ///
    /// Returns the rule as it acts and E[g], E[g²] at each position.
    pub(super) fn prefix_factors(&self, rule: Rule, work: &mut Workspace) -> (Rule, Vec<(f64, f64)>) {
        let Workspace { reading, attained, factor, slope, .. } = work;
        let reading = self.read(rule.reads, reading, attained);
        factor.resize(reading.len(), 0.0);
        slope.resize(reading.len(), 0.0);
        let rule = rule.resolve(|strength| {
            log_factors(&Rule::tempered(strength), reading, factor, slope);
            let (first, second) = (self.factor_moments(factor).into_iter())
                .fold((0.0, 0.0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
            first * first / (second * self.process.horizon() as f64)
        });
        log_factors(&rule, reading, factor, slope);
        if rule.self_normalised {
            for level in 0..self.process.horizon() {
                let rows = self.process.level(level);
                let (reach, log_factor) = (&self.reach[rows.clone()], &mut factor[rows]);
                let highest = highest(log_factor);
                let mean = sum(0..reach.len(), |row| reach[row] * Real::exp(log_factor[row] - highest));
                let normaliser = highest + mean.ln();
                log_factor.iter_mut().for_each(|log_factor| *log_factor -= normaliser);
            }
        }
        (rule, self.factor_moments(factor))
    }

    /// Turns log-factors into factors and returns E[g] and E[g²] at each position, divided by the highest factor of
    /// all (an ESS has no scale, and a square must not overflow).
    fn factor_moments(&self, factor: &mut [f64]) -> Vec<(f64, f64)> {
        let highest = highest(factor);
        // Where every prefix is dropped there is nothing to scale.
        let scale = if highest == f64::NEG_INFINITY { 1.0 } else { Real::exp(-highest) };
        exp_all(factor);
        let mut weighted = vec![];
        (0..self.process.horizon())
            .map(|level| {
                let (reach, factor) =
                    (&self.reach[self.process.level(level)], &factor[self.process.level(level)]);
                weighted.clear();
                weighted.extend(reach.iter().zip(factor).map(|(reach, factor)| reach * (scale * factor)));
                (scale * dot(reach, factor), scale * dot(&weighted, factor))
            })
            .collect()
    }

    /// The reading at every prefix, in `reading` where it is not the prefix log-ratio itself.
    fn read<'a>(&'a self, reads: Reads, reading: &'a mut Vec<f64>, attained: &mut Vec<usize>) -> &'a [f64] {
        let (vocab, horizon) = (self.process.vocab(), self.process.horizon());
        reading.clear();
        match reads {
            // Where the window covers every prefix the prefix is read, to the bit.
            Reads::Window(window) if window < horizon - 1 => {
                reading.extend_from_slice(&self.prefix);
                for level in window + 1..horizon {
                    let from = self.process.level(level - window).start;
                    let span = vocab.pow(window as u32);
                    for (index, row) in self.process.level(level).enumerate() {
                        // L over the window is L now minus L at the ancestor `window` steps up.
                        reading[row] -= self.prefix[from + index / span];
                    }
                }
                reading
            }
            Reads::Minimum => {
                reading.resize(self.process.prefixes(), 0.0);
                attained.clear();
                attained.resize(self.process.prefixes(), 0);
                for row in 0..self.process.prefixes() / vocab {
                    for edge in vocab * row..vocab * (row + 1) {
                        let lower = row == 0 || self.ell[edge] < reading[row];
                        reading[edge + 1] = if lower { self.ell[edge] } else { reading[row] };
                        attained[edge + 1] = if lower { edge } else { attained[row] };
                    }
                }
                reading
            }
            _ => &self.prefix,
        }
    }

    /// Refuses a form that the recursions do not cover.
    pub(super) fn refuse(surrogate: &Surrogate, why: &'static str) -> Error {
        Error::Unsupported { loss: surrogate.correction.to_string(), why }
    }
}
