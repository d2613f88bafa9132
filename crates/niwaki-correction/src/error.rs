//! What can be wrong with a batch or a name. Written by hand: this crate has no dependency.

use crate::family::MEMBERS;
use std::fmt;

/// A refused batch, name or parameter.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Two arrays that go together have different lengths.
    Length {
        /// The array that does not fit.
        what: &'static str,
        /// Its length.
        came: usize,
        /// The length that the batch asks for.
        expected: usize,
    },
    /// A batch without a step of the policy's own.
    NoSteps,
    /// The row offsets do not start at zero, fall, or end elsewhere than at the last step.
    Offsets,
    /// A value that is not a finite number.
    NotFinite {
        /// The array.
        what: &'static str,
        /// Index of the first such value.
        index: usize,
    },
    /// Trajectory weights that are negative or sum to zero.
    Weights,
    /// A name that no member has.
    UnknownName {
        /// What was written.
        came: String,
        /// The member whose name is near enough to be meant.
        nearest: Option<&'static str>,
    },
    /// A parameter that is missing, superfluous, no number or out of range.
    Parameter {
        /// The member's name.
        member: &'static str,
        /// What is wrong and what to write.
        mend: String,
    },
    /// Widths that are no clip range.
    Clip {
        /// The lower width.
        low: f64,
        /// The upper width.
        high: f64,
    },
    /// A loss that needs what the batch does not have.
    Missing {
        /// The loss.
        loss: &'static str,
        /// The array.
        what: &'static str,
    },
    /// A weight beside a loss that does not go with it.
    Decoupled {
        /// Why not.
        why: &'static str,
    },
    /// Losses that cannot be joined with a plus.
    Join {
        /// The first part that is no weight from outside.
        part: String,
    },
    /// A custom rule that cannot be had.
    Custom {
        /// The name that was given to it.
        name: String,
        /// What is wrong with the name or the rule.
        why: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Length { what, came, expected } => {
                write!(f, "{what} has {came} values where the batch has {expected}")
            }
            Self::NoSteps => write!(f, "the batch has no steps of the policy"),
            Self::Offsets => {
                write!(f, "row offsets must start at 0, never fall and end at the number of steps")
            }
            Self::NotFinite { what, index } => write!(f, "{what}[{index}] is not a finite number"),
            Self::Weights => write!(f, "trajectory weights must be finite, not negative and not all zero"),
            Self::UnknownName { came, nearest: Some(near) } => {
                // Parameters stand behind a colon, not in brackets.
                let given = came.split_once('(').map(|(_, given)| given.trim_end_matches(')').trim());
                match given.filter(|given| !given.is_empty()) {
                    Some(given) => write!(f, "no loss is called '{came}'; did you mean '{near}:{given}'?"),
                    None => write!(f, "no loss is called '{came}'; did you mean '{near}'?"),
                }
            }
            Self::UnknownName { came, nearest: None } => {
                let known: Vec<&str> = MEMBERS.iter().map(|member| member.name).collect();
                write!(f, "no loss is called '{came}'; the losses are {}", known.join(", "))
            }
            Self::Parameter { member, mend } => write!(f, "loss '{member}': {mend}"),
            Self::Clip { low, high } => {
                write!(f, "clip {low} {high}: the lower width lies in [0, 1], the upper one is not negative")
            }
            Self::Missing { loss, what } => {
                write!(f, "loss '{loss}' needs {what}, which the batch does not have")
            }
            Self::Decoupled { why } => write!(f, "decoupled weight: {why}"),
            Self::Join { part } => write!(
                f,
                "a plus joins weights from outside, such as token-tis:2+mean-k1; '{part}' is not one; write it alone"
            ),
            Self::Custom { name, why } => write!(f, "custom loss '{name}': {why}"),
        }
    }
}

impl std::error::Error for Error {}
