//! One object per line.
//!
//! Numbers go straight into the record's buffers; what the schema does not name is skipped unread.

use super::limits::LONGEST_LINE;
use super::records::{Pass, Records, Unread, shown};
use crate::error::{Error, Fault, Place};
use crate::keys::{is_blurred, key_of_number, key_of_text, key_of_whole};
use crate::schema::{FIELDS, Field, Naming};
use crate::trajectory::{Came, Record};
use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

/// The mark of UTF-8 that some programs write at a file's start.
const MARK: &[u8] = b"\xEF\xBB\xBF";

/// The lines of a file.
pub(super) struct Lines {
    file: PathBuf,
    reader: BufReader<File>,
    naming: Naming,
    pass: Pass,
    line: Vec<u8>,
    /// Whether a line without its end may still be on its way.
    growing: bool,
    /// Whether some line had numbers that JSON has no word for.
    python: bool,
    unread: Unread,
    number: u64,
    done: u64,
}

impl Lines {
    pub(super) fn open(file: &Path, naming: &Naming, pass: Pass, growing: bool) -> Result<Self, Error> {
        let handle = File::open(file).map_err(|source| Error::File { file: shown(file), source })?;
        Ok(Self {
            file: file.to_path_buf(),
            reader: BufReader::with_capacity(1 << 18, handle),
            naming: naming.clone(),
            pass,
            line: Vec::new(),
            growing,
            python: false,
            unread: Unread::default(),
            number: 0,
            done: 0,
        })
    }
}

impl Records for Lines {
    fn next(&mut self, record: &mut Record) -> Result<bool, Error> {
        loop {
            self.line.clear();
            let read = self.reader.by_ref().take(LONGEST_LINE + 1).read_until(b'\n', &mut self.line);
            let read = read.map_err(|source| Error::File { file: shown(&self.file), source })?;
            if read == 0 {
                return Ok(false);
            }
            if self.growing && !self.line.ends_with(b"\n") {
                return Ok(false);
            }
            self.number += 1;
            self.done += read as u64;
            if read as u64 > LONGEST_LINE {
                self.line = Vec::new();
                let why = format!("a line of more than {} MB; one trajectory per line", LONGEST_LINE >> 20);
                return Err(Error::Row { place: self.place(), fault: Fault::Syntax { field: None, why } });
            }
            // Some editors and exporters put a mark of the encoding before the first line.
            if self.number == 1 && self.line.starts_with(MARK) {
                self.line.drain(..MARK.len());
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        if self.python {
            self.quote_words();
        }
        let parsed = self.parse(record);
        let parsed = match parsed {
            Err(_) if !self.python && self.quote_words() => {
                self.python = true;
                record.clear();
                self.parse(record)
            }
            parsed => parsed,
        };
        parsed.map(|()| true).map_err(|fault| Error::Row { place: self.place(), fault })
    }

    fn place(&self) -> Place {
        Place { file: shown(&self.file), unit: "line", row: Some(self.number) }
    }

    fn names(&self) -> Vec<String> {
        // Only asked for the first line and when one is refused: its keys are parsed again.
        let keys = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&self.line);
        keys.unwrap_or_default().into_iter().map(|(key, _)| key).collect()
    }

    fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }

    fn done(&self) -> u64 {
        self.done
    }
}

impl Lines {
    /// Reads the line into the record.
    fn parse(&mut self, record: &mut Record) -> Result<(), Fault> {
        let Self { naming, pass, unread, .. } = self;
        let mut state = State { record, naming, pass: *pass, unread, now: None, fault: None };
        let mut parser = serde_json::Deserializer::from_slice(self.line.trim_ascii_end());
        let parsed = Object { state: &mut state, ranks: [usize::MAX; FIELDS.len()] }.deserialize(&mut parser);
        parsed.and_then(|()| parser.end()).map_err(|error| {
            let fault = state.fault.take();
            fault.unwrap_or_else(|| Fault::Syntax { field: state.now, why: why(&error, &self.line) })
        })
    }

