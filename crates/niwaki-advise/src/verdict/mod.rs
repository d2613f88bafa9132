//! The verdict: what to do, how sure that is, what to set, and the numbers that say so.
//!
//! Owns the decision and its thresholds; knows nothing of how the numbers were measured. `docs/advise.md` tells the
//! same story in prose, and the calibration study says how often it is right.
//!
//! | file | what belongs there |
//! |---|---|
//! | `decide.rs` | the order of the questions, and the answer |
//! | `evidence.rs` | what the data knows of the bias, and how much data would decide |
//! | `further.rs` | what else a reader should know |
//! | `trainers.rs` | the answer in the settings of TRL, verl and our own trainer |
//! | `known.rs` | numbers with intervals, in words |

mod decide;
mod evidence;
mod further;
mod known;
mod trainers;

pub(crate) use decide::Ground;
pub(crate) use evidence::Evidence;
pub use evidence::{FEW, MATERIAL, REALISTIC};
pub use trainers::{Advised, Trainer};

use crate::measure::Measured;
use serde::Serialize;

/// C1: where the rms prefix log-ratio is below this at the steps that carry the advantage, prefix ratios stay within a
/// tenth of one and there is nothing to correct.
pub const INERT: f64 = 0.1;

/// Where the rule licenses less than this, the data is too stale for a correction to rescue.
pub const FAINT: f64 = 0.1;

/// Where the step ratios alone leave less than this of the batch, PPO's own estimate has collapsed too.
pub const THIN: f64 = 0.5;

/// Where the spread of the prefix log-ratios foretells less than this of the batch for a full correction, its weights
/// have tails that no realistic number of trajectories shows.
pub use niwaki_correction::schedule::COLLAPSED;

/// Where less than this of the range of rewards is left above their mean, there is little for a correction to win: in the
/// calibration study most runs below it gain nothing.
pub const CEILING: f64 = 0.25;

/// The strongest correction that is ever advised. Routed credit costs a variance that grows with T² and that no weight
/// shows. Of 0.05, 0.1, 0.25 and 0.5 it gained most in the calibration study, on the seeds that chose it and on the others.
pub const STRONGEST: f64 = 0.1;

/// A bias below this share of a batch's noise was never worth a warmup in the calibration study (results/advise/2026-11-17,
/// training-16-0.1: 0 of 3 settings gained, and 18 of 21 above).
pub const PAYS: f64 = 0.8;

/// The weakest correction that is advised where a stronger one would make gradients too long: below it, less than a hundredth of
/// the bias is restored.
pub const WEAKEST: f64 = 0.01;

/// A mean ratio this far from one shows that the update was fitted to the very steps in the dump.
pub const FITTED: f64 = 0.005;

/// C3: a batch that holds no reward this often can trap a run.
pub const SCARCE: f64 = 0.05;

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Action {
    /// A correction would add variance and repair nothing.
    CorrectionWasted,
    /// Correct the first iterations at this strength, then hand over to PPO.
    ShortWarmup {
        /// The strength.
        alpha: f64,
        /// How many times as long as PPO's the gradient is there.
        amplification: f64,
    },
    /// The data is too stale: update less often on each batch.
    ReduceReuse,
    /// The data cannot tell.
    NotEnoughData {
        /// Trajectories that are missing, about.
        more: u64,
    },
    /// No advantage differs from zero: there is nothing to estimate.
    NoSignal,
}

/// The verdict with its reasons, each of which names its number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Verdict {
    /// What to do.
    pub action: Action,
    /// The same in a sentence.
    pub says: String,
    /// How sure that is.
    pub sure: String,
    /// What it costs to do nothing.
    pub idle: String,
    /// What to set, in the words of each trainer.
    pub set: Vec<Advised>,
    /// Why, the deciding reason first.
    pub because: Vec<String>,
    /// The question that decided.
    #[serde(skip)]
    pub(crate) ground: Ground,
}

impl Verdict {
    /// Decides.
    ///
    /// Paper: `tab:conditions`, `sec:disc`
    #[must_use]
    pub fn new(measured: &Measured) -> Self {
        let decision = decide::decide(measured);
        let set = Trainer::ALL.map(|trainer| trainer.advise(&decision)).to_vec();
        let mut because = decision.because;
        because.extend(further::lines(measured));
        let (mut says, mut sure) = (decision.says, decision.sure);
        if let Some(ranks) = measured.facts.ranks.as_ref().filter(|ranks| ranks.is_share()) {
            let (seen, world) = (ranks.seen.len(), ranks.world);
            says = format!("of {seen} of {world} ranks, a share of the batch: {says}");
            sure = format!("{sure}; add the other ranks' tallies for the whole batch");
        }
        Self {
            action: decision.action,
            says,
            sure,
            idle: decision.idle,
            set,
            because,
            ground: decision.ground,
        }
    }

    /// The same with the settings of one trainer alone, where it is known which.
    #[must_use]
    pub fn in_the_words_of(mut self, trainer: Option<Trainer>) -> Self {
        self.set.retain(|advised| trainer.is_none_or(|trainer| advised.trainer == trainer));
        self
    }
}
