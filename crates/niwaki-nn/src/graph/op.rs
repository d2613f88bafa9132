//! What each op computes: the specification that every engine meets.
//!
//! Notation, for one item of one member: `x[r, i]` is row `r`, column `i`; `d·` is the cotangent of `·`, the
//! derivative of the objective with respect to it. A backward pass turns the cotangents of an op's outputs into
//! those of its operands (`+=` over all uses) and of its parameters (`+=` over uses, items and rows). Cotangents
//! of inputs of scalars are never computed. In f32 engines the long sums (norms' means, softmax) may be taken in
//! any order; on the CPU the order depends only on the op's shape, never on how many rows are computed together.

use super::shape::{Index, Mask, Shape, Value};
use crate::layout::Param;

/// A function applied to each scalar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Activation {
    /// The identity.
    None,
    /// `z · Φ(z)` with the exact normal distribution, `Φ(z) = (1 + erf(z/√2)) / 2`; derivative `Φ(z) + z φ(z)`.
    Gelu,
    /// `max(z, 0)`; derivative 1 where `z > 0`, else 0.
    Relu,
    /// `tanh z`; derivative `1 − tanh² z`.
    Tanh,
    /// `z · σ(z)`, `σ(z) = 1 / (1 + e^{−z})` (Swish); derivative `σ + z σ (1 − σ)`.
    Silu,
}

/// A run of columns of a value, so that one product can yield queries, keys and values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Columns {
    /// The value.
    pub value: Value,
    /// The first column; the op that reads it says how many.
    pub start: usize,
}

impl From<Value> for Columns {
    fn from(value: Value) -> Self {
        Self { value, start: 0 }
    }
}

/// Which keys a query may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visible {
    /// All of them.
    All,
    /// Query row `r` sees key rows `0..=r`. Rows of queries and keys are equal in number.
    Causal,
    /// Query row `r` sees key row `s` where `mask[r, s] = 1`. A query that sees nothing yields zeros.
    Masked(Mask),
}

/// How rows are pooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Their mean; zeros where no row is let through.
    Mean,
    /// Their sum.
    Sum,
}

