//! Whether one of two is ahead, paired by seed: the rule and its words, for comparisons of runs and for studies alike.

use niwaki_page::{Callout, Format};
use niwaki_stats::{Interval, SignTest};

/// Seeds below which a difference decides nothing: an interval that resamples so few is too narrow.
const FEWEST: usize = 5;

/// A mean difference, one of the two less the other, over the seeds that both have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Paired {
    pub(crate) pairs: usize,
    pub(crate) mean: f64,
    /// 95%, resampling seeds; nothing for a single pair.
    pub(crate) interval: Option<Interval>,
    pub(crate) signs: SignTest,
}

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ahead {
    Yes,
    Behind,
    Unclear,
    TooFew,
}

impl Ahead {
    /// In a cell of a table.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Yes => "ahead",
            Self::Behind => "behind",
            Self::Unclear => "no clear difference",
            Self::TooFew => "too few seeds",
        }
    }
}

impl Paired {
    pub(crate) fn ahead(&self) -> Ahead {
        match self.interval {
            _ if self.pairs < FEWEST => Ahead::TooFew,
            Some(interval) if interval.low > 0.0 => Ahead::Yes,
            Some(interval) if interval.high < 0.0 => Ahead::Behind,
            _ => Ahead::Unclear,
        }
    }

    /// The interval in words.
    pub(crate) fn interval_words(&self) -> String {
        self.interval.map_or("–".to_owned(), |interval| {
            format!("{} to {}", number(interval.low), number(interval.high))
        })
    }

    /// The verdict on one against another; `endpoint` is what the difference is of.
    pub(crate) fn callout(&self, one: &str, other: &str, endpoint: &str) -> Callout {
        let mean = number(self.mean);
        let because = if self.pairs == 1 {
            format!("On the one seed that both have, the difference is {mean} ({endpoint}).")
        } else {
            format!(
                "Mean difference {mean} ({endpoint}; 95% interval {}), ahead on {} of {} seeds.",
                self.interval_words(),
                self.signs.wins,
                self.pairs
            )
        };
        match self.ahead() {
            Ahead::Yes => Callout::good(format!("{one} is ahead of {other}."), because),
            Ahead::Behind => Callout::bad(format!("{one} is behind {other}."), because),
            Ahead::Unclear => {
                Callout::neutral(format!("No clear difference between {one} and {other}."), because)
            }
            Ahead::TooFew => {
                Callout::neutral(format!("Too few seeds to tell {one} and {other} apart."), because)
            }
        }
    }
}

/// A difference as people write it, with its sign.
fn number(value: f64) -> String {
    Format::significant(2).signed().text(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_seeds_decide_nothing() {
        let found = |differences: &[f64], low: f64, high: f64| {
            let zeros = vec![0.0; differences.len()];
            let signs = niwaki_stats::Paired::new(differences, &zeros).unwrap().sign_test();
            let interval = (differences.len() > 1).then_some(Interval { low, high, level: 0.95 });
            Paired { pairs: differences.len(), mean: 0.1, interval, signs }.ahead()
        };
        assert_eq!(found(&[0.1; 1], 0.1, 0.1), Ahead::TooFew);
        assert_eq!(found(&[0.1; 4], 0.1, 0.1), Ahead::TooFew);
        assert_eq!(found(&[0.1; 5], 0.1, 0.1), Ahead::Yes);
        assert_eq!(found(&[0.1; 5], -0.3, -0.1), Ahead::Behind);
        assert_eq!(found(&[0.1; 5], -0.3, 0.1), Ahead::Unclear);
    }
}
