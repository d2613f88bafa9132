//! How a gradient becomes a step, member by member. Every optimiser **ascends**: the gradient is that of an
//! objective to be raised.
//!
//! Each member has its own norm, its own learning rate and its own state; nothing crosses members.

/// A rule that turns a member's flat gradient into a change of its flat parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StepRule {
    /// `θ += rate · g / ‖g‖₂` over the member's whole buffer; no step where `‖g‖₂ < 1e-12`.
    NormalisedSgd,
    /// `θ += rate · g`.
    Sgd,
    /// Adam with decoupled weight decay, as PyTorch's `AdamW` (and `Adam` at decay 0):
    /// `m = β₁ m + (1 − β₁) g`, `v = β₂ v + (1 − β₂) g²`, then `θ −= rate · decay · θ` and
    /// `θ += rate · (m / (1 − β₁ⁿ)) / (√(v / (1 − β₂ⁿ)) + ε)` at the member's `n`-th step, counted from 1.
    Adam {
        /// β₁, as a rule 0.9.
        first: f64,
        /// β₂, as a rule 0.999.
        second: f64,
        /// ε, as a rule 1e-8.
        epsilon: f64,
        /// Decoupled weight decay.
        decay: f64,
        /// How finely parameters and moments are kept between steps.
        storage: Storage,
    },
}

/// How finely an optimiser keeps parameters and moments between its steps; the arithmetic of a step is the engine's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// As the engine computes.
    #[default]
    Whole,
    /// Rounded to bf16, to nearest and ties to even, without a master copy: changes below half a unit in the last of eight
    /// bits are lost, as in a trainer whose weights and optimiser are bf16.
    Bf16,
}

impl Storage {
    /// A number as it is kept.
    #[must_use]
    pub fn kept(self, value: f32) -> f32 {
        match self {
            Self::Bf16 if value.is_finite() => {
                let bits = value.to_bits();
                // Half a unit of what is cut off, less one where the last kept bit is even.
                f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
            }
            Self::Whole | Self::Bf16 => value,
        }
    }
}

/// A norm below which normalised SGD takes no step.
pub const SMALLEST_NORM: f64 = 1e-12;

/// A rule, and the clipping before it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimiser {
    /// The rule.
    pub rule: StepRule,
    /// Scales the gradient to this global norm where it exceeds it, before the rule (PyTorch's
    /// `clip_grad_norm_` without its 1e-6).
    pub clip: Option<f64>,
}

impl Optimiser {
    /// Adam with PyTorch's constants, without decay and clipping.
    #[must_use]
    pub const fn adam() -> Self {
        let rule =
            StepRule::Adam { first: 0.9, second: 0.999, epsilon: 1e-8, decay: 0.0, storage: Storage::Whole };
        Self { rule, clip: None }
    }

    /// Normalised SGD.
    #[must_use]
    pub const fn normalised_sgd() -> Self {
        Self { rule: StepRule::NormalisedSgd, clip: None }
    }

    /// Plain SGD.
    #[must_use]
    pub const fn sgd() -> Self {
        Self { rule: StepRule::Sgd, clip: None }
    }

    /// The same with clipping at a global norm per member.
    #[must_use]
    pub const fn clipped(self, norm: f64) -> Self {
        Self { clip: Some(norm), ..self }
    }

    /// Flat buffers of state that a member needs: Adam's two moments, else none.
    #[must_use]
    pub const fn moments(&self) -> usize {
        match self.rule {
            StepRule::NormalisedSgd | StepRule::Sgd => 0,
            StepRule::Adam { .. } => 2,
        }
    }

    /// How finely parameters are kept between steps.
    #[must_use]
    pub const fn storage(&self) -> Storage {
        match self.rule {
            StepRule::Adam { storage, .. } => storage,
            StepRule::NormalisedSgd | StepRule::Sgd => Storage::Whole,
        }
    }

    /// The factor on the gradient before the rule's own arithmetic: clipping, and N-SGD's normalisation.
    ///
    /// `None` means that the member takes no step.
    #[must_use]
    pub fn factor(&self, norm: f64) -> Option<f64> {
        let clip = match self.clip {
            Some(limit) if norm > limit => limit / norm,
            _ => 1.0,
        };
        match self.rule {
            StepRule::NormalisedSgd if norm < SMALLEST_NORM => None,
            StepRule::NormalisedSgd => Some(1.0 / norm),
            StepRule::Sgd | StepRule::Adam { .. } => Some(clip),
        }
    }
}