    /// Puts `NaN` and `Infinity`, which Python writes and JSON does not know, into quotes; true where there were any.
    fn quote_words(&mut self) -> bool {
        let words = |rest: &[u8]| WORDS.into_iter().find(|word| rest.starts_with(word.as_bytes()));
        if !self.line.windows(3).any(|three| three == b"NaN" || three == b"Inf") {
            return false;
        }
        let (mut quoted, mut inside, mut at) = (Vec::with_capacity(self.line.len() + 64), false, 0);
        while at < self.line.len() {
            let byte = self.line[at];
            if inside && byte == b'\\' {
                quoted.extend_from_slice(&self.line[at..(at + 2).min(self.line.len())]);
                at += 2;
                continue;
            }
            inside ^= byte == b'"';
            match words(&self.line[at..]).filter(|_| !inside) {
                Some(word) => {
                    quoted.push(b'"');
                    quoted.extend_from_slice(word.as_bytes());
                    quoted.push(b'"');
                    at += word.len();
                }
                None => {
                    quoted.push(byte);
                    at += 1;
                }
            }
        }
        let changed = quoted.len() != self.line.len();
        self.line = quoted;
        changed
    }
}

/// What Python writes for numbers that are not finite.
const WORDS: [&str; 3] = ["NaN", "Infinity", "-Infinity"];

/// The number that such a word stands for.
fn worded(text: &str) -> Option<f64> {
    WORDS.contains(&text).then(|| text.parse().unwrap_or(f64::NAN))
}

/// The parser's complaint in this program's words.
fn why(error: &serde_json::Error, line: &[u8]) -> String {
    if error.is_eof() {
        return "the line is cut short".to_owned();
    }
    // The parser stops at a word's first letter, or at its second where the first could have begun `null`.
    let rest = |back: usize| line.get(error.column().saturating_sub(back)..).unwrap_or_default();
    if ["nan", "inf", "Inf"]
        .iter()
        .any(|word| [1, 2].iter().any(|&back| rest(back).starts_with(word.as_bytes())))
    {
        return format!("column {}: not a finite number", error.column());
    }
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or(&text);
    format!("column {}: {text}", error.column())
}

/// What parsing one line carries along.
struct State<'a> {
    record: &'a mut Record,
    naming: &'a Naming,
    pass: Pass,
    unread: &'a mut Unread,
    now: Option<Field>,
    fault: Option<Fault>,
}

struct Object<'s, 'a> {
    state: &'s mut State<'a>,
    ranks: [usize; FIELDS.len()],
}

impl<'de> DeserializeSeed<'de> for Object<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the fields of a trajectory")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
            let known = self.state.naming.field(&key);
            let known = known.filter(|&(field, rank)| rank < self.ranks[field.index()]);
            let Some((field, rank)) = known else {
                self.state.unread.add(&key);
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if !self.state.pass.wants(field) {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            self.state.now = Some(field);
            if map.next_value_seed(Value { field, state: self.state })? {
                let before = std::mem::replace(&mut self.ranks[field.index()], rank);
                // A better name than one that has been read already.
                if let Some(name) = self.state.naming.names(field).get(before) {
                    self.state.unread.add(name);
                }
            }
            self.state.now = None;
        }
        Ok(())
    }
}

/// The value of a known field; true where it is not null.
struct Value<'s, 'a> {
    field: Field,
    state: &'s mut State<'a>,
}

