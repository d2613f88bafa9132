//! `solve`, `verify`, `generate` and `bench shop`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// What a run said: exit code, standard output, standard error.
pub(crate) fn niwaki(arguments: &[&str]) -> (i32, String, String) {
    let run = Command::new(env!("CARGO_BIN_EXE_niwaki")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

pub(crate) fn data(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name).display().to_string()
}

/// A path in a fresh folder, as text.
pub(crate) fn in_folder(folder: &tempfile::TempDir, name: &str) -> (PathBuf, String) {
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
    let expected = "ft06: job shop, 6 jobs, 6 machines, 36 operations\ndeadline 60 met\nobjective makespan\nmakespan 55\n\
                    bound 55\nproven yes\ngap 0.0%\n";
    assert_eq!(out, format!("{expected}wrote {csv_name}\nwrote {svg_name}\n"));
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
fn a_missed_deadline_is_exit_code_1_and_json_says_all() {
    let ft06 = data("jsp/ft06.txt");
    let (code, out, _) = niwaki(&["solve", &ft06, "--deadline", "54"]);
    assert!(code == 1 && out.contains("deadline 54 missed"), "{code}: {out}");
    let (code, _, error) = niwaki(&["solve", &ft06, "--deadline", "soon"]);
    assert!(
        code == 2
            && error.ends_with("--deadline soon: this instance has no dates; expected a whole number\n"),
        "{error}"
    );
    let (code, _, error) = niwaki(&["solve", &ft06, "--out", "schedule.docx"]);
    assert!(
        code == 2 && error.contains("--out schedule.docx: expected a folder, or a name that ends in .csv"),
        "{error}"
    );
    let (code, _, error) = niwaki(&["solve", &ft06, "--layout", "fsj"]);
    assert!(
        code == 2 && error.contains("--layout: expected one of standard, ") && error.contains("got fsj"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let (place, place_name) = in_folder(&folder, "plan");
    let (code, out, error) = niwaki(&["solve", &ft06, "--deadline", "60", "--json", "--out", &place_name]);
    let said: serde_json::Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, said["makespan"].as_u64(), said["deadline_met"].as_bool()), (0, Some(55), Some(true)));
    assert_eq!(
        (said["niwaki"].as_str(), said["proven"].as_bool()),
        (Some(env!("CARGO_PKG_VERSION")), Some(true))
    );
    assert_eq!(said["schedule"].as_array().unwrap().len(), 36);
    // Files are named where no program reads them, and are what `verify` reads.
    let names: Vec<String> = ["schedule.csv", "schedule.json", "index.html"]
        .map(|name| place.join(name).display().to_string())
        .into();
    assert_eq!(error, names.iter().map(|name| format!("wrote {name}\n")).collect::<String>());
    assert_eq!(niwaki(&["verify", &ft06, &names[1]]).1, "ok: makespan 55\n");
    let page = std::fs::read_to_string(place.join("index.html")).unwrap();
    assert!(page.contains("No schedule is better.") && page.contains("data-j=\"5\""));
    let (code, out, error) = niwaki(&["solve", &ft06, "--quiet"]);
    assert_eq!((code, out.as_str(), error.as_str()), (0, "", ""));
}

#[test]
fn every_method_ends_with_the_same_five_lines() {
    let ta001 = data("pfsp/ta001.txt");
    for method in ["neh", "ig", "rule:lpt", "rule:random*20"] {
        let (code, out, _) = niwaki(&["solve", &ta001, "--method", method, "--time", "200ms"]);
        assert_eq!(code, 0, "{method}");
        let words: Vec<&str> = out.lines().rev().take(5).filter_map(|line| line.split(' ').next()).collect();
        assert_eq!(words, ["gap", "proven", "bound", "makespan", "objective"], "{method}");
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
        (
            &["solve", &ft06, "--out", "s.pdf"],
            "--out s.pdf: expected a folder, or a name that ends in .csv or .json",
        ),
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
    let (place, place_name) = in_folder(&folder, "bench");
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
        "--out",
        &place_name,
    ]);
    assert_eq!(code, 0, "{error}");
    assert!(out.contains("6 × 6") && out.contains("rule:mwkr") && out.contains("all"), "{out}");
    // Three instances, two methods, one header.
    assert_eq!(std::fs::read_to_string(place.join("makespans.csv")).unwrap().lines().count(), 7);
    assert!(std::fs::read_to_string(place.join("index.html")).unwrap().starts_with("<!DOCTYPE html>"));
}

#[test]
fn a_folder_is_held_against_a_table_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let shops = folder.path().join("shops");
    std::fs::create_dir(&shops).unwrap();
    for name in ["ft06", "la01", "la02"] {
        std::fs::copy(data(&format!("jsp/{name}.txt")), shops.join(format!("{name}.txt"))).unwrap();
    }
    let (table, table_name) = in_folder(&folder, "table.csv");
    let header = "instance,family,best_lb,best_ub,other_lb,other_ub\n";
    let text = format!("{header}ft06,ft,55,55,54,60\nla01,la,666,666,666,666\nla02,la,655,655,,\n");
    std::fs::write(&table, &text).unwrap();
    let (rows, rows_name) = in_folder(&folder, "rows.csv");
    let shops_name = shops.display().to_string();
    let bench = |more: &[&str]| {
        niwaki(&[&["bench", "shop", &shops_name, "--against", &table_name, "--time", "20s"], more].concat())
    };
    let (code, out, error) = bench(&["--rows", &rows_name, "--prefix", "la"]);
    assert_eq!(code, 0, "{error}");
    assert!(out.starts_with("2 instances, 20s each on 1 thread, seed 0\n"), "{out}");
    assert_eq!(std::fs::read_to_string(&rows).unwrap().lines().count(), 3);
    // What is finished is read, and the rest is searched: a row that says otherwise is believed.
    let edited = std::fs::read_to_string(&rows).unwrap().replace("la02,655,655", "la02,600,700");
    std::fs::write(&rows, edited).unwrap();
    let (code, out, error) = bench(&["--rows", &rows_name]);
    assert_eq!(code, 0, "{error}");
    let cells = |family: &str, engine: &str| -> Vec<String> {
        let row = |line: &&str| line.split_whitespace().take(2).eq([family, engine]);
        let line = out.lines().find(row).unwrap_or_else(|| panic!("{family} {engine}: {out}"));
        line.split_whitespace().skip(2).take(7).map(str::to_owned).collect()
    };
    // √(700 / 655) = 1.0338 and √(600 / 655) = .9571; 60 / 55 = 1.0909 and 54 / 55 = .9818.
    assert_eq!(cells("la", "niwaki"), ["2", "1.0338", "0.9571", "0", "1", "1", "1"]);
    assert_eq!(cells("ft", "niwaki"), ["1", "1.0000", "1.0000", "0", "1", "0", "1"]);
    assert_eq!(cells("ft", "other"), ["1", "1.0909", "0.9818", "0", "0", "1", "0"]);
    assert_eq!(cells("la", "other"), ["1", "1.0000", "1.0000", "0", "1", "0", "1"]);
    assert_eq!(cells("all", "niwaki")[0], "3");
    // One refusal each: other settings, an instance without a row, a row without an instance, another instance.
    let refusal = |more: &[&str]| {
        let (code, out, error) = bench(more);
        assert!(code == 2 && out.is_empty() && error.lines().count() == 1, "{out}{error}");
        error
    };
    let line = refusal(&["--rows", &rows_name, "--seed", "1"]);
    assert!(
        line.contains("was made with seconds, threads and seed 20,1,0, not 20,1,1; name another file"),
        "{line}"
    );
    std::fs::write(&table, text.replace("la02", "la03")).unwrap();
    let line = refusal(&[]);
    assert!(line.contains("la02.txt: is not in ") && line.contains("choose with --prefix"), "{line}");
    std::fs::write(&table, format!("{text}la03,la,597,597,,\n")).unwrap();
    let line = refusal(&[]);
    assert!(line.contains("has no file of la03, which "), "{line}");
    // Of every second instance by name, ft06 and la02, none is missing.
    assert_eq!(bench(&["--every", "2"]).0, 0);
    std::fs::write(&table, text.replace("666,666,666,666", "700,700,,")).unwrap();
    let line = refusal(&[]);
    assert!(line.contains("says 700 to 700: this is another instance"), "{line}");
}

