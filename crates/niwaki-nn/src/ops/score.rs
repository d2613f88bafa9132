//! Products of rows with rows.

use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::kernels::{add_scaled, dot};
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Value, expect};
use crate::plan::Backward;
use niwaki_simd::vectorised;

/// `output[r, s] = scale · query[r] · key[s]`: a pointer's scores, `[query rows, key rows]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Score {
    /// `[query rows, width]`.
    pub query: Value,
    /// `[key rows, width]`.
    pub key: Value,
    /// Factor.
    pub scale: f64,
    /// The result.
    pub output: Value,
}

impl Graph {
    /// Adds [`Score`].
    ///
    /// # Errors
    /// If the widths differ.
    pub fn score(&mut self, query: Value, key: Value, scale: f64) -> Result<Value> {
        expect("score", "key width", self.shape(query).width, self.shape(key).width)?;
        let output = self.value(self.shape(query).rows, self.shape(key).rows);
        self.push(Score { query, key, scale, output });
        Ok(output)
    }
}

impl Operation for Score {
    fn name(&self) -> &'static str {
        "score"
    }

    fn reads(&self) -> Reads {
        Reads::values([self.query, self.key])
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.query, self.key]
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

impl OnCpu for Score {
    fn scratch(&self, _: &Graph) -> usize {
        0
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let (graph, Self { query, key, output, .. }) = (block.graph, *self);
        let width = graph.shape(query).width;
        let (queries, keys) = (graph.shape(query).size(), graph.shape(key).size());
        let (q, k) = (block.value(query).chunks_exact(queries), block.value(key).chunks_exact(keys));
        let out = block.result(output).chunks_exact_mut(graph.shape(output).size());
        for ((q, k), out) in q.zip(k).zip(out) {
            score(q, k, width, F::from_f64(self.scale), out);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let (graph, Self { query, key, output, .. }) = (block.graph, *self);
        let width = graph.shape(query).width;
        let keys = graph.shape(key).rows;
        for (place, (value, other)) in [(query, key), (key, query)].into_iter().enumerate() {
            let Some(dx) = block.zeroed(value, &step.writes, place) else { continue };
            let others = block.value(other).chunks_exact(graph.shape(other).size());
            let d = block.pulled(output).chunks_exact(graph.shape(output).size());
            for ((d, other), dx) in d.zip(others).zip(dx.chunks_exact_mut(graph.shape(value).size())) {
                score_backward(d, keys, other, width, F::from_f64(self.scale), place == 1, dx);
            }
        }
    }
}

vectorised! {
    /// `out[r, s] = scale · query[r] · key[s]` for one item.
    fn score<F: Real>(query: &[F], key: &[F], width: usize, scale: F, out: &mut [F]) {
        let keys = key.len() / width;
        for (query, out) in query.chunks_exact(width).zip(out.chunks_exact_mut(keys)) {
            for (key, out) in key.chunks_exact(width).zip(out) {
                *out = scale * dot(query, key);
            }
        }
    }

    /// Adds `scale · Σ_s d[r, s] other[s]`, or with `transposed` `scale · Σ_r d[r, s] other[r]`, for one item.
    fn score_backward<F: Real>(
        d: &[F],
        keys: usize,
        other: &[F],
        width: usize,
        scale: F,
        transposed: bool,
        out: &mut [F],
    ) {
        for (row, d) in d.chunks_exact(keys).enumerate() {
            for (key, &d) in d.iter().enumerate() {
                let (to, from) = if transposed { (key, row) } else { (row, key) };
                add_scaled(&mut out[to * width..][..width], scale * d, &other[from * width..][..width]);
            }
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Score;
    use crate::Result;
    use crate::cuda::check::{Case, grown};
    use crate::cuda::kernels::{ENTRIES, File, Unit};
    use crate::cuda::lower::{Lowering, Program};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    const KERNELS: &File = &File {
        name: "score",
        source: &[ENTRIES, include_str!("score.cu")],
        constants: &[],
        kernels: &[("score_forward", 0), ("score_backward_query", 0), ("score_backward_key", 0)],
    };

    const UNIT: Unit = Unit::plain(KERNELS);

    impl OnCuda for Score {
        const CASES: &'static [Case] = &[("score", |g| {
            let query = grown(g, "query", 3, 20)?;
            let key = grown(g, "key", 7, 20)?;
            Ok(vec![g.score(query, key, 0.3)?])
        })];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            Vec::new()
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![UNIT])
        }

        fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
            let Self { query, key, scale, output } = *self;
            let (from, out) = (to.shape(query), to.shape(output));
            let rows = to.all_rows(output);
            let arguments = arguments![
                to.base(query)?,
                to.base(key)?,
                to.base(output)?,
                from.rows,
                from.width,
                scale as f32,
                rows,
                out.width
            ];
            let grid = ((rows * out.width).div_ceil(8), 1, 1);
            to.launch("score", (UNIT, "score_forward"), grid, 256, 0, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Self { query, key, scale, output } = *self;
            let (q, k, scale) = (to.shape(query), to.shape(key), scale as f32);
            let dout = to.cotangent(output)?;
            if let Some(write) = step.writes[0] {
                let rows = to.all_rows(query);
                let (into, add) = (to.cotangent(query)?, write == Write::Add);
                let arguments =
                    arguments![dout, to.base(key)?, into, add, q.rows, k.rows, scale, rows, q.width];
                to.per_entry("score'", (UNIT, "score_backward_query"), rows, q.width, arguments)?;
            }
            if let Some(write) = step.writes[1] {
                let rows = to.all_rows(key);
                let (into, add) = (to.cotangent(key)?, write == Write::Add);
                let arguments =
                    arguments![dout, to.base(query)?, into, add, q.rows, k.rows, scale, rows, q.width];
                to.per_entry("score'", (UNIT, "score_backward_key"), rows, q.width, arguments)?;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
impl super::Law for Score {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let (query, key) = (leaf(&mut graph, "q", 3, 5), leaf(&mut graph, "k", 4, 5));
        let across = graph.score(query, key, 0.3).unwrap();
        let within = graph.score(query, query, 0.7).unwrap();
        let clipped = graph.activate(across, crate::Activation::Tanh);
        check("score", &graph, &[clipped, within]);
    }
}
