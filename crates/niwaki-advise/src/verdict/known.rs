//! A measured number as the verdict reads it: with the ends of its interval, and in words.

use crate::measure::{Measured, Number};
use niwaki_page::Format;

/// A number and the ends of its interval; endless where the data gives none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) value: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

impl Known {
    pub(super) fn of(measured: &Measured, name: &str) -> Self {
        let found = measured.numbers.iter().find(|number| number.name == name);
        let Some(Number { value, low, high, .. }) = found else {
            return Self { value: f64::NAN, low: f64::NAN, high: f64::NAN };
        };
        Self { value: *value, low: low.unwrap_or(f64::NEG_INFINITY), high: high.unwrap_or(f64::INFINITY) }
    }

    /// Half of the interval's width; infinite where there is none.
    pub(super) fn half(self) -> f64 {
        0.5 * (self.high - self.low)
    }

    /// The same with a digit more.
    pub(super) fn precisely(self) -> String {
        let text = |value: f64| Format::significant(3).text(value);
        format!("{} (95%: {} to {})", text(self.value), text(self.low), text(self.high))
    }

    /// "0.31 (95%: 0.28 to 0.34)"
    pub(super) fn text(self) -> String {
        if self.low == self.high || !self.low.is_finite() {
            return text(self.value);
        }
        format!("{} (95%: {} to {})", text(self.value), text(self.low), text(self.high))
    }

    /// "31 % (95%: 28 % to 34 %)"
    pub(super) fn percent(self) -> String {
        if self.low == self.high || !self.low.is_finite() {
            return percent(self.value);
        }
        format!("{} (95%: {} to {})", percent(self.value), percent(self.low), percent(self.high))
    }
}

/// A number in two digits.
pub(super) fn text(value: f64) -> String {
    Format::significant(2).text(value)
}

/// A share in whole percents.
pub(super) fn percent(value: f64) -> String {
    Format::percent(0).text(value)
}
