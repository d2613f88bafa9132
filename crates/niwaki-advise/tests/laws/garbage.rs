//! Garbage is refused with its file, row and field, never with a panic.

use crate::layouts::{fixture, read};
use niwaki_advise::schema::Naming;
use niwaki_advise::trajectory::Against;
use std::fs;
use std::path::Path;

fn refusal(file: &Path) -> String {
    let error = read(&[file.to_path_buf()], Naming::default(), Against::Old).unwrap_err();
    error.to_string().replace(&format!("{}/", file.parent().unwrap().display()), "")
}

#[test]
fn lines_are_refused_by_number_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.jsonl");
    let good = r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2], "advantage": 1}"#;
    let refuse = |line: &str| {
        fs::write(&file, format!("{good}\n\n{line}\n")).unwrap();
        refusal(&file)
    };
    for (line, expected) in [
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1], "advantage": 1}"#,
            "bad.jsonl, line 3: new_log_prob has 1 values where old_log_prob has 2",
        ),
        (
            r#"{"old_log_prob": [-1, NaN], "new_log_prob": [-1, -2], "advantage": 1}"#,
            "bad.jsonl, line 3: old_log_prob[1] is NaN; every value at a step of the policy must be finite",
        ),
        (
            r#"{"old_log_prob": [-1, nan], "new_log_prob": [-1, -2], "advantage": 1}"#,
            "bad.jsonl, line 3: old_log_prob: column 24: not a finite number",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2], "advantage": 1, "use": 1}"#,
            "bad.jsonl, line 3: an age where the first trajectory has none; give one to every trajectory, or to none",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2], "advantage": 1, "age": -1}"#,
            "bad.jsonl, line 3: age must be 0 or more; -1 came",
        ),
        (
            r#"{"old_log_prob": [-1, null], "new_log_prob": [-1, -2], "advantage": 1}"#,
            "bad.jsonl, line 3: old_log_prob[1] is NaN; every value at a step of the policy must be finite",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, 0.5], "advantage": 1}"#,
            "bad.jsonl, line 3: new_log_prob[1] is 0.5; the logarithm of a probability is at most 0",
        ),
        (
            r#"{"old_log_prob": [-1, "x"], "new_log_prob": [-1, -2], "advantage": 1}"#,
            "bad.jsonl, line 3: old_log_prob must be a list of numbers; a string at index 1 came",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_probz": [-1, -2], "advantage": 1}"#,
            "bad.jsonl, line 3: no new_log_prob; 'new_log_probz' looks like it",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2]}"#,
            "bad.jsonl, line 3: neither advantage nor reward; one of them must be there",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2], "advantage": 1, "mask": [1, 0.5]}"#,
            "bad.jsonl, line 3: mask[1] is 0.5; a mask holds 0 and 1",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2], "advantage": 1, "iteration": 0.5}"#,
            "bad.jsonl, line 3: iteration must be a whole number; 0.5 came",
        ),
        (
            r#"{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2], "advantage": 1, "weight": -1}"#,
            "bad.jsonl, line 3: weight must be a finite number that is not negative; -1 came",
        ),
        (r#"{"old_log_prob": [-1, -2], "new_log"#, "bad.jsonl, line 3: the line is cut short"),
        (r#"[1, 2]"#, "bad.jsonl, line 3: column 0: invalid type: sequence, expected an object"),
    ] {
        let came = refuse(line);
        assert!(came.starts_with(expected), "{line}\n  gave     {came}\n  expected {expected}");
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["snappy.parquet", "second.parquet", "padded.npz", "flat.npz"] {
        let whole = fs::read(fixture(name)).unwrap();
        let file = folder.path().join(name);
        for share in [0, 1, 4, 20, 50, 90, 99] {
            fs::write(&file, &whole[..whole.len() * share / 100]).unwrap();
            let came = refusal(&file);
            let layout = name.split('.').next_back().unwrap();
            assert!(came.starts_with(&format!("{name}: not a whole {layout} file: ")), "{share}%: {came}");
        }
    }
}

#[test]
fn flipped_bytes_never_panic() {
    let folder = tempfile::tempdir().unwrap();
    for name in
        ["snappy.parquet", "plain.parquet", "second.parquet", "polars.parquet", "padded.npz", "flat.npz"]
    {
        let whole = fs::read(fixture(name)).unwrap();
        let file = folder.path().join(name);
        let mut refused = 0;
        for at in (0..whole.len()).step_by(151) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x5A;
            fs::write(&file, bytes).unwrap();
            // A flipped digit may still be a number: what counts is that nothing breaks.
            refused +=
                usize::from(read(std::slice::from_ref(&file), Naming::default(), Against::Old).is_err());
        }
        assert!(refused > 0, "{name}");
    }
}

