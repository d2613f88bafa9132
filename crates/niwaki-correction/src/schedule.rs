//! When to correct and how often to reuse a batch: warmup, held, and the rule that sizes α.
//!
//! Owns the plan of a run over its iterations; knows nothing of batches.

use crate::{Correction, Error};

/// What one iteration does: which correction, and how many update epochs on its batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// The member in force.
    pub correction: Correction,
    /// Update epochs on the batch (K).
    pub reuse: usize,
}

/// The plan of a run: a phase for the first iterations, another for the rest.
///
/// Paper: `sec:sched-win`, `app:sched-win`
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReuseSchedule {
    /// Iterations of the first phase (W).
    pub warmup: usize,
    /// What the warmup does.
    pub first: Phase,
    /// What every later iteration does.
    pub rest: Phase,
}

impl ReuseSchedule {
    /// The same phase for the whole run: a held correction, or plain PPO.
    #[must_use]
    pub const fn held(phase: Phase) -> Self {
        Self { warmup: 0, first: phase, rest: phase }
    }

    /// The paper's recipe: `correction` at `first_reuse` epochs for `warmup` iterations, then PPO at `reuse`.
    ///
    /// # Errors
    /// Never for the names this crate knows; the error is that of looking PPO up.
    pub fn warmup(
        correction: Correction,
        warmup: usize,
        first_reuse: usize,
        reuse: usize,
    ) -> Result<Self, Error> {
        let ppo = "ppo".parse()?;
        Ok(Self {
            warmup,
            first: Phase { correction, reuse: first_reuse },
            rest: Phase { correction: ppo, reuse },
        })
    }

    /// The control of the paper's recipe: the same reuse, no correction.
    ///
    /// # Errors
    /// As [`ReuseSchedule::warmup`].
    pub fn control(self) -> Result<Self, Error> {
        let ppo = "ppo".parse()?;
        Ok(Self {
            first: Phase { correction: ppo, ..self.first },
            rest: Phase { correction: ppo, ..self.rest },
            ..self
        })
    }

    /// The phase of iteration `iteration` (from 0).
    #[must_use]
    pub const fn phase(&self, iteration: usize) -> Phase {
        if iteration < self.warmup { self.first } else { self.rest }
    }

    /// Update epochs over a run of `iterations`.
    #[must_use]
    pub fn epochs(&self, iterations: usize) -> usize {
        let warm = iterations.min(self.warmup);
        warm * self.first.reuse + (iterations - warm) * self.rest.reuse
    }
}

/// Effective sample size of the prefix ratios below which a full correction has collapsed: nine tenths of the batch are gone.
pub const COLLAPSED: f64 = 0.1;

/// The strength that a measured drift licenses, `min(1, 1/(σ²T))`.
///
/// Zero drift licenses the full correction, which then changes nothing.
///
/// Paper: `app:sched-driftdial`
#[must_use]
pub fn alpha_for_drift(drift: f64) -> f64 {
    if drift > 1.0 { 1.0 / drift } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warmup_hands_over_to_ppo() {
        let tempered: Correction = "tempered:0.3".parse().unwrap();
        let recipe = ReuseSchedule::warmup(tempered, 50, 30, 12).unwrap();
        assert_eq!((recipe.phase(0).correction, recipe.phase(49).reuse), (tempered, 30));
        assert_eq!((recipe.phase(50).correction.to_string().as_str(), recipe.phase(50).reuse), ("ppo", 12));
        // 50 · 30 + 150 · 12 = 3300.
        assert_eq!(recipe.epochs(200), 3300);
        assert_eq!(recipe.epochs(20), 600);
        let control = recipe.control().unwrap();
        assert_eq!((control.phase(0).correction.to_string().as_str(), control.phase(0).reuse), ("ppo", 30));
    }

    #[test]
    fn held_never_changes() {
        let phase = Phase { correction: "full".parse().unwrap(), reuse: 4 };
        assert!((0..10).all(|iteration| ReuseSchedule::held(phase).phase(iteration) == phase));
    }

    #[test]
    fn alpha_by_the_rule() {
        // The paper's drift dial: 1.3 → about 0.74 (it writes 0.74 for a drift it rounds), 34 → 0.03.
        assert!((alpha_for_drift(1.35) - 0.74).abs() < 0.001);
        assert!((alpha_for_drift(34.0) - 0.03).abs() < 0.001);
        assert_eq!(alpha_for_drift(0.2), 1.0);
        assert_eq!(alpha_for_drift(0.0), 1.0);
    }
}
