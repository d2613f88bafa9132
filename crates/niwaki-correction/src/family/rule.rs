//! The normal form that every member is a point of.

use super::MOST;
use super::written::{Shape, Written};
use crate::{Clip, Real};
use std::cmp::Ordering;

/// Which log quantity a member reads at step `t`. Sums run over the policy's own steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reads {
    /// `Σ_{i<t} ℓ_i`, the prefix log-ratio.
    Prefix,
    /// `Σ_{t−k≤i<t} ℓ_i`, the last `k` steps of it.
    Window(usize),
    /// `min_{i<t} ℓ_i`, and 0 at the first step.
    Minimum,
    /// `ℓ_t`, the step's own log-ratio.
    Step,
    /// `(1/T) Σ_i ℓ_i` over the whole trajectory.
    SequenceMean,
    /// `Σ_i ℓ_i` over the whole trajectory.
    SequenceSum,
}

/// What becomes of a reading outside its bounds. Bounds are on the log of the factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// Held at the bound it crossed; its slope is 0 there.
    Clamp(f64, f64),
    /// The factor is 0: the step (or trajectory) is dropped from the sum but not from the count.
    Drop(f64, f64),
    /// The factor is 1 within the bounds and 0 outside: a mask and no weight.
    Keep(f64, f64),
}

/// How the factor enters the step's term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// `r̃ = g · r`, inside the clip. The paper's form.
    Multiply,
    /// `r̃ = g`, inside the clip: the factor stands in place of the step's ratio.
    Replace,
    /// `w = g` weighs the term from outside the clip and carries no gradient (stop-gradient).
    ///
    /// With behaviour log-probs in the batch, `w` reads the rollout-over-behaviour log-ratios and weighs PPO's
    /// clip-min term. Without them, `w` reads the current-over-rollout log-ratios and the term is `w · A` with
    /// the gradient `w · A · ∇ log π`, a weighted REINFORCE step without a clip.
    Weigh,
}

const BOUNDS: &str = "the bounds must be numbers, the lower one first";

/// A member with its parameters filled in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// What is read.
    pub reads: Reads,
    /// Multiplies the reading (α).
    pub strength: f64,
    /// Bounds the log of the factor.
    pub bound: Bound,
    /// How the factor enters.
    pub form: Form,
    /// Divides each factor by its weighted batch mean at the same step.
    pub self_normalised: bool,
    /// Lets the clip range widen with √(t + 1) in log space.
    pub growing_clip: bool,
    /// Where the advantage is negative, ratios above this are flat too, as in [`Clip::dual`]; infinite where there is no
    /// such bound.
    pub dual: f64,
    /// Lowers the strength until the normalised ESS of the batch is at least this floor.
    pub ess_floor: Option<f64>,
    /// Sets the strength by the lengths of the batch: see [`Rule::at_lengths`].
    pub amplification: Option<f64>,
    /// A loss that is written out step by step; the other fields then say nothing.
    pub written: Option<Written>,
}

/// A correction factor, in logs, and its slope with respect to the reading.
///
/// Paper: `sec:family` (`log g_t` and `d log g_t / dL`)
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Factor<F> {
    /// `log g_t`; minus infinity where the step is dropped.
    pub log_factor: F,
    /// `d log g_t / d reading`.
    pub slope: F,
}

impl Rule {
    /// The unbounded member that multiplies `exp(strength · prefix)`: PPO at 0, the full correction at 1.
    #[must_use]
    pub const fn tempered(strength: f64) -> Self {
        Self {
            reads: Reads::Prefix,
            strength,
            bound: Bound::Clamp(f64::NEG_INFINITY, f64::INFINITY),
            form: Form::Multiply,
            self_normalised: false,
            growing_clip: false,
            dual: f64::INFINITY,
            ess_floor: None,
            amplification: None,
            written: None,
        }
    }

    /// A loss that is written out, at its parameters.
    #[must_use]
    pub const fn written(shape: &'static Shape, values: [f64; MOST]) -> Self {
        Self { written: Some(Written::Own(shape, values)), ..Self::tempered(0.0) }
    }

    /// Whether it looks at the whole batch before it weighs one step.
    #[must_use]
    pub fn coupled(&self) -> bool {
        self.self_normalised
            || self.ess_floor.is_some()
            || self.written.is_some_and(|written| written.coupled())
    }

    /// Whether it weighs terms from outside the clip.
    #[must_use]
    pub fn weighs(&self) -> bool {
        match self.written {
            Some(Written::Own(shape, _)) => matches!(shape.acts, super::written::Acts::Weigh(_)),
            Some(Written::Product(_)) => true,
            None => self.form == Form::Weigh,
        }
    }

