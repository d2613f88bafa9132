//! Recursions over the tree that every measurement shares.
//!
//! Rows are as wide as the vocabulary. Each loop is compiled for the small vocabularies of the paper and once for
//! any other (`V = 0`), so that rows of four become straight code.

use crate::Process;
use crate::wide::wide;

/// Calls a function that is generic in the width of a row.
macro_rules! by_width {
    ($vocab:expr, $function:ident($($argument:expr),* $(,)?)) => {
        match $vocab {
            2 => $function::<2>($($argument),*),
            3 => $function::<3>($($argument),*),
            4 => $function::<4>($($argument),*),
            _ => $function::<0>($($argument),*),
        }
    };
    ($vocab:expr, $function:ident::<_, $more:ident>($($argument:expr),* $(,)?)) => {
        match $vocab {
            2 => $function::<2, $more>($($argument),*),
            3 => $function::<3, $more>($($argument),*),
            4 => $function::<4, $more>($($argument),*),
            _ => $function::<0, $more>($($argument),*),
        }
    };
}
pub(crate) use by_width;

/// The width of a row: `V`, or the vocabulary where `V` is 0.
#[inline(always)]
pub(crate) const fn width<const V: usize>(vocab: usize) -> usize {
    if V == 0 { vocab } else { V }
}

/// Σ x·y over one row.
#[inline(always)]
fn weigh(x: &[f64], y: &[f64]) -> f64 {
    let mut sum = 0.0;
    for (x, y) in x.iter().zip(y) {
        sum += x * y;
    }
    sum
}

wide! {
    /// `total[p] = own[p] + Σ_a prob[p,a] · total[child]`: the expected sum of `own` from each prefix on.
    ///
    /// Shapes: `own`, `total` `[prefixes]`, `prob [prefixes, vocab]`. Summing along the tree is summing pairwise:
    /// the rounding grows with the horizon, not with the number of sequences.
    pub(crate) fn expected_sum(process: Process, prob: &[f64], own: &[f64], total: &mut [f64]) {
        by_width!(process.vocab(), expected_sum_of(process, prob, own, total));
    }
}

#[inline(always)]
fn expected_sum_of<const V: usize>(process: Process, prob: &[f64], own: &[f64], total: &mut [f64]) {
    let (v, last) = (width::<V>(process.vocab()), process.last_rows().start);
    total[last..].copy_from_slice(&own[last..]);
    for row in (0..last).rev() {
        let first = v * row;
        total[row] = own[row] + weigh(&prob[first..first + v], &total[first + 1..first + 1 + v]);
    }
}

wide! {
    /// The same with only the `window` nearest levels, each prefix's own included.
    ///
    /// `kept` ends as `Σ_{j<window} E[own of the prefix j steps on]`.
    pub(crate) fn windowed_sum(process: Process, prob: &[f64], own: &[f64], window: usize, kept: &mut [f64]) {
        by_width!(process.vocab(), windowed_sum_of(process, prob, own, window, kept));
    }
}

#[inline(always)]
fn windowed_sum_of<const V: usize>(
    process: Process,
    prob: &[f64],
    own: &[f64],
    window: usize,
    kept: &mut [f64],
) {
    let (v, last) = (width::<V>(process.vocab()), process.last_rows().start);
    if window == 0 {
        kept.fill(0.0);
        return;
    }
    kept.copy_from_slice(own);
    for _ in 1..window {
        // Parents come before children, so each pass reads the children as the pass before left them.
        for row in 0..last {
            let first = v * row;
            kept[row] = own[row] + weigh(&prob[first..first + v], &kept[first + 1..first + 1 + v]);
        }
    }
}

wide! {
    /// `mean[p] = Σ_a prob[p,a] · value[p,a]` over a stretch of rows.
    pub(crate) fn row_means(vocab: usize, prob: &[f64], value: &[f64], mean: &mut [f64]) {
        by_width!(vocab, row_means_of(vocab, prob, value, mean));
    }
}

#[inline(always)]
fn row_means_of<const V: usize>(vocab: usize, prob: &[f64], value: &[f64], mean: &mut [f64]) {
    let v = width::<V>(vocab);
    for ((mean, prob), value) in mean.iter_mut().zip(prob.chunks_exact(v)).zip(value.chunks_exact(v)) {
        *mean = weigh(prob, value);
    }
}

wide! {
    /// `value[p,a] *= by[p]` over a stretch of rows.
    pub(crate) fn scale_rows(vocab: usize, by: &[f64], value: &mut [f64]) {
        by_width!(vocab, scale_rows_of(vocab, by, value));
    }
}

