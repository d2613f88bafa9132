//! PPO with a dual clip.

use super::{Alias, Correction, Member, Parameter, Rule};
use crate::Error;

/// PPO whose losses go flat above a ratio of `c` as well: `max(min(rA, clip(r)A), cA)` where `A < 0`.
///
/// After Ye et al. 2020 (dual-clip PPO).
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "dual-clip",
    title: "Dual clip",
    summary: "PPO whose losses go flat above a ratio of C, too.",
    formula: "1, and r ≤ c where A < 0",
    parameters: &[Parameter { name: "c", least: 1.0, most: f64::INFINITY, whole: false, default: Some(3.0) }],
    rule: |[c, ..]| Rule { dual: c.max(1.0 + f64::EPSILON), ..Rule::tempered(0.0) },
    aliases: &[
        Alias { name: "vanilla", note: "verl's default loss; C is its clip_ratio_c" },
        Alias { name: "two-sided", note: "TRL's grpo with delta = C" },
    ],
    tried: &["dual-clip:1.1"],
};

impl Correction {
    /// PPO with a dual clip at a ratio of `c`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn dual_clip(c: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[c])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // A = −2 and a ratio of 5: PPO's term is −10, the dual clip's 3 · (−2) = −6 without a gradient. A = 2 and a ratio
        // of 5: both are clipped at 1.2, so 2.4. The mean is (−6 + 2.4) / 2.
        let current = [5.0_f64.ln() - 2.0, 5.0_f64.ln() - 2.0];
        let surrogate: Surrogate = "dual-clip".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(1), &current, &[-2.0; 2], &[-2.0, 2.0]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        assert!((evaluation.objective + 1.8).abs() < 1e-15);
        assert_eq!(evaluation.cotangent, [0.0, 0.0]);
    }
}
