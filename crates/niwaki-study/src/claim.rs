//! What the paper printed, and how ours compares with it.

use crate::Error;
use niwaki_stats::{Decision, Interval, normal_quantile};
use std::fmt;

/// The p-value that the paper's tests are read at.
pub const LEVEL: f64 = 0.05;

/// A number as the paper printed it: its value, and half a unit of its last digit.
///
/// Read from text, because `0.20` and `0.2` say different things about what is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Printed {
    /// The value.
    pub value: f64,
    /// Half a unit of the last printed digit.
    pub half_unit: f64,
}

impl Printed {
    /// Reads `-5.3e-7`, `0.951` or `25`; nothing where the text is not a number.
    #[must_use]
    pub fn read(text: &str) -> Option<Self> {
        let value: f64 = text.trim().parse().ok()?;
        let (mantissa, exponent) = text.trim().split_once(['e', 'E']).unwrap_or((text.trim(), "0"));
        let decimals = mantissa.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        let exponent: i32 = exponent.parse().ok()?;
        let last = exponent - i32::try_from(decimals).ok()?;
        Some(Self { value, half_unit: 0.5 * 10_f64.powi(last) })
    }

    /// What the file of a study says that the paper printed.
    ///
    /// # Errors
    /// Where that is not a number.
    pub fn of(study: &str, text: &str) -> Result<Self, Error> {
        Self::read(text).ok_or_else(|| no_number(study, text))
    }
}

/// That the file of a study prints what is neither a number, a share nor a range.
#[must_use]
pub fn no_number(study: &str, text: &str) -> Error {
    let mend = format!("'{text}' is neither a number, a share nor a range");
    Error::Senseless { label: study.to_owned(), mend }
}

/// How one statement of the paper fared.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// What statements of one kind have in common, e.g. `MSE, late-only, δ = 1`; empty for one that stands alone.
    pub group: String,
    /// The statement in plain words.
    pub statement: String,
    /// The paper's number, where it has one.
    pub paper: Option<f64>,
    /// The paper's standard error, where it printed one.
    pub paper_sem: Option<f64>,
    /// Ours, as text where it is an order or a name.
    pub ours: Ours,
    /// Ours minus the paper's, less what the print's rounding can explain, in standard errors.
    pub sems: Option<f64>,
    /// Whether ours agrees.
    pub judgement: Judgement,
    /// Why, or what to know about it.
    pub remark: String,
}

/// What came out here.
#[derive(Clone, Debug, PartialEq)]
pub enum Ours {
    /// A number and its standard error.
    Number(f64, f64),
    /// The lead of one arm over another.
    Lead(Lead),
    /// Something else in words.
    Words(String),
}

/// A lead, paired by seed, beside the one that was printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Lead {
    /// The printed mean, or what the paper says in its place; empty where it says nothing.
    pub paper: String,
    /// The printed seeds won over seeds that do not tie.
    pub paper_seeds: String,
    /// The printed p-value.
    pub paper_p: String,
    /// The mean.
    pub mean: f64,
    /// Its 95% interval, where the pairs give one.
    pub interval: Option<Interval>,
    /// Whether the arm is ahead or behind as the paper has it.
    pub sign: Judgement,
    /// Whether it is so by as much; nothing where the paper prints no size.
    pub size: Option<Judgement>,
    /// The two-sided p-value of the verdict.
    pub p: f64,
    /// Seeds won.
    pub wins: u64,
    /// Seeds that do not tie.
    pub untied: u64,
    /// The one-sided p-value of the exact sign test, which is the paper's.
    pub sign_p: f64,
}

/// Whether a statement of the paper holds here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Decided in its favour.
    Agrees,
    /// Decided against it.
    Disagrees,
    /// Not decided: too few seeds, or an interval that leaves room for the statement and for its opposite.
    Open,
}

impl fmt::Display for Judgement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::Disagrees => "disagrees",
            Self::Open => "open",
        })
    }
}

impl From<bool> for Judgement {
    fn from(holds: bool) -> Self {
        if holds { Self::Agrees } else { Self::Disagrees }
    }
}

/// Reads `-0.09 to -0.06`, give or take half a unit of either's last digit; nothing where the text is no range.
#[must_use]
pub fn printed_range(text: &str) -> Option<(f64, f64)> {
    let (low, high) = text.split_once(" to ")?;
    let (low, high) = (Printed::read(low)?, Printed::read(high)?);
    Some((low.value.min(high.value) - low.half_unit, low.value.max(high.value) + high.half_unit))
}

