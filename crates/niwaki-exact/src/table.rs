//! The tabular softmax policy: one logit per prefix and token.
//!
//! Owns how logits become probabilities and how a score is pulled back into them; knows nothing of rewards.

use crate::tree::{by_width, width};
use crate::twofold::{ABREAST, Abreast, Twofold};
use crate::wide::wide;
use crate::{Error, Process};
use niwaki_correction::Real;

/// A softmax policy with a row of logits per prefix.
///
/// Paper: `app:testbed-protocol` (tabular policy)
#[derive(Clone, Debug)]
pub struct Table {
    process: Process,
    log_prob: Vec<f64>,
    prob: Vec<f64>,
    /// What `prob` lacks to the exact softmax of the logits, so that values can be taken in twofold numbers.
    residue: Vec<f64>,
}

impl Table {
    /// The policy of a table of logits.
    ///
    /// Shapes: `logits [prefixes, vocab]`, rows as [`Process::row`] numbers them.
    ///
    /// # Errors
    /// Where the length is wrong, a logit is not finite, or a probability underflows.
    pub fn new(process: Process, logits: &[f64]) -> Result<Self, Error> {
        if logits.len() != process.edges() {
            return Err(Error::Length {
                what: "logits",
                came: logits.len(),
                expected: process.edges(),
                axes: "prefixes × vocab",
                process,
            });
        }
        if let Some(index) = logits.iter().position(|logit| !logit.is_finite()) {
            return Err(Error::NotFinite { what: "logits", index });
        }
        let vocab = process.vocab();
        let mut table = Self {
            process,
            log_prob: vec![0.0; logits.len()],
            prob: vec![0.0; logits.len()],
            residue: vec![0.0; logits.len()],
        };
        let mut total = vec![0.0; process.prefixes()];
        softmax(vocab, logits, &mut table, &mut total)?;
        for (log_prob, total) in table.log_prob.chunks_exact_mut(vocab).zip(&total) {
            let log_total = total.ln();
            log_prob.iter_mut().for_each(|log_prob| *log_prob -= log_total);
        }
        Ok(table)
    }

    /// The policy that draws every token alike.
    #[must_use]
    pub fn uniform(process: Process) -> Self {
        let share = Twofold::new(process.vocab() as f64).reciprocal::<false>();
        Self {
            process,
            log_prob: vec![-(process.vocab() as f64).ln(); process.edges()],
            prob: vec![share.high; process.edges()],
            residue: vec![share.low; process.edges()],
        }
    }

    /// The process.
    #[must_use]
    pub const fn process(&self) -> Process {
        self.process
    }

    /// Shapes: `[prefixes, vocab]`
    #[must_use]
    pub fn prob(&self) -> &[f64] {
        &self.prob
    }

    /// Shapes: `[prefixes, vocab]`
    #[must_use]
    pub fn log_prob(&self) -> &[f64] {
        &self.log_prob
    }

    /// A probability with all its digits.
    #[inline(always)]
    pub(crate) fn exact_prob(&self, edge: usize) -> Twofold {
        Twofold { high: self.prob[edge], low: self.residue[edge] }
    }

    /// The probability that each prefix is visited at its step.
    ///
    /// Time-indexed on purpose: occupancies summed over time have no such product form.
    ///
    /// Shapes: `[prefixes]`. Paper: `sec:correction` (d_{π,t}), `app:rho`
    #[must_use]
    pub fn visitation(&self) -> Vec<f64> {
        let (vocab, prefixes) = (self.process.vocab(), self.process.prefixes());
        let mut visitation = vec![1.0; prefixes];
        for row in 0..prefixes / vocab {
            for edge in vocab * row..vocab * (row + 1) {
                visitation[edge + 1] = visitation[row] * self.prob[edge];
            }
        }
        visitation
    }

    /// Turns weights on scores into a gradient of the logits: `Σ_a weight[p,a] ∂ log π(a|p) / ∂ logits[p,·]`.
    ///
    /// Shapes: `weight [prefixes, vocab]`, or its first rows, in place.
    pub fn pull_back(&self, weight: &mut [f64]) {
        self.pull_back_from(0, weight);
    }

    /// The same for a stretch of rows that starts at edge `from`.
    pub(crate) fn pull_back_from(&self, from: usize, weight: &mut [f64]) {
        pull_back(self.process.vocab(), &self.prob[from..], weight);
    }
}

wide! {
    /// Fills a table some rows at a time, side by side; `log_prob` still lacks the log of its row's `total`, which no
    /// vector takes.
    fn softmax<FUSED>(
        vocab: usize,
        logits: &[f64],
        table: &mut Table,
        total: &mut [f64],
    ) -> Result<(), Error> {
        by_width!(vocab, softmax_of::<_, FUSED>(vocab, logits, table, total))
    }
}

