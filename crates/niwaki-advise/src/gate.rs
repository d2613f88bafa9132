//! Conditions that fail a check: `ess<0.3`.

use crate::measure::{Measured, NAMES};
use niwaki_words::nearest;
use std::fmt;
use std::str::FromStr;

/// A condition on a number.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    name: &'static str,
    sign: Sign,
    bound: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sign {
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Sign {
    const ALL: [(&'static str, Self); 4] =
        [("<=", Self::AtMost), (">=", Self::AtLeast), ("<", Self::Below), (">", Self::Above)];
}

impl FromStr for Gate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let shape = || {
            format!(
                "'{text}' is not a condition; write a name, one of < <= > >=, and a number, as in ess<0.3"
            )
        };
        let at = text.find(['<', '>']).ok_or_else(shape)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (sign, number) = Sign::ALL
            .iter()
            .find_map(|(mark, sign)| Some((*sign, rest.strip_prefix(mark)?)))
            .ok_or_else(shape)?;
        let bound: f64 = number.trim().parse().map_err(|_| shape())?;
        if bound.is_nan() {
            return Err(shape());
        }
        let known = NAMES.into_iter().find(|known| *known == name);
        let known = known.ok_or_else(|| match nearest(name, NAMES) {
            Some(near) => format!("no number is called '{name}'; did you mean '{near}'?"),
            None => format!("no number is called '{name}'; the numbers are {}", NAMES.join(", ")),
        })?;
        Ok(Self { name: known, sign, bound })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, mark, bound) = self.parts();
        write!(f, "{name} {mark} {bound}")
    }
}

impl Gate {
    /// The number's name, the sign and the bound.
    #[must_use]
    pub fn parts(&self) -> (&'static str, &'static str, f64) {
        let mark = Sign::ALL.iter().find(|(_, sign)| *sign == self.sign).map_or("", |(mark, _)| mark);
        (self.name, mark, self.bound)
    }

    /// The value that meets the condition, if it does. A number that the data does not determine meets none.
    #[must_use]
    pub fn triggered(&self, measured: &Measured) -> Option<f64> {
        let value = measured.numbers.iter().find(|number| number.name == self.name)?.value;
        let met = match self.sign {
            Sign::Below => value < self.bound,
            Sign::AtMost => value <= self.bound,
            Sign::Above => value > self.bound,
            Sign::AtLeast => value >= self.bound,
        };
        met.then_some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_from_text() {
        let gate: Gate = "ess < 0.3".parse().unwrap();
        assert_eq!((gate.to_string(), gate.sign), ("ess < 0.3".to_owned(), Sign::Below));
        assert_eq!("drift>=1e1".parse::<Gate>().unwrap().to_string(), "drift >= 10");
        assert_eq!("es<0.3".parse::<Gate>().unwrap_err(), "no number is called 'es'; did you mean 'ess'?");
        assert!("ess".parse::<Gate>().unwrap_err().contains("as in ess<0.3"));
        assert!("ess<x".parse::<Gate>().is_err() && "ess<NaN".parse::<Gate>().is_err());
    }
}