    /// A member that weighs terms from outside the clip.
    #[must_use]
    pub const fn weighing(reads: Reads, bound: Bound) -> Self {
        Self { reads, bound, form: Form::Weigh, ..Self::tempered(1.0) }
    }

    /// Whether this is a point of the normal form, for rules that no member wrote.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn check(&self) -> Result<(), &'static str> {
        let (Bound::Clamp(low, high) | Bound::Drop(low, high) | Bound::Keep(low, high)) = self.bound;
        let coupled = self.self_normalised || self.ess_floor.is_some();
        let faults = [
            (!self.strength.is_finite(), "the strength must be finite"),
            // Written so that a bound that is not a number fails too.
            (!matches!(low.partial_cmp(&high), Some(Ordering::Less | Ordering::Equal)), BOUNDS),
            (self.reads == Reads::Window(0), "a window has at least one step"),
            // Written so that a bound that is not a number fails too.
            (
                !matches!(self.dual.partial_cmp(&1.0), Some(Ordering::Greater)),
                "the dual bound is greater than 1",
            ),
            (
                self.ess_floor.is_some_and(|floor| !(0.0..=1.0).contains(&floor)),
                "an ESS floor lies from 0 to 1",
            ),
            (
                self.amplification.is_some_and(|limit| !(1.0..f64::INFINITY).contains(&limit)),
                "an amplification is a number from 1",
            ),
            (
                coupled && self.form == Form::Weigh,
                "a weight from outside the clip is not normalised by its batch",
            ),
            (
                coupled && !matches!(self.bound, Bound::Clamp(..)),
                "a factor that the batch normalises is clamped, not dropped",
            ),
        ];
        faults.into_iter().find(|(broken, _)| *broken).map_or(Ok(()), |(_, why)| Err(why))
    }

    /// The factor for one reading.
    ///
    /// Paper: `tab:variants`
    #[inline(always)]
    pub fn factor<F: Real>(&self, reading: F) -> Factor<F> {
        let (low, high) = match self.bound {
            Bound::Clamp(low, high) | Bound::Drop(low, high) | Bound::Keep(low, high) => {
                (F::from_f64(low), F::from_f64(high))
            }
        };
        let masks = matches!(self.bound, Bound::Keep(..));
        let strength = F::from_f64(self.strength);
        let log_factor = strength * reading;
        let held = log_factor.larger(low).smaller(high);
        let inside = held == log_factor;
        let outside =
            if matches!(self.bound, Bound::Clamp(..)) { held } else { F::from_f64(f64::NEG_INFINITY) };
        let within = if masks { F::ZERO } else { log_factor };
        Factor {
            log_factor: if inside { within } else { outside },
            slope: if inside & !masks { strength } else { F::ZERO },
        }
    }

    /// The clip as this member has it: with its own dual bound, where that is the narrower one.
    #[must_use]
    pub fn clip(&self, clip: Option<Clip>) -> Option<Clip> {
        let narrower = |dual: Option<f64>| dual.map_or(self.dual, |dual| dual.min(self.dual));
        clip.map(|clip| Clip { dual: Some(narrower(clip.dual)).filter(|dual| dual.is_finite()), ..clip })
    }

    /// Replaces an amplification by the strength that it comes to on trajectories of some lengths.
    ///
    /// On fresh data, an advantage `A` that is constant along a trajectory gives the step with `j` steps behind it the
    /// cotangent `(1 + αj) · A`: its own, and what the later factors route back. The strength is the largest up to 1
    /// for which their root mean square over all steps is at most `amplification` times that at α = 0. With `m₁` and
    /// `m₂` the means of `j` and `j²` over steps and `c` the amplification, it solves `1 + 2αm₁ + α²m₂ = c²`.
    ///
    /// Paper: `eq:gradient-two-channels`, `eq:dominance` (the routed channel grows with the horizon at zero drift)
    #[must_use]
    pub fn at_lengths(self, lengths: impl Iterator<Item = usize>) -> Self {
        let Some(limit) = self.amplification else { return self };
        let (mut steps, mut first, mut second) = (0.0, 0.0, 0.0);
        for length in lengths.filter(|&length| length > 0) {
            let length = length as f64;
            steps += length;
            first += length * (length - 1.0) / 2.0;
            second += (length - 1.0) * length * (2.0 * length - 1.0) / 6.0;
        }
        let room = limit * limit - 1.0;
        let (first, second) = (first / steps, second / steps);
        let solved = room / (first + (first * first + second * room).sqrt());
        // Where no trajectory has two steps, no strength changes anything.
        let strength = if second > 0.0 { solved.min(1.0) } else { 1.0 };
        Self { strength, amplification: None, ..self }
    }

    /// Replaces an ESS floor by the largest strength that respects it, found by bisection.
    ///
    /// `ess` gives the normalised ESS of the weights `exp(strength · prefix)`; it never rises with the strength
    /// (the log of the mean weight is convex in it), so the largest strength is well defined. The strength is
    /// then a constant of the batch: no gradient flows through its choice.
    ///
    /// Paper: `app:family` (adaptive)
    #[must_use]
    pub fn resolve(self, mut ess: impl FnMut(f64) -> f64) -> Self {
        let Some(floor) = self.ess_floor else { return self };
        let resolved = |strength| Self { strength, ess_floor: None, ..self };
        if ess(self.strength) >= floor {
            return resolved(self.strength);
        }
        let (mut held, mut broken) = (0.0, self.strength);
        // 40 halvings leave less than 1e-12 between the two.
        for _ in 0..40 {
            let middle = 0.5 * (held + broken);
            if ess(middle) >= floor { held = middle } else { broken = middle }
        }
        resolved(held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_inside_and_outside_the_bounds() {
        let clamp = Rule { bound: Bound::Clamp(-1.0, 1.0), ..Rule::tempered(0.5) };
        assert_eq!(clamp.factor(1.5), Factor { log_factor: 0.75, slope: 0.5 });
        assert_eq!(clamp.factor(-3.0), Factor { log_factor: -1.0, slope: 0.0 });
        let drop = Rule { bound: Bound::Drop(-1.0, 1.0), ..Rule::tempered(0.5) };
        assert_eq!(drop.factor(3.0), Factor { log_factor: f64::NEG_INFINITY, slope: 0.0 });
        let keep = Rule { bound: Bound::Keep(-1.0, 1.0), ..Rule::tempered(0.5) };
        assert_eq!(keep.factor(1.5), Factor { log_factor: 0.0, slope: 0.0 });
        assert_eq!(keep.factor(3.0), Factor { log_factor: f64::NEG_INFINITY, slope: 0.0 });
    }

    #[test]
    fn the_narrower_dual_bound_counts() {
        let rule = Rule { dual: 3.0, ..Rule::tempered(0.0) };
        let dual = |clip: Clip| rule.clip(Some(clip)).unwrap().dual;
        assert_eq!((dual(Clip::PPO), dual(Clip { dual: Some(2.0), ..Clip::PPO })), (Some(3.0), Some(2.0)));
        assert_eq!((rule.clip(None), Rule::tempered(0.0).clip(Some(Clip::PPO))), (None, Some(Clip::PPO)));
    }

    #[test]
    fn lengths_set_the_strength() {
        let at = |limit: f64, lengths: &[usize]| {
            let rule = Rule { amplification: Some(limit), ..Rule::tempered(1.0) };
            rule.at_lengths(lengths.iter().copied()).strength
        };
        // Two steps: (1 + (1 + α)²) / 2 = 4 has α = √7 − 1, above 1. Three: 3 + 6α + 5α² = 12.
        assert_eq!(at(2.0, &[2, 2]), 1.0);
        assert!((at(2.0, &[3]) - (216.0_f64.sqrt() - 6.0) / 10.0).abs() < 1e-12);
        for (length, strength) in [(6, 0.361), (8, 0.260), (20, 0.097), (512, 0.0036)] {
            assert!((at(2.0, &[length]) - strength).abs() < 5e-4, "{length}: {}", at(2.0, &[length]));
        }
        // Empty trajectories say nothing; where there is nothing to route, the strength is free.
        assert_eq!(at(2.0, &[0, 6]), at(2.0, &[6]));
        assert_eq!((at(2.0, &[1, 1]), at(1.0, &[6]), at(2.0, &[])), (1.0, 0.0, 1.0));
        // Lengths that differ: the mean square over all steps is what the limit says.
        let (alpha, lengths) = (at(3.0, &[4, 40, 400]), [4, 40, 400]);
        let square = |length: usize| (0..length).map(|j| (1.0 + alpha * j as f64).powi(2)).sum::<f64>();
        let mean = lengths.into_iter().map(square).sum::<f64>() / 444.0;
        assert!((mean.sqrt() - 3.0).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn resolve_finds_the_largest_strength() {
        // A pretend ESS of 1 − α: the floor 0.3 is met up to α = 0.7.
        let rule = Rule { ess_floor: Some(0.3), ..Rule::tempered(1.0) }.resolve(|alpha| 1.0 - alpha);
        assert!((rule.strength - 0.7).abs() < 1e-11);
        assert_eq!(rule.ess_floor, None);
        let untouched = Rule { ess_floor: Some(0.3), ..Rule::tempered(1.0) }.resolve(|_| 0.9);
        assert_eq!(untouched.strength, 1.0);
    }
}
