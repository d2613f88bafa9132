//! `oracle`, `reproduce`, and what every command shares: refusals and help.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn niwaki(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
    command.args(arguments).current_dir(folder).env_remove("COLUMNS").output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Writes an array of f64 in NumPy's format.
fn save(path: &Path, shape: &[usize], values: &[f64]) {
    let shape: Vec<String> = shape.iter().map(ToString::to_string).collect();
    let mut header =
        format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({},), }}", shape.join(", "));
    while (header.len() + 11) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    bytes.extend(header.as_bytes());
    values.iter().for_each(|value| bytes.extend(value.to_le_bytes()));
    fs::write(path, bytes).unwrap();
}

/// The golden pair: θ_old = 0.1 sin(1 + j), θ_new = θ_old + 0.7 cos(2 + 3j), j counted over the table.
fn golden_tables(folder: &Path) {
    let old: Vec<f64> = (0..1365 * 4).map(|j| 0.1 * f64::sin(1.0 + f64::from(j))).collect();
    let new: Vec<f64> =
        old.iter().enumerate().map(|(j, old)| old + 0.7 * (2.0 + 3.0 * j as f64).cos()).collect();
    save(&folder.join("old.npy"), &[1365, 4], &old);
    save(&folder.join("new.npy"), &[1365, 4], &new);
}

#[test]
fn the_oracle_gives_the_golden_values_for_given_tables() {
    let folder = tempfile::tempdir().unwrap();
    golden_tables(folder.path());
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../niwaki-exact/tests/fixtures/testbed.json");
    let golden: serde_json::Value = serde_json::from_str(&fs::read_to_string(golden).unwrap()).unwrap();
    let rewards = [
        ("early-gate", "early"),
        ("late-only", "late"),
        ("sparse-match", "sparse"),
        ("two-branch", "twobranch"),
    ];
    for (reward, short) in rewards {
        let arguments = [
            "oracle",
            "--logits-old",
            "old.npy",
            "--logits-new",
            "new.npy",
            "--reward",
            reward,
            "--format",
            "json",
            "--losses",
            "ppo",
            "tempered:0.25",
            "clipped:0.25,1",
        ];
        let rows: serde_json::Value =
            serde_json::from_str(&stdout(&niwaki(&arguments, folder.path()))).unwrap();
        let expected = &golden["V4T6"]["rewards"][short]["variants"];
        for (row, name) in rows["rows"].as_array().unwrap().iter().zip(["ppo", "temp_0.25", "clip_0.25_1.0"])
        {
            for (ours, theirs) in [("bias", "bias"), ("mse", "mse"), ("cosine", "cos"), ("ess", "ess")] {
                let (came, wanted) = (row[ours].as_f64().unwrap(), expected[name][theirs].as_f64().unwrap());
                assert!(
                    (came - wanted).abs() <= 1e-12 * wanted.abs(),
                    "{reward} {name} {ours}: {came} for {wanted}"
                );
            }
        }
        let kl = golden["V4T6"]["klbar"].as_f64().unwrap();
        assert!((rows["rows"][0]["mean_kl"].as_f64().unwrap() - kl).abs() < 1e-12 * kl);
    }
}

#[test]
fn csv_and_json_hold_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    let ask = |format: &str| {
        let arguments = [
            "oracle",
            "--horizon",
            "4",
            "--seeds",
            "3",
            "--losses",
            "ppo",
            "full",
            "minpro",
            "--format",
            format,
        ];
        stdout(&niwaki(&arguments, folder.path()))
    };
    let json: serde_json::Value = serde_json::from_str(&ask("json")).unwrap();
    let csv = ask("csv");
    let mut lines = csv.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    for (line, row) in lines.zip(json["rows"].as_array().unwrap()) {
        for (name, cell) in names.iter().zip(line.split(',')).skip(2) {
            match &row[name] {
                serde_json::Value::Null => assert_eq!(cell, "", "{name}"),
                serde_json::Value::Bool(on) => assert_eq!(cell, on.to_string(), "{name}"),
                value => assert_eq!(cell.parse::<f64>().unwrap(), value.as_f64().unwrap(), "{name}"),
            }
        }
    }
    assert_eq!(csv.lines().count(), 4);
}

