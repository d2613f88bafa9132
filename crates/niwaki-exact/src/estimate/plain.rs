//! PPO's own terms, which a prefix's factor multiplies where nothing is clipped.
//!
//! Nothing follows the last choice, so a row of the last step enters every such loss through four sums over its
//! choices, and no loss changes them. With four tokens three quarters of all edges are summed once per pair
//! instead of once per loss.

use super::Workspace;
use super::scores::BLOCK;
use crate::sum::dot;
use crate::tree::{by_width, row_means, scale_rows, width};
use crate::{Pair, Table};

/// PPO's terms and what the rows of the last step come to.
#[derive(Debug)]
pub(crate) struct Plain {
    /// `r · A`. Shapes: `[prefixes, vocab]`
    pub(super) term: Vec<f64>,
    /// Mean term under the rollout policy. Shapes: `[prefixes]`
    mean: Vec<f64>,
    /// The last step's rows, the first of them at index 0.
    last: LastRows,
}

/// Sums over the choices of each row of the last step, with `h` its gradient at factor and visitation 1.
///
/// Shapes: `[vocab^(horizon − 1)]`
#[derive(Debug)]
struct LastRows {
    /// Variance of the term.
    variance: Vec<f64>,
    /// `|h|²`.
    square: Vec<f64>,
    /// `h · ∇η`.
    along: Vec<f64>,
}

impl Plain {
    /// Shapes: `ratio`, `advantage`, `eta_gradient` `[prefixes, vocab]`
    pub(crate) fn new(
        (old, new): (&Table, &Table),
        ratio: &[f64],
        advantage: &[f64],
        eta_gradient: &[f64],
    ) -> Self {
        let process = old.process();
        let vocab = process.vocab();
        let term: Vec<f64> =
            ratio.iter().zip(advantage).map(|(ratio, advantage)| ratio * advantage).collect();
        let mut mean = vec![0.0; process.prefixes()];
        row_means(vocab, old.prob(), &term, &mut mean);
        let (first, from) = (process.last_rows().start, process.inner_edges());
        let mut last = LastRows::zero(process.last_rows().len());
        let choices = Choices {
            prob: &old.prob()[from..],
            new_prob: &new.prob()[from..],
            term: &term[from..],
            eta_gradient: &eta_gradient[from..],
        };
        by_width!(vocab, sum_rows(vocab, choices, &mean[first..], &mut last));
        Self { term, mean, last }
    }
}

impl LastRows {
    fn zero(rows: usize) -> Self {
        Self { variance: vec![0.0; rows], square: vec![0.0; rows], along: vec![0.0; rows] }
    }
}

/// What is known of every choice of some rows. Shapes: `[rows, vocab]`
struct Choices<'a> {
    prob: &'a [f64],
    new_prob: &'a [f64],
    term: &'a [f64],
    eta_gradient: &'a [f64],
}

fn sum_rows<const V: usize>(vocab: usize, choices: Choices<'_>, mean: &[f64], last: &mut LastRows) {
    let v = width::<V>(vocab);
    let policies = choices.prob.chunks_exact(v).zip(choices.new_prob.chunks_exact(v));
    let terms = choices.term.chunks_exact(v).zip(choices.eta_gradient.chunks_exact(v));
    let sums = last.variance.iter_mut().zip(&mut last.square).zip(&mut last.along);
    for ((((prob, new_prob), (term, eta)), &mean), ((variance, square), along)) in
        policies.zip(terms).zip(mean).zip(sums)
    {
        let mut sum = [0.0; 3];
        for a in 0..v {
            let away = term[a] - mean;
            let h = prob[a] * term[a] - new_prob[a] * mean;
            sum[0] += prob[a] * (away * away);
            sum[1] += h * h;
            sum[2] += h * eta[a];
        }
        [*variance, *square, *along] = sum;
    }
}

impl Pair<'_> {
    /// Means of every row, and the values of all rows but the last step's, whose moments are left in `future` and
    /// `spread`.
    pub(super) fn plain_terms(&self, work: &mut Workspace) {
        let Plain { term, mean, last } = &self.plain;
        let (process, inner) = (self.process, self.process.inner_edges());
        let Workspace { factor, value, rows, future, spread, .. } = work;
        rows.iter_mut().zip(&*factor).zip(mean).for_each(|((row, factor), mean)| *row = factor * mean);
        value[..inner].copy_from_slice(&term[..inner]);
        scale_rows(process.vocab(), factor, &mut value[..inner]);
        let at = process.last_rows();
        future[at.clone()].copy_from_slice(&rows[at.clone()]);
        for ((spread, factor), variance) in spread[at.clone()].iter_mut().zip(&factor[at]).zip(&last.variance)
        {
            // Squares come last: that of a factor alone may overflow where the variance is zero.
            *spread = factor * (factor * variance);
        }
    }

    /// The square of the gradient and its product with ∇η over the rows of the last step, block by block.
    pub(super) fn plain_direction(&self, work: &Workspace, mut visit: impl FnMut((f64, f64))) {
        let LastRows { square, along, .. } = &self.plain.last;
        let rows = self.process.last_rows();
        let (reach, factor) = (&self.reach[rows.clone()], &work.factor[rows]);
        let (mut weight, mut weighed) = ([0.0; BLOCK], [0.0; BLOCK]);
        for start in (0..reach.len()).step_by(BLOCK) {
            let rows = start..(start + BLOCK).min(reach.len());
            let weights = weight.iter_mut().zip(&mut weighed);
            let of_rows = reach[rows.clone()].iter().zip(&factor[rows.clone()]).zip(&square[rows.clone()]);
            for ((weight, weighed), ((reach, factor), square)) in weights.zip(of_rows) {
                *weight = reach * factor;
                *weighed = *weight * square;
            }
            let weight = &weight[..rows.len()];
            visit((dot(weight, &weighed[..rows.len()]), dot(weight, &along[rows])));
        }
    }
}
