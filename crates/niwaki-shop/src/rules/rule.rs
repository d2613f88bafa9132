//! The rules' names and priorities.

use crate::{Error, Result};

/// A dispatching rule. Ties go to the lower numbered job, and within a job to the machine that is quicker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchRule {
    /// Shortest processing time.
    Spt,
    /// Longest processing time.
    Lpt,
    /// First in, first out: the job that has waited longest.
    Fifo,
    /// Most work remaining.
    Mwkr,
    /// Least work remaining.
    Lwkr,
    /// Most operations remaining.
    Mopnr,
    /// The candidate after which the bounds of what is left are least: see [`crate::construct::Outlook`]. For job shops, flexible or
    /// not.
    Bound,
    /// Any candidate, uniformly.
    Random,
}

/// What a rule may look at in a candidate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    /// The job, for ties.
    pub(super) job: u32,
    /// Time of the operation on the machine that would run it.
    pub(super) time: f64,
    /// When the job arrived at this operation.
    pub(super) arrival: f64,
    /// Work of the job from this operation on; the mean over machines where there is a choice.
    pub(super) work: f64,
    /// Operations of the job from this one on.
    pub(super) operations: f64,
    /// The norm of all bounds once this one is taken; of a rule that asks for it.
    pub(super) bound: f64,
}

impl DispatchRule {
    /// All rules.
    pub const ALL: [Self; 8] =
        [Self::Spt, Self::Lpt, Self::Fifo, Self::Mwkr, Self::Lwkr, Self::Mopnr, Self::Bound, Self::Random];

    /// The rule's name, as users type it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Spt => "spt",
            Self::Lpt => "lpt",
            Self::Fifo => "fifo",
            Self::Mwkr => "mwkr",
            Self::Lwkr => "lwkr",
            Self::Mopnr => "mopnr",
            Self::Bound => "bound",
            Self::Random => "random",
        }
    }

    /// The rule of a name.
    ///
    /// # Errors
    /// If no rule has it.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|rule| rule.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|rule| rule.name()).collect();
            Error::Choice(format!("rule: expected one of {}, got {name}", known.join(", ")))
        })
    }

    /// A candidate's score: the least wins. `None` where the rule has no preference at all.
    pub(super) fn score(self, candidate: Candidate) -> Option<f64> {
        match self {
            Self::Spt => Some(candidate.time),
            Self::Lpt => Some(-candidate.time),
            Self::Fifo => Some(candidate.arrival),
            Self::Mwkr => Some(-candidate.work),
            Self::Lwkr => Some(candidate.work),
            Self::Mopnr => Some(-candidate.operations),
            Self::Bound => Some(candidate.bound),
            Self::Random => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for rule in DispatchRule::ALL {
            assert_eq!(DispatchRule::named(rule.name()).unwrap(), rule);
        }
        let line = DispatchRule::named("best").unwrap_err().to_string();
        assert_eq!(line, "rule: expected one of spt, lpt, fifo, mwkr, lwkr, mopnr, bound, random, got best");
    }
}
