//! Rotary positions.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::{Block, Real};
use crate::graph::{Columns, Graph, Index, Value, expect};
use crate::plan::Backward;
use crate::{Error, Result};

/// How fast the pairs of a head's columns rotate: a base, and how a model was stretched beyond its first length.
///
/// Pair `i` rotates by `f = base^(−2i/head_width)` per position, times `(1 − s)/factor + s` with `s` = `(original · f / 2π − low)
/// / (high − low)`, kept within 0 and 1: pairs that go round fewer than `low` times over the original length are slowed by
/// `factor`, those that go round more than `high` times are left, and between them the share is a straight line. That is Llama
/// 3's rule; [`Rotary::linear`] slows all pairs alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotary {
    /// Base of the frequencies.
    pub base: f64,
    /// How much slow pairs are slowed.
    pub factor: f64,
    /// Rounds over the original length below which a pair is slowed whole.
    pub low: f64,
    /// Rounds over the original length from which a pair is left as it is; above `low`.
    pub high: f64,
    /// Positions that the model was first trained for.
    pub original: f64,
}

impl Rotary {
    /// The frequencies of a base, not stretched.
    #[must_use]
    pub const fn plain(base: f64) -> Self {
        Self::linear(base, 1.0)
    }

    /// All pairs slowed by a factor.
    #[must_use]
    pub const fn linear(base: f64, factor: f64) -> Self {
        Self { base, factor, low: 1.0, high: 2.0, original: 0.0 }
    }

    /// What pair `i` rotates by from one position to the next, in radians.
    #[must_use]
    pub fn frequency(&self, i: usize, head_width: usize) -> f64 {
        let plain = libm::pow(self.base, -2.0 * i as f64 / head_width as f64);
        let rounds = self.original * plain / std::f64::consts::TAU;
        let kept = ((rounds - self.low) / (self.high - self.low)).clamp(0.0, 1.0);
        plain * ((1.0 - kept) / self.factor + kept)
    }

    /// Of all pairs.
    fn frequencies(&self, head_width: usize) -> Vec<f64> {
        (0..head_width / 2).map(|i| self.frequency(i, head_width)).collect()
    }
}

/// Rotary positions: within each head, columns `(i, i + head_width/2)` rotate by `position[r]` times the pair's
/// [`Rotary::frequency`]: `(a, b) → (a cos − b sin, a sin + b cos)`, `i < head_width/2`. Angles, sines and cosines are taken in f64.
/// Backward rotates the other way. A negative position counts as zero.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rope {
    /// `heads · head_width` columns are read.
    pub input: Columns,
    /// Heads.
    pub heads: usize,
    /// Columns per head, even.
    pub head_width: usize,
    /// How fast each pair rotates.
    pub rotary: Rotary,
    /// Position of each row.
    pub position: Index,
    /// `[rows, heads · head_width]`.
    pub output: Value,
}

impl Graph {
    /// Adds [`Rope`].
    ///
    /// # Errors
    /// If the heads do not fit the columns, a head's width is odd, or positions are not one per row.
    pub fn rope(
        &mut self,
        input: Columns,
        heads: usize,
        head_width: usize,
        rotary: Rotary,
        position: Index,
    ) -> Result<Value> {
        let rows = self.shape(input.value).rows;
        self.fits("rope", "columns", input, heads * head_width)?;
        if !head_width.is_multiple_of(2) {
            let reason = format!("a head of {head_width} columns has no pairs to rotate");
            return Err(Error::Unsupported { op: "rope", reason });
        }
        expect("rope", "positions", rows, self.index_rows(position))?;
        let output = self.value(rows, heads * head_width);
        self.push(Rope { input, heads, head_width, rotary, position, output });
        Ok(output)
    }
}

impl Operation for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn reads(&self) -> Reads {
        Reads { index: Some(self.position), ..Reads::values([self.input.value]) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        Vec::new()
    }

    fn saved(&self, _: &Graph) -> usize {
        0
    }