#[test]
fn several_rewards_give_a_row_per_loss_and_reward() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |arguments: &[&str]| {
        let mut all = vec!["oracle", "--horizon", "3", "--seeds", "2", "--format", "csv"];
        all.extend(arguments);
        stdout(&niwaki(&all, folder.path()))
    };
    let spaced = rows(&["--reward", "late-only", "two-branch", "--losses", "ppo", "clipped:0.25,1"]);
    assert_eq!(spaced.lines().count(), 1 + 4);
    // Commas do as well as spaces.
    assert_eq!(rows(&["--reward", "late-only,two-branch", "--losses", "ppo,clipped:0.25,1"]), spaced);
    // What is said twice is measured once.
    let twice =
        ["--reward", "late-only,two-branch,late-only", "--losses", "ppo", "clipped:.25,1", "clipped:0.25,1"];
    assert_eq!(rows(&twice), spaced);
}

#[test]
fn a_window_without_end_is_the_full_correction_and_one_seed_has_no_error() {
    let folder = tempfile::tempdir().unwrap();
    let arguments =
        ["oracle", "--horizon", "3", "--seeds", "1", "--losses", "full", "truncated:inf", "--format", "json"];
    let said: serde_json::Value = serde_json::from_str(&stdout(&niwaki(&arguments, folder.path()))).unwrap();
    assert_eq!(said["niwaki"], env!("CARGO_PKG_VERSION"));
    let rows = &said["rows"];
    assert_eq!(rows[0]["mse"], rows[1]["mse"]);
    assert!(rows[0]["mse_sem"].is_null() && rows[0]["horizon"] == 3 && rows[0]["clip_low"].is_null());
    let told = stdout(&niwaki(&["reproduce", "tab:diag-summary", "--seeds", "1"], folder.path()));
    assert!(told.contains("32 are open") && !told.contains("differs"), "{told}");
}

#[test]
fn a_run_that_kept_its_policies_is_measured_iteration_by_iteration() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let small = ["--set", "iterations=3", "--set", "task.horizon=3", "--set", "rollout.lanes=32", "--quiet"];
    let spec = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/train/tabular-ppo.toml");
    let train = |out: &str, more: &[&str]| {
        stdout(&niwaki(&[&["train", spec, "--out", out][..], &small, more].concat(), folder))
    };
    train("kept", &["--set", "dump.policies=true"]);
    train("plain", &[]);
    let printed =
        stdout(&niwaki(&["oracle", "--run", "kept", "--losses", "ppo", "full", "--out", "page"], folder));
    assert!(printed.contains("3 iterations"), "{printed}");
    let rows = fs::read_to_string(folder.join("page/iterations.csv")).unwrap();
    let firsts: Vec<&str> = rows.lines().map(|line| line.split(',').next().unwrap()).collect();
    assert_eq!(firsts, ["iteration", "1", "1", "2", "2", "3", "3"]);
    assert!(fs::read_to_string(folder.join("page/index.html")).unwrap().contains("Iteration by iteration"));
    let refused = |run: &str| {
        let output = niwaki(&["oracle", "--run", run], folder);
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert!(refused("plain").contains("--set dump.policies=true"));
    assert!(refused("nowhere").contains("not the folder of a run"));
    fs::remove_file(folder.join("kept/policies.jsonl")).unwrap();
    assert!(refused("kept").contains("policies.jsonl"));
}

#[test]
fn a_reward_table_is_the_reward_it_lists() {
    let folder = tempfile::tempdir().unwrap();
    let late: Vec<f64> = (0..256).map(|sequence| if sequence % 4 == 1 { 1.0 } else { 0.0 }).collect();
    save(&folder.path().join("late.npy"), &[256], &late);
    let ask = |reward: [&str; 2]| {
        let mut arguments = vec!["oracle", "--horizon", "4", "--seeds", "2", "--format", "csv"];
        arguments.extend(reward);
        stdout(&niwaki(&arguments, folder.path())).replace(",late,", ",late-only,")
    };
    assert_eq!(ask(["--reward", "late-only"]), ask(["--reward-table", "late.npy"]));
}

