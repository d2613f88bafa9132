//! One member's optimiser step over its flat buffers.

use super::Real;
use crate::optimiser::{Optimiser, StepRule, Storage};
use niwaki_simd::vectorised;

vectorised! {
    /// `‖g‖₂`, summed in f64 in a fixed order.
    pub(crate) fn norm<F: Real>(gradient: &[F]) -> f64 {
        let mut sums = [0.0_f64; 16];
        let chunks = gradient.chunks_exact(16);
        let rest = chunks.remainder().iter().fold(0.0, |sum, g| sum + g.to_f64() * g.to_f64());
        for chunk in chunks {
            for lane in 0..16 {
                let g = chunk[lane].to_f64();
                sums[lane] += g * g;
            }
        }
        (sums.iter().sum::<f64>() + rest).sqrt()
    }

    fn add_scaled<F: Real>(parameters: &mut [F], factor: F, gradient: &[F]) {
        super::kernels::add_scaled(parameters, factor, gradient);
    }

    /// Adam's loop; `bias` holds `1/(1 − β₁ⁿ)` and `1/(1 − β₂ⁿ)`.
    fn adam<F: Real>(
        parameters: &mut [F],
        gradient: &[F],
        first: &mut [F],
        second: &mut [F],
        factor: F,
        betas: [F; 2],
        bias: [F; 2],
        rate: F,
        epsilon: F,
        keep: F,
    ) {
        let [b1, b2] = betas;
        for (((p, &g), m), v) in parameters.iter_mut().zip(gradient).zip(first).zip(second) {
            let g = factor * g;
            *m = b1 * *m + (F::ONE - b1) * g;
            *v = b2 * *v + (F::ONE - b2) * g * g;
            *p = keep * *p + rate * (*m * bias[0]) / ((*v * bias[1]).root() + epsilon);
        }
    }
}

/// Steps one member; `steps` counts the steps that it took. Returns the gradient's norm.
pub(crate) fn step<F: Real>(
    optimiser: &Optimiser,
    rate: f64,
    parameters: &mut [F],
    gradient: &[F],
    moments: &mut [Vec<F>],
    steps: &mut u64,
) -> f64 {
    let norm = norm(gradient);
    let Some(factor) = optimiser.factor(norm) else { return norm };
    *steps += 1;
    match optimiser.rule {
        StepRule::NormalisedSgd | StepRule::Sgd => {
            add_scaled(parameters, F::from_f64(rate * factor), gradient)
        }
        StepRule::Adam { first, second, epsilon, decay, storage } => {
            let [m, v] = moments else { return norm };
            let correct = |beta: f64| F::from_f64(1.0 / (1.0 - libm::pow(beta, *steps as f64)));
            adam(
                parameters,
                gradient,
                m,
                v,
                F::from_f64(factor),
                [first, second].map(F::from_f64),
                [correct(first), correct(second)],
                F::from_f64(rate),
                F::from_f64(epsilon),
                F::from_f64(1.0 - rate * decay),
            );
            if storage == Storage::Bf16 {
                for kept in [parameters, m, v].into_iter().flatten() {
                    *kept = F::from_f64(f64::from(storage.kept(kept.to_f64() as f32)));
                }
            }
        }
    }
    norm
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_sgd_takes_a_step_of_the_rates_length() {
        // g = (3, 4), ‖g‖ = 5, rate 0.5: θ moves by (0.3, 0.4).
        let (mut theta, mut steps) = ([1.0_f64, 1.0], 0);
        let norm = step(&Optimiser::normalised_sgd(), 0.5, &mut theta, &[3.0, 4.0], &mut [], &mut steps);
        assert_eq!((norm, steps), (5.0, 1));
        assert!((theta[0] - 1.3).abs() < 1e-15 && (theta[1] - 1.4).abs() < 1e-15);
        step(&Optimiser::normalised_sgd(), 0.5, &mut theta, &[1e-13, 0.0], &mut [], &mut steps);
        assert_eq!((theta[0].to_bits(), steps), (1.3_f64.to_bits(), 1));
    }

    #[test]
    fn in_bf16_small_steps_are_lost_and_moments_are_rounded() {
        let mut optimiser = Optimiser::adam();
        if let StepRule::Adam { storage, .. } = &mut optimiser.rule {
            *storage = Storage::Bf16;
        }
        let mut theta = [0.049_804_688_f32, 1e-4].map(|x| Storage::Bf16.kept(x));
        let (start, mut steps, mut moments) = (theta, 0, vec![vec![0.0_f32; 2]; 2]);
        for _ in 0..128 {
            step(&optimiser, 3e-6, &mut theta, &[1.0, 1.0], &mut moments, &mut steps);
        }
        // 128 steps of 3e-6 are 3.84e-4 in f32. A weight near .05 has units of 2.4e-4 and never moves.
        assert_eq!(theta[0].to_bits(), start[0].to_bits());
        assert!(theta[1] - start[1] > 2e-4);
        let kept = |x: &f32| Storage::Bf16.kept(*x).to_bits() == x.to_bits();
        assert!(theta.iter().chain(moments.iter().flatten()).all(kept));
    }

    #[test]
    fn adams_first_two_steps() {
        // First step: m̂ = g, v̂ = g², so θ moves by rate · sign(g) (ε aside). Second, with g = −1 after g = 2:
        // m = 0.9·0.2 − 0.1 = 0.08, m̂ = 0.08/0.19; v = 0.999·0.004 + 0.001 = 0.004996, v̂ = v/0.001999.
        let (mut theta, mut steps, mut moments) = ([0.0_f64], 0, vec![vec![0.0]; 2]);
        step(&Optimiser::adam(), 0.1, &mut theta, &[2.0], &mut moments, &mut steps);
        assert!((theta[0] - 0.1).abs() < 1e-9);
        step(&Optimiser::adam(), 0.1, &mut theta, &[-1.0], &mut moments, &mut steps);
        let expected = 0.1 + 0.1 * (0.08 / 0.19) / ((0.004_996_f64 / 0.001_999).sqrt() + 1e-8);
        assert!((theta[0] - expected).abs() < 1e-9, "{} {expected}", theta[0]);
    }
}