/// The operands of [`Op::Attention`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
    /// Queries: `heads · head_width` columns.
    pub query: Columns,
    /// Keys: `key_heads · head_width` columns.
    pub key: Columns,
    /// Values: `key_heads · head_width` columns.
    pub value: Columns,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`. Query head `h` reads key head `h / (heads / key_heads)`.
    pub key_heads: usize,
    /// Columns per head.
    pub head_width: usize,
    /// Factor on the scores, as a rule `1/√head_width`.
    pub scale: f64,
    /// Which keys a query may see.
    pub visible: Visible,
}

/// The operands of [`Op::Point`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// `[query rows, width]`.
    pub query: Value,
    /// `[key rows, 2 · width]`: the glimpse's keys, then its values.
    pub glimpse: Value,
    /// `[key rows, width]`: what a glimpse is compared with.
    pub key: Value,
    /// Heads of the glimpse; divides `width`.
    pub heads: usize,
    /// Whether the query is added to the glimpse before it is compared.
    pub residual: bool,
    /// Bound on the logits.
    pub bound: f64,
    /// `[query rows, key rows]`: which keys a glimpse may see.
    pub open: Mask,
}

/// One op of the tape.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `output = activation(input · W + bias) + residual`.
    ///
    /// `input [r, in]`, `weight [in, out]` (or `[out, in]` when `transposed`, and then `W` is its transpose), `bias
    /// [out]`, `output [r, out]`. A residual goes with [`Activation::None`] only. Backward, with `dz = d output ·
    /// activation'(z)`: `d input += dz · Wᵀ`, `dW += inputᵀ · dz`, `d bias += Σ_r dz[r]`, `d residual += d output`.
    /// Saved: `[r, out]` for GELU and SiLU (the engine's choice of `z` or `activation'(z)`), else nothing: the
    /// derivatives of ReLU and tanh follow from `output`.
    Linear {
        /// The operand.
        input: Value,
        /// The matrix.
        weight: Param,
        /// Whether the matrix is stored `[out, in]` (a head tied to an embedding).
        transposed: bool,
        /// Added to every row.
        bias: Option<Param>,
        /// Applied to `z = input · W + bias`.
        activation: Activation,
        /// Added after the activation; same shape as the output.
        residual: Option<Value>,
        /// The result.
        output: Value,
    },
    /// `output[r] = (x[r] − mean_r) · s_r · gain + bias`, `s_r = 1/√(variance_r + epsilon)`, the biased variance.
    ///
    /// Backward, with `n = (x − mean) s` and `g = d output · gain`: `dx = s (g − mean(g) − n · mean(g n))`,
    /// `d gain += Σ_r d output · n`, `d bias += Σ_r d output`. Saved: `[r, 2]` = `(mean_r, s_r)`.
    LayerNorm {
        /// The operand.
        input: Value,
        /// `[width]`.
        gain: Param,
        /// `[width]`.
        bias: Param,
        /// Added to the variance.
        epsilon: f64,
        /// The result.
        output: Value,
    },
    /// `output[r] = x[r] · s_r · gain`, `s_r = 1/√(mean(x[r]²) + epsilon)`.
    ///
    /// Backward, with `n = x s`, `g = d output · gain`: `dx = s (g − n · mean(g n))`, `d gain += Σ_r d output · n`.
    /// Saved: `[r, 1]` = `s_r`.
    RmsNorm {
        /// The operand.
        input: Value,
        /// `[width]`.
        gain: Param,
        /// Added to the mean square.
        epsilon: f64,
        /// The result.
        output: Value,
    },
    /// Softmax attention over the rows of one item.
    ///
    /// For head `h` with key head `k`: `score[r, s] = scale · query_h[r] · key_k[s]`; `p[r, ·]` = softmax over the
    /// visible `s`, zero elsewhere; `output_h[r] = Σ_s p[r, s] value_k[s]`; `output` is `[query rows, heads ·
    /// head_width]`. Backward: `dp[r, s] = d output_h[r] · value_k[s]`, `dscore = p (dp − Σ_s p dp)`, `d query_h[r] +=
    /// scale Σ_s dscore[r, s] key_k[s]`, `d key_k[s] += scale Σ_{h, r} dscore query_h[r]`, `d value_k[s] += Σ_{h, r} p
    /// d output_h[r]`. Saved: `p`, `[heads, query rows, key rows]`.
    Attention {
        /// The operands.
        attention: Attention,
        /// The result.
        output: Value,
    },
    /// `output[r, s] = scale · query[r] · key[s]`: a pointer's scores, `[query rows, key rows]`.
    Score {
        /// `[query rows, width]`.
        query: Value,
        /// `[key rows, width]`.
        key: Value,
        /// Factor.
        scale: f64,
        /// The result.
        output: Value,
    },
    /// A pointer's logits, `[query rows, key rows]`: `output[r, s] = bound · tanh(glimpse[r] · key[s] / √width)`, where
    /// `glimpse` is the [`Op::Attention`] of the queries to the open keys, scaled by `1/√(width / heads)`. Logits of
    /// closed keys are computed like the others. One op, because queries are many and keys few: nothing of `[query rows, width]` is
    /// kept but the queries. Backward: as those of score and attention, recomputed; the slope of tanh follows from
    /// `output`. An item whose cotangents are all zero costs no more than reading them. Saved: nothing.
    Point {
        /// The operands.
        point: Point,
        /// The result.
        output: Value,
    },
    /// `output[r] = table[index[r]]`, zeros where `index[r] < 0`. Backward: `d table[index[r]] += d output[r]`.
    Embed {
        /// `[entries, width]`.
        table: Param,
        /// Rows of the table.
        index: Index,
        /// The result.
        output: Value,
    },
    /// `output[r] = input[index[r]]` within the item, zeros where `index[r] < 0`. Backward scatters and adds.
    Gather {
        /// The operand.
        input: Value,
        /// Rows of the operand.
        index: Index,
        /// The result.
        output: Value,
    },
    /// Pools consecutive runs of `group` rows: `output[j]` is over `input[j·group .. (j+1)·group]`.
    ///
    /// With a mask, only rows `r` with `mask[r] = 1` count (a mean divides by their number).
    Pool {
        /// The operand.
        input: Value,
        /// Rows per result.
        group: usize,
        /// `[rows, 1]` of the operand.
        mask: Option<Mask>,
        /// Mean or sum.
        pooling: Pooling,
        /// `[rows / group, width]`.
        output: Value,
    },
    /// The operands side by side: equal rows, widths add up.
    Concat {
        /// The operands.
        inputs: Vec<Value>,
        /// The result.
        output: Value,
    },
    /// `left + right`, equal shapes.
    Add {
        /// An operand.
        left: Value,
        /// An operand.
        right: Value,
        /// The result.
        output: Value,
    },
    /// `left · right` element by element, equal shapes.
    Mul {
        /// An operand.
        left: Value,
        /// An operand.
        right: Value,
        /// The result.
        output: Value,
    },
    /// `factor · input`.
    Scale {
        /// The operand.
        input: Value,
        /// The factor.
        factor: f64,
        /// The result.
        output: Value,
    },
    /// `activation(input)` element by element. Saved as in [`Op::Linear`].
    Activate {
        /// The operand.
        input: Value,
        /// The function.
        activation: Activation,
        /// The result.
        output: Value,
    },
    /// Rotary positions: within each head, columns `(i, i + head_width/2)` turn by `position[r] · base^(−2i/head_width)`:
    /// `(a, b) → (a cos − b sin, a sin + b cos)`, `i < head_width/2`. Angles, sines and cosines are taken in f64.
    /// Backward turns the other way. A negative position counts as zero.
    Rope {
        /// `heads · head_width` columns are read.
        input: Columns,
        /// Heads.
        heads: usize,
        /// Columns per head, even.
        head_width: usize,
        /// Base of the frequencies.
        base: f64,
        /// Position of each row.
        position: Index,
        /// `[rows, heads · head_width]`.
        output: Value,
    },
    /// Masked log-softmax of each row, the chosen entry's log-probability and the entropy.
    ///
    /// With `lse_r = log Σ_{j visible} e^{logits[r, j]}` (maximum subtracted), `q[r, j] = logits[r, j] − lse_r`:
    /// `log_prob[r] = q[r, action[r]]`, `entropy[r] = −Σ_j e^{q} q` over visible `j`. Both are `[rows, 1]`. A row whose
    /// action is negative is idle: both are zero and no cotangent flows. Choosing a hidden entry gives `−∞`.
    /// Backward: `d logits[r, j] = d log_prob (1[j = action] − e^{q}) − d entropy · e^{q} (q + entropy)`, zero at
    /// hidden `j`. Saved: `[r, 2]` = `(lse_r, entropy_r)`.
    Pick {
        /// `[rows, choices]`.
        logits: Value,
        /// The choice of each row.
        action: Index,
        /// `[rows, choices]`: which entries may be chosen.
        mask: Option<Mask>,
        /// The chosen entry's log-probability.
        log_prob: Value,
        /// The entropy of the row's distribution.
        entropy: Value,
    },
}

