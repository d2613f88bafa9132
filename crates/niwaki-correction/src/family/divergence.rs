//! Rejection of sequences by a divergence that sums, averages or peaks over their steps: verl's `seq_*` rejections by k2 and k3.
//!
//! With `ℓ` as a weight from outside reads it, k2 = ℓ²/2 and k3 = e^ℓ − 1 − ℓ. What is dropped stays in the count here; verl
//! divides by the tokens that were kept.

use super::written::{Acts, Shape, Steps};
use super::{Alias, Correction, MOST, Member, Parameter, Rule};
use crate::Error;

const BOUND: Parameter =
    Parameter { name: "most", least: 0.0, most: f64::INFINITY, whole: false, default: Some(0.1) };

fn k2(ell: f64) -> f64 {
    0.5 * ell * ell
}

fn k3(ell: f64) -> f64 {
    ell.exp_m1() - ell
}

/// Ones for sequences whose statistic is at most `most`, zeros for the others.
fn keep(steps: &Steps<'_>, most: f64, of: fn(f64) -> f64, fold: fn(&[f64]) -> f64) -> Vec<f64> {
    let mut weights = vec![1.0; steps.len()];
    for row in steps.rows() {
        let parts: Vec<f64> = row.clone().map(|step| of(steps.outer(step))).collect();
        if fold(&parts) > most {
            weights[row].fill(0.0);
        }
    }
    weights
}

fn sum(parts: &[f64]) -> f64 {
    parts.iter().sum()
}

fn mean(parts: &[f64]) -> f64 {
    sum(parts) / parts.len() as f64
}

fn peak(parts: &[f64]) -> f64 {
    parts.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}

/// A member, its shape and its constructor.
macro_rules! rejections {
    ($($member:ident, $shape:ident, $new:ident: $name:literal, $title:literal, $words:literal, $formula:literal, $alias:literal,
        $tried:literal, $of:ident, $fold:ident;)*) => {
        $(
            static $shape: Shape = Shape::new($name, Acts::Weigh(|steps, &[most, ..]: &[f64; MOST]| keep(steps, most, $of, $fold)));

            /// A mask without a weight over whole sequences.
            ///
            /// Paper: `sec:related-work`
            pub(super) static $member: Member = Member {
                name: $name,
                title: $title,
                summary: concat!("Drop sequences whose ", $words, " exceeds MOST."),
                formula: $formula,
                parameters: &[BOUND],
                rule: |values| Rule::written(&$shape, values),
                aliases: &[Alias { name: $alias, note: "verl's rollout_rs of that name; MOST is its threshold" }],
                tried: &[$tried],
            };

            impl Correction {
                #[doc = concat!("Rejection of sequences whose ", $words, " exceeds a bound.")]
                ///
                /// # Errors
                /// Where a value is out of its range.
                pub fn $new(most: f64) -> Result<Self, Error> {
                    Self::of(&$member, &[most])
                }
            }
        )*
    };
}

rejections! {
    SEQUENCE_K2, SUM_2, sequence_k2: "sequence-k2", "Reject sequence k2", "sum of k2 = ℓ²/2", "w = 1[Σℓ²/2 ≤ most]", "seq-sum-k2", "sequence-k2:0.04", k2, sum;
    SEQUENCE_K3, SUM_3, sequence_k3: "sequence-k3", "Reject sequence k3", "sum of k3 = r − 1 − ℓ", "w = 1[Σ(r−1−ℓ) ≤ most]", "seq-sum-k3", "sequence-k3:0.04", k3, sum;
    MEAN_K2, MEAN_2, mean_k2: "mean-k2", "Reject mean k2", "mean of k2 = ℓ²/2", "w = 1[mean ℓ²/2 ≤ most]", "seq-mean-k2", "mean-k2:0.01", k2, mean;
    MEAN_K3, MEAN_3, mean_k3: "mean-k3", "Reject mean k3", "mean of k3 = r − 1 − ℓ", "w = 1[mean(r−1−ℓ) ≤ most]", "seq-mean-k3", "mean-k3:0.01", k3, mean;
    MAX_K2, PEAK_2, max_k2: "max-k2", "Reject max k2", "largest k2 = ℓ²/2", "w = 1[max ℓ²/2 ≤ most]", "seq-max-k2", "max-k2:0.02", k2, peak;
    MAX_K3, PEAK_3, max_k3: "max-k3", "Reject max k3", "largest k3 = r − 1 − ℓ", "w = 1[max(r−1−ℓ) ≤ most]", "seq-max-k3", "max-k3:0.02", k3, peak;
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // ℓ = (0.2, 0.4) and (0.1, 0.1). k2: 0.02 and 0.08 (sum 0.10, mean 0.05, max 0.08); 0.005 twice. k3 of 0.4 is 0.0918, of
        // 0.2 is 0.0214: sum 0.1132, mean 0.0566.
        let current = [-0.8, -0.6, -0.9, -0.9];
        let batch = Batch::new(Rows::uniform(2), &current, &[-1.0; 4], &[1.0; 4]);
        let kept = |loss: &str| {
            let mut workspace = Workspace::default();
            let surrogate: Surrogate = loss.parse().unwrap();
            let found = surrogate.evaluate(&batch, &mut workspace).unwrap();
            [0, 2].map(|step| found.cotangent[step] != 0.0)
        };
        for (loss, below, above) in [
            ("sequence-k2", 0.099, 0.101),
            ("sequence-k3", 0.113, 0.114),
            ("mean-k2", 0.049, 0.051),
            ("mean-k3", 0.056, 0.057),
            ("max-k2", 0.079, 0.081),
            ("max-k3", 0.091, 0.092),
        ] {
            assert_eq!(kept(&format!("{loss}:{below}")), [false, true], "{loss}");
            assert_eq!(kept(&format!("{loss}:{above}")), [true, true], "{loss}");
        }
    }
}
