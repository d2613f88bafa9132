//! How runs fail on the two-branch reward: at the first token, or at the last.

use super::{Board, Run};
use niwaki_train::Record;

/// Tokens that no rewarded sequence starts with: B and D. Paper: `app:h`
const DEAD: [usize; 2] = [1, 3];
/// Share of the batch from which the first choice counts as committed.
const COMMITTED: f64 = 0.9;
/// Final return from which a run has succeeded.
const SUCCESS: f64 = 0.5;

/// The failures of an arm in a cell.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Anatomy {
    pub(super) runs: usize,
    pub(super) failed: usize,
    /// Failed runs whose last batch mostly starts with a dead token.
    pub(super) dead_start: usize,
    /// Failed runs whose last batch mostly starts well, so that the last token is at fault.
    pub(super) wrong_end: usize,
    /// Failed runs whose last batch had no reward at all.
    pub(super) silent: usize,
    /// For the failed runs with a dead start: the iteration at which they were committed to it.
    pub(super) committed: Vec<f64>,
    /// Mean over failed runs of the last token's marginal at the end, `[vocab]`.
    pub(super) last: Vec<f64>,
}

/// Share of a batch that starts with a dead token.
pub(super) fn dead_share(record: &Record) -> f64 {
    DEAD.iter().filter_map(|&token| record.first.get(token)).sum()
}

/// Whether a run's final return is too low.
pub(super) fn failed(run: &Run) -> bool {
    run.points(false).last().is_none_or(|point| point.1 <= SUCCESS)
}

impl Board<'_> {
    pub(super) fn anatomy(&self, arm: usize, cell: usize) -> Anatomy {
        let runs = self.runs(arm, cell);
        let lost: Vec<&Run> = runs.iter().copied().filter(|run| failed(run)).collect();
        let ends: Vec<&Record> = lost.iter().filter_map(|run| run.curve.last()).collect();
        let dead = |record: &&&Record| dead_share(record) > 0.5;
        let committed = lost.iter().filter(|run| run.curve.last().is_some_and(|end| dead_share(end) > 0.5));
        let committed = committed.filter_map(|run| {
            run.curve
                .iter()
                .find(|record| dead_share(record) >= COMMITTED)
                .map(|record| record.iteration as f64)
        });
        let vocab = ends.first().map_or(0, |end| end.last.len());
        let last = |token: usize| ends.iter().map(|end| end.last[token]).sum::<f64>() / ends.len() as f64;
        Anatomy {
            runs: runs.len(),
            failed: lost.len(),
            dead_start: ends.iter().filter(dead).count(),
            wrong_end: ends.iter().filter(|end| dead_share(end) <= 0.5).count(),
            silent: ends.iter().filter(|end| end.zero_reward).count(),
            committed: committed.collect(),
            last: (0..vocab).map(last).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::training::{Plan, Results};

    fn run(seed: u64, eta: f64, first: [f64; 4]) -> Run {
        let end = Record {
            iteration: 3,
            eta: Some(eta),
            first: first.to_vec(),
            last: vec![0.25; 4],
            zero_reward: eta == 0.0,
            ..Record::default()
        };
        Run { seed, iterations: 3, curve: vec![end], ..Run::default() }
    }

    #[test]
    fn failures_are_told_apart() {
        let text = "label = \"x\"\ntitle = \"\"\nquestion = \"\"\nseeds = 4\nendpoints = []\n[[arm]]\nname = \"ppo\"\n";
        let plan = Plan::new(toml::from_str(text).unwrap(), None).unwrap();
        let runs = vec![
            run(0, 1.0, [0.5, 0.0, 0.5, 0.0]),
            run(1, 0.0, [0.0, 0.6, 0.0, 0.4]),
            run(2, 0.25, [1.0, 0.0, 0.0, 0.0]),
            run(3, 0.1, [0.4, 0.6, 0.0, 0.0]),
        ];
        let results = Results { planned: runs.len(), runs, speed: None };
        let anatomy = Board { plan: &plan, results: &results }.anatomy(0, 0);
        // Seed 0 succeeds; 1 and 3 start dead, of which only 1 is committed (0.6 + 0.4); 2 ends wrongly.
        let counts = (anatomy.runs, anatomy.failed, anatomy.dead_start, anatomy.wrong_end, anatomy.silent);
        assert_eq!(counts, (4, 3, 2, 1, 1));
        assert_eq!((anatomy.committed, anatomy.last), (vec![3.0], vec![0.25; 4]));
    }
}
