//! Reading a run's file strictly, settings from the command line, and the hash that names a spec.

use super::Spec;
use super::fields::{Stranger, stranger};
use crate::Error;
use niwaki_correction::Correction;
use niwaki_files::Digest;
use niwaki_words::nearest;
use serde::de::DeserializeOwned;
use toml::de::DeTable;

/// Reads a TOML text into a strict type; an unknown key is refused with its line and the nearest valid key.
///
/// # Errors
/// Where the text is no TOML, or a key or value is wrong; `name` is how the file is called in the message.
pub fn strictly<T: DeserializeOwned>(name: &str, text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| 1 + text[..span.start].matches('\n').count());
        Error::Unreadable { name: name.to_owned(), line, reason: reason(error.message()) }
    })
}

/// The message with the nearest valid key in place of the list of all, where one is near.
fn reason(message: &str) -> String {
    let words: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    match (message.starts_with("unknown field") || message.starts_with("unknown variant"), words.as_slice()) {
        (true, [came, known @ ..]) if !known.is_empty() => {
            let what = if message.starts_with("unknown field") { "key" } else { "value" };
            match nearest(came, known.iter().copied()) {
                Some(near) => format!("unknown {what} '{came}'; the nearest valid one is '{near}'"),
                None => format!("unknown {what} '{came}'; the valid ones are {}", known.join(", ")),
            }
        }
        _ => in_words(&message.replace('\n', " ")),
    }
}

/// The message with the names of types in words.
fn in_words(message: &str) -> String {
    let types = [
        ("usize", "a whole number, 0 or more"),
        ("u64", "a whole number, 0 or more"),
        ("u32", "a whole number, 0 or more"),
        ("i64", "a whole number"),
        ("f64", "a number"),
        ("f32", "a number"),
    ];
    let found = types.iter().find_map(|(name, words)| {
        Some(format!("{}expected {words}", message.strip_suffix(&format!("expected {name}"))?))
    });
    found.unwrap_or_else(|| message.to_owned())
}

/// Sets `key`, with dots between tables, to a value in a TOML table.
///
/// # Errors
/// Where a part of the key names something that is not a table.
pub fn set(table: &mut toml::Table, key: &str, value: toml::Value) -> Result<(), Error> {
    let refuse = |part: &str| Error::Setting {
        setting: key.to_owned(),
        reason: format!("'{part}' is not a table, so nothing can be set inside it"),
    };
    let mut parts = key.split('.').peekable();
    let mut at = table;
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            at.insert(part.to_owned(), value);
            return Ok(());
        }
        let below = at.entry(part).or_insert_with(|| toml::Value::Table(toml::Table::new()));
        at = below.as_table_mut().ok_or_else(|| refuse(part))?;
    }
    Ok(())
}

impl Spec {
    /// Reads a run's file, then applies settings of the form `a.b=c`.
    ///
    /// A setting's value is read as TOML, and as a string where it is none: `update.correction=tempered:0.1`.
    ///
    /// # Errors
    /// Where the text or a setting is not understood.
    pub fn read(name: &str, text: &str, settings: &[String]) -> Result<Self, Error> {
        let said: toml::Table = strictly(name, text)?;
        let refuse = |setting: &str, reason: String| Error::Setting { setting: setting.to_owned(), reason };
        let mut pairs = Vec::new();
        for setting in settings {
            let pair = setting.split_once('=');
            let (key, value) = pair.ok_or_else(|| refuse(setting, "write it as key=value".to_owned()))?;
            pairs.push((setting, key.trim(), value_of(value.trim())));
        }
        let mut all = said.clone();
        pairs.iter().try_for_each(|(_, key, value)| set(&mut all, key, value.clone()))?;
        // Which keys there are depends on the kinds, which a setting may name.
        if let Some(Stranger { path, reason }) = stranger(&all) {
            let key = path.join(".");
            let sets = |set: &str| key == set || key.starts_with(&format!("{set}."));
            return Err(match pairs.iter().rev().find(|(_, set, _)| sets(set)) {
                Some((setting, ..)) => refuse(setting, reason),
                None => Error::Unreadable { name: name.to_owned(), line: line_of(text, &path), reason },
            });
        }
        let mut spec = strictly(name, text)?;
        let mut table = said;
        for (setting, key, value) in pairs {
            set(&mut table, key, value)?;
            // Read after each one, so that a refusal names the setting at fault.
            spec = toml::Value::Table(table.clone())
                .try_into()
                .map_err(|error| refuse(setting, reason(error.message())))?;
        }
        Ok(spec)
    }

    /// Every key of every kind with its value, which a hash is made of; [`Spec::to_commented_toml`] is for people.
    ///
    /// # Errors
    /// Never for a spec that was read; the error is that of writing TOML.
    pub fn to_toml(&self) -> Result<String, Error> {
        let text = match self.own {
            Some(_) => toml::to_string(&self.to_table()?),
            None => toml::to_string(self),
        };
        text.map_err(|error| Error::Unwritable { reason: error.to_string() })
    }

