//! The one comparison of two that are paired by seed, for runs and for studies alike, and its verdict in words. The rule is that
//! of [`niwaki_stats::Decision`].

use crate::Error;
use niwaki_page::{Callout, Cell, Format};
use niwaki_stats::{Decision, Paired, SignTest, Verdict};
use niwaki_train::reading::Endpoint;

/// The level of every verdict and interval.
pub(crate) const LEVEL: f64 = 0.95;

/// An endpoint of one against that of another, pair by pair.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// The verdict on the first less the second, with the sign turned where less is better.
    pub decision: Decision,
    /// The mean difference's standard error.
    pub sem: f64,
    /// Pairs on which either is ahead, with the exact sign test.
    pub signs: SignTest,
}

impl Difference {
    /// Decides over pairs; nothing where there is none. Their order is that of seeds, settings first.
    ///
    /// # Errors
    /// Where a value is not finite.
    pub(crate) fn of(pairs: &[(f64, f64)], endpoint: Endpoint) -> Result<Option<Self>, Error> {
        if pairs.is_empty() {
            return Ok(None);
        }
        let turn = if endpoint.falls() { -1.0 } else { 1.0 };
        let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().map(|(a, b)| (turn * a, turn * b)).unzip();
        let paired = Paired::new(&first, &second)?;
        let (decision, sem) = (paired.decide(LEVEL)?, paired.sem().unwrap_or(0.0));
        Ok(Some(Self { decision, sem, signs: paired.sign_test() }))
    }
}

/// What stands below every table of verdicts.
pub(crate) const RULE: &str = "Paired by seed. Where the arms are alike, at most 5% of verdicts are wrong: p is two-sided, the larger of \
     an exact sign-flip test's and of Student's with a correction for skewness, and the 95% interval excludes 0 exactly where \
     p ≤ 0.05. Fewer than six pairs are too few to decide.";

/// The 95% interval in words.
pub(crate) fn interval_words(found: &Decision) -> String {
    found
        .interval
        .map_or("–".to_owned(), |interval| format!("{} to {}", number(interval.low), number(interval.high)))
}

/// A mean difference with its interval, where it has one.
pub(crate) fn mean_cell(found: &Decision) -> Cell {
    let cell = Cell::from(found.mean);
    match found.interval {
        Some(interval) => cell.interval(interval.low, interval.high),
        None => cell,
    }
}

/// The verdict on one against another; `endpoint` is what the difference is of.
pub(crate) fn callout(found: &Decision, signs: SignTest, one: &str, other: &str, endpoint: &str) -> Callout {
    let (mean, pairs) = (number(found.mean), found.pairs);
    let because = match (pairs, found.interval) {
        (1, _) => format!("On the one seed that both have, the difference is {mean} ({endpoint})."),
        (_, None) => {
            format!("Mean difference {mean} ({endpoint}), ahead on {} of {pairs} seeds.", signs.wins)
        }
        (_, Some(_)) => format!(
            "Mean difference {mean} ({endpoint}; 95% interval {}, p = {}), ahead on {} of {pairs} seeds.",
            interval_words(found),
            Format::significant(2).text(found.p),
            signs.wins,
        ),
    };
    match found.verdict {
        Verdict::Ahead => Callout::good(format!("{one} is ahead of {other}."), because),
        Verdict::Behind => Callout::bad(format!("{one} is behind {other}."), because),
        Verdict::Undecided => Callout::neutral(format!("Undecided between {one} and {other}."), because),
        Verdict::TooFew => Callout::neutral(
            format!("Too few pairs to decide between {one} and {other}."),
            format!("{because} Six pairs are the fewest that can decide."),
        ),
    }
}

/// A difference as people write it, with its sign.
fn number(value: f64) -> String {
    Format::significant(2).signed().text(value)
}
