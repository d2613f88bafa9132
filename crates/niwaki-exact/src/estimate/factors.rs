//! What a member reads at each prefix, and the factors it makes of it.

use super::Workspace;
use crate::sum::{dot, sum};
use crate::{Error, Pair};
use niwaki_correction::family::Reads;
use niwaki_correction::{Real, Rule, Surrogate};

impl Pair<'_> {
    /// Readings, log-factors and slopes of every prefix, for members that the prefix decides.
    ///
    /// Returns the rule as it acts and E[g], E[g²] at each position.
    pub(super) fn prefix_factors(&self, rule: Rule, work: &mut Workspace) -> (Rule, Vec<(f64, f64)>) {
        self.read(rule.reads, work);
        let Workspace { reading, factor, .. } = work;
        let rule = rule.resolve(|strength| {
            let (first, second) = (self.factor_moments(|row| strength * reading[row], factor).into_iter())
                .fold((0.0, 0.0), |sum, at| (sum.0 + at.0, sum.1 + at.1));
            first * first / (second * self.process.horizon() as f64)
        });
        work.log_factor.resize(work.reading.len(), 0.0);
        work.slope.resize(work.reading.len(), 0.0);
        for ((log_factor, slope), &reading) in
            work.log_factor.iter_mut().zip(&mut work.slope).zip(&work.reading)
        {
            let factor = rule.factor(reading);
            (*log_factor, *slope) = (factor.log_factor, factor.slope);
        }
        if rule.self_normalised {
            for level in 0..self.process.horizon() {
                let rows = self.process.level(level);
                let highest = work.log_factor[rows.clone()].iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let log_factor = &work.log_factor;
                let mean = sum(rows.clone(), |row| self.reach[row] * Real::exp(log_factor[row] - highest));
                let normaliser = highest + mean.ln();
                work.log_factor[rows].iter_mut().for_each(|log_factor| *log_factor -= normaliser);
            }
        }
        let Workspace { log_factor, factor, .. } = work;
        (rule, self.factor_moments(|row| log_factor[row], factor))
    }

    /// Fills `factor` and returns E[g] and E[g²] at each position, divided by the highest factor of all (an ESS
    /// has no scale, and a square must not overflow).
    fn factor_moments(&self, log_factor: impl Fn(usize) -> f64, factor: &mut Vec<f64>) -> Vec<(f64, f64)> {
        factor.clear();
        factor.extend((0..self.process.prefixes()).map(log_factor));
        let highest = factor.iter().copied().fold(f64::NEG_INFINITY, |high, factor| factor.larger(high));
        factor.iter_mut().for_each(|factor| *factor = Real::exp(*factor));
        let scale = Real::exp(-highest);
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

    /// The reading at every prefix.
    fn read(&self, reads: Reads, work: &mut Workspace) {
        let (vocab, horizon) = (self.process.vocab(), self.process.horizon());
        work.reading.clear();
        match reads {
            // Where the window covers every prefix the prefix is read, to the bit.
            Reads::Window(window) if window + 1 < horizon => {
                work.reading.extend_from_slice(&self.prefix);
                for level in window + 1..horizon {
                    let from = self.process.level(level - window).start;
                    let span = vocab.pow(window as u32);
                    for (index, row) in self.process.level(level).enumerate() {
                        // L over the window is L now minus L at the ancestor `window` steps up.
                        work.reading[row] -= self.prefix[from + index / span];
                    }
                }
            }
            Reads::Minimum => {
                work.reading.resize(self.process.prefixes(), 0.0);
                work.attained.clear();
                work.attained.resize(self.process.prefixes(), 0);
                for row in 0..self.process.prefixes() / vocab {
                    for edge in vocab * row..vocab * (row + 1) {
                        let lower = row == 0 || self.ell[edge] < work.reading[row];
                        work.reading[edge + 1] = if lower { self.ell[edge] } else { work.reading[row] };
                        work.attained[edge + 1] = if lower { edge } else { work.attained[row] };
                    }
                }
            }
            _ => work.reading.extend_from_slice(&self.prefix),
        }
    }

    /// Refuses a form that the recursions do not cover.
    pub(super) fn refuse(surrogate: &Surrogate, why: &'static str) -> Error {
        Error::Unsupported { loss: surrogate.correction.to_string(), why }
    }
}
