//! The paper's ladder of rewards as tasks.

use crate::{Error, Sequence};
use niwaki_exact::Reward;

/// A rung of the ladder over a vocabulary and horizon.
///
/// Paper: `sec:setup`, `eq:branched-reward`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ladder {
    reward: Reward,
    vocab: usize,
    horizon: usize,
}

impl Ladder {
    /// The task.
    ///
    /// # Errors
    /// Where the reward needs more tokens or steps.
    pub fn new(reward: Reward, vocab: usize, horizon: usize) -> Result<Self, Error> {
        let least = if reward == Reward::LateOnly { 1 } else { 2 };
        if vocab < 2 {
            return Err(Error::TooSmall { task: reward.name(), axis: "vocab", least: 2, came: vocab });
        }
        if horizon < least {
            return Err(Error::TooSmall { task: reward.name(), axis: "horizon", least, came: horizon });
        }
        Ok(Self { reward, vocab, horizon })
    }
}

impl Sequence for Ladder {
    fn vocab(&self) -> usize {
        self.vocab
    }

    fn horizon(&self) -> usize {
        self.horizon
    }

    fn reward(&self, tokens: &[usize]) -> f64 {
        self.reward.of(tokens)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::payoff;

    #[test]
    fn a_uniform_policy_earns_what_the_paper_says() {
        // Two-branch: 2 of 4 first tokens times 1 of 4 last ones is 1/8. Sparse match: 4⁻⁶. Late-only: 1/4.
        let mean = |reward, horizon| {
            let payoff = payoff(&Ladder::new(reward, 4, horizon).unwrap()).unwrap();
            payoff.terminal().iter().sum::<f64>() / payoff.terminal().len() as f64
        };
        assert_eq!(mean(Reward::TwoBranch, 8), 0.125);
        assert_eq!(mean(Reward::SparseMatch, 6), 1.0 / 4096.0);
        assert_eq!(mean(Reward::LateOnly, 6), 0.25);
    }

    #[test]
    fn sizes_without_an_answer_are_refused() {
        let refusal = Ladder::new(Reward::TwoBranch, 4, 1).unwrap_err().to_string();
        assert_eq!(refusal, "task two-branch needs horizon of at least 2, got 1");
    }
}
