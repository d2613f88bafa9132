//! A whole question to the oracle: the league of the losses, and what its page shows beside it.

use super::ranking::leaders_in_words;
use super::{Grid, Policies, Row, Summary, page, ranking, summarise};
use crate::Error;
use niwaki_correction::{Correction, Surrogate};
use niwaki_page::{Format, Made, Page, Table};

/// Perturbations relative to the one asked for, in the sweep over drift.
const SHARES: [f64; 6] = [0.01, 0.03, 0.1, 0.3, 0.6, 1.0];

/// Pairs in the sweep over drift: enough for a curve, few enough for a second.
const PAIRS: usize = 5;

/// Steps of α in the sweep over the tempered family.
const ALPHAS: u32 = 20;

/// What the oracle is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A part begins.
    Begins {
        /// What it does, in a word or two.
        what: &'static str,
        /// The policy pairs it has to measure.
        pairs: usize,
    },
    /// One of them is measured.
    Pair,
    /// The part has ended.
    Ends,
}

/// What the oracle found.
#[derive(Clone, Debug)]
pub struct Report {
    /// Every loss on every pair.
    pub rows: Vec<Row>,
    /// The same over seeds.
    pub league: Vec<Summary>,
    /// What a page shows beside the league, where it was asked for.
    pub sweeps: Option<Sweeps>,
    /// Trajectories in the batches whose update is judged.
    pub batch: u64,
    /// Whether the policies were given, so that no drift was asked for.
    pub given: bool,
    /// Whether they are those of a run: then a row's seed is the iteration that took one to the next.
    pub along: bool,
}

/// The losses' surroundings.
#[derive(Clone, Debug)]
pub struct Sweeps {
    /// The tempered member from α = 0 to 1 on the same pairs.
    pub alphas: Vec<Summary>,
    /// The losses from little drift to the one asked for; none along a run, whose iterations drift as they did.
    pub drifts: Vec<Summary>,
}

/// Measures every loss of a grid, and where `sweeps` are asked for the tempered family under the first loss's clip and
/// routing, and all losses at smaller drifts, unless the policies are those of a run.
///
/// # Errors
/// As [`Grid::run`].
pub fn oracle(grid: &Grid, sweeps: bool, watch: &(dyn Fn(Progress) + Sync)) -> Result<Report, Error> {
    let measure = |grid: &Grid, what: &'static str| {
        watch(Progress::Begins { what, pairs: grid.pairs() });
        let rows = grid.run(|| watch(Progress::Pair));
        watch(Progress::Ends);
        rows
    };
    let along = matches!(grid.policies, Policies::Along(_));
    let rows = measure(grid, "measuring")?;
    let league = summarise(&rows)?;
    let sweeps = if sweeps {
        let drifts = if along {
            Vec::new()
        } else {
            let mut few = grid.without_draws();
            if let Policies::Drawn { seeds, .. } = &mut few.policies {
                seeds.truncate(PAIRS);
            }
            let largest = grid.drifts.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            summarise(&measure(&few.at(&SHARES.map(|share| share * largest)), "sweeping drift")?)?
        };
        let tempered = |step: u32| {
            let correction = Correction::tempered(f64::from(step) / f64::from(ALPHAS))?;
            Ok(Surrogate { correction, ..grid.losses[0] })
        };
        let family = (0..=ALPHAS).map(tempered).collect::<Result<Vec<_>, Error>>()?;
        let alphas = summarise(&measure(&grid.without_draws().with_losses(family), "sweeping alpha")?)?;
        Some(Sweeps { alphas, drifts })
    } else {
        None
    };
    let given = along || matches!(grid.policies, Policies::Given { .. });
    Ok(Report { rows, league, sweeps, batch: grid.batch, given, along })
}

impl Report {
    /// The league, one table per reward, each with what was measured of its pairs for a caption.
    #[must_use]
    pub fn tables(&self) -> Vec<Table> {
        let digits = |value: f64| Format::significant(3).text(value);
        let table = |group: &[Summary]| {
            let first = &group[0];
            let caption = format!(
                "{} reward, {} {}, mean KL {}, drift σ²T {}, dose Σ|b| {}",
                first.reward,
                first.seeds,
                match (self.along, first.seeds) {
                    (true, 1) => "iteration",
                    (true, _) => "iterations",
                    (false, 1) => "pair",
                    (false, _) => "pairs",
                },
                digits(first.mean_kl.mean),
                digits(first.total_drift.mean),
                digits(first.dose.mean)
            );
            ranking(&caption, self.batch, group)
        };
        self.league.chunk_by(|a, b| a.reward == b.reward).map(table).collect()
    }

    /// For each of [`Report::tables`], who leads at which batch; empty where no loss is aligned at all.
    #[must_use]
    pub fn leaders(&self) -> Vec<String> {
        let words = |rows: &[Row]| leaders_in_words(rows).unwrap_or_default();
        self.rows.chunk_by(|a, b| a.reward == b.reward).map(words).collect()
    }