/// A learning rate as a function of the member's step, counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LearningRate {
    /// Always the same.
    Constant(f64),
    /// From `from` at step 0 in a straight line to `to` at step `steps`, then `to`.
    Linear {
        /// Rate at step 0.
        from: f64,
        /// Rate at step `steps` and after.
        to: f64,
        /// Length of the line.
        steps: u64,
    },
    /// Rises from 0 over `warmup` steps to `peak`, then falls along half a cosine to `floor` at step `steps`.
    Cosine {
        /// Highest rate.
        peak: f64,
        /// Lowest rate.
        floor: f64,
        /// Steps of the rise.
        warmup: u64,
        /// Step at which the floor is reached.
        steps: u64,
    },
}

impl LearningRate {
    /// The rate at a step.
    #[must_use]
    pub fn rate(&self, step: u64) -> f64 {
        match *self {
            Self::Constant(rate) => rate,
            Self::Linear { from, to, steps } if step < steps => {
                from + (to - from) * step as f64 / steps as f64
            }
            Self::Linear { to, .. } => to,
            Self::Cosine { peak, warmup, .. } if step < warmup => peak * (step + 1) as f64 / warmup as f64,
            Self::Cosine { peak, floor, warmup, steps } if step < steps => {
                let done = (step - warmup) as f64 / (steps - warmup) as f64;
                floor + (peak - floor) * 0.5 * (1.0 + (std::f64::consts::PI * done).cos())
            }
            Self::Cosine { floor, .. } => floor,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors() {
        // ‖g‖ = 5, clipped at 2: 2/5. N-SGD ignores clipping: 1/5.
        assert_eq!(Optimiser::sgd().clipped(2.0).factor(5.0), Some(0.4));
        assert_eq!(Optimiser::sgd().clipped(9.0).factor(5.0), Some(1.0));
        assert_eq!(Optimiser::normalised_sgd().factor(5.0), Some(0.2));
        assert_eq!(Optimiser::normalised_sgd().factor(0.9e-12), None);
    }

    #[test]
    fn eight_bits_are_kept_to_nearest_and_ties_go_to_even() {
        let kept = |value: f32| Storage::Bf16.kept(value);
        // Between 1 and 2 a unit is 2⁻⁷: 1 + 2⁻⁸ is a tie, whose even neighbour is 1; 1 + 3 · 2⁻⁸ goes up to 1 + 2⁻⁶.
        let unit = 1.0 / 128.0;
        assert_eq!([1.0 + unit / 2.0, 1.0 + 1.5 * unit].map(kept), [1.0, 1.0 + 2.0 * unit]);
        assert_eq!([1.0 + 0.51 * unit, -1.0 - 0.51 * unit].map(kept), [1.0 + unit, -1.0 - unit]);
        // A step of 3e-6 is lost on a weight of 0.05, whose unit is 2⁻¹², and kept on one of 1e-4.
        assert_eq!(kept(kept(0.05) + 3e-6), kept(0.05));
        assert!(kept(kept(1e-4) + 3e-6) > kept(1e-4));
        assert_eq!(Storage::Whole.kept(0.1), 0.1);
        assert_eq!(kept(f32::INFINITY), f32::INFINITY);
    }

    #[test]
    fn schedules() {
        let line = LearningRate::Linear { from: 1.0, to: 0.0, steps: 4 };
        assert_eq!([0, 1, 4, 9].map(|step| line.rate(step)), [1.0, 0.75, 0.0, 0.0]);
        let wave = LearningRate::Cosine { peak: 2.0, floor: 1.0, warmup: 2, steps: 6 };
        // Rise: 2·1/2, 2·2/2; the middle of the fall (step 4 of 2..6) is (2 + 1)/2; then the floor.
        assert_eq!([0, 1, 2, 6].map(|step| wave.rate(step)), [1.0, 2.0, 2.0, 1.0]);
        assert!((wave.rate(4) - 1.5).abs() < 1e-15);
    }
}
