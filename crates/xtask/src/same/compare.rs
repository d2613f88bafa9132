//! Two folders, file by file and byte by byte.

use super::declared::{Change, DECLARED};
use super::volatile::settled;
use crate::files;
use anyhow::Context;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// What a comparison found.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Finding {
    /// Files that either side has.
    pub(super) files: usize,
    /// The first difference that is not declared.
    pub(super) first: Option<String>,
    /// Places of the declared differences that were met.
    pub(super) declared: BTreeSet<usize>,
}

/// Compares what two sides hold in a folder.
pub(super) fn folders(old: &Path, new: &Path, folder: &Path) -> anyhow::Result<Finding> {
    let names = |side: &Path| -> anyhow::Result<BTreeSet<String>> {
        let top = side.join(folder);
        let found = files::below(&top, &[""])?;
        let name = |path: &Path| path.strip_prefix(&top).unwrap_or(path).to_string_lossy().into_owned();
        Ok(found.iter().map(|path| name(path)).collect())
    };
    let (ours, theirs) = (names(new)?, names(old)?);
    let all: BTreeSet<&String> = ours.union(&theirs).collect();
    let mut finding = Finding { files: all.len(), ..Finding::default() };
    for name in all {
        let place = folder.join(name).display().to_string();
        let difference = match (theirs.contains(name), ours.contains(name)) {
            (true, false) => Err(format!("{place} is missing")),
            (false, true) => allowed(&place, |change| *change == Change::Added)
                .map(Some)
                .ok_or_else(|| format!("{place} is new")),
            _ => {
                let read = |side: &Path| {
                    let path = side.join(&place);
                    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
                };
                contents(&place, &settled(&place, read(old)?), &settled(&place, read(new)?))
            }
        };
        match difference {
            Ok(place) => finding.declared.extend(place),
            Err(first) => _ = finding.first.get_or_insert(first),
        }
    }
    Ok(finding)
}

/// The declared difference that two contents have, if any; where they differ otherwise, in what.
fn contents(name: &str, old: &[u8], new: &[u8]) -> Result<Option<usize>, String> {
    if old == new {
        return Ok(None);
    }
    let found = allowed(name, |change| match change {
        Change::Added => false,
        Change::Bytes => true,
        Change::Quotes => unquoted(old).eq(unquoted(new)),
        Change::Lines(begun) => text(old)
            .zip(text(new))
            .is_some_and(|(old, new)| other_lines(old, begun).eq(other_lines(new, begun))),
        Change::Numbers => text(old).zip(text(new)).is_some_and(|(old, new)| worded(old).eq(worded(new))),
        Change::Columns(names) => {
            text(old).zip(text(new)).is_some_and(|(old, new)| table(names, old) == table(names, new))
        }
        Change::Notes => tensors(old).is_some_and(|old| Some(old) == tensors(new)),
        Change::Fields(fields) => without(fields, old).is_some_and(|old| Some(old) == without(fields, new)),
    });
    found.map(Some).ok_or_else(|| first_difference(name, old, new))
}

/// The place of the first declaration for a file that covers what is seen.
fn allowed(name: &str, covers: impl Fn(&Change) -> bool) -> Option<usize> {
    DECLARED.iter().position(|one| one.names(name) && covers(&one.change))
}

/// Bytes that are no quotation marks.
fn unquoted(bytes: &[u8]) -> impl Iterator<Item = &u8> {
    bytes.iter().filter(|byte| **byte != b'"')
}

fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

/// The lines that do not begin so.
fn other_lines<'a>(text: &'a str, begun: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter(move |line| !line.starts_with(begun))
}

/// Words, each number with a decimal point as the same one; how a table's columns are padded does not count.
fn worded(text: &str) -> impl Iterator<Item = &str> {
    let number = |word: &str| word.contains('.') && word.parse::<f64>().is_ok();
    text.split_whitespace().map(move |word| if number(word) { "0.0" } else { word })
}

