//! How parameters start. Computed on the host in f64 from counter-based streams, so that every device and every
//! member of a cohort gets the same bits for the same seed.

use crate::cpu::Real;
use crate::layout::{Layout, Slice};
use niwaki_stream::{Key, Stream};

/// The distribution that a parameter starts from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Init {
    /// All zeros.
    Zeros,
    /// All ones.
    Ones,
    /// Uniform in ±1/√`fan_in`: PyTorch's default for a linear layer's weight (Kaiming-uniform with a = √5, whose
    /// bound √(6 / ((1 + a²) · fan_in)) is 1/√`fan_in`) and for its bias.
    Linear {
        /// Width of the layer's input.
        fan_in: usize,
    },
    /// Normal with mean zero.
    Normal {
        /// Standard deviation.
        deviation: f64,
    },
    /// A matrix with orthonormal rows or columns (whichever are fewer), times `gain`.
    Orthogonal {
        /// Scale of the matrix.
        gain: f64,
    },
}

/// The flat parameters that a member with this seed starts from, `[layout.len()]`.
///
/// Each slice has its own stream, so adding a parameter at the end leaves the others as they were.
#[must_use]
pub fn initialise<F: Real>(layout: &Layout, seed: u64) -> Vec<F> {
    let mut flat = vec![F::ZERO; layout.len()];
    for (position, slice) in layout.slices().iter().enumerate() {
        let mut stream = Key::new(seed, "weights").lane(position as u64).open();
        for (to, from) in flat[slice.range()].iter_mut().zip(draw(slice, &mut stream)) {
            *to = F::from_f64(from);
        }
    }
    flat
}

fn draw(slice: &Slice, stream: &mut Stream) -> Vec<f64> {
    let count = slice.len();
    match slice.init {
        Init::Zeros => vec![0.0; count],
        Init::Ones => vec![1.0; count],
        Init::Linear { fan_in } => {
            let bound = 1.0 / (fan_in.max(1) as f64).sqrt();
            (0..count).map(|_| bound * (2.0 * stream.uniform() - 1.0)).collect()
        }
        Init::Normal { deviation } => (0..count).map(|_| deviation * stream.normal()).collect(),
        Init::Orthogonal { gain } => {
            let columns = slice.shape.last().copied().unwrap_or(1).max(1);
            orthogonal(count / columns, columns, gain, stream)
        }
    }
}

/// Gram–Schmidt on normal vectors, twice, which keeps them orthogonal to rounding.
fn orthogonal(rows: usize, columns: usize, gain: f64, stream: &mut Stream) -> Vec<f64> {
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut basis: Vec<Vec<f64>> = Vec::with_capacity(count);
    for _ in 0..count {
        let mut vector: Vec<f64> = (0..length).map(|_| stream.normal()).collect();
        for _ in 0..2 {
            for other in &basis {
                let along: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
            }
            let norm = vector.iter().map(|a| a * a).sum::<f64>().sqrt();
            vector.iter_mut().for_each(|a| *a /= norm);
        }
        basis.push(vector);
    }
    let entry =
        |row: usize, column: usize| if rows <= columns { basis[row][column] } else { basis[column][row] };
    (0..rows * columns).map(|at| gain * entry(at / columns, at % columns)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(init: Init, shape: &[usize]) -> Layout {
        let mut layout = Layout::default();
        layout.push("w", shape, init);
        layout
    }

    #[test]
    fn the_linear_default_fills_its_interval() {
        // fan_in 64: bound 1/8. The largest of 6,400 uniforms falls short of it by more than 20/6,400 of it with
        // probability e⁻²⁰. The variance is (1/8)²/3 = 0.005208 with standard error 0.005208 · √(0.8/6400) = 6e-5;
        // the margin is five of them.
        let flat: Vec<f64> = initialise(&layout(Init::Linear { fan_in: 64 }, &[64, 100]), 3);
        let most = flat.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
        assert!(most <= 0.125 && most > 0.125 * (1.0 - 20.0 / 6_400.0), "{most}");
        let variance = flat.iter().map(|x| x * x).sum::<f64>() / flat.len() as f64;
        assert!((variance - 0.005_208).abs() < 3e-4, "{variance}");
    }

    #[test]
    fn orthogonal_is_orthogonal() {
        for (rows, columns) in [(5, 9), (9, 5)] {
            let flat: Vec<f64> = initialise(&layout(Init::Orthogonal { gain: 2.0 }, &[rows, columns]), 3);
            let count = rows.min(columns);
            let at = |vector: usize, place: usize| {
                if rows <= columns { flat[vector * columns + place] } else { flat[place * columns + vector] }
            };
            for a in 0..count {
                for b in 0..count {
                    let product: f64 = (0..rows.max(columns)).map(|place| at(a, place) * at(b, place)).sum();
                    // Gain 2: squared norms are 4.
                    assert!((product - if a == b { 4.0 } else { 0.0 }).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn f32_is_rounded_f64_and_seeds_differ() {
        let layout = layout(Init::Normal { deviation: 0.5 }, &[7]);
        let wide: Vec<f64> = initialise(&layout, 3);
        let narrow: Vec<f32> = initialise(&layout, 3);
        assert!(wide.iter().zip(&narrow).all(|(&wide, &narrow)| wide as f32 == narrow));
        assert_ne!(wide, initialise::<f64>(&layout, 4));
    }
}
