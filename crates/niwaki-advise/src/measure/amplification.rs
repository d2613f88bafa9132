//! How much longer a correction makes the gradient: the norm of the corrected surrogate's cotangent over that of PPO's.
//!
//! With an advantage that is constant along a trajectory, the routed channel credits each step with every later one: step
//! `i` of `T` counts `1 + α(T − i)` times, on fresh data too. The cotangents are the kernel's own.

use crate::trajectory::Chunk;
use niwaki_correction::{Batch, Clip, Correction, Rows, Surrogate, Workspace};
use serde::Serialize;

/// Strengths at which squares are summed.
pub(crate) const STRENGTHS: [f64; 7] = [0.0, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0];

/// The place among [`STRENGTHS`] of the strongest correction that is ever advised.
pub(crate) const ADVISED: usize = 3;

/// What a correction of one strength does to the length of the gradient.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AmplificationRow {
    /// The strength.
    pub alpha: f64,
    /// The norm of the corrected gradient with respect to the log-probs, over PPO's.
    pub amplification: f64,
}

/// Squared cotangents of each trajectory of a chunk, at every strength.
#[derive(Debug, Default)]
pub(crate) struct Cotangents {
    workspace: Workspace<f64>,
    /// `[lanes]`
    squares: Vec<[f64; STRENGTHS.len()]>,
    /// Log-probs now and then, and advantages, `[steps + 1]` each.
    with_one_more: [Vec<f64>; 3],
    offsets: Vec<usize>,
    weights: Vec<f64>,
}

