//! What a statistic refuses, and the checks that every entry point shares.
//!
//! Owns the one error enum of the crate. Knows nothing of any particular statistic: callers pass the name of the
//! argument, so that a message says which slice is wrong.

use std::fmt;

/// Why a statistic could not be computed.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A slice has no element.
    Empty {
        /// The argument.
        name: &'static str,
    },
    /// A slice has elements, but fewer than the statistic is defined for.
    TooFew {
        /// The argument.
        name: &'static str,
        /// The least number of elements.
        needed: usize,
        /// The number of elements given.
        found: usize,
    },
    /// Two slices that are read side by side differ in length.
    Lengths {
        /// The argument that sets the length.
        left: &'static str,
        /// Its length.
        left_len: usize,
        /// The argument that does not follow.
        right: &'static str,
        /// Its length.
        right_len: usize,
    },
    /// A flat matrix does not have `runs × tasks` elements.
    Shape {
        /// The argument.
        name: &'static str,
        /// Length of the `runs` axis.
        runs: usize,
        /// Length of the `tasks` axis.
        tasks: usize,
        /// Elements given.
        found: usize,
    },
    /// An element, or a statistic of a resample, is NaN or infinite.
    NotFinite {
        /// The argument.
        name: &'static str,
        /// Where it is.
        index: usize,
        /// What it is.
        value: f64,
    },
    /// All elements are equal, so that a correlation, a slope or a z-score has no meaning.
    Constant {
        /// The argument.
        name: &'static str,
    },
    /// The grid of a curve does not increase.
    NotIncreasing {
        /// The argument.
        name: &'static str,
        /// First element that is not above the one before it.
        index: usize,
    },
    /// A setting is outside its range.
    OutOfRange {
        /// The setting.
        name: &'static str,
        /// The range, in words.
        expected: &'static str,
        /// What came.
        found: f64,
    },
    /// Every bootstrap replicate lies on the same side of the estimate, so that a bias correction is infinite.
    OneSided {
        /// The statistic of the sample itself.
        estimate: f64,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { name } => write!(f, "`{name}` is empty, expected at least one value"),
            Self::TooFew { name, needed, found } => {
                write!(f, "`{name}` needs at least {needed} values, found {found}")
            }
            Self::Lengths { left, left_len, right, right_len } => {
                write!(f, "`{right}` must be as long as `{left}` ({left_len}), found {right_len}")
            }
            Self::Shape { name, runs, tasks, found } => {
                write!(f, "`{name}` must hold runs × tasks = {runs} × {tasks} values, found {found}")
            }
            Self::NotFinite { name, index, value } => {
                write!(f, "`{name}`[{index}] must be finite, found {value}")
            }
            Self::Constant { name } => {
                write!(f, "`{name}` is constant, expected at least two distinct values")
            }
            Self::NotIncreasing { name, index } => {
                write!(f, "`{name}`[{index}] must be greater than the element before it")
            }
            Self::OutOfRange { name, expected, found } => {
                write!(f, "`{name}` must be {expected}, found {found}")
            }
            Self::OneSided { estimate } => {
                write!(
                    f,
                    "every bootstrap replicate lies on one side of the estimate {estimate}; use the percentile interval"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

/// Refuses a slice with fewer than `needed` elements or with an element that is not finite.
pub(crate) fn check_sample(name: &'static str, values: &[f64], needed: usize) -> Result<(), Error> {
    if values.is_empty() {
        return Err(Error::Empty { name });
    }
    if values.len() < needed {
        return Err(Error::TooFew { name, needed, found: values.len() });
    }
    check_finite(name, values)
}

/// Refuses NaN and infinities.
pub(crate) fn check_finite(name: &'static str, values: &[f64]) -> Result<(), Error> {
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(Error::NotFinite { name, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Refuses a second slice that is not as long as the first.
pub(crate) fn check_lengths(
    left: &'static str,
    left_len: usize,
    right: &'static str,
    right_len: usize,
) -> Result<(), Error> {
    if left_len == right_len { Ok(()) } else { Err(Error::Lengths { left, left_len, right, right_len }) }
}

/// Refuses a confidence level outside the open interval (0, 1).
pub(crate) fn check_level(level: f64) -> Result<(), Error> {
    // A NaN fails both comparisons and is refused too.
    if level > 0.0 && level < 1.0 {
        Ok(())
    } else {
        Err(Error::OutOfRange { name: "level", expected: "strictly between 0 and 1", found: level })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_the_argument_what_was_expected_and_what_came() {
        let shown = |r: Result<(), Error>| r.unwrap_err().to_string();
        assert_eq!(shown(check_sample("x", &[], 1)), "`x` is empty, expected at least one value");
        assert_eq!(shown(check_sample("x", &[1.0], 2)), "`x` needs at least 2 values, found 1");
        assert_eq!(shown(check_sample("x", &[1.0, f64::NAN], 1)), "`x`[1] must be finite, found NaN");
        assert_eq!(shown(check_lengths("x", 3, "y", 2)), "`y` must be as long as `x` (3), found 2");
        assert_eq!(shown(check_level(1.0)), "`level` must be strictly between 0 and 1, found 1");
        assert!(check_level(f64::NAN).is_err());
        assert_eq!(check_sample("x", &[1.0, 2.0], 2), Ok(()));
    }
}
