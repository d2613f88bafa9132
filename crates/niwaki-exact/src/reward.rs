//! Terminal rewards: the paper's ladder, a closure, or a given table.
//!
//! Owns what a complete sequence pays; knows nothing of policies.

use crate::{Error, Process};
use std::fmt;
use std::str::FromStr;

const A: usize = 0;
const B: usize = 1;
const C: usize = 2;
const D: usize = 3;

/// One rung of the paper's ladder of rewards.
///
/// Tokens are A = 0, B = 1, C = 2, D = 3. In a vocabulary below four the missing letters are never written, so
/// a branch that asks for one pays nothing: with three tokens the early gate and the two-branch reward keep
/// their A → B half only.
///
/// Paper: `sec:setup`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reward {
    /// After A, the share of later tokens that are B; after C, of those that are D; else 0.
    EarlyGate,
    /// 1 where the last token is B.
    LateOnly,
    /// 1 for the one sequence A, B, B, …, B.
    SparseMatch,
    /// 1 for A … B and for C … D. Paper: `eq:branched-reward`
    TwoBranch,
}

impl Reward {
    /// The whole ladder, in the paper's order.
    pub const LADDER: [Self; 4] = [Self::EarlyGate, Self::LateOnly, Self::SparseMatch, Self::TwoBranch];

    /// The name users write.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::EarlyGate => "early-gate",
            Self::LateOnly => "late-only",
            Self::SparseMatch => "sparse-match",
            Self::TwoBranch => "two-branch",
        }
    }

    /// What one complete sequence pays.
    #[must_use]
    pub fn of(self, tokens: &[usize]) -> f64 {
        let target = match tokens.first() {
            Some(&A) => B,
            Some(&C) => D,
            _ => usize::MAX,
        };
        let pays = |pays: bool| if pays { 1.0 } else { 0.0 };
        match (self, tokens) {
            (_, []) => 0.0,
            (Self::EarlyGate, [_, later @ ..]) => {
                later.iter().filter(|&&token| token == target).count() as f64 / later.len().max(1) as f64
            }
            (Self::LateOnly, [.., last]) => pays(*last == B),
            (Self::SparseMatch, [first, later @ ..]) => {
                pays(*first == A && later.iter().all(|&token| token == B))
            }
            (Self::TwoBranch, [.., last]) => pays(*last == target),
        }
    }

    /// What every sequence of a process pays.
    ///
    /// # Errors
    /// Where the reward distinguishes a first from a later token and the horizon is 1.
    pub fn payoff(self, process: Process) -> Result<Payoff, Error> {
        let needs_two = matches!(self, Self::EarlyGate | Self::TwoBranch);
        if needs_two && process.horizon() < 2 {
            return Err(Error::Horizon { reward: self.name(), horizon: process.horizon() });
        }
        Payoff::from_fn(process, |tokens| self.of(tokens))
    }
}

impl fmt::Display for Reward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Reward {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::LADDER.into_iter().find(|reward| reward.name() == text).ok_or_else(|| Error::UnknownReward {
            came: text.to_owned(),
            known: Self::LADDER.map(Self::name).join(", "),
        })
    }
}

/// What each complete sequence pays.
#[derive(Clone, Debug, PartialEq)]
pub struct Payoff {
    process: Process,
    terminal: Vec<f64>,
}

impl Payoff {
    /// A reward given as a function of the tokens.
    ///
    /// # Errors
    /// Where it returns a value that is not finite.
    pub fn from_fn(process: Process, mut reward: impl FnMut(&[usize]) -> f64) -> Result<Self, Error> {
        let mut terminal = vec![0.0; process.sequences()];
        process.each_sequence(|index, tokens| terminal[index] = reward(tokens));
        Self::from_table(process, terminal)
    }

    /// A reward given as a table, the first token most significant.
    ///
    /// Shapes: `terminal [vocab^horizon]`
    ///
    /// # Errors
    /// Where the length is wrong or a value is not finite.
    pub fn from_table(process: Process, terminal: Vec<f64>) -> Result<Self, Error> {
        if terminal.len() != process.sequences() {
            return Err(Error::Length {
                what: "reward table",
                came: terminal.len(),
                expected: process.sequences(),
                axes: "vocab^horizon, the first token most significant",
                process,
            });
        }
        match terminal.iter().position(|reward| !reward.is_finite()) {
            Some(index) => Err(Error::NotFinite { what: "reward table", index }),
            None => Ok(Self { process, terminal }),
        }
    }

    /// The process.
    #[must_use]
    pub const fn process(&self) -> Process {
        self.process
    }

    /// Shapes: `[vocab^horizon]`
    #[must_use]
    pub fn terminal(&self) -> &[f64] {
        &self.terminal
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ladder_by_hand() {
        let reward = |reward: Reward, tokens: [usize; 4]| reward.of(&tokens);
        // A then B, C, B: two of three later tokens are B.
        assert_eq!(reward(Reward::EarlyGate, [A, B, C, B]), 2.0 / 3.0);
        assert_eq!(reward(Reward::EarlyGate, [C, B, D, B]), 1.0 / 3.0);
        assert_eq!(reward(Reward::EarlyGate, [B, B, B, B]), 0.0);
        assert_eq!(reward(Reward::LateOnly, [D, D, D, B]), 1.0);
        assert_eq!(reward(Reward::LateOnly, [B, B, B, A]), 0.0);
        assert_eq!(reward(Reward::SparseMatch, [A, B, B, B]), 1.0);
        assert_eq!(reward(Reward::SparseMatch, [A, B, B, C]), 0.0);
        assert_eq!(reward(Reward::TwoBranch, [A, C, C, B]), 1.0);
        assert_eq!(reward(Reward::TwoBranch, [C, A, A, D]), 1.0);
        assert_eq!(reward(Reward::TwoBranch, [C, A, A, B]), 0.0);
    }

    #[test]
    fn small_vocabularies_keep_the_half_they_can_write() {
        let sum = |reward: Reward, vocab, horizon| -> f64 {
            let payoff = reward.payoff(Process::new(vocab, horizon).unwrap()).unwrap();
            payoff.terminal().iter().sum()
        };
        // V = 3, T = 4: 27 sequences start with A, a third of their later tokens are B: 9. None ends in D.
        assert!((sum(Reward::EarlyGate, 3, 4) - 9.0).abs() < 1e-12);
        assert_eq!(sum(Reward::TwoBranch, 3, 4), 9.0);
        // V = 4, T = 6: both branches, 2 · 4^4.
        assert_eq!(sum(Reward::TwoBranch, 4, 6), 512.0);
        assert_eq!(sum(Reward::SparseMatch, 2, 5), 1.0);
    }

    #[test]
    fn refusals() {
        let process = Process::new(2, 1).unwrap();
        assert_eq!(
            Reward::TwoBranch.payoff(process).unwrap_err().to_string(),
            "reward 'two-branch' needs a horizon of at least 2, got 1"
        );
        assert_eq!(
            "late".parse::<Reward>().unwrap_err().to_string(),
            "no reward is called 'late'; choose one of early-gate, late-only, sparse-match, two-branch"
        );
        assert_eq!(
            Payoff::from_table(process, vec![0.0; 3]).unwrap_err().to_string(),
            "reward table has 3 values; vocab 2, horizon 1 needs 2 (vocab^horizon, the first token most significant)"
        );
        assert!(Payoff::from_table(process, vec![0.0, f64::NAN]).is_err());
    }
}
