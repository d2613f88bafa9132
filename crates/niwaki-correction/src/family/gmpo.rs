//! GMPO, a rival: the geometric mean of ratios that are clipped one by one.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Alias, Correction, MOST, Member, Parameter, Rule};
use crate::Error;

const fn width(name: &'static str) -> Parameter {
    Parameter { name, least: 0.0, most: f64::INFINITY, whole: false, default: Some(0.4) }
}

static SHAPE: Shape = Shape::new("gmpo", Acts::Term(terms));

/// `r̃ = exp(mean of clipped ℓ)` in place of every step's ratio: `ℓ` is held at `high` where the advantage is positive, at `−low`
/// where it is negative.
///
/// After Zhao et al. 2025 (Geometric-Mean Policy Optimization), who clip at ±0.4; verl's `geo_mean` takes its `clip_ratio` as the
/// width in logs, so its default is `gmpo:0.2,0.2`. Their mean is over trajectories. Without bounds it is GSPO without a clip.
///
/// Paper: `sec:related-work`
pub(super) static MEMBER: Member = Member {
    name: "gmpo",
    title: "GMPO",
    summary: "GMPO: the geometric mean of a sequence's ratios, each clipped at e^±WIDTH first.",
    formula: "r̃ = exp(mean clip ℓ)",
    parameters: &[width("low"), width("high")],
    rule: |values| Rule::written(&SHAPE, values),
    aliases: &[Alias {
        name: "geo-mean",
        note: "verl's name; LOW and HIGH are its clip_ratio_low and _high",
    }],
    tried: &["gmpo:0.1,0.15", "gmpo:inf,inf"],
};

fn terms(steps: &Steps<'_>, &[low, high, ..]: &[f64; MOST]) -> Terms {
    let mut terms = steps.each(|_| (0.0, 0.0));
    for row in steps.rows() {
        let held = |step: usize| {
            let (ell, advantage) = (steps.ell(step), steps.advantage[step]);
            let held = if advantage > 0.0 { ell.min(high) } else { ell.max(-low) };
            if advantage == 0.0 { (0.0, false) } else { (held, held == ell) }
        };
        let count = row.len() as f64;
        let ratio = (row.clone().map(|step| held(step).0).sum::<f64>() / count).exp();
        let whole: f64 = row.clone().map(|step| ratio * steps.advantage[step]).sum();
        for step in row {
            let live = if held(step).1 { 1.0 } else { 0.0 };
            terms.value[step] = ratio * steps.advantage[step];
            terms.own[step] = live * terms.value[step];
            // The step's own ratio is not in the term: all credit comes through the mean.
            terms.routed[step] = if steps.routing { live * whole / count - terms.own[step] } else { 0.0 };
            terms.factor[step] = ratio;
        }
    }
    terms
}

impl Correction {
    /// GMPO with ratios clipped to `[e^−low, e^high]`.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn gmpo(low: f64, high: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[low, high])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // ℓ = (0.3, −0.1), A = (1, 3), held at 0.2: mean (0.2 − 0.1)/2 = 0.05, ratio e^0.05, objective 2e^0.05. The first is
        // held and gets nothing; the second moves the mean by ½, which moves the objective by 2e^0.05: e^0.05.
        let surrogate: Surrogate = "gmpo:0.2,0.2".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &[-0.7, -1.1], &[-1.0, -1.0], &[1.0, 3.0]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        let ratio = 0.05_f64.exp();
        assert!((evaluation.objective - 2.0 * ratio).abs() < 1e-15);
        assert_eq!(evaluation.cotangent[0], 0.0);
        assert!((evaluation.cotangent[1] - ratio).abs() < 1e-15);
    }
}
