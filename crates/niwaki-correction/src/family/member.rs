//! What a member tells of itself: the block that each file of this folder fills in.

use super::Rule;
use crate::Error;

/// Most parameters that a member has.
pub const MOST: usize = 4;

/// One member of the family.
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
    /// The normal form for given parameters; those that it has not are zero.
    pub rule: fn([f64; MOST]) -> Rule,
    /// Other names that its users know it by, each with what is different there, if anything.
    pub aliases: &'static [Alias],
    /// How the laws write it: bounds that bind on some steps of a batch and not on others.
    pub tried: &'static [&'static str],
}

/// Another name of a member.
#[derive(Debug)]
pub struct Alias {
    /// The name, in small letters and with hyphens.
    pub name: &'static str,
    /// Whose name it is, and what else belongs to it there.
    pub note: &'static str,
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

impl Member {
    /// How to write this member, e.g. `clipped:ALPHA,CAP` or `token-tis[:HIGH]`.
    #[must_use]
    pub fn usage(&self) -> String {
        let names: Vec<String> = self.parameters.iter().map(|p| p.name.to_uppercase()).collect();
        let optional = self.parameters.iter().all(|parameter| parameter.default.is_some());
        match (names.is_empty(), optional) {
            (true, _) => self.name.to_owned(),
            (_, true) => format!("{}[:{}]", self.name, names.join(",")),
            _ => format!("{}:{}", self.name, names.join(",")),
        }
    }

    /// Its parameters as they are written, the defaults of those that are not.
    pub(super) fn read(&'static self, written: &str) -> Result<[f64; MOST], Error> {
        let written: Vec<&str> = if written.is_empty() { vec![] } else { written.split(',').collect() };
        if written.len() > self.parameters.len() {
            return Err(self.refuse(String::new()));
        }
        let mut values = [0.0; MOST];
        for (index, parameter) in self.parameters.iter().enumerate() {
            values[index] = match (written.get(index), parameter.default) {
                (Some(text), _) => {
                    let value = text.trim().parse().map_err(|_| {
                        self.refuse(format!("{} = '{text}' is not a number; ", parameter.name))
                    })?;
                    self.check(parameter, value)?
                }
                (None, Some(default)) => default,
                (None, None) => return Err(self.refuse(format!("{} is missing; ", parameter.name))),
            };
        }
        Ok(values)
    }

    /// A parameter's value, if it is in its range.
    pub(super) fn check(&'static self, parameter: &Parameter, value: f64) -> Result<f64, Error> {
        // Written so that a value that is not a number fails too.
        let within = value >= parameter.least && value <= parameter.most;
        if !within || (parameter.whole && value.is_finite() && value.fract() != 0.0) {
            let kind = if parameter.whole { "a whole number" } else { "a number" };
            let range = if parameter.most.is_infinite() {
                format!("from {}", parameter.least)
            } else {
                format!("from {} to {}", parameter.least, parameter.most)
            };
            return Err(self.refuse(format!("{} = {value} must be {kind} {range}; ", parameter.name)));
        }
        Ok(value)
    }

    fn refuse(&'static self, why: String) -> Error {
        let names: Vec<String> = self.parameters.iter().map(|p| p.name.to_uppercase()).collect();
        let colon = if names.is_empty() { "" } else { ":" };
        let mend = format!("{why}write {}{colon}{}", self.name, names.join(","));
        Error::Parameter { member: self.name, mend }
    }
}

#[cfg(test)]
impl Member {
    /// The normal form at the first few parameters.
    pub(super) fn at(&self, first: &[f64]) -> Rule {
        let mut values = [0.0; MOST];
        values[..first.len()].copy_from_slice(first);
        (self.rule)(values)
    }
}

#[cfg(test)]
mod tests {
    use super::super::MEMBERS;
    use super::Member;

    #[test]
    fn every_member_has_a_name_of_its_own_and_says_what_it_is() {
        for (index, member) in MEMBERS.iter().enumerate() {
            let names = |member: &Member| {
                let aliases = member.aliases.iter().map(|alias| alias.name);
                [member.name].into_iter().chain(aliases).collect::<Vec<_>>()
            };
            for name in names(member) {
                assert!(MEMBERS[..index].iter().all(|other| !names(other).contains(&name)), "{name}");
                assert!(
                    name.chars().all(|letter| letter.is_ascii_lowercase()
                        || letter.is_ascii_digit()
                        || letter == '-')
                );
            }
            assert!(member.summary.ends_with('.') && !member.formula.is_empty(), "{}", member.name);
            let own = |written: &&str| written.split(':').next() == Some(member.name);
            assert!(!member.tried.is_empty() && member.tried.iter().all(own), "{} has no law", member.name);
        }
    }

    #[test]
    fn usage_says_what_may_be_left_out() {
        let usage = |name: &str| MEMBERS.iter().find(|member| member.name == name).unwrap().usage();
        assert_eq!(usage("ppo"), "ppo");
        assert_eq!(usage("clipped"), "clipped:ALPHA,CAP");
        assert_eq!(usage("token-mis"), "token-mis[:LOW,HIGH]");
    }
}
