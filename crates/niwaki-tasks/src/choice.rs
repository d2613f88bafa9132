//! Free choice and the environments that move it towards scheduling.
//!
//! `horizon` choices among `vocab` symbols; the reward is the two-branch one, read from the first symbol and a
//! terminal one. Two changes move it towards a shop: the terminal symbol may *emerge* from the whole trajectory, and
//! a chosen symbol may stay *busy*, so that the open choices shrink and change. Symbols are A = 0, B = 1, C = 2, D = 3:
//! a trajectory that starts with A must end in B, one that starts with C in D, and every other start is dead.
//!
//! Paper: `app:sched-controls`

use crate::{Error, Sequence};

const BRANCHES: [(usize, usize); 2] = [(0, 1), (2, 3)];

/// Which symbol the reward reads at the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminal {
    /// The one chosen last.
    Chosen,
    /// The most frequent over the whole trajectory; of several the smallest. The analogue of the job that decides
    /// the makespan.
    Modal,
}

/// The free-choice control and its environments.
///
/// Paper: `app:sched-controls`, `tab:envladder`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Choice {
    vocab: usize,
    horizon: usize,
    terminal: Terminal,
    busy: usize,
}

impl Choice {
    /// The task; `busy` is the number of steps for which a chosen symbol stays closed, 0 for free choice.
    ///
    /// # Errors
    /// Where the branches do not fit the vocabulary, or `busy` would close every symbol.
    pub fn new(vocab: usize, horizon: usize, terminal: Terminal, busy: usize) -> Result<Self, Error> {
        for (axis, least, came) in [("vocab", 4, vocab), ("horizon", 2, horizon)] {
            if came < least {
                return Err(Error::TooSmall { task: "choice", axis, least, came });
            }
        }
        if busy >= vocab {
            return Err(Error::AllBusy { busy, vocab });
        }
        Ok(Self { vocab, horizon, terminal, busy })
    }

    fn modal(&self, tokens: &[usize]) -> usize {
        let count = |symbol: usize| tokens.iter().filter(|&&token| token == symbol).count();
        // Of equals `max_by_key` takes the last, so the order is turned round.
        (0..self.vocab).rev().max_by_key(|&symbol| count(symbol)).unwrap_or(0)
    }
}

impl Sequence for Choice {
    fn vocab(&self) -> usize {
        self.vocab
    }

    fn horizon(&self) -> usize {
        self.horizon
    }

    fn masked(&self) -> bool {
        self.busy > 0
    }

    fn open(&self, prefix: &[usize], open: &mut [bool]) {
        open.fill(true);
        for &token in prefix.iter().rev().take(self.busy) {
            open[token] = false;
        }
    }

    fn reward(&self, tokens: &[usize]) -> f64 {
        let (Some(&first), Some(&last)) = (tokens.first(), tokens.last()) else { return 0.0 };
        let end = match self.terminal {
            Terminal::Chosen => last,
            Terminal::Modal => self.modal(tokens),
        };
        if BRANCHES.contains(&(first, end)) { 1.0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ladder, payoff};
    use niwaki_exact::Reward;

    #[test]
    fn free_choice_is_the_two_branch_reward() {
        let free = Choice::new(4, 5, Terminal::Chosen, 0).unwrap();
        let ladder = Ladder::new(Reward::TwoBranch, 4, 5).unwrap();
        assert_eq!(payoff(&free).unwrap(), payoff(&ladder).unwrap());
    }

    #[test]
    fn the_modal_symbol_decides() {
        let task = Choice::new(4, 6, Terminal::Modal, 0).unwrap();
        // A once and B three times; C twice, D three times; A and B three times each: the smaller one, A, wins.
        assert_eq!(task.reward(&[0, 1, 1, 2, 1, 3]), 1.0);
        assert_eq!(task.reward(&[2, 3, 3, 2, 3, 0]), 1.0);
        assert_eq!(task.reward(&[0, 1, 1, 0, 1, 0]), 0.0);
        assert_eq!(task.reward(&[1, 1, 1, 1, 1, 1]), 0.0);
    }

    #[test]
    fn a_chosen_symbol_stays_closed() {
        let task = Choice::new(4, 8, Terminal::Chosen, 2).unwrap();
        let mut open = [false; 4];
        task.open(&[0, 3, 1], &mut open);
        assert_eq!(open, [true, false, true, false]);
        task.open(&[], &mut open);
        assert_eq!(open, [true; 4]);
        assert!(matches!(Choice::new(4, 8, Terminal::Chosen, 4), Err(Error::AllBusy { .. })));
    }

    #[test]
    fn something_is_always_open_and_rewarded() {
        for busy in 0..4 {
            let task = Choice::new(4, 6, Terminal::Chosen, busy).unwrap();
            let (mut feasible, mut paid) = (0, 0);
            niwaki_exact::Process::new(4, 6).unwrap().each_sequence(|_, tokens| {
                let mut open = [false; 4];
                let allowed = (0..6).all(|step| {
                    task.open(&tokens[..step], &mut open);
                    assert!(open.contains(&true));
                    open[tokens[step]]
                });
                feasible += usize::from(allowed);
                paid += usize::from(allowed && task.reward(tokens) == 1.0);
            });
            // 4 first symbols, then 4 less those closed: 4·(4−min(1,b))·(4−min(2,b))·(4−min(3,b))³.
            let left = |closed: usize| 4 - closed.min(busy);
            assert_eq!(feasible, 4 * left(1) * left(2) * left(3).pow(3));
            assert!(paid > 0, "busy {busy}");
        }
    }
}
