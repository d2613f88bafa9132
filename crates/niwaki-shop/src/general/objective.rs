//! What a schedule is judged by: measures, weighted sums of them, and an order of importance.

use crate::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// One number of a schedule; less is better. Sums over jobs count each job with its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// When the last operation ends.
    Makespan,
    /// By how much jobs end after their due dates, in all.
    Tardiness,
    /// By how much the latest job ends after its due date.
    MaxTardiness,
    /// Jobs that end after their due dates.
    TardyJobs,
    /// The time from release to end, over all jobs.
    FlowTime,
    /// By how much jobs end before their due dates, in all.
    Earliness,
    /// The time that machines spend on setups.
    SetupTime,
}

impl Measure {
    /// All measures.
    pub const ALL: [Self; 7] = [
        Self::Makespan,
        Self::Tardiness,
        Self::MaxTardiness,
        Self::TardyJobs,
        Self::FlowTime,
        Self::Earliness,
        Self::SetupTime,
    ];

    /// The measure's name, as users type it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Makespan => "makespan",
            Self::Tardiness => "tardiness",
            Self::MaxTardiness => "max-tardiness",
            Self::TardyJobs => "tardy-jobs",
            Self::FlowTime => "flow-time",
            Self::Earliness => "earliness",
            Self::SetupTime => "setup-time",
        }
    }
}

/// A weighted sum of measures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Factors and measures, at least one.
    pub terms: Vec<(u32, Measure)>,
}

/// What is minimised: the first sum, then the second among schedules that are best in the first, and so on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Objective {
    /// Sums by importance, at least one.
    pub sums: Vec<Sum>,
}

impl Objective {
    /// One measure alone.
    #[must_use]
    pub fn only(measure: Measure) -> Self {
        Self { sums: vec![Sum { terms: vec![(1, measure)] }] }
    }

    /// Whether a measure counts anywhere.
    #[must_use]
    pub fn counts(&self, measure: Measure) -> bool {
        self.sums.iter().any(|sum| sum.terms.iter().any(|&(_, one)| one == measure))
    }

    /// Whether the makespan alone counts.
    #[must_use]
    pub fn is_makespan(&self) -> bool {
        matches!(&self.sums[..], [sum] if matches!(sum.terms[..], [(_, Measure::Makespan)]))
    }
}

impl fmt::Display for Sum {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (factor, measure)) in self.terms.iter().enumerate() {
            let plus = if index == 0 { "" } else { " + " };
            let name = measure.name();
            if *factor == 1 { write!(to, "{plus}{name}")? } else { write!(to, "{plus}{factor}*{name}")? }
        }
        Ok(())
    }
}

impl fmt::Display for Objective {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sums: Vec<String> = self.sums.iter().map(ToString::to_string).collect();
        to.write_str(&sums.join(", "))
    }
}

impl FromStr for Objective {
    type Err = Error;

    /// Sums by importance, separated by commas: `tardy-jobs, 3*tardiness + setup-time, makespan`.
    fn from_str(text: &str) -> Result<Self> {
        let sums = text.split(',').map(sum).collect::<Result<Vec<_>>>()?;
        Ok(Self { sums })
    }
}

fn sum(text: &str) -> Result<Sum> {
    let terms = text.split('+').map(|term| self::term(term.trim())).collect::<Result<Vec<_>>>()?;
    Ok(Sum { terms })
}

fn term(text: &str) -> Result<(u32, Measure)> {
    let (factor, name) = match text.split_once('*') {
        Some((factor, name)) => (factor.trim(), name.trim()),
        None => ("1", text),
    };
    let known: Vec<_> = Measure::ALL.iter().map(|measure| measure.name()).collect();
    let measure = Measure::ALL.into_iter().find(|measure| measure.name() == name).ok_or_else(|| {
        Error::Choice(format!("objective: expected one of {}, got `{name}`", known.join(", ")))
    })?;
    match factor.parse() {
        Ok(factor @ 1..=1_000_000) => Ok((factor, measure)),
        _ => Err(Error::Choice(format!(
            "objective: expected a whole factor from 1 to 1000000 before `*{name}`, got `{factor}`"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objectives_come_and_go() {
        let text = "tardy-jobs, 3*tardiness + setup-time, makespan";
        let objective: Objective = text.parse().unwrap();
        assert_eq!((objective.sums.len(), objective.to_string()), (3, text.to_owned()));
        assert!(objective.counts(Measure::SetupTime) && !objective.counts(Measure::Earliness));
        assert!("makespan".parse::<Objective>().unwrap().is_makespan() && !objective.is_makespan());
    }

    #[test]
    fn mistakes_are_named() {
        let refusal = |text: &str| text.parse::<Objective>().unwrap_err().to_string();
        assert!(refusal("lateness").ends_with("got `lateness`"), "{}", refusal("lateness"));
        assert!(refusal("0*makespan").contains("a whole factor from 1"));
        assert!(refusal("makespan,").ends_with("got ``"));
    }
}