#[test]
fn proven_on_a_single_machine_speaks_of_late_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = in_folder(&folder, "one.json");
    let jobs = r#"[{"time": 4, "due": 4}, {"time": 2, "due": 5}, {"time": 3, "due": 6}]"#;
    std::fs::write(&path, format!("{{\"kind\": \"single machine\", \"jobs\": {jobs}}}")).unwrap();
    // By due date two of three jobs are late, although one can be enough.
    let (_, out, _) = niwaki(&["solve", &name, "--method", "jackson"]);
    assert!(
        out.ends_with("makespan 9\nobjective late jobs\nlate jobs 2\nbound 1\nproven no\ngap 100.0%\n"),
        "{out}"
    );
    let (_, out, _) = niwaki(&["solve", &name]);
    assert!(out.ends_with("objective late jobs\nlate jobs 1\nbound 1\nproven yes\ngap 0.0%\n"), "{out}");
}

#[test]
fn what_was_recognised_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = in_folder(&folder, "routes.txt");
    std::fs::write(&path, "2 2\n0 3 1 2\n0 4 1 1\n").unwrap();
    let (_, out, error) = niwaki(&["solve", &name]);
    assert!(out.starts_with("routes: job shop, 2 jobs"), "{out}");
    assert!(
        error.contains("every job visits the machines in order") && error.contains("--layout pairs"),
        "{error}"
    );
    let (_, out, error) = niwaki(&["solve", &name, "--layout", "pairs"]);
    assert!(out.starts_with("routes: flow shop, 2 jobs") && error.is_empty(), "{out}{error}");
}

/// An interrupted search prints and writes what it has; the time limit alone would be half an hour.
#[cfg(unix)]
#[test]
fn an_interrupted_search_keeps_its_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let (csv, csv_name) = in_folder(&folder, "s.csv");
    let hard = data("jsp/dmu80.txt");
    let run = Command::new(env!("CARGO_BIN_EXE_niwaki"))
        .args(["solve", &hard, "--time", "30m", "--out", &csv_name])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    let number = run.id().to_string();
    assert!(Command::new("kill").args(["-INT", &number]).status().unwrap().success());
    let ended = run.wait_with_output().unwrap();
    let out = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(ended.status.code(), Some(130), "{out}");
    assert!(out.contains("\nobjective makespan\nmakespan ") && out.contains("\nbound "), "{out}");
    let (code, out, _) = niwaki(&["verify", &hard, &csv.display().to_string()]);
    assert!(code == 0 && out.starts_with("ok: makespan "), "{out}");
}
