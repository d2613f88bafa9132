//! The truncated correction.

use super::{Correction, Member, Parameter, Reads, Rule};
use crate::Error;

/// `g_t = exp(Σ_{max(0, t−k) ≤ i < t} ℓ_i)`: corrects only the last `k` steps.
///
/// With `k ≥ T − 1` it is the full correction, to the bit.
///
/// Paper: `tab:variants` (Truncated)
pub(super) static MEMBER: Member = Member {
    name: "truncated",
    title: "Truncated",
    summary: "The ratio of the last WINDOW steps of the prefix only.",
    formula: "exp(Σ last k of ℓ)",
    parameters: &[Parameter { name: "window", least: 1.0, most: f64::INFINITY, whole: true, default: None }],
    // A float-to-integer cast saturates, so an endless window is the largest one.
    rule: |[window, ..]| Rule { reads: Reads::Window(window as usize), ..Rule::tempered(1.0) },
    aliases: &[],
    tried: &["truncated:1", "truncated:2", "truncated:9"],
};

impl Correction {
    /// The ratio of the last `window` steps of the prefix.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn truncated(window: usize) -> Result<Self, Error> {
        Self::of(&MEMBER, &[window as f64])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_ratio::windowed_prefix;

    #[test]
    fn worked() {
        // ℓ = (1, 2, 4, 8), k = 2: readings 0, 1, 1 + 2 = 3, 2 + 4 = 6; the factor takes them as they are.
        let mut readings = [0.0; 4];
        windowed_prefix(&[1.0, 2.0, 4.0, 8.0], 2, &mut readings);
        assert_eq!(readings, [0.0, 1.0, 3.0, 6.0]);
        let rule = MEMBER.at(&[2.0]);
        assert_eq!(rule.reads, Reads::Window(2));
        assert_eq!((rule.factor(6.0).log_factor, rule.factor(6.0).slope), (6.0, 1.0));
    }
}
