//! Means and sums over runs of rows.

use super::{OnCpu, Operation, Reads, Rows};
use crate::cpu::kernels::add_scaled;
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Mask, Shape, Value};
use crate::plan::Backward;
use crate::{Error, Result};
use niwaki_simd::vectorised;

/// How rows are pooled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Pooling {
    /// Their mean; zeros where no row is let through.
    Mean,
    /// Their sum.
    Sum,
}

/// Pools consecutive runs of `group` rows: `output[j]` is over `input[j·group .. (j+1)·group]`.
///
/// With a mask, only rows `r` with `mask[r] = 1` count (a mean divides by their number).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pool {
    /// The operand.
    pub input: Value,
    /// Rows per result.
    pub group: usize,
    /// `[rows, 1]` of the operand.
    pub mask: Option<Mask>,
    /// Mean or sum.
    pub pooling: Pooling,
    /// `[rows / group, width]`.
    pub output: Value,
}

impl Graph {
    /// Adds [`Pool`].
    ///
    /// # Errors
    /// If `group` does not divide the rows, or the mask is not `[rows, 1]`.
    pub fn pool(
        &mut self,
        input: Value,
        group: usize,
        mask: Option<Mask>,
        pooling: Pooling,
    ) -> Result<Value> {
        let Shape { rows, width } = self.shape(input);
        if group == 0 || rows % group != 0 {
            let reason = format!("groups of {group} rows do not divide {rows}");
            return Err(Error::Unsupported { op: "pool", reason });
        }
        if let Some(mask) = mask {
            self.masked("pool", mask, Shape { rows, width: 1 })?;
        }
        let output = self.value(rows / group, width);
        self.push(Pool { input, group, mask, pooling, output });
        Ok(output)
    }
}