#[test]
fn reproduce_writes_a_page_and_the_same_bytes_again() {
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str| {
        let text =
            stdout(&niwaki(&["reproduce", "tab:diag-summary", "--seeds", "4", "--out", out], folder.path()));
        let page = text.lines().last().unwrap().strip_prefix("wrote ").unwrap().to_owned();
        let folder = folder.path().join(page).parent().unwrap().to_path_buf();
        ["rows.csv", "rows.json", "index.html"].map(|name| fs::read_to_string(folder.join(name)).unwrap())
    };
    let (first, second) = (run("one"), run("two"));
    assert_eq!(first[..2], second[..2]);
    // The pages differ in the command they were made by, and in nothing else.
    assert_eq!(first[2], second[2].replace("--out two", "--out one"));
    assert!(first[2].contains("Tempered α = 0.25") && first[2].contains("0.203"));
}

#[test]
fn a_study_of_ones_own_trains_resumes_and_reports() {
    let folder = tempfile::tempdir().unwrap();
    let study = "label = \"mine\"\ntitle = \"My study\"\nquestion = \"?\"\nseeds = 2\nendpoints = [\"final\"]\n\
                 [base]\niterations = 3\n[base.task]\nhorizon = 3\n[[arm]]\nname = \"ppo\"\n[[arm]]\nname = \"full\"\n\
                 [compare]\nagainst = [\"ppo\"]\nendpoints = [\"final\"]\n";
    fs::write(folder.path().join("own.toml"), study).unwrap();
    let run = |more: &[&str]| {
        stdout(&niwaki(&[&["reproduce", "own.toml", "--out", "runs"], more].concat(), folder.path()))
    };
    let read = |name: &str| fs::read_to_string(folder.path().join("runs/mine").join(name)).unwrap();
    let first = run(&[]);
    assert!(first.starts_with("mine: 4 runs, 12 run-iterations in "), "{first}");
    let endpoints = read("endpoints.csv");
    assert_eq!(endpoints.lines().count(), 5);
    assert!(read("index.html").contains("My study") && read("speed.json").contains("start_up_seconds"));
    assert!(run(&[]).starts_with("mine: every run was finished already\n"));
    assert!(!run(&["--report-only"]).contains("run-iterations"));
    assert_eq!(read("endpoints.csv"), endpoints);
}

