//! Masked log-softmax, the chosen entry's log-probability and the entropy.

use super::{OnCpu, Operation, Reads, Rows};
use crate::Result;
use crate::cpu::kernels::{largest, sum};
use crate::cpu::{Block, Real, accumulate};
use crate::graph::{Graph, Index, Mask, Value, expect};
use crate::plan::Backward;
use niwaki_simd::vectorised;

/// Masked log-softmax of each row, the chosen entry's log-probability and the entropy.
///
/// With `lse_r = log Σ_{j visible} e^{logits[r, j]}` (maximum subtracted), `q[r, j] = logits[r, j] − lse_r`:
/// `log_prob[r] = q[r, action[r]]`, `entropy[r] = −Σ_j e^{q} q` over visible `j`. Both are `[rows, 1]`. A row whose
/// action is negative is idle: both are zero and no cotangent flows. Choosing a hidden entry gives `−∞`.
/// Backward: `d logits[r, j] = d log_prob (1[j = action] − e^{q}) − d entropy · e^{q} (q + entropy)`, zero at
/// hidden `j`. Saved: `[r, 2]` = `(lse_r, entropy_r)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pick {
    /// `[rows, choices]`.
    pub logits: Value,
    /// The choice of each row.
    pub action: Index,
    /// `[rows, choices]`: which entries may be chosen.
    pub mask: Option<Mask>,
    /// The chosen entry's log-probability.
    pub log_prob: Value,
    /// The entropy of the row's distribution.
    pub entropy: Value,
}

impl Graph {
    /// Adds [`Pick`]; returns the chosen log-probabilities and the entropies, `[rows, 1]` each.
    ///
    /// # Errors
    /// If actions are not one per row or may exceed the choices, or the mask is not `[rows, choices]`.
    pub fn pick_log_prob(
        &mut self,
        logits: Value,
        action: Index,
        mask: Option<Mask>,
    ) -> Result<(Value, Value)> {
        let shape = self.shape(logits);
        expect("pick_log_prob", "actions", shape.rows, self.index_rows(action))?;
        self.bounded("pick_log_prob", action, shape.width)?;
        if let Some(mask) = mask {
            self.masked("pick_log_prob", mask, shape)?;
        }
        let (log_prob, entropy) = (self.value(shape.rows, 1), self.value(shape.rows, 1));
        self.push(Pick { logits, action, mask, log_prob, entropy });
        Ok((log_prob, entropy))
    }
}

impl Operation for Pick {
    fn name(&self) -> &'static str {
        "pick_log_prob"
    }

    fn reads(&self) -> Reads {
        Reads { index: Some(self.action), mask: self.mask, ..Reads::values([self.logits]) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.log_prob, self.entropy]
    }

    fn kept(&self) -> Vec<Value> {
        vec![self.logits]
    }

    fn saved(&self, graph: &Graph) -> usize {
        2 * graph.shape(self.logits).rows
    }

    fn rows(&self) -> Rows {
        Rows::Apart
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}