    /// The page: for each reward the league table, MSE against α, the sweep over drift (of a run: its iterations), the two
    /// channels and the witness. None without sweeps.
    #[must_use]
    pub fn page(&self, title: &str, made: Made) -> Option<Page> {
        self.sweeps.as_ref().map(|sweeps| page::page(title, self, sweeps, made))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Process, Reward};
    use std::sync::Mutex;

    #[test]
    fn a_question_is_answered_whole_and_says_how_far_it_is() {
        let process = Process::new(3, 3).unwrap();
        let payoff = Reward::LateOnly.payoff(process).unwrap();
        let grid = Grid {
            process,
            rewards: vec![("late-only".to_owned(), payoff)],
            drifts: vec![0.5],
            policies: Policies::Drawn { rollout_scale: 0.1, seeds: (0..7).collect() },
            losses: vec![Surrogate::new(Correction::ppo()), Surrogate::new(Correction::full())],
            batch: 256,
            drawn: 0,
            memory: u64::MAX,
        };
        let seen = Mutex::new(Vec::new());
        let report = oracle(&grid, true, &|progress| seen.lock().unwrap().push(progress)).unwrap();
        assert_eq!((report.rows.len(), report.league.len(), report.given), (14, 2, false));
        let sweeps = report.sweeps.as_ref().unwrap();
        // Six drifts of two losses; α from 0 to 1 in steps of a twentieth.
        assert_eq!((sweeps.drifts.len(), sweeps.alphas.len()), (12, 21));
        assert_eq!((sweeps.drifts[0].seeds, sweeps.alphas[0].seeds), (5, 7));
        // α = 0 is PPO on the same pairs, α = 1 the full correction, to the bit.
        assert_eq!(sweeps.alphas[0].mse, report.league[0].mse);
        assert_eq!(sweeps.alphas[20].mse, report.league[1].mse);
        let seen = seen.into_inner().unwrap();
        // 7 pairs, 6 drifts × 5 pairs, 7 pairs; a beginning and an end each.
        assert_eq!(seen.iter().filter(|one| **one == Progress::Pair).count(), 7 + 30 + 7);
        assert_eq!(seen.len(), 44 + 6);
        let made = Made::new("law");
        assert_eq!(report.tables().len(), 1);
        assert!(report.page("A question", made.clone()).unwrap().to_html().contains("How much to correct"));
        let short = oracle(&grid, false, &|_| ()).unwrap();
        assert!(short.sweeps.is_none() && short.page("A question", made).is_none());
        assert_eq!(short.league[0].mse, report.league[0].mse);
    }

    #[test]
    fn along_a_run_each_iteration_is_its_pair() {
        let process = Process::new(2, 3).unwrap();
        let table = |seed: u64| -> Vec<f64> {
            let mut stream = niwaki_stream::Key::new(seed, "test").open();
            (0..process.edges()).map(|_| stream.normal()).collect()
        };
        let tables: Vec<Vec<f64>> = (0..4).map(table).collect();
        let losses = vec![Surrogate::new(Correction::ppo()), Surrogate::new(Correction::full())];
        let grid = |policies| Grid {
            process,
            rewards: vec![("late-only".to_owned(), Reward::LateOnly.payoff(process).unwrap())],
            drifts: vec![1.0],
            policies,
            losses: losses.clone(),
            batch: 256,
            drawn: 0,
            memory: u64::MAX,
        };
        let run = oracle(&grid(Policies::Along(tables.clone())), true, &|_| ()).unwrap();
        assert!(run.given && run.along);
        assert_eq!(run.rows.iter().map(|row| row.seed).collect::<Vec<_>>(), [1, 1, 2, 2, 3, 3]);
        for (pair, rows) in tables.windows(2).zip(run.rows.chunks(2)) {
            let alone = Policies::Given { old: pair[0].clone(), new: pair[1].clone() };
            for (row, alone) in rows.iter().zip(&oracle(&grid(alone), false, &|_| ()).unwrap().rows) {
                assert_eq!(row.measured.mse.to_bits(), alone.measured.mse.to_bits());
            }
        }
        assert_eq!((run.league.len(), run.league[0].seeds), (2, 3));
        let sweeps = run.sweeps.as_ref().unwrap();
        assert_eq!((sweeps.drifts.len(), sweeps.alphas[0].seeds), (0, 3));
        assert!(run.tables()[0].to_text(120).contains("3 iterations"));
        assert!(run.page("A run", Made::new("law")).unwrap().to_html().contains("Iteration by iteration"));
        assert!(
            oracle(&grid(Policies::Along(tables[..1].to_vec())), false, &|_| ()).is_err(),
            "no iteration"
        );
    }
}
