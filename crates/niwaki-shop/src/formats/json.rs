//! JSON values that know their place in the file, so that every complaint can name it.
//!
//! The syntax is `serde_json`'s; a value stays the raw text that it borrows, and its place is where it lies in the
//! whole.

use crate::instance::HORIZON;
use crate::{Error, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::fmt;

/// A value somewhere in a JSON text.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a> {
    whole: &'a str,
    raw: &'a str,
}

/// An object's fields by name.
pub(crate) struct Fields<'a> {
    object: Node<'a>,
    fields: BTreeMap<String, Node<'a>>,
}

impl<'a> Node<'a> {
    /// The whole text as one value.
    pub(crate) fn parse(text: &'a str) -> Result<Self> {
        let raw: &RawValue = serde_json::from_str(text).map_err(|error| {
            let full = error.to_string();
            let what = full.split(" at line ").next().unwrap_or(&full).to_owned();
            Error::Parse {
                line: error.line().max(1),
                column: error.column().max(1),
                what: format!("JSON: {what}"),
            }
        })?;
        Ok(Self { whole: text, raw: raw.get() })
    }

    fn child(&self, raw: &'a RawValue) -> Self {
        Self { whole: self.whole, raw: raw.get() }
    }

    /// Where the value starts: line and column.
    fn place(&self) -> (usize, usize) {
        let offset = self.raw.as_ptr() as usize - self.whole.as_ptr() as usize;
        let before = &self.whole[..offset];
        let line = 1 + before.bytes().filter(|&byte| byte == b'\n').count();
        let column = 1 + before.rsplit('\n').next().unwrap_or("").chars().count();
        (line, column)
    }

    /// A complaint at this value.
    pub(crate) fn fault(&self, what: impl Into<String>) -> Error {
        let (line, column) = self.place();
        Error::Parse { line, column, what: what.into() }
    }

    /// Places an error of the instance here, unless it has a place.
    pub(crate) fn settle<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| {
            let (line, column) = self.place();
            error.at(line, column)
        })
    }

    /// The value's beginning, for a message.
    fn shown(&self) -> String {
        let short: String = self.raw.chars().take(24).collect();
        if short.len() < self.raw.len() { format!("{short}…") } else { short }
    }

    fn wrong(&self, what: &str) -> Error {
        self.fault(format!("expected {what}, got `{}`", self.shown()))
    }

    /// The value as a list.
    pub(crate) fn list(&self, what: &str) -> Result<Vec<Self>> {
        let items: Vec<&'a RawValue> = serde_json::from_str(self.raw).map_err(|_| self.wrong(what))?;
        Ok(items.into_iter().map(|raw| self.child(raw)).collect())
    }

    /// Whether the value is a list.
    pub(crate) fn is_list(&self) -> bool {
        self.raw.starts_with('[')
    }

    /// The value as an object.
    pub(crate) fn object(&self, what: &str) -> Result<Fields<'a>> {
        let Pairs(pairs) = serde_json::from_str(self.raw).map_err(|_| self.wrong(what))?;
        let mut fields = BTreeMap::new();
        for (name, raw) in pairs {
            let node = self.child(raw);
            if fields.contains_key(&name) {
                return Err(
                    node.fault(format!("expected each field once, got `{name}` twice; keep one of them"))
                );
            }
            fields.insert(name, node);
        }
        Ok(Fields { object: *self, fields })
    }

    /// The value as a whole number that is not negative.
    pub(crate) fn number(&self, what: &str) -> Result<u32> {
        serde_json::from_str::<u32>(self.raw).map_err(|_| {
            let digits = self.raw.trim_start_matches('-');
            if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
                let why = if self.raw.starts_with('-') { "it cannot be negative" } else { "too large" };
                self.fault(format!("expected {what}, got {}: {why}", self.shown()))
            } else {
                self.wrong(what)
            }
        })
    }

    /// The value as a time.
    pub(crate) fn time(&self) -> Result<u32> {
        let time = self.number("a time")?;
        if time > HORIZON {
            return Err(self.fault(format!("expected a time of at most {HORIZON}, got {time}")));
        }
        Ok(time)
    }

    /// The value as a time, or nothing for `null`.
    pub(crate) fn optional_time(&self) -> Result<Option<u32>> {
        if self.raw == "null" { Ok(None) } else { self.time().map(Some) }
    }

    /// The value as a machine's number below `machines`.
    pub(crate) fn machine(&self, machines: usize) -> Result<u32> {
        let machine = self.number("a machine")?;
        if machine as usize >= machines {
            return Err(
                self.fault(format!("expected one of {machines} machines from 0, got machine {machine}"))
            );
        }
        Ok(machine)
    }

    /// The value as the text of one cell: a text or a number as it stands, nothing for `null`, yes or no.
    pub(crate) fn scalar(&self) -> Result<String> {
        match self.raw.as_bytes().first() {
            Some(b'"') => self.text("a text"),
            Some(b'[' | b'{') => Err(self.wrong("a text or a number")),
            _ => Ok(match self.raw {
                "null" => String::new(),
                "true" => "yes".to_owned(),
                "false" => "no".to_owned(),
                number => number.to_owned(),
            }),
        }
    }

    /// The value as text.
    pub(crate) fn text(&self, what: &str) -> Result<String> {
        serde_json::from_str(self.raw).map_err(|_| self.wrong(what))
    }
}

