//! What a model says at every prefix of a record, and what follows exactly.

/// Log-probabilities of the candidates at every prefix, level by level; prefixes of a level are in order, the first choice
/// most significant. Where all slots have as many candidates, that is the order of the exact oracle's tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditionals {
    counts: Vec<usize>,
    /// `[slot][prefix, candidate]`.
    levels: Vec<Vec<f64>>,
}

impl Conditionals {
    pub(super) fn new(counts: Vec<usize>, levels: Vec<Vec<f64>>) -> Self {
        Self { counts, levels }
    }

    /// Candidates of each slot.
    #[must_use]
    pub fn counts(&self) -> &[usize] {
        &self.counts
    }

    /// The candidates' log-probabilities after some choices.
    #[must_use]
    pub fn after(&self, prefix: &[usize]) -> &[f64] {
        let row = prefix.iter().zip(&self.counts).fold(0, |row, (choice, count)| row * count + choice);
        let count = self.counts[prefix.len()];
        &self.levels[prefix.len()][row * count..][..count]
    }

    /// All levels one after the other: a table `[prefixes, vocab]` of the exact oracle, where all slots have as many
    /// candidates; `None` where not.
    #[must_use]
    pub fn table(&self) -> Option<Vec<f64>> {
        let alike = self.counts.windows(2).all(|pair| pair[0] == pair[1]);
        alike.then(|| self.levels.concat())
    }

    /// Calls `visit(choices, probability)` for every complete record.
    fn each(&self, mut visit: impl FnMut(&[usize], f64)) {
        let mut choices = vec![0; self.counts.len()];
        loop {
            let log_prob =
                (0..choices.len()).map(|slot| self.after(&choices[..slot])[choices[slot]]).sum::<f64>();
            visit(&choices, log_prob.exp());
            let Some(slot) = (0..choices.len()).rev().find(|&slot| choices[slot] + 1 < self.counts[slot])
            else {
                return;
            };
            choices[slot] += 1;
            choices[slot + 1..].fill(0);
        }
    }

    /// The exact return of a reward.
    #[must_use]
    pub fn expected(&self, reward: impl Fn(&[usize]) -> f64) -> f64 {
        let mut sum = 0.0;
        self.each(|choices, probability| sum += probability * reward(choices));
        sum
    }

    /// The marginal distribution of a slot.
    #[must_use]
    pub fn marginal(&self, slot: usize) -> Vec<f64> {
        let mut marginal = vec![0.0; self.counts[slot]];
        self.each(|choices, probability| marginal[choices[slot]] += probability);
        marginal
    }

    /// The distribution of a slot given what another one was filled with, `[given, candidate]`; zeros where that never
    /// happens.
    ///
    /// Paper: `app:pretrained` (P(S₆ | S₁))
    #[must_use]
    pub fn given(&self, given: usize, slot: usize) -> Vec<Vec<f64>> {
        let mut joint = vec![vec![0.0; self.counts[slot]]; self.counts[given]];
        self.each(|choices, probability| joint[choices[given]][choices[slot]] += probability);
        for row in &mut joint {
            let total: f64 = row.iter().sum();
            if total > 0.0 {
                row.iter_mut().for_each(|share| *share /= total);
            }
        }
        joint
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_slots_by_hand() {
        // 1/4 and 3/4; then thirds after the first choice, and (1/2, 1/4, 1/4) after the second.
        let logs = |probs: &[f64]| probs.iter().map(|p: &f64| p.ln()).collect::<Vec<f64>>();
        let third = 1.0 / 3.0;
        let levels = vec![logs(&[0.25, 0.75]), logs(&[third, third, third, 0.5, 0.25, 0.25])];
        let own = Conditionals::new(vec![2, 3], levels);
        assert_eq!(own.after(&[1]).len(), 3);
        let marginal = own.marginal(1);
        // 1/4 · 1/3 + 3/4 · 1/2 = 11/24; 1/12 + 3/16 = 13/48.
        assert!((marginal[0] - 11.0 / 24.0).abs() < 1e-15 && (marginal[2] - 13.0 / 48.0).abs() < 1e-15);
        let eta = own.expected(|choices| f64::from(u8::from(choices == [1, 0])));
        assert!((eta - 0.375).abs() < 1e-15);
        // The last slot given the first is what was put in.
        let given = own.given(0, 1);
        assert!((given[0][2] - third).abs() < 1e-15 && (given[1][0] - 0.5).abs() < 1e-15);
        // The first given the last's first candidate: (1/4 · 1/3) / (11/24) = 2/11.
        assert!((own.given(1, 0)[0][0] - 2.0 / 11.0).abs() < 1e-15);
        assert_eq!(own.table(), None);
    }
}