impl Clone for Cotangents {
    /// Buffers hold nothing from one chunk to the next.
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl Cotangents {
    /// Takes a chunk.
    pub(crate) fn fill(&mut self, chunk: &Chunk, clip: Clip) {
        self.squares.clear();
        self.squares.resize(chunk.lanes.len(), [0.0; STRENGTHS.len()]);
        let steps = chunk.steps();
        if steps == 0 {
            return;
        }
        // The kernel gives the cotangent of a mean over the chunk's steps. One step more, without an advantage and with the
        // weight that is missing to a power of two, makes that a division without rounding: what a trajectory adds is the same
        // in a chunk of any size.
        let whole = (steps + 1).next_power_of_two();
        let Self { workspace, squares, with_one_more: [new, old, advantage], offsets, weights } = self;
        let filled = [(new, &chunk.new, -1.0), (old, &chunk.old, -1.0), (advantage, &chunk.advantage, 0.0)];
        let [new, old, advantage] = filled.map(|(own, values, last)| {
            own.clear();
            own.extend_from_slice(values);
            own.push(last);
            &*own
        });
        offsets.clear();
        offsets.extend_from_slice(&chunk.offsets);
        offsets.push(steps + 1);
        weights.clear();
        weights.resize(chunk.lanes.len(), 1.0);
        weights.push((whole - steps) as f64);
        let batch = Batch::new(Rows::ragged(offsets), new, old, advantage).weighted(weights);
        let scale = (whole as f64).powi(2);
        for (k, &alpha) in STRENGTHS.iter().enumerate() {
            let found = Correction::tempered(alpha).and_then(|correction| {
                let surrogate = Surrogate { clip: Some(clip), ..Surrogate::new(correction) };
                surrogate.cotangent(&batch, workspace)
            });
            for (squares, row) in squares.iter_mut().zip(chunk.offsets.windows(2)) {
                squares[k] = match found {
                    Ok(values) => {
                        scale * values[row[0]..row[1]].iter().map(|value| value * value).sum::<f64>()
                    }
                    Err(_) => f64::NAN,
                };
            }
        }
    }

    /// Those of one trajectory.
    pub(crate) fn of(&self, lane: usize) -> [f64; STRENGTHS.len()] {
        self.squares[lane]
    }
}

/// The ratios of the norms at every strength.
pub(crate) fn ratios(squares: &[f64; STRENGTHS.len()]) -> [f64; STRENGTHS.len()] {
    squares.map(|square| (square / squares[0]).sqrt())
}

/// The ratio at any strength: its square is interpolated by a cubic, which is exact on fresh data, where it is a parabola.
pub(crate) fn at(ratios: &[f64; STRENGTHS.len()], alpha: f64) -> f64 {
    if let Some(k) = STRENGTHS.iter().position(|&known| known == alpha) {
        return ratios[k];
    }
    let above = STRENGTHS.iter().position(|&known| known > alpha).unwrap_or(STRENGTHS.len() - 1);
    let first = above.saturating_sub(2).min(STRENGTHS.len() - 4);
    let squared: f64 = (first..first + 4)
        .map(|i| {
            let others = (first..first + 4).filter(|&j| j != i);
            let basis = others.map(|j| (alpha - STRENGTHS[j]) / (STRENGTHS[i] - STRENGTHS[j]));
            ratios[i] * ratios[i] * basis.product::<f64>()
        })
        .sum();
    squared.max(0.0).sqrt()
}

/// The largest strength up to which the ratio stays within `limit`; 0 where it is never known to.
pub(crate) fn strength_within(ratios: &[f64; STRENGTHS.len()], limit: f64) -> f64 {
    // Written so that what is not a number lies beyond.
    let within = |ratio: f64| ratio <= limit;
    let Some(beyond) = ratios.iter().position(|&ratio| !within(ratio)) else { return 1.0 };
    if beyond == 0 {
        return 0.0;
    }
    let (mut low, mut high) = (STRENGTHS[beyond - 1], STRENGTHS[beyond]);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if within(at(ratios, middle)) { low = middle } else { high = middle }
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Field;
    use crate::trajectory::{Came, Record};

    /// Fresh completions of some length, one advantage each: 1 and −1.
    fn fresh(steps: usize) -> [f64; STRENGTHS.len()] {
        let (mut chunk, mut record) = (Chunk::default(), Record::default());
        for advantage in [1.0, -1.0] {
            record.clear();
            record.fill(Field::OldLogProb, Came::Many).resize(steps, -1.0);
            record.fill(Field::NewLogProb, Came::Many).resize(steps, -1.0);
            record.fill(Field::Advantage, Came::One).push(advantage);
            chunk.push(&record, None).unwrap();
        }
        let mut cotangents = Cotangents::default();
        cotangents.fill(&chunk, Clip::PPO);
        let (one, other) = (cotangents.of(0), cotangents.of(1));
        ratios(&std::array::from_fn(|k| one[k] + other[k]))
    }

    /// The root mean square of 1 + α(T − i) over i = 1, …, T.
    fn by_hand(steps: usize, alpha: f64) -> f64 {
        let square = |i: usize| (1.0 + alpha * (steps - i) as f64).powi(2);
        ((1..=steps).map(square).sum::<f64>() / steps as f64).sqrt()
    }

    #[test]
    fn fresh_completions_by_hand() {
        // The mean of (1 + 0.1 j)² over j = 0, …, 63 is 1 + 0.2 · 31.5 + 0.01 · 1333.5 = 20.635, of which the root is 4.543.
        for (steps, expected) in [(64, 4.543), (512, 30.39), (4096, 237.3)] {
            let ratios = fresh(steps);
            assert!((ratios[ADVISED] / by_hand(steps, 0.1) - 1.0).abs() < 1e-9);
            assert!((ratios[ADVISED] / expected - 1.0).abs() < 1e-3, "{steps}: {}", ratios[ADVISED]);
            for alpha in [0.0003, 0.01, 0.029, 0.07, 0.3, 0.9] {
                assert!((at(&ratios, alpha) / by_hand(steps, alpha) - 1.0).abs() < 1e-6, "{steps} {alpha}");
            }
        }
    }

    #[test]
    fn the_strength_of_a_limit_has_it() {
        let ratios = fresh(64);
        let alpha = strength_within(&ratios, 2.0);
        assert!((by_hand(64, alpha) - 2.0).abs() < 1e-6, "{alpha}");
        assert_eq!(strength_within(&fresh(1), 2.0), 1.0);
        // What is not a number is not within.
        assert_eq!(strength_within(&[f64::NAN; STRENGTHS.len()], 2.0), 0.0);
    }
}