impl Op {
    /// The op's name in error messages and profiles.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Linear { .. } => "linear",
            Self::LayerNorm { .. } => "layer_norm",
            Self::RmsNorm { .. } => "rms_norm",
            Self::Attention { .. } => "attention",
            Self::Score { .. } => "score",
            Self::Point { .. } => "point",
            Self::Embed { .. } => "embed",
            Self::Gather { .. } => "gather",
            Self::Pool { .. } => "pool",
            Self::Concat { .. } => "concat",
            Self::Add { .. } => "add",
            Self::Mul { .. } => "mul",
            Self::Scale { .. } => "scale",
            Self::Activate { .. } => "activate",
            Self::Rope { .. } => "rope",
            Self::Pick { .. } => "pick_log_prob",
        }
    }

    /// The values that it reads, in a fixed order; one that is read twice appears twice.
    #[must_use]
    pub fn operands(&self) -> Vec<Value> {
        match self {
            Self::Linear { input, residual, .. } => std::iter::once(*input).chain(*residual).collect(),
            Self::LayerNorm { input, .. }
            | Self::RmsNorm { input, .. }
            | Self::Gather { input, .. }
            | Self::Pool { input, .. }
            | Self::Scale { input, .. }
            | Self::Activate { input, .. } => vec![*input],
            Self::Attention { attention: a, .. } => vec![a.query.value, a.key.value, a.value.value],
            Self::Score { query, key, .. } => vec![*query, *key],
            Self::Point { point, .. } => vec![point.query, point.glimpse, point.key],
            Self::Embed { .. } => Vec::new(),
            Self::Concat { inputs, .. } => inputs.clone(),
            Self::Add { left, right, .. } | Self::Mul { left, right, .. } => vec![*left, *right],
            Self::Rope { input, .. } => vec![input.value],
            Self::Pick { logits, .. } => vec![*logits],
        }
    }

    /// The values that it writes.
    #[must_use]
    pub fn outputs(&self) -> Vec<Value> {
        match self {
            Self::Linear { output, .. }
            | Self::LayerNorm { output, .. }
            | Self::RmsNorm { output, .. }
            | Self::Attention { output, .. }
            | Self::Score { output, .. }
            | Self::Point { output, .. }
            | Self::Embed { output, .. }
            | Self::Gather { output, .. }
            | Self::Pool { output, .. }
            | Self::Concat { output, .. }
            | Self::Add { output, .. }
            | Self::Mul { output, .. }
            | Self::Scale { output, .. }
            | Self::Activate { output, .. }
            | Self::Rope { output, .. } => vec![*output],
            Self::Pick { log_prob, entropy, .. } => vec![*log_prob, *entropy],
        }
    }

    /// The integers that it reads.
    #[must_use]
    pub fn index(&self) -> Option<Index> {
        match self {
            Self::Embed { index, .. } | Self::Gather { index, .. } => Some(*index),
            Self::Rope { position, .. } => Some(*position),
            Self::Pick { action, .. } => Some(*action),
            _ => None,
        }
    }

    /// The mask that it reads.
    #[must_use]
    pub fn mask(&self) -> Option<Mask> {
        match self {
            Self::Attention { attention: Attention { visible: Visible::Masked(mask), .. }, .. } => {
                Some(*mask)
            }
            Self::Point { point, .. } => Some(point.open),
            Self::Pool { mask, .. } | Self::Pick { mask, .. } => *mask,
            _ => None,
        }
    }

    /// The values that its backward pass reads.
    #[must_use]
    pub fn kept(&self) -> Vec<Value> {
        match self {
            Self::Linear { input, activation, output, .. } => {
                let from_output = matches!(activation, Activation::Relu | Activation::Tanh);
                std::iter::once(*input).chain(from_output.then_some(*output)).collect()
            }
            Self::Activate { activation: Activation::Relu | Activation::Tanh, output, .. } => vec![*output],
            Self::LayerNorm { .. }
            | Self::RmsNorm { .. }
            | Self::Attention { .. }
            | Self::Score { .. }
            | Self::Mul { .. }
            | Self::Pick { .. } => self.operands(),
            Self::Point { output, .. } => self.operands().into_iter().chain([*output]).collect(),
            _ => Vec::new(),
        }
    }

    /// Scalars per item that its forward pass saves for its backward pass.
    pub(crate) fn saved(&self, shape: impl Fn(Value) -> Shape) -> usize {
        match self {
            Self::Linear { activation: Activation::Gelu | Activation::Silu, output, .. }
            | Self::Activate { activation: Activation::Gelu | Activation::Silu, output, .. } => {
                shape(*output).size()
            }
            Self::LayerNorm { input, .. } => 2 * shape(*input).rows,
            Self::RmsNorm { input, .. } => shape(*input).rows,
            Self::Attention { attention: a, .. } => {
                a.heads * shape(a.query.value).rows * shape(a.key.value).rows
            }
            Self::Pick { logits, .. } => 2 * shape(*logits).rows,
            _ => 0,
        }
    }
}
