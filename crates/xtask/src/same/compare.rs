//! Two folders, file by file and byte by byte.

use super::declared::{Change, Declared};
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

/// Compares what two sides hold in a folder, under the declarations in force.
pub(super) fn folders(
    old: &Path,
    new: &Path,
    folder: &Path,
    declared: &[Declared],
) -> anyhow::Result<Finding> {
    let allowed = |name: &str, covers: &dyn Fn(&Change) -> bool| allowed(declared, name, covers);
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
            (true, false) => allowed(&place, &|change| *change == Change::Removed)
                .map(Some)
                .ok_or_else(|| format!("{place} is missing")),
            (false, true) => allowed(&place, &|change| *change == Change::Added)
                .map(Some)
                .ok_or_else(|| format!("{place} is new")),
            _ => {
                let read = |side: &Path| {
                    let path = side.join(&place);
                    fs::read(&path).with_context(|| format!("cannot read {}", path.display()))
                };
                contents(declared, &place, &settled(&place, read(old)?), &settled(&place, read(new)?))
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
fn contents(declared: &[Declared], name: &str, old: &[u8], new: &[u8]) -> Result<Option<usize>, String> {
    if old == new {
        return Ok(None);
    }
    let both = || text(old).zip(text(new));
    let found = allowed(declared, name, &|change| match change {
        Change::Added | Change::Removed => false,
        Change::Remade => true,
        Change::Reworded(pairs) => both().is_some_and(|(old, new)| reworded(pairs, old) == new),
        Change::Lines(begun) => {
            both().is_some_and(|(old, new)| other_lines(old, begun).eq(other_lines(new, begun)))
        }
        Change::Columns(names) => both().is_some_and(|(old, new)| table(names, old) == table(names, new)),
        Change::Fields(fields) => without(fields, old).is_some_and(|old| Some(old) == without(fields, new)),
    });
    found.map(Some).ok_or_else(|| first_difference(name, old, new))
}

/// The place of the first declaration for a file that covers what is seen.
fn allowed(declared: &[Declared], name: &str, covers: &dyn Fn(&Change) -> bool) -> Option<usize> {
    declared.iter().position(|one| one.names(name) && covers(&one.change))
}

/// The older text with each stretch replaced.
fn reworded(pairs: &[(&str, &str)], old: &str) -> String {
    pairs.iter().fold(old.to_owned(), |text, (was, is)| text.replace(was, is))
}

fn text(bytes: &[u8]) -> Option<&str> {
    str::from_utf8(bytes).ok()
}

/// The lines that do not begin so.
fn other_lines<'a>(text: &'a str, begun: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines().filter(move |line| !line.starts_with(begun))
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

    fn declared(path: &'static str, change: Change) -> [Declared; 1] {
        [Declared { path, change, last: "", reason: "" }]
    }

    #[test]
    fn differences_are_found_where_they_begin() {
        let compared = |name: &str, old: &[u8], new: &[u8]| contents(&[], name, old, new);
        assert_eq!(compared("a.txt", b"x\ny 1\n", b"x\ny 1\n"), Ok(None));
        let said = compared("a.txt", b"x\ny 1\n", b"x\ny 2\n").unwrap_err();
        assert_eq!(said, "a.txt, line 2: `y 1` is now `y 2`");
        assert_eq!(compared("a.txt", b"x\n", b"x").unwrap_err(), "a.txt: the ends of lines");
        assert_eq!(compared("a", &[0xff, 1, 2], &[0xff, 3]).unwrap_err(), "a: byte 1 of 3 and 2");
    }

    /// One changed byte in any kind of file fails the comparison where nothing is declared.
    #[test]
    fn a_changed_byte_of_any_file_is_a_difference() {
        let files = [
            "train-a/run/index.html",
            "train-a/run/spec.toml",
            "train-a/run/optima.json",
            "train-a/run/summary.json",
            "train-a/run/curve.jsonl",
            "train-a/run/checkpoint.safetensors",
            "reproduce/x/rows.json",
            "reproduce/x/index.html",
            "reproduce/printed.txt",
            "oracle/oracle.json",
            "oracle/printed.txt",
            "advise-win/advise.json",
            "advise-win/printed.txt",
        ];
        for file in files {
            let [old, new] =
                [br#"{"a":1,"b":"x"}"#, br#"{"a":1,"b":"y"}"#].map(|bytes| settled(file, bytes.to_vec()));
            assert!(contents(&[], file, &old, &new).is_err(), "{file}");
        }
    }

    #[test]
    fn a_declared_field_may_change_and_no_other() {
        let rule = declared("summary.json", Change::Fields(&["check"]));
        let compared = |name: &str, new: &[u8]| contents(&rule, name, br#"{"seed":1.0,"check":"a"}"#, new);
        assert_eq!(compared("0/summary.json", br#"{"seed":1.0,"check":"b"}"#), Ok(Some(0)));
        assert_eq!(compared("0/summary.json", br#"{"seed":1.0}"#), Ok(Some(0)));
        assert!(compared("0/summary.json", br#"{"seed":1.5}"#).is_err());
        assert!(compared("0/other.json", br#"{"seed":1.0}"#).is_err());
    }

    #[test]
    fn declared_words_are_replaced_and_nothing_else_may_change() {
        let rule = declared("a/printed.txt", Change::Reworded(&[("late 0", "0 late")]));
        assert!(contents(&rule, "a/printed.txt", b"late 0, end 7\n", b"0 late, end 7\n").is_ok());
        assert!(contents(&rule, "a/printed.txt", b"late 0, end 7\n", b"0 late, end 8\n").is_err());
    }

    #[test]
    fn declared_lines_and_columns_may_change_and_no_others() {
        let rule = declared("/shops/", Change::Lines("#"));
        assert!(contents(&rule, "a/shops/b.txt", b"2 2\n", b"# flow shop\n2 2\n").is_ok());
        assert!(contents(&rule, "a/shops/b.txt", b"2 2\n", b"# flow shop\n2 3\n").is_err());
        let rule = declared("endpoints.csv", Change::Columns(&["dose:2"]));
        let compared = |new: &[u8]| contents(&rule, "x/endpoints.csv", b"arm,dose:2,auc\n\"a,b\",1,2\n", new);
        assert!(compared(b"arm,dose:2,auc\n\"a,b\",7,2\n").is_ok());
        assert!(compared(b"arm,dose:2,auc\n\"a,b\",1,3\n").is_err());
        assert!(compared(b"arm,dose:2,auc\n\"a,c\",1,2\n").is_err());
    }

    #[test]
    fn missing_and_new_files_count() {
        let top = std::env::temp_dir().join(format!("same-{}", std::process::id()));
        let [old, new] = ["old", "new"].map(|side| top.join(side));
        for (side, names) in [(&old, ["both", "gone"]), (&new, ["both", "checkpoint.safetensors"])] {
            fs::create_dir_all(side.join("item")).unwrap();
            names.iter().for_each(|name| fs::write(side.join("item").join(name), "x").unwrap());
        }
        let found = |rule: &[Declared]| folders(&old, &new, Path::new("item"), rule).unwrap();
        let added = found(&declared("checkpoint", Change::Added));
        assert_eq!((added.files, added.declared.len()), (3, 1));
        assert_eq!(added.first.as_deref(), Some("item/gone is missing"));
        let removed = found(&declared("gone", Change::Removed));
        assert_eq!(removed.first.as_deref(), Some("item/checkpoint.safetensors is new"));
        fs::remove_dir_all(&top).unwrap();
    }
}
