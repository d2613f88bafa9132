//! How parameters start. Computed on the host in f64 from counter-based streams, so that every device and every
//! member of a cohort gets the same bits for the same seed.

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
