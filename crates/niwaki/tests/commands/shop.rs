//! `solve`, `verify`, `generate` and `bench shop`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run said: exit code, standard output, standard error.
fn niwaki(arguments: &[&str]) -> (i32, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_niwaki")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name).display().to_string()
}

/// A path in a fresh folder, as text.
fn in_folder(folder: &tempfile::TempDir, name: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    (path.clone(), path.display().to_string())
}

#[test]
fn a_small_shop_is_solved_written_drawn_and_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, csv_name) = in_folder(&folder, "s.csv");
    let (svg, svg_name) = in_folder(&folder, "g.svg");
    let ft06 = data("jsp/ft06.txt");
    let (code, out, _) =
        niwaki(&["solve", &ft06, "--out", &csv_name, "--gantt", &svg_name, "--deadline", "60"]);
    assert_eq!(code, 0);
    let expected = "ft06: job shop, 6 jobs, 6 machines, 36 operations\ndeadline 60 met\nmakespan 55\nbound 55\n\
                    proven yes\ngap 0.0%\n";
    assert_eq!(out, expected);
    assert!(std::fs::read_to_string(&svg).unwrap().contains(">deadline 60<"));

    let (code, out, _) = niwaki(&["verify", &ft06, &csv_name]);
    assert_eq!((code, out.as_str()), (0, "ok: makespan 55\n"));

    // Move the first operation of the file, which starts at 0, to machine 5 or off it.
    let text = std::fs::read_to_string(&csv).unwrap();
    let first = text.lines().nth(1).unwrap();
    let cells: Vec<&str> = first.split(',').collect();
    let other = if cells[2] == "5" { "4" } else { "5" };
    let moved = format!("{},{},{other},{},{}", cells[0], cells[1], cells[3], cells[4]);
    std::fs::write(&csv, text.replacen(first, &moved, 1)).unwrap();
    let (code, out, _) = niwaki(&["verify", &ft06, &csv_name]);
    let expected = format!(
        "wrong: job {}, operation {}: runs on machine {other}, expected {}\n",
        cells[0], cells[1], cells[2]
    );
    assert_eq!((code, out), (1, expected));
}

#[test]
fn every_method_ends_with_the_same_four_lines() {
    let ta001 = data("pfsp/ta001.txt");
    for method in ["neh", "ig", "rule:lpt", "rule:random*20"] {
        let (code, out, _) = niwaki(&["solve", &ta001, "--method", method, "--time", "200ms"]);
        assert_eq!(code, 0, "{method}");
        let words: Vec<&str> = out.lines().rev().take(4).filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(words, ["gap", "proven", "bound", "makespan"], "{method}");
    }
    let (_, out, _) = niwaki(&["solve", &ta001, "--method", "neh"]);
    // NEH's well-known makespan of ta001 is 1286.
    assert!(out.contains("\nmakespan 1286\n"), "{out}");
}

#[test]
fn mistakes_are_one_line_and_exit_code_2() {
    let ft06 = data("jsp/ft06.txt");
    let cases: [(&[&str], &str); 7] = [
        (&["solve", "no-such-file.txt"], "no-such-file.txt: No such file"),
        (&["solve", &ft06, "--method", "neh"], "this is a job shop: use exact or rule:NAME"),
        (&["solve", &ft06, "--method", "fast"], "expected exact, neh, ig"),
        (&["solve", &ft06, "--out", "s.pdf"], "--out s.pdf: expected a name that ends in .json or .csv"),
        (&["generate", "hard-flow", "--count", "3"], "name a folder with --out"),
        (&["generate", "hard-flow", "--count", "0"], "0 is not in 1.."),
        (&["bench", "shop", "no-such-folder"], "no-such-folder/bounds.csv: No such file"),
    ];
    for (arguments, expected) in cases {
        let (code, out, error) = niwaki(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {error}");
        assert!(error.contains(expected) && error.lines().count() == 1, "{arguments:?}: {error}");
    }
}

#[test]
fn drawn_instances_are_solved() {
    let folder = tempfile::tempdir().unwrap();
    let name = folder.path().display().to_string();
    for task in ["easy-flow", "job-shop", "two-orders", "single", "windows"] {
        let (code, _, error) = niwaki(&["generate", task, "--count", "2", "--seed", "5", "--out", &name]);
        assert_eq!(code, 0, "{task}: {error}");
    }
    let mut files: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 10);
    for file in files {
        let (code, out, error) = niwaki(&["solve", file.to_str().unwrap(), "--time", "300ms"]);
        assert_eq!(code, 0, "{}: {error}", file.display());
        assert!(out.contains("\nmakespan "), "{out}");
    }
    // The same seed gives the same instance.
    let print = || niwaki(&["generate", "sd1", "--seed", "9"]).1;
    assert_eq!(print(), print());
}

#[test]
fn a_folder_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, csv_name) = in_folder(&folder, "all.csv");
    let (page, page_name) = in_folder(&folder, "page.html");
    let (code, out, error) = niwaki(&[
        "bench",
        "shop",
        &data("jsp"),
        "--prefix",
        "ft",
        "--methods",
        "rule:mwkr,exact",
        "--time",
        "300ms",
        "--csv",
        &csv_name,
        "--page",
        &page_name,
    ]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("6 × 6") && out.contains("rule:mwkr") && out.contains("all"), "{out}");
    // Three instances, two methods, one header.
    assert_eq!(std::fs::read_to_string(csv).unwrap().lines().count(), 7);
    assert!(std::fs::read_to_string(page).unwrap().starts_with("<!DOCTYPE html>"));
}
