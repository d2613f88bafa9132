//! Checksums at the end of lines and documents, as the JSON objects' last key.

use crate::Error;
use niwaki_files::Digest;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What stands around the check of a line and of a document.
const LINE: [&str; 2] = [",\"check\":\"", "\"}"];
const DOCUMENT: [&str; 2] = [",\n  \"check\": \"", "\"\n}\n"];
/// How the object ends without its check.
const LINE_END: &str = "}";
const DOCUMENT_END: &str = "\n}";

/// Appends an object as a line; its check follows from `chain`, which goes on to the next line.
pub(super) fn push_line(to: &mut Vec<u8>, value: &impl Serialize, chain: &mut Digest) -> Result<(), Error> {
    let text = serde_json::to_string(value).map_err(unwritable)?;
    let body = text.strip_suffix(LINE_END).unwrap_or(&text);
    *chain = chain.and(body);
    to.extend_from_slice(format!("{body}{}{chain}{}\n", LINE[0], LINE[1]).as_bytes());
    Ok(())
}

/// Reads a line without its end; nothing where it is not what follows on `chain`.
pub(super) fn read_line<T: DeserializeOwned>(line: &str, chain: &mut Digest) -> Option<T> {
    open(line, LINE, LINE_END, chain)
}

/// An object as a document of its own.
pub(super) fn document(value: &impl Serialize, mut chain: Digest) -> Result<String, Error> {
    let text = serde_json::to_string_pretty(value).map_err(unwritable)?;
    let body = text.strip_suffix(DOCUMENT_END).unwrap_or(&text);
    chain = chain.and(body);
    Ok(format!("{body}{}{chain}{}", DOCUMENT[0], DOCUMENT[1]))
}

/// Reads such a document; nothing where it is not as it was written.
pub(super) fn read_document<T: DeserializeOwned>(text: &str, mut chain: Digest) -> Option<T> {
    open(text, DOCUMENT, DOCUMENT_END, &mut chain)
}

/// Reads a document without asking for its check, to learn whose it says it is.
pub(super) fn unchecked<T: DeserializeOwned>(text: &str) -> Option<T> {
    let (body, _) = text.rsplit_once(DOCUMENT[0])?;
    serde_json::from_str(&format!("{body}{DOCUMENT_END}")).ok()
}

fn open<T: DeserializeOwned>(
    text: &str,
    [before, after]: [&str; 2],
    end: &str,
    chain: &mut Digest,
) -> Option<T> {
    let (body, check) = text.strip_suffix(after)?.rsplit_once(before)?;
    *chain = chain.and(body);
    if check != chain.to_string() {
        return None;
    }
    serde_json::from_str(&format!("{body}{end}")).ok()
}

fn unwritable(error: serde_json::Error) -> Error {
    Error::Unwritable { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn lines_follow_on_each_other() {
        let (mut text, mut chain) = (Vec::new(), Digest::of("whose"));
        for value in [json!({"a": 1}), json!({"a": 2})] {
            push_line(&mut text, &value, &mut chain).unwrap();
        }
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        // The check of the first line is that of `whose{"a":1`, of the second that of both bodies.
        let first = Digest::of("whose{\"a\":1");
        assert_eq!(lines[0], format!("{{\"a\":1,\"check\":\"{first}\"}}"));
        assert!(lines[1].contains(&first.and("{\"a\":2").to_string()));
        // People's tools read it like any other line.
        assert_eq!(serde_json::from_str::<Value>(lines[1]).unwrap()["a"], 2);
        let mut back = Digest::of("whose");
        assert_eq!(read_line::<Value>(lines[0], &mut back).unwrap(), json!({"a": 1}));
        assert_eq!(read_line::<Value>(lines[1], &mut back).unwrap(), json!({"a": 2}));
        assert_eq!(back, chain);
        // Out of order, of another run, edited, and without a check.
        for (line, mut chain) in [
            (lines[1].to_owned(), Digest::of("whose")),
            (lines[0].to_owned(), Digest::of("other")),
            (lines[0].replace("1,", "2,"), Digest::of("whose")),
            ("{\"a\":1}".to_owned(), Digest::of("whose")),
        ] {
            assert_eq!(read_line::<Value>(&line, &mut chain), None, "{line}");
        }
    }

    #[test]
    fn a_document_shows_every_change() {
        let chain = Digest::of("whose");
        let text = document(&json!({"a": 1, "b": [1, 2]}), chain).unwrap();
        assert!(
            text.ends_with("\"\n}\n") && serde_json::from_str::<Value>(&text).unwrap()["check"].is_string()
        );
        assert_eq!(read_document::<Value>(&text, chain).unwrap(), json!({"a": 1, "b": [1, 2]}));
        for place in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[place] ^= 1;
            let changed = String::from_utf8(bytes).unwrap();
            assert_eq!(read_document::<Value>(&changed, chain), None, "byte {place}");
            assert_eq!(read_document::<Value>(&text[..place], chain), None, "cut at {place}");
        }
        assert_eq!(read_document::<Value>(&text, Digest::of("other")), None);
    }
}