    /// The hash that names what this spec computes, 16 hexadecimal digits: FNV-1a of the resolved file without the
    /// seed and without how often it is saved. Instances of a folder, records and models are named by their content, not by
    /// their place.
    ///
    /// # Errors
    /// As [`Spec::to_toml`].
    pub fn hash(&self) -> Result<String, Error> {
        let mut named =
            Self { seed: 0, checkpoint: super::CheckpointSpec { every: 0, keep: true }, ..self.clone() };
        if named.task.digest.is_some() {
            (named.task.folder, named.task.file, named.policy.model) = (None, None, None);
        }
        if named.policy.digest.is_some() {
            named.policy.start = None;
        }
        let mut digest = Digest::of(named.to_toml()?);
        // A loss of the user's own is its name in the file; what it computes is part of the hash.
        for name in [Some(&self.update.correction), self.warmup.correction.as_ref()].into_iter().flatten() {
            if let Some(rule) = Correction::registered(name) {
                digest = digest.and(format!("{rule:?}"));
            }
        }
        Ok(digest.to_string())
    }
}

/// The line of a key, from 1.
fn line_of(text: &str, path: &[String]) -> Option<usize> {
    let parsed = DeTable::parse(text).ok()?;
    let mut table = parsed.get_ref();
    let (last, homes) = path.split_last()?;
    for home in homes {
        table = table.iter().find(|(key, _)| key.get_ref() == home)?.1.get_ref().as_table()?;
    }
    let (key, _) = table.iter().find(|(key, _)| key.get_ref() == last)?;
    Some(1 + text[..key.span().start].matches('\n').count())
}

/// A value as TOML where it is one, else as a string.
#[must_use]
pub fn value_of(text: &str) -> toml::Value {
    let read = toml::from_str::<toml::Table>(&format!("value = {text}")).ok();
    read.and_then(|mut table| table.remove("value")).unwrap_or_else(|| toml::Value::String(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
        let refusal = Spec::read("run.toml", "seed = 1\n[update]\nresue = 3\n", &[]).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "run.toml, line 3: unknown key 'resue'; the nearest valid one is 'reuse'"
        );
        let refusal = Spec::read("run.toml", "[optimiser]\nkind = \"addam\"\n", &[]).unwrap_err();
        assert_eq!(
            refusal.to_string(),
            "run.toml, line 2: unknown value 'addam'; the nearest valid one is 'adam'"
        );
        let refusal = Spec::read("run.toml", "foo = 1\n", &[]).unwrap_err().to_string();
        assert!(
            refusal.starts_with("run.toml, line 1: unknown key 'foo'; the valid ones are seed, "),
            "{refusal}"
        );
    }

    #[test]
    fn types_are_called_by_words() {
        let refused =
            |setting: &str| Spec::read("run.toml", "", &[setting.to_owned()]).unwrap_err().to_string();
        assert_eq!(
            refused("iterations=-5"),
            "iterations=-5: invalid value: integer `-5`, expected a whole number, 0 or more"
        );
        assert!(
            refused("optimiser.rate=true").ends_with("expected a number"),
            "{}",
            refused("optimiser.rate=true")
        );
    }

    #[test]
    fn settings_override_the_file() {
        let settings = [
            "update.correction=tempered:0.1",
            "task.horizon=6",
            "policy.prime.token=1",
            "policy.prime.mass=0.9",
        ]
        .map(str::to_owned);
        // The prime table is only whole after its second key.
        assert!(Spec::read("run.toml", "", &settings).is_err());
        let whole = ["update.correction=tempered:0.1", "task.horizon=6", "policy.prime={token=1, mass=0.9}"];
        let spec = Spec::read("run.toml", "[task]\nhorizon = 9\n", &whole.map(str::to_owned)).unwrap();
        assert_eq!((spec.update.correction.as_str(), spec.task.horizon), ("tempered:0.1", 6));
        let refusal = Spec::read("run.toml", "", &["task.horizn=6".to_owned()]).unwrap_err().to_string();
        assert_eq!(refusal, "task.horizn=6: unknown key 'horizn'; the nearest valid one is 'horizon'");
        // The kinds may be set after their keys; a key of another kind is named where it stands.
        let text = "[policy]\nkind = \"pointer\"\n[task]\nhorizon = 9\n";
        let shop = ["task.jobs=5".to_owned(), "task.kind=flow-shop".to_owned()];
        let refusal = Spec::read("run.toml", text, &shop).unwrap_err().to_string();
        assert_eq!(refusal, "run.toml, line 4: task 'flow-shop' has no key 'horizon'; leave it out");
        let refusal = Spec::read("run.toml", "", &shop[..1]).unwrap_err().to_string();
        assert_eq!(refusal, "task.jobs=5: task 'two-branch' has no key 'jobs'; leave it out");
        let refusal = Spec::read("run.toml", "", &["seed.a=6".to_owned()]).unwrap_err().to_string();
        assert!(refusal.starts_with("seed.a=6: "), "{refusal}");
    }

    #[test]
    fn the_resolved_file_reads_back_and_the_hash_ignores_the_seed() {
        let spec = Spec { seed: 7, ..Spec::default() };
        assert_eq!(Spec::read("spec.toml", &spec.to_commented_toml().unwrap(), &[]).unwrap(), spec);
        assert_eq!(spec.hash().unwrap(), Spec::default().hash().unwrap());
        let other = Spec { iterations: 3, ..Spec::default() };
        assert_ne!(spec.hash().unwrap(), other.hash().unwrap());
    }
}