#[test]
fn refusals_are_one_line_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    save(&at("square.npy"), &[10, 4], &[0.0; 40]);
    save(&at("fine.npy"), &[21, 4], &[0.0; 84]);
    let mut bad = [0.0; 84];
    bad[14] = f64::NAN;
    save(&at("nan.npy"), &[21, 4], &bad);
    save(&at("short.npy"), &[63], &[0.0; 63]);
    save(&at("hollow.npy"), &[3, 0], &[]);
    save(&at("oblong.npy"), &[8, 8], &[0.0; 64]);
    save(&at("nan-reward.npy"), &[64], &[f64::NAN; 64]);
    fs::write(at("text.npy"), "not an array").unwrap();
    fs::write(at("own.toml"), "label = \"mine\"\nseads = 3\n").unwrap();
    let mut cut = fs::read(at("fine.npy")).unwrap();
    cut.truncate(300);
    fs::write(at("cut.npy"), cut).unwrap();
    let tables = |old: &'static str| vec!["oracle", "--logits-old", old, "--logits-new", "fine.npy"];
    let cases: Vec<Vec<&str>> = vec![
        vec!["oracle", "--losses", "temperd:0.1"],
        vec!["oracle", "--losses", "tempered:2"],
        vec!["oracle", "--reward", "late"],
        vec!["oracle", "--horizon", "40"],
        vec!["oracle", "--horizon", "0"],
        vec!["oracle", "--seeds", "0"],
        vec!["oracle", "--seeds", "99999999999999"],
        vec!["oracle", "--seeds", "-3"],
        vec!["oracle", "--drift", "-1"],
        vec!["oracle", "--clip", "1.5"],
        vec!["oracle", "--clip", "-0.1"],
        vec!["oracle", "--losses", "ppo,,full"],
        vec!["oracle", "--losses", "ppo", "--out", "text.npy"],
        vec!["oracle", "--horizon", "3", "--reward-table", "oblong.npy"],
        vec!["oracle", "--horizon", "3", "--reward-table", "nan-reward.npy"],
        vec!["oracle", "--logits-old", "hollow.npy", "--logits-new", "hollow.npy"],
        vec!["oracle", "--horizon", "3", "--reward-table", "short.npy"],
        vec!["oracle", "--reward-table", "missing.npy"],
        tables("square.npy"),
        tables("nan.npy"),
        tables("text.npy"),
        tables("cut.npy"),
        vec!["oracle", "--logits-old", "fine.npy"],
        vec!["oracle", "--logits-old", "fine.npy", "--logits-new", "fine.npy", "--horizon", "5"],
        vec!["reproduce", "tab:nothing"],
        vec!["reproduce", "tab:diag-summary", "--seeds", "0"],
        vec!["reproduce", "tab:diag-summary", "--first-seed", "7"],
        vec!["reproduce", "tab:g-detail", "--report-only"],
        vec!["reproduce", "tab:g-detail", "--precision", "tf32"],
        vec!["reproduce", "missing.toml"],
        vec!["reproduce", "own.toml"],
        vec!["reproduce"],
        vec!["orakel"],
    ];
    let mut transcript = String::new();
    for arguments in cases {
        let output = niwaki(&arguments, folder.path());
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        let single = line.ends_with('\n') && line.lines().count() == 1;
        assert!(output.stdout.is_empty() && single, "{arguments:?}: {line}");
        // The list of labels is made by the code: a new study is no change of the text.
        let (said, list) = line.split_once("so far are ").unwrap_or((&line, ""));
        let line = if list.is_empty() { line.clone() } else { format!("{said}so far are …\n") };
        let _ = writeln!(transcript, "$ niwaki {}\n{line}", arguments.join(" "));
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn help_texts() {
    let folder = tempfile::tempdir().unwrap();
    let help = |arguments: &[&str]| stdout(&niwaki(arguments, folder.path()));
    let whole = help(&["--help"]);
    assert!(whole.contains("\n  oracle     Measure policy losses exactly"), "{whole}");
    insta::assert_snapshot!("help", without(&whole, "Commands:"));
    let oracle = help(&["oracle", "--help"]);
    for member in niwaki_correction::family::MEMBERS {
        assert!(oracle.contains(&format!("\n  {}", member.name)), "{}: {oracle}", member.name);
    }
    insta::assert_snapshot!("help_oracle", without(&oracle, "Losses:"));
    insta::assert_snapshot!("help_reproduce", help(&["reproduce", "--help"]));
}

/// A help text without the list under a heading, which the code makes: a new line of it is no change of the text.
fn without(text: &str, heading: &str) -> String {
    let (before, list) = text.split_once(heading).unwrap();
    let after = list.split_once("\n\n").map_or("", |(_, after)| after);
    format!("{before}{heading}\n  …\n\n{after}")
}

#[test]
fn a_function_without_python_is_refused_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("mine.py"), "def fn(ell, advantage):\n    return ell\n").unwrap();
    let refused = |text: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
        // An empty PATH has no Python.
        command.args(["oracle", "--loss", text]).current_dir(folder.path()).env("PATH", folder.path());
        let output = command.output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        said
    };
    assert!(refused("mine.py:fn").contains("no Python is here to run the function"));
    assert!(refused("mine.py").contains("write FILE.py:FUNCTION"));
}
