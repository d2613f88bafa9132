//! The tempered factor outside of the clip.

use super::written::{Acts, Shape, Steps, Terms};
use super::{Correction, MOST, Member, Parameter, Rule};
use crate::Error;

static SHAPE: Shape = Shape::new("outside", Acts::Term(terms));

/// `exp(α L_t) · min(r_t A, clip(r_t) A)`: the clip sees the step's own ratio alone, as PPO's does, and the factor weighs what comes out.
///
/// The paper's form has the factor inside (`r̃_t = exp(α L_t) r_t`), where it moves terms over the edge of the clip, and where a
/// flat term routes no credit. Here a flat term is constant in its own ratio but still worth its value to the steps before it. Without a clip the two are one.
///
/// Paper: `eq:pcppo-objective` (the other order of factor and clip)
pub(super) static MEMBER: Member = Member {
    name: "outside",
    title: "Outside the clip",
    summary: "The tempered factor outside of the clip, which then sees the step's own ratio alone.",
    formula: "exp(α*L) · min(rA, clip(r)A)",
    parameters: &[Parameter::ALPHA],
    rule: |values| Rule::written(&SHAPE, values),
    aliases: &[],
    tried: &["outside:0.3"],
};

fn terms(steps: &Steps<'_>, &[alpha, ..]: &[f64; MOST]) -> Terms {
    let mut terms = steps.each(|step| steps.ppo(step));
    for row in steps.rows() {
        let mut prefix = 0.0;
        for step in row.clone() {
            let factor = (alpha * prefix).exp();
            terms.value[step] *= factor;
            terms.own[step] *= factor;
            terms.factor[step] = factor;
            prefix += steps.ell(step);
        }
        let mut later = 0.0;
        for step in row.rev().filter(|_| steps.routing) {
            terms.routed[step] = alpha * later;
            later += terms.value[step];
        }
    }
    terms
}

impl Correction {
    /// The tempered factor outside of the clip.
    ///
    /// # Errors
    /// Where a value is out of its range.
    pub fn outside(alpha: f64) -> Result<Self, Error> {
        Self::of(&MEMBER, &[alpha])
    }
}

#[cfg(test)]
mod tests {
    use crate::{Batch, Rows, Surrogate, Workspace};

    #[test]
    fn worked() {
        // α = 0.5, ℓ = (0.4, 0.6), A = (1, 2), clip 0.2: the first term is 1.2 and flat, the second e^0.2 · 2.4 and flat as well.
        // Inside the clip nothing would move; here the second term's value moves the first step's log-prob by half of it.
        let surrogate: Surrogate = "outside:0.5".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &[-0.6, -0.4], &[-1.0, -1.0], &[1.0, 2.0]);
        let evaluation = surrogate.evaluate(&batch, &mut workspace).unwrap();
        let second = 0.2_f64.exp() * 2.4;
        assert!((evaluation.objective - (1.2 + second) / 2.0).abs() < 1e-15);
        assert!((evaluation.cotangent[0] - 0.5 * second / 2.0).abs() < 1e-15);
        assert_eq!(evaluation.cotangent[1], 0.0);
    }

    #[test]
    fn without_a_clip_it_is_the_tempered_member() {
        let log_prob = [-0.6, -0.4, -1.3, -0.2];
        let rollout = [-1.0, -0.7, -0.9, -0.4];
        let cotangent = |name: &str| {
            let surrogate = name.parse::<Surrogate>().unwrap().without_clip();
            let mut workspace = Workspace::default();
            let batch = Batch::new(Rows::uniform(4), &log_prob, &rollout, &[0.3, -0.5, 1.0, 2.0]);
            surrogate.cotangent(&batch, &mut workspace).unwrap().to_vec()
        };
        for (one, other) in cotangent("outside:0.7").iter().zip(cotangent("tempered:0.7")) {
            assert!(f64::abs(one - other) < 1e-15, "{one} {other}");
        }
    }
}
