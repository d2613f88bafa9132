//! Truncated importance sampling whose weights the batch brings to a mean of one: verl's `rollout_is_batch_normalize`.

use super::written::{Acts, Shape, Steps};
use super::{Correction, MOST, Member, Parameter, Rule};
use crate::Error;

static TOKEN: Shape = Shape { coupled: true, ..Shape::new("normalised-token-tis", Acts::Weigh(by_token)) };
static SEQUENCE: Shape =
    Shape { coupled: true, ..Shape::new("normalised-sequence-tis", Acts::Weigh(by_sequence)) };

/// `w_t = min(r_t, high)` over its mean over the batch's steps.
///
/// Paper: `sec:related-work`
pub(super) static NORMALISED_TOKEN_TIS: Member = Member {
    name: "normalised-token-tis",
    title: "Normalised token TIS",
    summary: "Token TIS with its weights divided by their mean over the batch.",
    formula: "w = min(r, high) / mean",
    parameters: &[Parameter::HIGH],
    rule: |values| Rule::written(&TOKEN, values),
    aliases: &[],
    tried: &["normalised-token-tis:1.1"],
};

/// `w_t = min(Π_i r_i, high)` over its mean over the batch's sequences.
///
/// Paper: `sec:related-work`
pub(super) static NORMALISED_SEQUENCE_TIS: Member = Member {
    name: "normalised-sequence-tis",
    title: "Normalised sequence TIS",
    summary: "Sequence TIS with its weights divided by their mean over the batch's sequences.",
    formula: "w = min(Π r, high) / mean",
    parameters: &[Parameter::HIGH],
    rule: |values| Rule::written(&SEQUENCE, values),
    aliases: &[],
    tried: &["normalised-sequence-tis:1.2"],
};

fn by_token(steps: &Steps<'_>, &[high, ..]: &[f64; MOST]) -> Vec<f64> {
    let weight = |step| steps.outer(step).exp().min(high);
    let mean = steps.mean(weight);
    (0..steps.len()).map(|step| weight(step) / mean).collect()
}

fn by_sequence(steps: &Steps<'_>, &[high, ..]: &[f64; MOST]) -> Vec<f64> {
    let mut weights = vec![0.0; steps.len()];
    let (mut mass, mut total) = (0.0, 0.0);
    for row in steps.rows() {
        let weight = row.clone().map(|step| steps.outer(step)).sum::<f64>().exp().min(high);
        mass += steps.mass[row.start];
        total += steps.mass[row.start] * weight;
        weights[row].fill(weight);
    }
    weights.iter_mut().for_each(|weight| *weight *= mass / total);
    weights
}

impl Correction {
    /// Token TIS with weights of mean one.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn normalised_token_tis(high: f64) -> Result<Self, Error> {
        Self::of(&NORMALISED_TOKEN_TIS, &[high])
    }

    /// Sequence TIS with weights of mean one.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn normalised_sequence_tis(high: f64) -> Result<Self, Error> {
        Self::of(&NORMALISED_SEQUENCE_TIS, &[high])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // Ratios 3, 1 | ½, ½, held at 2. Tokens: 2, 1, ½, ½ with mean 1. Sequences: 3 → 2 and ¼, mean 9/8: 16/9 and 2/9.
        let current = [3.0_f64, 1.0, 0.5, 0.5].map(|ratio| ratio.ln() - 2.0);
        let batch = Batch::new(Rows::uniform(2), &current, &[-2.0; 4], &[1.0; 4]);
        let near = |loss: &str, expected: [f64; 4]| {
            let mut workspace = Workspace::default();
            let surrogate: Surrogate = loss.parse().unwrap();
            let came = surrogate.evaluate(&batch, &mut workspace).unwrap().cotangent;
            assert!(
                came.iter().zip(expected).all(|(came, want)| (4.0 * came - want).abs() < 1e-12),
                "{came:?}"
            );
        };
        near("normalised-token-tis", [2.0, 1.0, 0.5, 0.5]);
        near("normalised-sequence-tis", [16.0 / 9.0, 16.0 / 9.0, 2.0 / 9.0, 2.0 / 9.0]);
    }
}