#[inline(always)]
fn softmax_of<const V: usize, const FUSED: bool>(
    vocab: usize,
    logits: &[f64],
    table: &mut Table,
    totals: &mut [f64],
) -> Result<(), Error> {
    let v = width::<V>(vocab);
    let mut grown = vec![Abreast::ZERO; v];
    let out = table.prob.chunks_mut(v * ABREAST).zip(table.residue.chunks_mut(v * ABREAST));
    let out = out.zip(table.log_prob.chunks_mut(v * ABREAST)).zip(totals.chunks_mut(ABREAST));
    for (block, (logits, (((prob, residue), log_prob), totals))) in
        logits.chunks(v * ABREAST).zip(out).enumerate()
    {
        let (mut highest, mut lowest) = ([0.0; ABREAST], [0.0; ABREAST]);
        for (row, logits) in logits.chunks_exact(v).enumerate() {
            highest[row] = logits.iter().fold(f64::NEG_INFINITY, |high, &logit| logit.larger(high));
            lowest[row] = logits.iter().fold(f64::INFINITY, |low, &logit| logit.smaller(low));
        }
        for row in 0..ABREAST {
            let spread = highest[row] - lowest[row];
            if spread >= 700.0 {
                return Err(Error::Support { row: block * ABREAST + row, spread });
            }
        }
        let mut total = Abreast::ZERO;
        for (a, grown) in grown.iter_mut().enumerate() {
            // Rows that are not there count as even ones.
            let mut logit = highest;
            for (row, logits) in logits.chunks_exact(v).enumerate() {
                logit[row] = logits[a];
            }
            let mut below = Abreast::ZERO;
            for row in 0..ABREAST {
                below.put(row, Twofold::difference(logit[row], highest[row]));
            }
            *grown = below.exp::<FUSED>();
            for row in 0..ABREAST {
                total.put(row, total.at(row).plus(grown.at(row)));
            }
        }
        totals.copy_from_slice(&total.high[..totals.len()]);
        let mut share = Abreast::ZERO;
        for row in 0..ABREAST {
            share.put(row, total.at(row).reciprocal::<FUSED>());
        }
        for (a, grown) in grown.iter_mut().enumerate() {
            for row in 0..ABREAST {
                grown.put(row, grown.at(row).times_by::<FUSED>(share.at(row)));
            }
            for row in 0..logits.len() / v {
                let edge = row * v + a;
                (prob[edge], residue[edge]) = (grown.high[row], grown.low[row]);
                log_prob[edge] = logits[edge] - highest[row];
            }
        }
    }
    Ok(())
}

wide! {
    fn pull_back(vocab: usize, prob: &[f64], weight: &mut [f64]) {
        by_width!(vocab, pull_back_of(vocab, prob, weight));
    }
}

#[inline(always)]
fn pull_back_of<const V: usize>(vocab: usize, prob: &[f64], weight: &mut [f64]) {
    let v = width::<V>(vocab);
    for (weight, prob) in weight.chunks_exact_mut(v).zip(prob.chunks_exact(v)) {
        let mut total = 0.0;
        for weight in &*weight {
            total += weight;
        }
        for (weight, &prob) in weight.iter_mut().zip(prob) {
            *weight -= prob * total;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn softmax_by_hand() {
        // Logits ln 1, ln 2, ln 5: probabilities 1/8, 2/8, 5/8.
        let process = Process::new(3, 1).unwrap();
        let table = Table::new(process, &[0.0, 2.0_f64.ln(), 5.0_f64.ln()]).unwrap();
        for (came, expected) in table.prob().iter().zip([0.125, 0.25, 0.625]) {
            assert!((came - expected).abs() < 1e-16);
        }
        assert!((table.log_prob()[2] - 0.625_f64.ln()).abs() < 1e-15);
        // Weight 1 on the score of token 1: (0, 1, 0) − probabilities.
        let mut weight = [0.0, 1.0, 0.0];
        table.pull_back(&mut weight);
        for (came, expected) in weight.iter().zip([-0.125, 0.75, -0.625]) {
            assert!((came - expected).abs() < 1e-16);
        }
    }

    #[test]
    fn probabilities_sum_to_one_far_beyond_f64() {
        let process = Process::new(5, 3).unwrap();
        let logits: Vec<f64> = (0..process.edges()).map(|j| 3.0 * (j as f64).sin()).collect();
        let table = Table::new(process, &logits).unwrap();
        for row in 0..process.prefixes() {
            let total = (5 * row..5 * row + 5).fold(Twofold::ZERO, |sum, e| sum.plus(table.exact_prob(e)));
            assert!(total.minus(Twofold::new(1.0)).value().abs() < 1e-30);
        }
        let visited: f64 = table.visitation()[process.level(2)].iter().sum();
        assert!((visited - 1.0).abs() < 1e-15);
    }

    #[test]
    fn refusals() {
        let process = Process::new(2, 2).unwrap();
        let refuse = |logits: &[f64]| Table::new(process, logits).unwrap_err().to_string();
        assert_eq!(refuse(&[0.0; 5]), "logits has 5 values; vocab 2, horizon 2 needs 6 (prefixes × vocab)");
        assert_eq!(refuse(&[0.0, 0.0, 0.0, f64::NAN, 0.0, 0.0]), "logits[3] is not a finite number");
        assert_eq!(
            refuse(&[0.0, 0.0, 0.0, 900.0, 0.0, 0.0]),
            "logits row 1 spans 900: a probability underflows to 0; keep each row's spread below 700"
        );
    }
}