impl Operation for Pool {
    fn name(&self) -> &'static str {
        "pool"
    }

    fn reads(&self) -> Reads {
        Reads { mask: self.mask, ..Reads::values([self.input]) }
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
        Rows::Mixed
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

impl OnCpu for Pool {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let (width, group) = (block.graph.shape(self.input).width, self.group);
        let mask = self.mask.map(|mask| block.mask(mask));
        let groups = block.value(self.input).chunks_exact(group * width);
        for (place, (rows, out)) in groups.zip(block.result(self.output).chunks_exact_mut(width)).enumerate()
        {
            pool(rows, mask.map(|mask| &mask[place * group..(place + 1) * group]), self.pooling, out);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let Some(dx) = block.zeroed(self.input, &step.writes, 0) else { return };
        let (width, group) = (block.graph.shape(self.input).width, self.group);
        let mask = self.mask.map(|mask| block.mask(mask));
        let d = block.pulled(self.output).chunks_exact(width);
        for (place, (d, rows)) in d.zip(dx.chunks_exact_mut(group * width)).enumerate() {
            pool_backward(d, mask.map(|mask| &mask[place * group..(place + 1) * group]), self.pooling, rows);
        }
    }
}

/// The factor on each of a group's rows: 0 where masked out, 1 in a sum, one over the count in a mean.
fn share<F: Real>(mask: Option<&[u8]>, group: usize, pooling: Pooling) -> F {
    let count = mask.map_or(group, |mask| mask.iter().filter(|&&byte| byte != 0).count());
    match pooling {
        Pooling::Sum => F::ONE,
        Pooling::Mean => F::ONE / F::from_f64(count.max(1) as f64),
    }
}

vectorised! {
    /// Pools one group of rows into `out`.
    fn pool<F: Real>(rows: &[F], mask: Option<&[u8]>, pooling: Pooling, out: &mut [F]) {
        let group = rows.len() / out.len();
        let share = share(mask, group, pooling);
        out.fill(F::ZERO);
        for (place, row) in rows.chunks_exact(out.len()).enumerate() {
            if mask.is_none_or(|mask| mask[place] != 0) {
                add_scaled(out, share, row);
            }
        }
    }
}

/// Adds a pooled row's cotangent to its group's rows.
fn pool_backward<F: Real>(d: &[F], mask: Option<&[u8]>, pooling: Pooling, rows: &mut [F]) {
    let group = rows.len() / d.len();
    let share = share(mask, group, pooling);
    for (place, row) in rows.chunks_exact_mut(d.len()).enumerate() {
        if mask.is_none_or(|mask| mask[place] != 0) {
            add_scaled(row, share, d);
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::{Pool, Pooling};
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, grown};
    use crate::cuda::kernels::{ENTRIES, File, Unit};
    use crate::cuda::lower::{Block, Fused, Kind, Lowering, Program, Stage};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Shape, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "pool",
        source: &[ENTRIES, include_str!("pool.cu")],
        constants: &[],
        kernels: &[("pool_forward", 0), ("pool_backward", 0)],
    };

    const UNIT: Unit = Unit::plain(KERNELS);

    fn program(g: &mut Graph, pooling: Pooling, masked: bool) -> Result<Vec<Value>> {
        let x = grown(g, "x", ROWS, 18)?;
        let mask = masked.then(|| g.mask("seen", ROWS, 1));
        Ok(vec![g.pool(x, 3, mask, pooling)?, x])
    }

    impl OnCuda for Pool {
        const CASES: &'static [Case] = &[
            ("pool", |g| program(g, Pooling::Mean, false)),
            ("pool, masked mean", |g| program(g, Pooling::Mean, true)),
            ("pool, masked sum", |g| program(g, Pooling::Sum, true)),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            Vec::new()
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![UNIT])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Self { input, group, mask, pooling, output } = *self;
            let rows = to.all_rows(output);
            let width = to.shape(output).width;
            let mean = pooling == Pooling::Mean;
            let arguments =
                arguments![to.base(input)?, to.mask(mask), to.base(output)?, group, mean, rows, width];
            to.per_entry("pool", (UNIT, "pool_forward"), rows, width, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Self { input, group, mask, pooling, output } = *self;
            let Some(write) = step.writes[0] else { return Ok(()) };
            let rows = to.all_rows(output);
            let width = to.shape(output).width;
            let mean = pooling == Pooling::Mean;
            let arguments = arguments![
                to.cotangent(output)?,
                to.mask(mask),
                to.cotangent(input)?,
                group,
                mean,
                write == Write::Add,
                rows,
                width,
            ];
            to.per_entry("pool'", (UNIT, "pool_backward"), rows, width, arguments)
        }
    }

    impl Fused for Pool {
        fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
            let Self { input, group, mask, pooling, output } = *self;
            let (Shape { rows, width }, mean) = (block.shape(output), usize::from(pooling == Pooling::Mean));
            let places = [block.value(input)?, block.mask(mask)?, block.value(output)?, mean];
            Ok(vec![Stage::new(Kind::Pool).with(&places).with(&[rows, group, width])])
        }
    }
}

#[cfg(test)]
impl super::Law for Pool {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 6, 3);
        let mask = graph.mask("counted", 6, 1);
        let mean = graph.pool(x, 3, Some(mask), Pooling::Mean).unwrap();
        let sum = graph.pool(x, 2, None, Pooling::Sum).unwrap();
        check("pool", &graph, &[mean, sum]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_masked_mean() {
        // Rows (1, 2), (3, 4), (5, 6) with the middle one out: mean (3, 4); each counted row gets half the cotangent.
        let rows = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let mask = [1, 0, 1];
        let mut out = [0.0; 2];
        pool(&rows, Some(&mask), Pooling::Mean, &mut out);
        assert_eq!(out, [3.0, 4.0]);
        let mut d = [0.0; 6];
        pool_backward(&[1.0, 2.0], Some(&mask), Pooling::Mean, &mut d);
        assert_eq!(d, [0.5, 1.0, 0.0, 0.0, 0.5, 1.0]);
        pool(&rows, Some(&[0, 0, 0]), Pooling::Mean, &mut out);
        assert_eq!(out, [0.0, 0.0]);
    }
}