    fn rows(&self) -> Rows {
        Rows::Apart
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

impl OnCpu for Rope {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let (graph, input) = (block.graph, self.input);
        let (stride, width) = (graph.shape(input.value).width, graph.shape(self.output).width);
        let (index, frequencies) = (block.index(self.position), self.rotary.frequencies(self.head_width));
        for row in block.spans(graph.shape(self.output).rows).flatten() {
            let x = &block.value(input.value)[row * stride + input.start..][..width];
            let y = &mut block.result(self.output)[row * width..][..width];
            rotate(x, index(row), &frequencies, false, y, false);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let (graph, input) = (block.graph, self.input);
        let Some(dx) = block.zeroed(input.value, &step.writes, 0) else { return };
        let (stride, width) = (graph.shape(input.value).width, graph.shape(self.output).width);
        let (index, frequencies) = (block.index(self.position), self.rotary.frequencies(self.head_width));
        for (row, d) in block.pulled(self.output).chunks_exact(width).enumerate() {
            let dx = &mut dx[row * stride + input.start..][..width];
            rotate(d, index(row), &frequencies, true, dx, true);
        }
    }
}

/// Rotates one row's heads by its position; `backward` rotates the other way. Adds to `out` where asked.
fn rotate<F: Real>(
    input: &[F],
    position: i32,
    frequencies: &[f64],
    backward: bool,
    out: &mut [F],
    accumulate: bool,
) {
    let half = frequencies.len();
    let head_width = 2 * half;
    let sign = if backward { -1.0 } else { 1.0 };
    for (i, frequency) in frequencies.iter().enumerate() {
        let angle = f64::from(position.max(0)) * frequency;
        let (sine, cosine) = (F::from_f64(sign * libm::sin(angle)), F::from_f64(libm::cos(angle)));
        for (input, out) in input.chunks_exact(head_width).zip(out.chunks_exact_mut(head_width)) {
            let (a, b) = (input[i], input[i + half]);
            let (first, second) = (a * cosine - b * sine, a * sine + b * cosine);
            out[i] = if accumulate { out[i] + first } else { first };
            out[i + half] = if accumulate { out[i + half] + second } else { second };
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{Rope, Rotary};
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, followed, grown};
    use crate::cuda::kernels::{ENTRIES, File, MIXED, Unit};
    use crate::cuda::lower::{Lowering, Once, Program, SCALAR};
    use crate::cuda::tape::arguments;
    use crate::graph::{Columns, Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::Backward;

    const KERNELS: &File = &File {
        name: "rope",
        source: &[ENTRIES, include_str!("rope.cu")],
        constants: MIXED,
        kernels: &[("rope", 0), ("rope_turns", 0), ("rope_halves", 0)],
    };

    impl Lowering<'_> {
        /// Cosine and sine of every row and pair, found once for all ops of a tape that turn alike.
        pub(crate) fn turns(&mut self, rope: &Rope, pairs: usize) -> Result<u64> {
            let Rope { rotary, position, output, .. } = *rope;
            let Rotary { base, factor, low, high, original } = rotary;
            let rows = self.all_rows(output);
            let numbers = [base, factor, low, high, original].map(f64::to_bits);
            let what = Once::Turns { position: position.position(), pairs, numbers };
            let (at, first) = self.once(what, rows * pairs * 2 * SCALAR);
            if first {
                let arguments = arguments![self.integers(position), at, base, factor, low, high, original]
                    .with(rows)
                    .with(pairs);
                self.per_entry("rope", (self.mixed(KERNELS), "rope_turns"), rows, pairs, arguments)?;
            } else {
                self.wait_for_prepared();
            }
            Ok(at)
        }

        /// All rows from halves to halves, four columns of both halves of a head at a time; whether it could.
        fn rope_halves(
            &mut self,
            label: &'static str,
            rope: &Rope,
            [(from, from_pitch), (into, into_pitch)]: [(u64, usize); 2],
            (sign, add): (f32, bool),
        ) -> Result<bool> {
            let Rope { input, heads, head_width, output, .. } = *rope;
            let able = self.is_half(input.value) && self.is_half(output);
            if !able || self.row.is_some() || !head_width.is_multiple_of(8) || !input.start.is_multiple_of(4)
            {
                return Ok(false);
            }
            let (rows, fours) = (self.all_rows(output), head_width / 8);
            let turns = self.turns(rope, 4 * fours)?;
            let arguments = arguments![from, from_pitch, turns, into, into_pitch, fours, sign, add]
                .with(rows)
                .with(heads * fours);
            self.per_entry(label, (self.mixed(KERNELS), "rope_halves"), rows, heads * fours, arguments)?;
            Ok(true)
        }
    }

    fn program(g: &mut Graph, rotary: Rotary) -> Result<Vec<Value>> {
        let x = grown(g, "x", ROWS, 3 * 8 + 5)?;
        let position = g.indices("position", ROWS, 50);
        Ok(vec![g.rope(Columns { value: x, start: 5 }, 3, 8, rotary, position)?])
    }

    fn inside(g: &mut Graph) -> Result<Vec<Value>> {
        let x = grown(g, "x", ROWS, 4 * 8)?;
        let position = g.indices("position", ROWS, 50);
        let turned = g.rope(Columns { value: x, start: 8 }, 3, 8, Rotary::plain(10_000.0), position)?;
        let other = g.rope(x.into(), 2, 8, Rotary::plain(100.0), position)?;
        Ok(vec![followed(g, turned)?, other, followed(g, x)?])
    }

    impl OnCuda for Rope {
        const CASES: &'static [Case] = &[
            ("rope", |g| program(g, Rotary::plain(10_000.0))),
            ("rope, inside", inside),
            // Frequencies 1, .1, .01, .001 go round 8, .8, .08 and .008 times over 50 positions: kept, shared, slowed, slowed.
            ("rope, stretched", |g| {
                program(g, Rotary { base: 1e4, factor: 8.0, low: 0.5, high: 2.0, original: 50.0 })
            }),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            vec![vec![self.input.value], vec![self.output]]
        }

        fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![Unit::mixed(KERNELS, program.precision)])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Self { input, heads, head_width, rotary, position, output } = *self;
            let out = to.view(output)?;
            let (first, step) = to.rows_of(output);
            let from = to.base(input.value)? + (input.start * to.bytes(input.value)) as u64;
            let half = head_width / 2;
            let places = [(from, to.shape(input.value).width), (to.base(output)?, out.width)];
            if to.rope_halves("rope", self, places, (1.0, false))? {
                return Ok(());
            }
            let arguments = arguments![
                from,
                to.shape(input.value).width,
                to.integers(position),
                to.base(output)?,
                out.width,
                first,
                step,
                heads,
                rotary.base,
                rotary.factor,
                rotary.low,
                rotary.high,
                rotary.original,
                1.0_f32,
                false,
                out.rows,
                half,
                to.is_half(input.value),
                out.half,
            ];
            to.per_entry("rope", (to.mixed(KERNELS), "rope"), out.rows, half, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Self { input, heads, head_width, rotary, position, output } = *self;
            let targets = to.column_targets("rope", &[(input, heads * head_width)], &step.writes)?;
            let Some((into, add)) = targets[0] else { return Ok(()) };
            let half = head_width / 2;
            let rows = to.all_rows(output);
            let places =
                [(to.cotangent(output)?, to.shape(output).width), (into, to.shape(input.value).width)];
            if to.rope_halves("rope'", self, places, (-1.0, add))? {
                return Ok(());
            }
            let arguments = arguments![
                to.cotangent(output)?,
                to.shape(output).width,
                to.integers(position),
                into,
                to.shape(input.value).width,
                0_usize,
                1_usize,
                heads,
                rotary.base,
                rotary.factor,
                rotary.low,
                rotary.high,
                rotary.original,
                -1.0_f32,
                add,
                rows,
                half,
                to.is_half(output),
                to.is_half(input.value),
            ];
            to.per_entry("rope'", (to.mixed(KERNELS), "rope"), rows, half, arguments)
        }
    }
}

#[cfg(test)]
impl super::Law for Rope {
    fn check() {
        use super::law::{check, columns, leaf};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 3, 11);
        let position = graph.indices("position", 3, 50);
        let y = graph.rope(columns(x, 2), 2, 4, Rotary::plain(100.0), position).unwrap();
        // Frequencies 1 and .1: 8 and .8 rounds over 50 positions, so the second pair is slowed in part.
        let stretched = Rotary { base: 100.0, factor: 8.0, low: 0.5, high: 2.0, original: 50.0 };
        let w = graph.rope(columns(x, 2), 2, 4, stretched, position).unwrap();
        let z = graph.mul(y, w).unwrap();
        check("rope", &graph, &[z, y, w]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_at_position_one() {
        // Pair 0 has frequency base⁰ = 1, so position 1 rotates by one radian.
        let (cosine, sine) = (1.0_f64.cos(), 1.0_f64.sin());
        let mut out = [0.0; 2];
        rotate(&[2.0, 3.0], 1, &[1.0], false, &mut out, false);
        assert!((out[0] - (2.0 * cosine - 3.0 * sine)).abs() < 1e-15);
        assert!((out[1] - (2.0 * sine + 3.0 * cosine)).abs() < 1e-15);
        let mut back = [0.0; 2];
        rotate(&out, 1, &[1.0], true, &mut back, false);
        assert!((back[0] - 2.0).abs() < 1e-15 && (back[1] - 3.0).abs() < 1e-15);
    }

    #[test]
    fn slow_pairs_are_stretched_and_fast_ones_left() {
        // Base 10⁴, heads of 8: plain frequencies 1, .1, .01, .001. Over 2π · 100 positions they go round 100, 10, 1 and .1 times.
        let original = std::f64::consts::TAU * 100.0;
        let rotary = Rotary { base: 1e4, factor: 4.0, low: 1.0, high: 19.0, original };
        let close = |i: usize, expected: f64| (rotary.frequency(i, 8) / expected - 1.0).abs() < 1e-12;
        // 10 rounds lie halfway between 1 and 19: (1/2)/4 + 1/2 = 5/8.
        assert!(close(0, 1.0) && close(1, 0.1 * 0.625) && close(2, 0.01 / 4.0) && close(3, 0.001 / 4.0));
        assert!((Rotary::linear(1e4, 2.0).frequency(1, 8) - 0.05).abs() < 1e-15);
        assert_eq!(Rotary::plain(1e4).frequency(3, 8), libm::pow(1e4, -0.75));
    }
}