/// Reads `7/10` or `30-45`; nothing where the text is no such pair.
#[must_use]
pub fn whole_pair(text: &str, apart: char) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(apart)?;
    Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
}

/// Whether a mean lies in a printed range, give or take two standard errors. An error that is not a number decides nothing.
#[must_use]
pub fn in_range((low, high): (f64, f64), mean: f64, sem: f64) -> Judgement {
    if sem.is_nan() {
        return Judgement::Open;
    }
    (low - 2.0 * sem..=high + 2.0 * sem).contains(&mean).into()
}

/// Whether words that allow a range are borne out: two standard errors either side of the mean lie within it, or beyond it.
#[must_use]
pub fn in_words((low, high): (f64, f64), mean: f64, sem: f64) -> Judgement {
    let (least, most) = (mean - 2.0 * sem, mean + 2.0 * sem);
    if least >= low && most <= high {
        Judgement::Agrees
    } else if most < low || least > high {
        Judgement::Disagrees
    } else {
        Judgement::Open
    }
}

/// A printed lead: from `low` to `high` in its last digit, over these seeds, of which these were won.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrintedLead {
    /// The least that the print can mean.
    pub low: f64,
    /// The most.
    pub high: f64,
    /// Seeds won, and seeds that do not tie.
    pub seeds: Option<(u64, u64)>,
}

impl PrintedLead {
    /// Reads `+0.04` or `-0.09 to -0.06`, with `3/6` where it is printed; nothing where the text is neither.
    #[must_use]
    pub fn read(text: &str, seeds: Option<&str>) -> Option<Self> {
        let (low, high) = printed_range(text).or_else(|| {
            Printed::read(text).map(|print| (print.value - print.half_unit, print.value + print.half_unit))
        })?;
        Some(Self { low, high, seeds: seeds.and_then(|seeds| whole_pair(seeds, '/')) })
    }

    /// The 95% interval that the print's own wins imply, if its differences are normal: a share w of wins puts the mean at
    /// Φ⁻¹(w) of their deviations. Of seeds that were all won, or all lost, half a one is taken off.
    #[must_use]
    pub fn implied(&self) -> Option<(f64, f64)> {
        let (wins, of) = self.seeds.filter(|(_, of)| *of > 1)?;
        let (n, mean) = (of as f64, f64::midpoint(self.low, self.high));
        let share = (wins as f64).clamp(0.5, n - 0.5) / n;
        let deviation = mean / normal_quantile(share).ok().filter(|z| *z != 0.0)?;
        let reach = 1.96 * deviation / n.sqrt();
        (deviation > 0.0).then_some((mean - reach, mean + reach))
    }

    /// Whether its size is borne out: it lies inside our interval, or our mean inside the one that its own wins imply. What
    /// lies beside a zero that our interval holds too is open.
    #[must_use]
    pub fn size(&self, ours: &Decision) -> Judgement {
        let Some(interval) = ours.interval else { return Judgement::Open };
        let within = self.low <= interval.high && interval.low <= self.high;
        let implied = self.implied().is_some_and(|(low, high)| (low..=high).contains(&ours.mean));
        let apart_from_zero = self.low > 0.0 || self.high < 0.0;
        match within || implied {
            false => Judgement::Disagrees,
            true if interval.contains(0.0) && apart_from_zero => Judgement::Open,
            true => Judgement::Agrees,
        }
    }
}

