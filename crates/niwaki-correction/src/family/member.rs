//! What a member tells of itself, and names with parameters such as `clipped:0.25,1`.

use super::{MEMBERS, Rule};
use crate::Error;
use std::fmt;
use std::str::FromStr;

/// One member of the family: the block that each file of this folder fills in.
#[derive(Debug)]
pub struct Member {
    /// The name users write.
    pub name: &'static str,
    /// The name in tables.
    pub title: &'static str,
    /// One sentence for help texts.
    pub summary: &'static str,
    /// The factor as a formula, for tables.
    pub formula: &'static str,
    /// Its parameters, in the order they are written.
    pub parameters: &'static [Parameter],
    /// The normal form for given parameters.
    pub rule: fn([f64; 2]) -> Rule,
}

/// One parameter of a member.
#[derive(Debug)]
pub struct Parameter {
    /// Its name in help texts and errors.
    pub name: &'static str,
    /// Smallest allowed value.
    pub least: f64,
    /// Largest allowed value.
    pub most: f64,
    /// Whether only whole numbers make sense.
    pub whole: bool,
    /// The value used when none is written.
    pub default: Option<f64>,
}

impl Parameter {
    /// α ∈ [0, 1], required.
    pub(crate) const ALPHA: Self = Self { name: "alpha", least: 0.0, most: 1.0, whole: false, default: None };

    /// A bound on an importance weight, 2 unless told (the default of several trainers).
    pub(crate) const HIGH: Self =
        Self { name: "high", least: 1.0, most: f64::INFINITY, whole: false, default: Some(2.0) };

    /// The lower end of a band of importance weights, ½ unless told.
    pub(crate) const LOW: Self =
        Self { name: "low", least: 0.0, most: 1.0, whole: false, default: Some(0.5) };
}

/// A member with its parameters: what `tempered:0.25` names.
#[derive(Clone, Copy)]
pub struct Correction {
    member: &'static Member,
    values: [f64; 2],
}

impl Correction {
    /// The block that describes this member.
    #[must_use]
    pub fn member(&self) -> &'static Member {
        self.member
    }

    /// The parameters, in the member's order.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values[..self.member.parameters.len()]
    }

    /// Its normal form.
    #[must_use]
    pub fn rule(&self) -> Rule {
        (self.member.rule)(self.values)
    }

    /// A human label such as `Tempered α = 0.25`.
    #[must_use]
    pub fn label(&self) -> String {
        let name = self.member.title;
        match (self.member.parameters, self.values()) {
            ([only], [value]) if only.name == "alpha" => format!("{name} α = {value}"),
            ([only], [value]) if only.name == "window" => format!("{name} k = {value}"),
            (_, []) => name.to_owned(),
            (_, values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                format!("{name} ({})", values.join(", "))
            }
        }
    }
}

impl PartialEq for Correction {
    fn eq(&self, other: &Self) -> bool {
        self.member.name == other.member.name && self.values() == other.values()
    }
}

impl fmt::Debug for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Correction({self})")
    }
}

impl fmt::Display for Correction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.member.name)?;
        for (index, value) in self.values().iter().enumerate() {
            write!(f, "{}{value}", if index == 0 { ':' } else { ',' })?;
        }
        Ok(())
    }
}

impl FromStr for Correction {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (name, written) = text.trim().split_once(':').unwrap_or((text.trim(), ""));
        let Some(member) = MEMBERS.iter().find(|member| member.name == name) else {
            return Err(Error::UnknownName { came: name.to_owned(), nearest: nearest(name) });
        };
        let written: Vec<&str> = if written.is_empty() { vec![] } else { written.split(',').collect() };
        let mut values = [0.0; 2];
        for (index, parameter) in member.parameters.iter().enumerate() {
            values[index] = parameter.read(member, written.get(index).copied())?;
        }
        if written.len() > member.parameters.len() {
            return Err(Error::Parameter { member: member.name, mend: member.usage() });
        }
        Ok(Self { member, values })
    }
}