/// The cells of CSV without some columns, by the names of its first line.
fn table(without: &[&str], text: &str) -> Vec<Vec<String>> {
    let rows: Vec<Vec<String>> = text.lines().map(cells).collect();
    let heads = rows.first().cloned().unwrap_or_default();
    let kept = |row: Vec<String>| {
        let named = row.into_iter().zip(heads.iter().map(Some).chain(std::iter::repeat(None)));
        named
            .filter(|(_, head)| head.is_none_or(|head| !without.contains(&head.as_str())))
            .map(|(cell, _)| cell)
            .collect()
    };
    rows.into_iter().map(kept).collect()
}

/// The cells of a line of CSV, without their quotation marks.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut quoted = false;
    for letter in line.chars() {
        match (letter, quoted) {
            ('"', _) => quoted = !quoted,
            (',', false) => cells.push(String::new()),
            _ => cells.last_mut().into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    cells
}

/// What a safetensors file says of its tensors, and their bytes; nothing where it is none.
fn tensors(bytes: &[u8]) -> Option<(Value, &[u8])> {
    let (length, rest) = bytes.split_first_chunk()?;
    let (head, data) = rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    let mut head: Value = serde_json::from_slice(head).ok()?;
    head.as_object_mut()?.remove("__metadata__");
    Some((head, data))
}

/// A file of JSON, or of JSON lines, without some fields.
fn without(fields: &[&str], bytes: &[u8]) -> Option<Vec<Value>> {
    let values: Result<Vec<Value>, _> = serde_json::Deserializer::from_slice(bytes).into_iter().collect();
    let mut values = values.ok()?;
    for value in values.iter_mut().filter_map(Value::as_object_mut) {
        fields.iter().for_each(|field| drop(value.remove(*field)));
    }
    Some(values)
}

/// Where two contents part: line and both texts, or the byte's place.
fn first_difference(name: &str, old: &[u8], new: &[u8]) -> String {
    let (Ok(before), Ok(after)) = (str::from_utf8(old), str::from_utf8(new)) else {
        let place = old.iter().zip(new).take_while(|(a, b)| a == b).count();
        return format!("{name}: byte {place} of {} and {}", old.len(), new.len());
    };
    let (mut ours, mut theirs, mut line) = (after.lines(), before.lines(), 1);
    loop {
        match (theirs.next(), ours.next()) {
            (Some(was), Some(is)) if was == is => line += 1,
            (None, None) => return format!("{name}: the ends of lines"),
            (was, is) => {
                let (was, is) = (was.unwrap_or("nothing"), is.unwrap_or("nothing"));
                let same = was.bytes().zip(is.bytes()).take_while(|(a, b)| a == b).count();
                let (was, is) = (shown(was, same), shown(is, same));
                return format!("{name}, line {line}: `{was}` is now `{is}`");
            }
        }
    }
}

/// The part of a line around the byte at which it begins to differ.
fn shown(line: &str, from: usize) -> String {
    let start =
        (0..=from.saturating_sub(20).min(line.len())).rev().find(|&place| line.is_char_boundary(place));
    line[start.unwrap_or(0)..].chars().take(70).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_found_where_they_begin() {
        assert_eq!(contents("a.txt", b"x\ny 1\n", b"x\ny 1\n"), Ok(None));
        let said = contents("a.txt", b"x\ny 1\n", b"x\ny 2\n").unwrap_err();
        assert_eq!(said, "a.txt, line 2: `y 1` is now `y 2`");
        assert_eq!(contents("a.txt", b"x\n", b"x").unwrap_err(), "a.txt: the ends of lines");
        assert_eq!(contents("a", &[0xff, 1, 2], &[0xff, 3]).unwrap_err(), "a: byte 1 of 3 and 2");
    }

    #[test]
    fn a_declared_field_may_change_and_no_other() {
        let place = DECLARED.iter().position(|one| one.path == "summary.json");
        let old = br#"{"seed":1.0,"check":"a"}"#;
        assert_eq!(contents("0/summary.json", old, br#"{"seed":1.0,"check":"b"}"#), Ok(place));
        assert_eq!(contents("0/summary.json", old, br#"{"seed":1.0}"#), Ok(place));
        assert!(contents("0/summary.json", old, br#"{"seed":1.5}"#).is_err());
        assert!(contents("0/other.json", old, br#"{"seed":1.0}"#).is_err());
    }

    #[test]
    fn quotation_marks_may_go_and_numbers_may_not() {
        assert!(contents("rows.csv", b"\"ppo\",1\n", b"ppo,1\n").is_ok());
        assert!(contents("rows.csv", b"\"ppo\",1\n", b"ppo,2\n").is_err());
    }

    #[test]
    fn numbers_may_change_where_they_are_declared_and_words_may_not() {
        assert!(
            contents("train-a/printed.txt", b"drift 0.47\n[exit code 0]", b"drift  0.142\n[exit code 0]")
                .is_ok()
        );
        assert!(
            contents("train-a/printed.txt", b"drift 0.47\n[exit code 0]", b"drift 0.47\n[exit code 2]")
                .is_err()
        );
        assert!(contents("train-a/printed.txt", b"drift 0.47", b"kl 0.47").is_err());
        assert!(contents("oracle/printed.txt", b"drift 0.47", b"drift 0.48").is_err());
        assert!(contents("shops/printed.txt", b"makespan 7\n", b"makespan 7\nwrote s.csv\n").is_ok());
        assert!(contents("shops/printed.txt", b"makespan 7\n", b"makespan 8\nwrote s.csv\n").is_err());
        assert!(contents("a/shops/b.txt", b"2 2\n", b"# flow shop\n2 2\n").is_ok());
        assert!(contents("a/shops/b.txt", b"2 2\n", b"# flow shop\n2 3\n").is_err());
    }

    #[test]
    fn columns_may_change_and_no_others() {
        let file = "pointer-study/x/endpoints.csv";
        let old = b"arm,dose:2,auc\n\"a,b\",1,2\n";
        assert!(contents(file, old, b"arm,dose:2,auc\n\"a,b\",7,2\n").is_ok());
        assert!(contents(file, old, b"arm,dose:2,auc\n\"a,b\",1,3\n").is_err());
        assert!(contents(file, old, b"arm,dose:2,auc\n\"a,c\",1,2\n").is_err());
    }

    #[test]
    fn tensors_are_compared_and_what_is_noted_is_not() {
        let file = |notes: &str, data: &[u8]| {
            let head = format!(r#"{{"w":{{"data_offsets":[0,2]}},"__metadata__":{{"sum":"{notes}"}}}}"#);
            [&(head.len() as u64).to_le_bytes(), head.as_bytes(), data].concat()
        };
        let compared = |data| contents("run/checkpoint.safetensors", &file("a", &[1, 2]), &file("b", data));
        assert!(compared(&[1, 2]).is_ok() && compared(&[1, 3]).is_err());
        assert!(contents("run/checkpoint.safetensors", b"short", b"other").is_err());
    }

    #[test]
    fn missing_and_new_files_count() {
        let top = std::env::temp_dir().join(format!("same-{}", std::process::id()));
        let [old, new] = ["old", "new"].map(|side| top.join(side));
        for (side, names) in [(&old, ["both", "gone"]), (&new, ["both", "checkpoint.safetensors"])] {
            fs::create_dir_all(side.join("item")).unwrap();
            names.iter().for_each(|name| fs::write(side.join("item").join(name), "x").unwrap());
        }
        let finding = folders(&old, &new, Path::new("item")).unwrap();
        fs::remove_dir_all(&top).unwrap();
        assert_eq!((finding.files, finding.declared.len()), (3, 1));
        assert_eq!(finding.first.as_deref(), Some("item/gone is missing"));
    }
}