#[inline(always)]
fn scale_rows_of<const V: usize>(vocab: usize, by: &[f64], value: &mut [f64]) {
    for (value, &by) in value.chunks_exact_mut(width::<V>(vocab)).zip(by) {
        value.iter_mut().for_each(|value| *value *= by);
    }
}

/// Terms along paths, and what [`path_moments`] finds of them.
///
/// Shapes: `prob`, `value [prefixes, vocab]`, `rows [prefixes]` the row means of `value`; `future` and `spread`
/// `[prefixes]` are filled with the mean and the variance of the sum from each prefix on.
pub(crate) struct Paths<'a> {
    pub(crate) process: Process,
    pub(crate) prob: &'a [f64],
    pub(crate) value: &'a [f64],
    pub(crate) rows: &'a [f64],
    pub(crate) future: &'a mut [f64],
    pub(crate) spread: &'a mut [f64],
}

/// Mean and variance of `Σ_t value` along a path drawn by `prob`, from the leaves up.
///
/// The variance follows the law of total variance: every term is a square, so nothing cancels.
pub(crate) fn path_moments(paths: Paths<'_>) -> (f64, f64) {
    let mut paths = paths;
    last_moments(&mut paths);
    inner_moments(paths)
}

/// [`path_moments`] from the last step's rows on, whose moments `future` and `spread` hold and whose values are not
/// read.
pub(crate) fn inner_moments(paths: Paths<'_>) -> (f64, f64) {
    let mut paths = paths;
    inner(&mut paths);
    (paths.future[0], paths.spread[0])
}

wide! {
    /// Mean and variance of the last step's rows.
    fn last_moments(paths: &mut Paths<'_>) {
        by_width!(paths.process.vocab(), last_moments_of(paths));
    }
}

wide! {
    /// Mean and variance from all other rows on, the last of them first.
    fn inner(paths: &mut Paths<'_>) {
        by_width!(paths.process.vocab(), inner_of(paths));
    }
}

#[inline(always)]
fn last_moments_of<const V: usize>(paths: &mut Paths<'_>) {
    let Paths { process, prob, value, rows, .. } = *paths;
    let (future, spread) = (&mut *paths.future, &mut *paths.spread);
    let v = width::<V>(process.vocab());
    for row in process.last_rows() {
        let edges = v * row..v * row + v;
        future[row] = rows[row];
        spread[row] = (prob[edges.clone()].iter().zip(&value[edges]))
            .fold(0.0, |sum, (prob, value)| sum + prob * (value - rows[row]) * (value - rows[row]));
    }
}

#[inline(always)]
fn inner_of<const V: usize>(paths: &mut Paths<'_>) {
    for row in (0..paths.process.last_rows().start).rev() {
        row_moments::<V>(paths, row);
    }
}

/// Mean and variance of one row from its values and what its children hold.
#[inline(always)]
fn row_moments<const V: usize>(paths: &mut Paths<'_>, row: usize) {
    let Paths { process, prob, value, rows, .. } = *paths;
    let (future, spread) = (&mut *paths.future, &mut *paths.spread);
    let v = width::<V>(process.vocab());
    let first = v * row;
    let (prob, value) = (&prob[first..first + v], &value[first..first + v]);
    let mean = rows[row] + weigh(prob, &future[first + 1..first + 1 + v]);
    let (next, below) = (&future[first + 1..first + 1 + v], &spread[first + 1..first + 1 + v]);
    let mut sum = 0.0;
    for a in 0..v {
        let away = value[a] + next[a] - mean;
        sum += prob[a] * (below[a] + away * away);
    }
    (future[row], spread[row]) = (mean, sum);
}

/// [`path_moments`] with only the `window` nearest levels, each prefix's own included: as [`windowed_sum`] is to
/// [`expected_sum`].
pub(crate) fn windowed_moments(paths: Paths<'_>, window: usize) {
    let mut paths = paths;
    paths.future.fill(0.0);
    paths.spread.fill(0.0);
    for _ in 0..window {
        // Parents come before children, so each pass reads the children as the pass before left them.
        windowed_pass(&mut paths);
        last_moments(&mut paths);
    }
}

wide! {
    /// One more level for every prefix but the last step's.
    fn windowed_pass(paths: &mut Paths<'_>) {
        by_width!(paths.process.vocab(), windowed_pass_of(paths));
    }
}

#[inline(always)]
fn windowed_pass_of<const V: usize>(paths: &mut Paths<'_>) {
    for row in 0..paths.process.last_rows().start {
        row_moments::<V>(paths, row);
    }
}