#[test]
fn other_files_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        fs::write(&file, bytes).unwrap();
        refusal(&file)
    };
    assert_eq!(
        at("dump.csv", b"a,b"),
        "dump.csv: the ending 'csv' names no layout; use .jsonl, .npz, .parquet or .tally"
    );
    assert!(at("text.npz", b"hello").starts_with("text.npz: not a whole npz file: "));
    assert!(
        at("text.parquet", b"hello hello hello")
            .starts_with("text.parquet: not a whole parquet file: no parquet")
    );
    let missing = folder.path().join("none.jsonl");
    assert_eq!(refusal(&missing), "none.jsonl cannot be read");
}

#[test]
fn headers_that_lie_are_refused_by_what_is_there() {
    // Shape, width, length and header size beyond the bytes that are there, and rows of nothing without end.
    for (name, why) in [
        ("npz-header.npz", "not a whole npz file: old_log_prob: a header of 4294967295 bytes"),
        ("npz-length.npz", "not a whole npz file: length: 0 bytes of values, which is not what shape"),
        ("npz-loop.npz", "old_log_prob must be an array with steps; shape [1000000000000, 0] came"),
        ("npz-width.npz", "not a whole npz file: old_log_prob: 96 bytes of values, which is not what shape"),
        (
            "pq-values.parquet",
            "not a whole parquet file: 2305843009213693952 values of old_log_prob in a file of 764 bytes",
        ),
    ] {
        let came = refusal(&fixture(&format!("lies/{name}")));
        assert!(came.starts_with(&format!("{name}: {why}")), "{came}");
    }
}

#[test]
fn a_mark_of_the_encoding_is_no_part_of_the_first_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("marked.jsonl");
    let text = fs::read_to_string(fixture("dump.jsonl")).unwrap();
    fs::write(&file, format!("\u{FEFF}{text}")).unwrap();
    let marked = read(&[file], Naming::default(), Against::Old).unwrap();
    let plain = read(&[fixture("dump.jsonl")], Naming::default(), Against::Old).unwrap();
    assert_eq!(format!("{marked:?}"), format!("{plain:?}"));
}

#[test]
fn values_that_cannot_be_summed_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("large.jsonl");
    for (advantage, why) in [
        (r#""advantage": 1e308"#, "advantage[0] is 1e308; no value may be larger than 1e60 in size"),
        (r#""advantage": [1, -1e61]"#, "advantage[1] is -1e61; no value may be larger than 1e60 in size"),
        (r#""reward": 1e308"#, "reward[0] is 1e308; no value may be larger than 1e60 in size"),
        (r#""advantage": 1, "weight": 1e99"#, "weight[0] is 1e99; no value may be larger than 1e60 in size"),
    ] {
        let line = format!(r#"{{"old_log_prob": [-1, -2], "new_log_prob": [-1, -2], {advantage}}}"#);
        fs::write(&file, line).unwrap();
        assert_eq!(refusal(&file), format!("large.jsonl, line 1: {why}"));
    }
}

#[test]
fn a_line_without_end_is_refused() {
    // One byte more than 64 MiB, written sparse: blanks would be skipped, zeros are not text.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("long.jsonl");
    fs::File::create(&file).unwrap().set_len((1 << 26) + 1).unwrap();
    assert_eq!(refusal(&file), "long.jsonl, line 1: a line of more than 64 MB; one trajectory per line");
}