impl Value<'_, '_> {
    fn wrong<E: serde::de::Error>(self, came: &str) -> E {
        let expected = match self.field {
            Field::Group => "a number or a string",
            Field::Iteration | Field::TrainerVersion => "a whole number",
            Field::Age => "a whole number or a list of them",
            Field::Weight | Field::Kept => "a number",
            Field::Advantage | Field::Reward | Field::Version => "a number or a list of numbers",
            _ => "a list of numbers",
        };
        self.state.fault = Some(Fault::Kind { field: self.field, expected, came: came.to_owned() });
        E::custom("wrong kind")
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_> {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_> {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the values of {}", self.field)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<bool, E> {
        let whole = [Field::Group, Field::Iteration, Field::Age, Field::TrainerVersion];
        if whole.contains(&self.field) && is_blurred(number) {
            let came =
                format!("{number:e}, which a float does not tell from its neighbours; write it as text");
            return Err(self.wrong(&came));
        }
        let record = &mut *self.state.record;
        match self.field {
            Field::Group => record.group = Some(key_of_number(number)),
            Field::Iteration if number.fract() == 0.0 => record.iteration = Some(number as i64),
            Field::Age if number.fract() == 0.0 => record.age = Some(number as i64),
            Field::TrainerVersion if number.fract() == 0.0 => record.trainer_version = Some(number as i64),
            Field::Iteration | Field::Age | Field::TrainerVersion => {
                return Err(self.wrong(&format!("{number}")));
            }
            Field::Weight => record.weight = Some(number),
            Field::Kept => record.kept = Some(number),
            Field::Length | Field::Offsets => return Ok(false),
            field => record.fill(field, Came::One).push(number),
        }
        Ok(true)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<bool, E> {
        if self.field != Field::Group {
            return self.visit_f64(number as f64);
        }
        self.state.record.group = Some(key_of_whole(number.into()));
        Ok(true)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<bool, E> {
        if self.field != Field::Group {
            return self.visit_f64(number as f64);
        }
        self.state.record.group = Some(key_of_whole(number.into()));
        Ok(true)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<bool, E> {
        if self.field != Field::Group {
            return match worded(text) {
                Some(number) => self.visit_f64(number),
                None => Err(self.wrong("a string")),
            };
        }
        self.state.record.group = Some(key_of_text(text.as_bytes()));
        Ok(true)
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<bool, E> {
        Err(self.wrong("true or false"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<bool, A::Error> {
        Err(self.wrong("an object"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        match self.field {
            field if field.is_single() => return Err(self.wrong("a list")),
            Field::Length | Field::Offsets => {
                while list.next_element::<IgnoredAny>()?.is_some() {}
                return Ok(false);
            }
            _ => {}
        }
        let values = self.state.record.fill(self.field, Came::Many);
        loop {
            match list.next_element::<Element>() {
                Ok(Some(Element::Number(number))) => values.push(number),
                Ok(Some(Element::Other(came))) => {
                    let came = format!("{came} at index {}", values.len());
                    return Err(self.wrong(&came));
                }
                Ok(None) => return Ok(true),
                Err(error) => return Err(error),
            }
        }
    }
}

/// An element of a list: a number, or what else it is.
enum Element {
    Number(f64),
    Other(&'static str),
}

impl<'de> serde::Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number")
    }

    fn visit_f64<E>(self, number: f64) -> Result<Element, E> {
        Ok(Element::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Element, E> {
        Ok(Element::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Element, E> {
        Ok(Element::Number(number as f64))
    }

    fn visit_bool<E>(self, set: bool) -> Result<Element, E> {
        Ok(Element::Number(f64::from(u8::from(set))))
    }

    fn visit_unit<E>(self) -> Result<Element, E> {
        // A null becomes NaN. The checks refuse it at a step that the policy took, and ignore it at a masked one.
        Ok(Element::Number(f64::NAN))
    }

    fn visit_str<E>(self, text: &str) -> Result<Element, E> {
        Ok(worded(text).map_or(Element::Other("a string"), Element::Number))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Element, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Element::Other("a list"))
    }

    fn visit_map<A: MapAccess<'de>>(self, _: A) -> Result<Element, A::Error> {
        Err(A::Error::custom("an object where a number is expected"))
    }
}