impl OnCpu for Pick {
    fn scratch(&self, graph: &Graph) -> usize {
        graph.shape(self.logits).width
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize) {
        let (graph, saved) = (block.graph, block.saved(at));
        let width = graph.shape(self.logits).width;
        let (index, mask) = (block.index(self.action), self.mask.map(|mask| block.mask(mask)));
        let (chosen, entropies) = (block.result(self.log_prob), block.result(self.entropy));
        for row in block.spans(graph.shape(self.logits).rows).flatten() {
            let at = row * width..(row + 1) * width;
            let x = &block.value(self.logits)[at.clone()];
            let [a, b, total] = pick(x, mask.map(|mask| &mask[at]), index(row), block.scratch);
            // Outputs that nobody asked for have no room.
            chosen.get_mut(row).into_iter().for_each(|place| *place = a);
            entropies.get_mut(row).into_iter().for_each(|place| *place = b);
            if let Some(saved) = saved.get_mut(2 * row..2 * row + 2) {
                (saved[0], saved[1]) = (total, b);
            }
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, _: &mut [F]) {
        let Some(add) = accumulate(&step.writes, 0) else { return };
        let (graph, saved) = (block.graph, block.saved(step.op));
        let width = graph.shape(self.logits).width;
        let (index, mask) = (block.index(self.action), self.mask.map(|mask| block.mask(mask)));
        let (x, dx) = (block.value(self.logits), block.cotangent(self.logits));
        let (d_log_prob, d_entropy) = (block.pulled(self.log_prob), block.pulled(self.entropy));
        let or_zero = |d: &[F], row: usize| d.get(row).copied().unwrap_or(F::ZERO);
        for row in 0..x.len() / width {
            let at = row * width..(row + 1) * width;
            pick_backward(
                &x[at.clone()],
                mask.map(|mask| &mask[at.clone()]),
                index(row),
                &saved[2 * row..2 * row + 2],
                or_zero(d_log_prob, row),
                or_zero(d_entropy, row),
                &mut dx[at],
                add,
            );
        }
    }
}

/// Log-sum-exp of the visible logits; `exponentials` receives `e^{logit − maximum}`, zero where hidden, and their sum
/// comes second.
#[inline(always)]
fn log_sum<F: Real>(logits: &[F], mask: Option<&[u8]>, exponentials: &mut [F]) -> [F; 2] {
    let visible = |place: usize| mask.is_none_or(|mask| mask[place] != 0);
    for (place, (&logit, out)) in logits.iter().zip(exponentials.iter_mut()).enumerate() {
        *out = if visible(place) { logit } else { F::LOWEST };
    }
    let highest = largest(exponentials);
    for (place, out) in exponentials.iter_mut().enumerate() {
        let exponential = (*out - highest).exponential();
        *out = if visible(place) { exponential } else { F::ZERO };
    }
    let all = sum(exponentials);
    [highest + all.logarithm(), all]
}

vectorised! {
    /// Log-probabilities of one row of logits, −∞ where hidden, with the very bits that `pick_log_prob` reports on the
    /// CPU for each choice.
    ///
    /// Shapes: all three `[choices]`.
    pub fn log_softmax<F: Real>(logits: &[F], mask: Option<&[u8]>, out: &mut [F]) {
        let [total, _] = log_sum(logits, mask, out);
        for (place, (&logit, out)) in logits.iter().zip(out).enumerate() {
            *out = if mask.is_none_or(|mask| mask[place] != 0) { logit - total } else { F::LOWEST };
        }
    }

    /// One row: the chosen log-probability, the entropy and the log-sum-exp.
    fn pick<F: Real>(logits: &[F], mask: Option<&[u8]>, action: i32, scratch: &mut [F]) -> [F; 3] {
        if action < 0 {
            return [F::ZERO; 3];
        }
        let scratch = &mut scratch[..logits.len()];
        let [total, all] = log_sum(logits, mask, scratch);
        // −Σ p log p, with p the exponentials' shares; nothing visible has none.
        for (term, &logit) in scratch.iter_mut().zip(logits) {
            let share = *term * (total - logit);
            *term = if *term > F::ZERO { share } else { F::ZERO };
        }
        let entropy = if all == F::ZERO { F::ZERO } else { sum(scratch) / all };
        let chosen = action as usize;
        let visible = mask.is_none_or(|mask| mask[chosen] != 0);
        [if visible { logits[chosen] - total } else { F::LOWEST }, entropy, total]
    }

    /// One row's backward: writes or adds the logits' cotangent.
    fn pick_backward<F: Real>(
        logits: &[F],
        mask: Option<&[u8]>,
        action: i32,
        saved: &[F],
        d_log_prob: F,
        d_entropy: F,
        d_logits: &mut [F],
        accumulate: bool,
    ) {
        let (total, entropy) = (saved[0], saved[1]);
        for place in 0..logits.len() {
            let hidden = action < 0 || mask.is_some_and(|mask| mask[place] == 0);
            let log_prob = logits[place] - total;
            let prob = log_prob.exponential();
            let chosen = if place as i32 == action { F::ONE } else { F::ZERO };
            let d = d_log_prob * (chosen - prob) - d_entropy * prob * (log_prob + entropy);
            let d = if hidden { F::ZERO } else { d };
            d_logits[place] = if accumulate { d_logits[place] + d } else { d };
        }
    }
}

#[cfg(feature = "cuda")]
mod cuda {
    use super::Pick;
    use crate::Result;
    use crate::cuda::check::{Case, ROWS, grown};
    use crate::cuda::kernels::{ENTRIES, File, Unit};
    use crate::cuda::lower::{Lowering, Program};
    use crate::cuda::tape::arguments;
    use crate::graph::{Graph, Value};
    use crate::ops::OnCuda;
    use crate::plan::{Backward, Write};

    /// Choices up to which a thread takes a whole row of logits.
    const FEW_CHOICES: usize = 64;

