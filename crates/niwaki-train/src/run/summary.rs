//! What a run came to, in a few of its endpoints.

use super::folder::Identity;
use super::turns::Turn;
use crate::reading::{Course, Endpoint, Judged, mean_of_all};
use crate::spec::{MEASURED, Spec};
use crate::{Error, Record};
use serde::{Deserialize, Serialize};

/// What a run came to. Its being there says that the run is done; nothing in it depends on the clock.
///
/// Paper: `app:testbed-protocol`
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Hash of the spec.
    pub spec: String,
    /// The seed.
    pub seed: u64,
    /// Iterations asked for.
    pub iterations: usize,
    /// Iterations done, fewer where training diverged.
    pub done: usize,
    /// Whether training diverged; such a run keeps no policy.
    #[serde(skip_serializing_if = "is_false", default)]
    pub diverged: bool,
    /// Where it ran.
    pub device: String,
    /// η after the last iteration at which it was measured; nothing is earned after a divergence.
    pub final_eta: Option<f64>,
    /// The highest η on the way.
    pub best_eta: Option<f64>,
    /// Mean η over the iterations at which it was measured.
    pub auc: Option<f64>,
    /// First iteration with η > 0.3.
    pub broke_through: Option<usize>,
    /// First iteration with η ≥ 0.95.
    pub solved: Option<usize>,
    /// Whether the last η is above 0.5.
    pub success: bool,
    /// Reward of the likeliest trajectory at the end, where asked for.
    pub final_greedy: Option<f64>,
    /// Mean reward of the likeliest trajectories over the iterations at which it was measured, where asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub greedy_auc: Option<f64>,
    /// The strength of the correction that was measured before training, where asked for.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub alpha: Option<f64>,
    /// Instances whose optimum is not proven, where shops are played; their best known makespan counts as C*.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unproven: Option<usize>,
    /// Mean drift σ²T over all iterations.
    pub mean_drift: f64,
    /// Mean share of clipped steps over all iterations.
    pub mean_clip_fraction: f64,
    /// Batches in which no trajectory was rewarded.
    pub zero_reward_batches: usize,
    /// The check of the curve's last line.
    pub curve: String,
    /// The check of the dump's last line, where there is one.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub dump: Option<String>,
    /// The check of the last policy's line, where they are kept.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub policies: Option<String>,
    /// Where it diverged and went on with other learning rates.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub turns: Vec<Turn>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
const fn is_false(value: &bool) -> bool {
    !*value
}

impl Summary {
    /// Whose it is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { spec: self.spec.clone(), seed: self.seed, turns: self.turns.clone() }
    }

    /// The summary of a run that is over; the checks of files are left empty.
    ///
    /// # Errors
    /// As [`Spec::hash`].
    pub fn of(spec: &Spec, curve: &[Record], diverged: bool) -> Result<Self, Error> {
        // Another trainer may be done sooner than it said.
        let iterations = if diverged { spec.iterations } else { curve.len() };
        let course = Course { iterations, curve: curve.to_vec(), kept: None };
        let ruled = [Some(spec.update.correction.as_str()), spec.warmup.correction.as_deref()];
        let ruled = ruled.contains(&Some(MEASURED));
        // What diverged before its first evaluation earned nothing of what would have been measured.
        let is_judged = |judged: Judged| {
            let asked = if spec.evaluate.greedy { Judged::Likeliest } else { Judged::Eta };
            asked == judged || !course.measured(judged).is_empty()
        };
        let best = |points: Vec<(usize, f64)>| points.into_iter().map(|point| point.1).reduce(f64::max);
        Ok(Self {
            spec: spec.hash()?,
            seed: spec.seed,
            iterations: spec.iterations,
            done: curve.len(),
            diverged,
            device: String::new(),
            final_eta: Endpoint::Final.of(&course).filter(|_| is_judged(Judged::Eta)),
            best_eta: best(course.measured(Judged::Eta)),
            auc: Endpoint::Auc.of(&course).filter(|_| is_judged(Judged::Eta)),
            broke_through: Endpoint::BreakThrough.iteration(&course),
            solved: Endpoint::Reached.iteration(&course),
            success: Endpoint::Success.of(&course) == Some(1.0),
            final_greedy: Endpoint::GreedyFinal.of(&course).filter(|_| is_judged(Judged::Likeliest)),
            greedy_auc: Endpoint::GreedyAuc.of(&course).filter(|_| is_judged(Judged::Likeliest)),
            alpha: curve.iter().find_map(|record| record.alpha).filter(|_| ruled),
            unproven: None,
            mean_drift: Endpoint::MeanDrift.of(&course).unwrap_or(0.0),
            mean_clip_fraction: mean_of_all(&course, |record| record.clip_fraction).unwrap_or(0.0),
            zero_reward_batches: curve.iter().filter(|record| record.zero_reward).count(),
            curve: String::new(),
            dump: None,
            policies: None,
            turns: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_of_a_curve_by_hand() {
        // η at iterations 1, 2, 4, 5: 0.3, 0.5, 0.97, 0.63; iteration 3 was not measured.
        let eta = [Some(0.3), Some(0.5), None, Some(0.97), Some(0.63)];
        let record = |(place, eta): (usize, Option<f64>)| Record {
            iteration: place + 1,
            eta,
            drift: place as f64,
            zero_reward: place == 2,
            ..Record::default()
        };
        let curve: Vec<Record> = eta.into_iter().enumerate().map(record).collect();
        let spec = Spec { iterations: 5, ..Spec::default() };
        let summary = Summary::of(&spec, &curve, false).unwrap();
        // (0.3 + 0.5 + 0.97 + 0.63) / 4 = 2.4 / 4 = 0.6; drift (0 + 1 + 2 + 3 + 4) / 5 = 2.
        assert!((summary.auc.unwrap() - 0.6).abs() < 1e-15);
        assert_eq!(summary.mean_drift, 2.0);
        assert_eq!((summary.final_eta, summary.best_eta), (Some(0.63), Some(0.97)));
        // 0.3 is not above 0.3.
        assert_eq!((summary.broke_through, summary.solved), (Some(2), Some(4)));
        assert_eq!((summary.success, summary.zero_reward_batches, summary.done), (true, 1, 5));
        // Of ten iterations it came to five: the others count as nothing. (0.3 + 0.5 + 0.97 + 0.63) / 9 points.
        let diverged = Summary::of(&Spec { iterations: 10, ..spec.clone() }, &curve, true).unwrap();
        assert!((diverged.auc.unwrap() - 2.4 / 9.0).abs() < 1e-15);
        let sooner = Summary::of(&Spec { iterations: 10, ..spec }, &curve, false).unwrap();
        assert_eq!((sooner.auc, sooner.final_eta), (summary.auc, summary.final_eta));
        assert_eq!((diverged.final_eta, diverged.success, diverged.done), (Some(0.0), false, 5));
        let nothing = Summary::of(&Spec::default(), &[], false).unwrap();
        assert_eq!((nothing.auc, nothing.mean_drift, nothing.success), (None, 0.0, false));
        // Two overflows overflow again, and still read back.
        let wild = Record { drift: f64::MAX, ..Record::default() };
        let summary = Summary::of(&Spec::default(), &[wild.clone(), wild], false).unwrap();
        let text = serde_json::to_string(&summary).unwrap();
        assert_eq!(serde_json::from_str::<Summary>(&text).unwrap(), summary);
        assert_eq!(summary.mean_drift, f64::MAX);
    }
}