/// Compares a printed number with a mean and its standard error.
///
/// The difference counts in standard errors of the two together, after taking off what the rounding of the last
/// printed digit can explain; two of them are granted. An error that is not a number decides nothing.
#[must_use]
pub fn compare(printed: Printed, printed_sem: Option<f64>, mean: f64, sem: f64) -> (Option<f64>, Judgement) {
    if sem.is_nan() && !mean.is_nan() {
        return (None, Judgement::Open);
    }
    let spread = sem.hypot(printed_sem.unwrap_or(0.0));
    let difference = mean - printed.value;
    let unexplained = (difference.abs() - printed.half_unit).max(0.0);
    let sems = (spread > 0.0).then_some(unexplained.copysign(difference) / spread);
    (sems, (unexplained <= 2.0 * spread).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn print_keeps_its_last_digit() {
        assert_eq!(Printed::read("0.20"), Some(Printed { value: 0.2, half_unit: 0.005 }));
        assert_eq!(Printed::read("25"), Some(Printed { value: 25.0, half_unit: 0.5 }));
        let tiny = Printed::read("-5.3e-7").unwrap();
        assert!((tiny.half_unit - 5e-9).abs() < 1e-22 && tiny.value == -5.3e-7);
        assert_eq!(Printed::read("about 3"), None);
    }

    #[test]
    fn a_range_is_read_and_a_value_inside_it_agrees() {
        let (low, high) = printed_range("-0.06 to -0.09").unwrap();
        assert!((low + 0.095).abs() < 1e-12 && (high + 0.055).abs() < 1e-12);
        assert_eq!(printed_range("-0.06"), None);
        assert_eq!(in_range((1.0, 2.0), 1.5, f64::NAN), Judgement::Open);
        // Two errors of 0.2 reach from 2.4 on; of 0.1 they do not reach 2.5.
        assert_eq!(in_range((1.0, 2.0), 2.4, 0.2), Judgement::Agrees);
        assert_eq!(in_range((1.0, 2.0), 2.5, 0.1), Judgement::Disagrees);
    }

    #[test]
    fn two_errors_and_the_rounding_are_granted() {
        let printed = Printed::read("0.30").unwrap();
        // Errors 0.03 and 0.04 together make 0.05: ours may be up to 0.1 + 0.005 away.
        assert_eq!(compare(printed, Some(0.03), 0.404, 0.04).1, Judgement::Agrees);
        assert_eq!(compare(printed, Some(0.03), 0.406, 0.04).1, Judgement::Disagrees);
        let (sems, _) = compare(printed, Some(0.03), 0.355, 0.04);
        assert!((sems.unwrap() - 1.0).abs() < 1e-12);
        // Without any error only the rounding is granted.
        assert_eq!(compare(printed, None, 0.304, 0.0), (None, Judgement::Agrees));
        assert_eq!(compare(printed, None, 0.306, 0.0).1, Judgement::Disagrees);
        assert_eq!(compare(printed, Some(0.03), 0.3, f64::NAN), (None, Judgement::Open));
    }

    #[test]
    fn words_are_borne_out_only_by_what_lies_in_them() {
        // 1.5 ± 0.4 lies in 1 to 2; 1.5 ± 0.6 reaches beyond; 2.5 ± 0.2 is outside.
        assert_eq!(in_words((1.0, 2.0), 1.5, 0.2), Judgement::Agrees);
        assert_eq!(in_words((1.0, 2.0), 1.5, 0.3), Judgement::Open);
        assert_eq!(in_words((1.0, 2.0), 2.5, 0.1), Judgement::Disagrees);
        assert_eq!(in_words((1.0, 2.0), 1.5, f64::NAN), Judgement::Open);
    }

    #[test]
    fn a_printed_lead_has_a_size_of_its_own() {
        let lead = |differences: &[f64]| Decision::of(differences, 0.95).unwrap();
        let print = |text: &str, seeds| PrintedLead::read(text, seeds).unwrap();
        let clear = lead(&[0.08, 0.09, 0.1, 0.11, 0.12, 0.1, 0.09, 0.11]);
        assert_eq!(print("+0.10", None).size(&clear), Judgement::Agrees);
        assert_eq!(print("+0.30", None).size(&clear), Judgement::Disagrees);
        assert_eq!(print("0.05 to 0.09", None).size(&clear), Judgement::Agrees);
        // 12 of 16 won: Φ⁻¹(0.75) = 0.6745, deviation 0.30/0.6745 = 0.445, reach 1.96 · 0.445/4 = 0.218.
        let (low, high) = print("+0.30", Some("12/16")).implied().unwrap();
        assert!((low - 0.082).abs() < 1e-3 && (high - 0.518).abs() < 1e-3, "{low} {high}");
        assert_eq!(print("+0.30", Some("12/16")).size(&clear), Judgement::Agrees);
        // As many won as lost imply no deviation, and wins of a negative lead none that makes sense.
        assert_eq!(print("+0.30", Some("8/16")).implied(), None);
        assert_eq!(print("-0.30", Some("12/16")).implied(), None);
        // An interval that holds zero beside the print decides nothing, and five seeds have none.
        let wide = lead(&[0.3, -0.2, 0.4, -0.3, 0.5, 0.1, -0.1, 0.2]);
        assert_eq!(print("+0.10", None).size(&wide), Judgement::Open);
        assert_eq!(print("+0.90", None).size(&wide), Judgement::Disagrees);
        assert_eq!(print("+0.10", None).size(&lead(&[0.1; 5])), Judgement::Open);
    }

    #[test]
    fn shares_and_ranges_are_read() {
        assert_eq!(whole_pair("7/10", '/'), Some((7, 10)));
        assert_eq!(whole_pair("30-45", '-'), Some((30, 45)));
        assert_eq!(whole_pair("0.961", '/'), None);
        assert_eq!(whole_pair("-0.03", '-'), None);
    }
}