    const KERNELS: &File = &File {
        name: "pick",
        source: &[ENTRIES, include_str!("pick.cu")],
        constants: &[],
        kernels: &[("pick_few", 0), ("pick_many", 0), ("pick_backward", 0)],
    };

    const UNIT: Unit = Unit::plain(KERNELS);

    fn program(g: &mut Graph, choices: usize, masked: bool) -> Result<Vec<Value>> {
        let logits = grown(g, "x", ROWS, choices)?;
        let action = g.indices("action", ROWS, choices);
        let mask = masked.then(|| g.mask("seen", ROWS, choices));
        let (log_prob, entropy) = g.pick_log_prob(logits, action, mask)?;
        Ok(vec![log_prob, entropy])
    }

    impl OnCuda for Pick {
        const CASES: &'static [Case] = &[
            ("pick_log_prob", |g| program(g, 5, false)),
            ("pick_log_prob, masked", |g| program(g, 6, true)),
            ("pick_log_prob, many, masked", |g| program(g, 70, true)),
        ];

        fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
            Vec::new()
        }

        fn units(&self, _: &Program<'_>) -> Result<Vec<Unit>> {
            Ok(vec![UNIT])
        }

        fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
            let Self { logits, action, mask, log_prob, entropy } = *self;
            let x = to.view(logits)?;
            let (first, step) = to.rows_of(logits);
            let arguments = arguments![
                to.base(logits)?,
                to.integers(action),
                to.mask(mask),
                to.base(log_prob)?,
                to.base(entropy)?,
                to.saved(at),
                first,
                step,
                x.rows,
                x.width,
            ];
            let (name, lanes) = if x.width <= FEW_CHOICES { ("pick_few", 1) } else { ("pick_many", 32) };
            to.per_entry("pick_log_prob", (UNIT, name), x.rows, lanes, arguments)
        }

        fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
            let Self { logits, action, mask, log_prob, entropy } = *self;
            let Some(write) = step.writes[0] else { return Ok(()) };
            let x = to.view(logits)?;
            let arguments = arguments![
                x.at,
                to.integers(action),
                to.mask(mask),
                to.must_saved(step.op)?,
                to.maybe_cotangent(log_prob),
                to.maybe_cotangent(entropy),
                to.cotangent(logits)?,
                write == Write::Add,
                x.rows,
                x.width,
            ];
            to.per_entry("pick_log_prob'", (UNIT, "pick_backward"), x.rows, x.width, arguments)
        }
    }
}

#[cfg(test)]
impl super::Law for Pick {
    fn check() {
        use super::law::{check, leaf};
        let mut graph = Graph::new();
        let logits = leaf(&mut graph, "logits", 7, 5);
        let action = graph.indices("action", 7, 5);
        let (log_prob, entropy) = graph.pick_log_prob(logits, action, None).unwrap();
        check("pick_log_prob", &graph, &[log_prob, entropy]);
        check("pick_log_prob, entropy alone", &graph, &[entropy]);

        let mut graph = Graph::new();
        let logits = leaf(&mut graph, "logits", 7, 8);
        let action = graph.indices("action", 7, 8);
        let mask = graph.mask("open", 7, 8);
        let (log_prob, entropy) = graph.pick_log_prob(logits, action, Some(mask)).unwrap();
        check("masked pick_log_prob", &graph, &[log_prob, entropy]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_visible_of_three() {
        // Logits ln 1 and ln 3 visible: probabilities 1/4 and 3/4; H = ln 4 − (3/4) ln 3.
        let logits = [0.0, 9.0, 3.0_f64.ln()];
        let mask = [1, 0, 1];
        let [log_prob, entropy, _] = pick(&logits, Some(&mask), 2, &mut [0.0; 3]);
        assert!((log_prob - 0.75_f64.ln()).abs() < 1e-15);
        assert!((entropy - (4.0_f64.ln() - 0.75 * 3.0_f64.ln())).abs() < 1e-15);
        let mut all = [0.0; 3];
        log_softmax(&logits, Some(&mask), &mut all);
        assert_eq!((all[1], all[2]), (f64::NEG_INFINITY, log_prob));
        assert_eq!(pick(&logits, Some(&mask), -1, &mut [0.0; 3]), [0.0; 3]);
        assert_eq!(pick(&logits, Some(&mask), 1, &mut [0.0; 3])[0], f64::NEG_INFINITY);
    }
}