/// An object's fields as they stand, a name that comes twice among them.
struct Pairs<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Pairs<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        struct All;

        impl<'de> Visitor<'de> for All {
            type Value = Pairs<'de>;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Self::Value, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }

        from.deserialize_map(All)
    }
}

impl<'a> Fields<'a> {
    /// A field that must be there.
    pub(crate) fn need(&self, name: &str) -> Result<Node<'a>> {
        self.get(name).ok_or_else(|| self.object.fault(format!("expected a field `{name}`, got none")))
    }

    /// A field that may be there; `null` counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<Node<'a>> {
        self.fields.get(name).copied().filter(|node| node.raw != "null")
    }

    /// All fields by name.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, Node<'a>)> {
        self.fields.iter().map(|(name, node)| (name.as_str(), *node))
    }

    /// Refuses fields that are not in `known`.
    pub(crate) fn only(&self, known: &[&str]) -> Result<()> {
        match self.fields.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, node)) => {
                Err(node.fault(format!("expected only the fields {}, got `{name}`", known.join(", "))))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_know_their_place() {
        let text = "{\n \"é\": [1, -2]}";
        let list = Node::parse(text)
            .unwrap()
            .object("an object")
            .unwrap()
            .need("é")
            .unwrap()
            .list("a list")
            .unwrap();
        assert_eq!(list[0].number("a time").unwrap(), 1);
        let line = list[1].number("a time").unwrap_err().to_string();
        assert_eq!(line, "line 2, column 11: expected a time, got -2: it cannot be negative");
    }

    #[test]
    fn a_field_that_comes_twice_is_refused() {
        let line = |text| Node::parse(text).unwrap().object("an object").err().unwrap().to_string();
        let said = "expected each field once, got `a` twice; keep one of them";
        assert_eq!(line("{\"a\": [1],\n \"b\": 2, \"a\": [3]}"), format!("line 2, column 15: {said}"));
        // The same letters written in another way, and two that are equal or nothing.
        assert_eq!(line(r#"{"a": 1, "\u0061": 1}"#), format!("line 1, column 20: {said}"));
        assert_eq!(line(r#"{"a": null, "a": null}"#), format!("line 1, column 18: {said}"));
    }

    #[test]
    fn broken_syntax_has_a_place() {
        let line = Node::parse("{\n \"a\": [1,}").err().unwrap().to_string();
        assert_eq!(line, "line 2, column 10: JSON: expected value");
    }
}
