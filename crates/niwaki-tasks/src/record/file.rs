//! A record's file, read strictly and checked: what is wrong is one line that names the place.

use super::task::Rule;
use super::{Record, Slot};
use crate::Error;
use niwaki_files::read_text;
use niwaki_words::nearest;
use serde::Deserialize;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// A record's file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    template: String,
    slot: Vec<Slot>,
    #[serde(default)]
    prime: BTreeMap<String, RawPrime>,
    reward: BTreeMap<String, RawReward>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPrime {
    /// One filled record each: the candidates of its slots in order.
    lines: Vec<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReward {
    /// Pays the first case that holds.
    #[serde(default)]
    case: Vec<RawCase>,
    /// Pays 1 where these slots are filled alike.
    #[serde(default)]
    equal: Vec<String>,
    /// Pays by a table over these slots.
    #[serde(default)]
    over: Vec<String>,
    /// The table, the first slot's candidates slowest.
    #[serde(default)]
    pays: Vec<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    when: BTreeMap<String, String>,
    #[serde(default = "one")]
    pays: f64,
}

const fn one() -> f64 {
    1.0
}

impl Record {
    /// The file of the paper's structured records.
    pub const OF_THE_PAPER: &str = include_str!("../../../../examples/records/structured-record.toml");

    /// The paper's structured records: six slots of four candidates.
    ///
    /// # Errors
    /// Never, as long as the shipped file is a record.
    pub fn of_the_paper() -> Result<Self, Error> {
        Self::parse(Path::new("the paper's record"), Self::OF_THE_PAPER)
    }

    /// Reads a record's file.
    ///
    /// # Errors
    /// If it is no such file: one line that names the place.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Instances { path: path.to_owned(), reason };
        let text = read_text(path).map_err(|error| refuse(error.to_string()))?;
        Self::parse(path, &text)
    }

    fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Instances { path: path.to_owned(), reason };
        let raw: Raw = toml::from_str(text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            refuse(format!("line {line}: {}", error.message().replace('\n', " ")))
        })?;
        Self::check(path, raw).map_err(refuse)
    }

    fn check(path: &Path, raw: Raw) -> Result<Self, String> {
        let mut names = HashSet::new();
        for Slot { name, candidates } in &raw.slot {
            if !names.insert(name) {
                return Err(format!("two slots are called '{name}'"));
            }
            if candidates.len() < 2 {
                return Err(format!("slot '{name}' has {} candidates; give at least two", candidates.len()));
            }
            let mut seen = HashSet::new();
            if let Some(twice) = candidates.iter().find(|candidate| !seen.insert(*candidate)) {
                return Err(format!("slot '{name}' has candidate '{twice}' twice"));
            }
            if candidates.iter().any(String::is_empty) {
                return Err(format!("slot '{name}' has an empty candidate"));
            }
        }
        let pieces = pieces(&raw.template, &raw.slot)?;
        let mut record = Self {
            path: path.to_owned(),
            slots: raw.slot,
            pieces,
            primes: BTreeMap::new(),
            rewards: BTreeMap::new(),
        };
        for (name, RawPrime { lines }) in raw.prime {
            let read = lines.iter().enumerate().map(|(at, line)| {
                record.filled(line).map_err(|reason| format!("prime.{name}, line {}: {reason}", at + 1))
            });
            let read = read.collect::<Result<_, _>>()?;
            record.primes.insert(name, read);
        }
        for (name, reward) in raw.reward {
            let rule = record.rule(reward).map_err(|reason| format!("reward.{name}: {reason}"))?;
            record.rewards.insert(name, rule);
        }
        Ok(record)
    }

    fn slot(&self, name: &str) -> Result<usize, String> {
        self.slots.iter().position(|slot| slot.name == name).ok_or_else(|| {
            let known = || self.slots.iter().map(|slot| slot.name.as_str());
            match nearest(name, known()) {
                Some(near) => format!("no slot is called '{name}'; did you mean '{near}'?"),
                None => format!(
                    "no slot is called '{name}'; there are {}",
                    known().collect::<Vec<_>>().join(", ")
                ),
            }
        })
    }

    fn candidate(&self, slot: usize, text: &str) -> Result<usize, String> {
        let Slot { name, candidates } = &self.slots[slot];
        candidates.iter().position(|candidate| candidate == text).ok_or_else(|| {
            format!("'{text}' is not a candidate of slot '{name}', which has {}", candidates.join(", "))
        })
    }

    /// A filled record as choices.
    fn filled(&self, line: &[String]) -> Result<Vec<usize>, String> {
        if line.len() != self.slots.len() {
            return Err(format!("has {} values for {} slots", line.len(), self.slots.len()));
        }
        line.iter().enumerate().map(|(slot, text)| self.candidate(slot, text)).collect()
    }

    fn rule(&self, raw: RawReward) -> Result<Rule, String> {
        let RawReward { case, equal, over, pays } = raw;
        let slots =
            |names: &[String]| names.iter().map(|name| self.slot(name)).collect::<Result<Vec<_>, _>>();
        let given = [!case.is_empty(), !equal.is_empty(), !over.is_empty() || !pays.is_empty()];
        if given.iter().filter(|&&given| given).count() != 1 {
            return Err("give either 'case', 'equal', or 'over' with 'pays'".to_owned());
        }
        if let Some(odd) =
            pays.iter().chain(case.iter().map(|case| &case.pays)).find(|pays| !pays.is_finite())
        {
            return Err(format!("pays {odd}, which is not a number"));
        }
        if given[0] {
            let read = case.iter().map(|RawCase { when, pays }| {
                let whens = when.iter().map(|(name, text)| {
                    let slot = self.slot(name)?;
                    Ok((slot, self.candidate(slot, text)?))
                });
                Ok((whens.collect::<Result<Vec<_>, String>>()?, *pays))
            });
            return Ok(Rule::Cases(read.collect::<Result<_, String>>()?));
        }
        if given[1] {
            return match equal.len() {
                1 => Err("'equal' compares at least two slots".to_owned()),
                _ => Ok(Rule::Equal(slots(&equal)?)),
            };
        }
        let over = slots(&over)?;
        let counts = over.iter().map(|&slot| self.slots[slot].candidates.len());
        let expected = counts.fold(1, usize::saturating_mul);
        if pays.len() != expected {
            return Err(format!("'pays' has {} values; the slots of 'over' have {expected}", pays.len()));
        }
        Ok(Rule::Table(over, pays))
    }
}

/// The template cut at its slots.
fn pieces(template: &str, slots: &[Slot]) -> Result<Vec<String>, String> {
    if slots.is_empty() {
        return Err("there is no slot".to_owned());
    }
    let (mut pieces, mut rest) = (Vec::new(), template);
    for Slot { name, .. } in slots {
        let mark = format!("<{name}>");
        let Some((before, after)) = rest.split_once(&mark) else {
            return Err(format!("template: '{mark}' is missing, or stands before the slot before it"));
        };
        pieces.push(before.to_owned());
        rest = after;
    }
    pieces.push(rest.to_owned());
    for Slot { name, .. } in slots {
        if pieces.iter().any(|piece| piece.contains(&format!("<{name}>"))) {
            return Err(format!("template: '<{name}>' stands twice or out of order"));
        }
    }
    Ok(pieces)
}