impl Member {
    /// How to write this member, e.g. `write clipped:ALPHA,CAP`.
    #[must_use]
    pub fn usage(&self) -> String {
        let names: Vec<String> = self.parameters.iter().map(|p| p.name.to_uppercase()).collect();
        let colon = if names.is_empty() { "" } else { ":" };
        format!("write {}{colon}{}", self.name, names.join(","))
    }
}

impl Parameter {
    fn read(&self, member: &'static Member, written: Option<&str>) -> Result<f64, Error> {
        let refuse = |why: String| Error::Parameter {
            member: member.name,
            mend: format!("{why}; {}", member.usage()),
        };
        let Some(text) = written else {
            return self.default.ok_or_else(|| refuse(format!("{} is missing", self.name)));
        };
        let value: f64 =
            text.trim().parse().map_err(|_| refuse(format!("{} = '{text}' is not a number", self.name)))?;
        // Written so that a value that is not a number fails too.
        let within = value >= self.least && value <= self.most;
        if !within || (self.whole && value.is_finite() && value.fract() != 0.0) {
            let kind = if self.whole { "a whole number" } else { "a number" };
            let range = if self.most.is_infinite() {
                format!("from {}", self.least)
            } else {
                format!("from {} to {}", self.least, self.most)
            };
            return Err(refuse(format!("{} = {text} must be {kind} {range}", self.name)));
        }
        Ok(value)
    }
}

/// The member's name with the smallest edit distance.
fn nearest(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    MEMBERS.iter().map(|member| member.name).min_by_key(|known| edit_distance(&name, known)).unwrap_or("ppo")
}

/// Levenshtein distance in bytes.
fn edit_distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::super::TESTBED;
    use super::*;

    #[test]
    fn names_round_trip() {
        for name in TESTBED.into_iter().chain(["minpro", "gspo", "token-mis:0.5,2", "clipped:0.25,inf"]) {
            let correction: Correction = name.parse().unwrap();
            assert_eq!(correction.to_string(), name);
        }
        assert_eq!("token-tis".parse::<Correction>().unwrap().to_string(), "token-tis:2");
        assert_eq!("tempered:0.25".parse::<Correction>().unwrap().label(), "Tempered α = 0.25");
        assert_eq!("clipped:0.1,1".parse::<Correction>().unwrap().label(), "Clipped (0.1, 1)");
        assert_eq!("ppo".parse::<Correction>().unwrap().label(), "PPO");
        assert_eq!("token-tis".parse::<Correction>().unwrap().label(), "Token TIS (2)");
    }

    #[test]
    fn every_member_has_a_name_of_its_own_and_says_what_it_is() {
        for (index, member) in MEMBERS.iter().enumerate() {
            assert!(MEMBERS[..index].iter().all(|other| other.name != member.name), "{}", member.name);
            assert!(member.summary.ends_with('.') && !member.formula.is_empty(), "{}", member.name);
        }
    }

    #[test]
    fn refusals_name_the_mend() {
        let refuse = |text: &str| text.parse::<Correction>().unwrap_err().to_string();
        assert_eq!(refuse("temperd:0.1"), "no loss is called 'temperd'; did you mean 'tempered'?");
        assert_eq!(refuse("tempered"), "loss 'tempered': alpha is missing; write tempered:ALPHA");
        assert_eq!(
            refuse("tempered:1.5"),
            "loss 'tempered': alpha = 1.5 must be a number from 0 to 1; write tempered:ALPHA"
        );
        assert_eq!(
            refuse("truncated:1.5"),
            "loss 'truncated': window = 1.5 must be a whole number from 1; write truncated:WINDOW"
        );
        assert_eq!(
            refuse("clipped:x,1"),
            "loss 'clipped': alpha = 'x' is not a number; write clipped:ALPHA,CAP"
        );
        assert_eq!(
            refuse("clipped:NaN,1").split(';').next(),
            Some("loss 'clipped': alpha = NaN must be a number from 0 to 1")
        );
        assert_eq!(refuse("ppo:1"), "loss 'ppo': write ppo");
    }
}
