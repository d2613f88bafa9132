//! verl's settings that the metrics depend on, as verl writes them.

use crate::measure::{Damaged, Reader, Writer};
use std::str::FromStr;

/// What a weight belongs to: verl's `rollout_is`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// Each token has a weight of its own.
    #[default]
    Token,
    /// All tokens of a sequence share the product of its ratios.
    Sequence,
}

impl FromStr for Level {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "token" => Ok(Self::Token),
            "sequence" => Ok(Self::Sequence),
            _ => Err(format!("'{text}' is not a level of weights; choose token or sequence")),
        }
    }
}

/// verl's `rollout_is_threshold`: an upper bound at which weights are truncated (`2.0`), or a band outside which they
/// are zero (`0.5_2.0`, IcePop).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The lower bound, where there is a band.
    pub lower: Option<f64>,
    /// The upper bound.
    pub upper: f64,
}

impl Default for Threshold {
    fn default() -> Self {
        Self { lower: None, upper: 2.0 }
    }
}

impl Threshold {
    /// The bound below which a weight counts as low: the reciprocal of the upper one where none is given.
    #[must_use]
    pub fn low(self) -> f64 {
        self.lower.unwrap_or(1.0 / self.upper)
    }

    /// The weight as it is applied.
    pub(super) fn applied(self, weight: f64) -> f64 {
        match self.lower {
            None => weight.min(self.upper),
            Some(lower) if (lower..=self.upper).contains(&weight) => weight,
            Some(_) => 0.0,
        }
    }

    /// Whether both bounds are those of weights.
    #[must_use]
    pub fn is_sound(self) -> bool {
        let upper = self.upper.is_finite() && self.upper > 0.0;
        upper && self.lower.is_none_or(|lower| lower > 0.0 && lower <= self.upper)
    }
}

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || {
            format!(
                "'{text}' is not a threshold; write an upper bound (2.0), or a lower and an upper one (0.5_2.0), above 0"
            )
        };
        let number = |text: &str| text.trim().parse::<f64>().map_err(|_| refuse());
        let threshold = match text.split_once('_') {
            Some((lower, upper)) => Self { lower: Some(number(lower)?), upper: number(upper)? },
            None => Self { lower: None, upper: number(text)? },
        };
        if threshold.is_sound() { Ok(threshold) } else { Err(refuse()) }
    }
}

/// verl's settings that the metrics depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Settings {
    /// `rollout_is`.
    pub level: Level,
    /// `rollout_is_threshold`.
    pub threshold: Threshold,
    /// `rollout_is_batch_normalize`.
    pub batch_normalised: bool,
    /// `rollout_rs` with its thresholds.
    pub rejection: super::Rejection,
}

impl Settings {
    pub(crate) fn write(&self, to: &mut Writer) {
        to.flag(self.level == Level::Sequence);
        to.maybe(self.threshold.lower);
        to.float(self.threshold.upper);
        to.flag(self.batch_normalised);
        self.rejection.write(to);
    }

    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        Ok(Self {
            level: if from.flag()? { Level::Sequence } else { Level::Token },
            threshold: Threshold { lower: from.maybe()?, upper: from.float()? },
            batch_normalised: from.flag()?,
            rejection: super::Rejection::read(from)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_as_verl_writes_them() {
        assert_eq!("2.0".parse(), Ok(Threshold { lower: None, upper: 2.0 }));
        assert_eq!("0.5_2.0".parse(), Ok(Threshold { lower: Some(0.5), upper: 2.0 }));
        for wrong in ["", "x", "0", "-1", "2_0.5", "0_2", "inf", "nan"] {
            assert!(wrong.parse::<Threshold>().is_err(), "{wrong}");
        }
        let band: Threshold = "0.5_2".parse().unwrap();
        assert_eq!([0.4, 0.5, 1.9, 2.1].map(|weight| band.applied(weight)), [0.0, 0.5, 1.9, 0.0]);
        assert_eq!(Threshold::default().applied(2.1), 2.0);
    }
}
