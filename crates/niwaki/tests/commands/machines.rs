//! `split`, `work`, `launch`, `status` and `sweep`: the same bytes as one process, and what is refused.

use niwaki_train::run;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Forty runs of a tenth of a second and less.
const STUDY: &str = r#"
label = "forty"
title = "Forty runs"
question = "Are they the same wherever they run?"
seeds = 10
endpoints = ["auc"]
[base]
iterations = 30
[base.task]
horizon = 5
[base.rollout]
lanes = 64
[[arm]]
name = "ppo"
[[arm]]
name = "tempered:0.2"
[[cell]]
name = "fast"
[[cell]]
name = "slow"
set = { "optimiser.rate" = 0.1 }
[compare]
against = ["ppo"]
endpoints = ["auc"]
"#;

fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
    command.args(arguments).current_dir(folder).env_remove("COLUMNS").env_remove("CUDA_VISIBLE_DEVICES");
    command
}

fn niwaki(arguments: &[&str], folder: &Path) -> Output {
    command(arguments, folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// A folder with the study, its plan, and what one process makes of it.
fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("forty.toml"), STUDY).unwrap();
    let said = stdout(&niwaki(&["cluster", "split", "forty.toml"], folder.path()));
    assert!(said.contains(": 40 units, 40 runs, 1200 run-iterations, in plan.json"), "{said}");
    stdout(&niwaki(&["reproduce", "forty.toml", "--out", "whole"], folder.path()));
    folder
}

/// The files of all runs below a folder; the times of events are the clock's.
fn runs(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![folder.join("forty")]);
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(at).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name().into_string().unwrap());
            if path.is_dir() {
                todo.push(path);
            } else if !["speed.json", "endpoints.csv", "index.html"].contains(&name.as_str()) {
                let bytes = fs::read(&path).unwrap();
                let bytes = if name == run::EVENTS { run::timeless_events(&bytes) } else { bytes };
                found.insert(path.strip_prefix(folder).unwrap().display().to_string(), bytes);
            }
        }
    }
    found
}

fn worker(folder: &Path, out: &str) -> Child {
    let arguments = ["cluster", "work", "--claim", "--lease", "1", "--out", out];
    command(&arguments, folder).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Waits until a process holds a lease, and says of which unit.
fn holding(folder: &Path, out: &str, process: u32) -> Option<u64> {
    let began = Instant::now();
    while began.elapsed() < Duration::from_secs(60) {
        let said = stdout(&niwaki(&["cluster", "status", "--json", "--out", out], folder));
        let status: serde_json::Value = serde_json::from_str(&said).unwrap();
        if status["done"] == status["units"] {
            return None;
        }
        let ours =
            |unit: &&serde_json::Value| unit["holder"].as_str().unwrap().ends_with(&format!("-{process}"));
        if let Some(unit) = status["running"].as_array().unwrap().iter().find(ours) {
            return unit["unit"].as_u64();
        }
    }
    None
}

fn signal(name: &str, process: u32) {
    assert!(Command::new("kill").args([name, &process.to_string()]).status().unwrap().success());
}

#[cfg(unix)]
#[test]
fn four_processes_with_one_stopped_beyond_its_lease_lose_double_and_mix_nothing() {
    let folder = prepared();
    let mut first = worker(folder.path(), "shared");
    holding(folder.path(), "shared", first.id());
    signal("-STOP", first.id());
    // Three others take over what it holds and end without it.
    let others: Vec<Child> = (0..3).map(|_| worker(folder.path(), "shared")).collect();
    for mut other in others {
        assert!(other.wait().unwrap().success());
    }
    assert!(runs(&folder.path().join("shared")) == runs(&folder.path().join("whole")));
    // Woken, it finds everything done.
    signal("-CONT", first.id());
    assert!(first.wait().unwrap().success());
    assert!(runs(&folder.path().join("shared")) == runs(&folder.path().join("whole")));
    let said = stdout(&niwaki(&["cluster", "status", "--out", "shared"], folder.path()));
    assert!(said.contains(": 40 of 40 units done, 0 running, 0 ready, 0 waiting, 0 failed"), "{said}");
    // The report is that of one process, to the byte.
    let report = |out: &str| {
        stdout(&niwaki(&["reproduce", "forty.toml", "--report-only", "--out", out], folder.path()));
        fs::read(folder.path().join(out).join("forty/endpoints.csv")).unwrap()
    };
    assert!(report("shared") == report("whole"));
}

#[cfg(unix)]
#[test]
fn killed_and_stopped_processes_leave_the_bytes_of_one() {
    let folder = prepared();
    // One is killed with a unit in its hands, one is asked to stop, and the launcher's two do the rest.
    let mut killed = worker(folder.path(), "shared");
    holding(folder.path(), "shared", killed.id());
    killed.kill().unwrap();
    killed.wait().unwrap();
    let mut stopped = worker(folder.path(), "shared");
    holding(folder.path(), "shared", stopped.id());
    signal("-TERM", stopped.id());
    assert!(matches!(stopped.wait().unwrap().code(), Some(130 | 0)));
    let arguments = ["cluster", "launch", "local", "--workers", "2", "--lease", "1", "--out", "shared"];
    let said = stdout(&niwaki(&arguments, folder.path()));
    assert!(said.contains(": 40 of 40 units done"), "{said}");
    assert!(runs(&folder.path().join("shared")) == runs(&folder.path().join("whole")));
    // Nothing is left to do, by number or by claim.
    let said = stdout(&niwaki(&["cluster", "work", "--unit", "7", "--out", "shared"], folder.path()));
    assert!(said.contains("done, 0 trained, 1 were finished before"), "{said}");
    stdout(&niwaki(&["cluster", "work", "--claim", "--out", "shared"], folder.path()));
}

#[test]
fn launchers_translate() {
    let folder = tempfile::tempdir().unwrap();
    let study = "label = \"staged\"\ntitle = \"t\"\nquestion = \"q\"\nseeds = 1\nendpoints = [\"final\"]\n[base]\niterations = 2\n\
                 [[arm]]\nname = \"ppo\"\n[[arm]]\nname = \"full\"\n[[cell]]\nname = \"a\"\n[pilot]\narm = \"ppo\"\n\
                 key = \"optimiser.rate\"\nvalues = [0.5, 1.0]\nendpoint = \"final\"\naim = 0.5\nseeds = 1\n";
    fs::write(folder.path().join("staged.toml"), study).unwrap();
    stdout(&niwaki(&["cluster", "split", "staged.toml"], folder.path()));
    let here = fs::canonicalize(folder.path()).unwrap().display().to_string();
    let program = env!("CARGO_BIN_EXE_niwaki");
    let dry = |arguments: &[&str]| {
        let all = [&["cluster", "launch"], arguments, &["--dry-run"]].concat();
        let said = stdout(&niwaki(&all, &fs::canonicalize(folder.path()).unwrap()));
        without_ids(&said.replace(&here, "HERE").replace(program, "NIWAKI"))
    };
    let asked = ["--mem", "16G", "--cpus", "4", "--gpu", "h100"];
    let limit = ["--time", "4h"];
    insta::assert_snapshot!("launch_slurm", dry(&["slurm", "--at-once", "8"]));
    insta::assert_snapshot!(
        "launch_kubernetes",
        dry(&[
            "kubernetes",
            "--image",
            "niwaki:1",
            "--volume",
            "results",
            "--out",
            "/results",
            "--secret",
            "account"
        ])
    );
    let ray = dry(&["ray"]);
    insta::assert_snapshot!("launch_ray", ray.split_once("# The plan ").unwrap().1);
    // What a unit asks for, in the words of each.
    let says = |text: String, expected: &[&str]| {
        expected.iter().for_each(|words| assert!(text.contains(words), "{words} is missing in {text}"));
    };
    let slurm = dry(&[&["slurm"], &asked[..], &limit].concat());
    says(slurm, &["--time=240 --signal=B:USR1@120 --mem=16384M --cpus-per-task=4"]);
    let pods = ["kubernetes", "--image", "niwaki:1", "--secret", "account", "--out", "s3://bucket/runs"];
    let pods = dry(&[&pods, &asked[..], &limit].concat());
    says(pods, &["activeDeadlineSeconds: 14400", "cpu: 4\n", "memory: 16384Mi\n"]);
    says(dry(&[&["ray"], &asked[..]].concat()), &[", cpus=4, memory=17179869184, gpu=\"h100\")"]);
    says(dry(&["local", "--cpus", "1", "--workers", "1"]), &["RAYON_NUM_THREADS=1 "]);
    insta::assert_snapshot!(
        "launch_local",
        dry(&["local", "--workers", "2"]).replace(&threads(), "RAYON_NUM_THREADS=N")
    );
}

/// A text without the names of plans and units, which are checksums of specs: a new key of those is no change here.
fn without_ids(text: &str) -> String {
    let mut kept = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_hexdigit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        kept += &if digits.len() == 16 { part.replace(digits, "ID") } else { part.to_owned() };
    }
    kept
}

/// What two processes share the cores by.
fn threads() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!("RAYON_NUM_THREADS={}", (cores / 2).max(1))
}

#[test]
fn a_sweep_compares_its_arms_seed_by_seed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(
        folder.path().join("base.toml"),
        "iterations = 6\n[task]\nhorizon = 3\n[rollout]\nlanes = 16\n",
    )
    .unwrap();
    let sweep = |more: &[&str]| {
        let arms = [
            "sweep",
            "base.toml",
            "--arm",
            "ppo",
            "--arm",
            "tempered:0.5",
            "--vary",
            "optimiser.rate=0.5,1",
            "--seeds",
            "2",
        ];
        stdout(&niwaki(&[&arms, more].concat(), folder.path()))
    };
    let said = sweep(&["--out", "here"]);
    assert!(said.contains("study: here/base.toml") && said.contains("Paired comparisons"), "{said}");
    assert!(said.contains("rate=0.5") && said.contains("rate=1"), "{said}");
    let study = fs::read_to_string(folder.path().join("here/base.toml")).unwrap();
    insta::assert_snapshot!("sweep_study", study);
    // By processes of the launcher it comes to the same.
    let launched = sweep(&["--out", "there", "--workers", "2"]);
    assert!(
        launched.contains(": 8 of 8 units done") && launched.contains("Paired comparisons"),
        "{launched}"
    );
    let csv = |out: &str| fs::read(folder.path().join(out).join("base/endpoints.csv")).unwrap();
    assert!(csv("here") == csv("there"));
    let written = sweep(&["--out", "later", "--write-only"]);
    assert!(
        written.contains("run it: niwaki cluster launch slurm --plan later/base.json --out later"),
        "{written}"
    );
}

#[test]
fn a_plan_says_how_it_scales() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("forty.toml"), STUDY).unwrap();
    let speed = r#"{"runs":40,"run_iterations":1200,"seconds":1200.0,"start_up_seconds":0.0,"device":"cpu","threads":1}"#;
    fs::create_dir_all(folder.path().join("measured/forty")).unwrap();
    fs::write(folder.path().join("measured/forty/speed.json"), speed).unwrap();
    // 40 units of 30 s, and a twentieth of a second each beside it.
    let said = stdout(&niwaki(
        &["cluster", "split", "forty.toml", "--speeds", "measured", "--simulate", "1,8,64"],
        folder.path(),
    ));
    insta::assert_snapshot!("split_simulate", without_ids(&said));
    // Numbers that no clock says are no speed: nothing is planned by them.
    for seconds in ["-1.0", "0.0", "1e308"] {
        let wrong = speed.replace("\"seconds\":1200.0", &format!("\"seconds\":{seconds}"));
        fs::write(folder.path().join("measured/forty/speed.json"), wrong).unwrap();
        let ended = niwaki(
            &["cluster", "split", "forty.toml", "--speeds", "measured", "--out", "other.json"],
            folder.path(),
        );
        let said = String::from_utf8(ended.stderr).unwrap();
        assert!(
            ended.status.code() == Some(2) && said.contains("does not say a speed: not a possible time"),
            "{said}"
        );
        assert!(said.lines().count() == 1 && !folder.path().join("other.json").exists());
    }
}

#[test]
fn refusals_are_one_line_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("forty.toml"), STUDY).unwrap();
    stdout(&niwaki(&["cluster", "split", "forty.toml"], folder.path()));
    let plan = fs::read_to_string(at("plan.json")).unwrap();
    fs::write(at("old.json"), plan.replace("\"niwaki_plan\": 1", "\"niwaki_plan\": 0")).unwrap();
    fs::write(at("edited.json"), plan.replace("forty", "fifty")).unwrap();
    fs::write(at("none.json"), "[]").unwrap();
    fs::write(at("file"), "").unwrap();
    fs::write(at("base.toml"), "iterations = 6\n").unwrap();
    let cases: Vec<Vec<&str>> = vec![
        vec!["cluster", "split", "tab:nothing"],
        vec!["cluster", "split", "tab:diag-summary"],
        vec!["cluster", "split", "forty.toml", "--runs", "0"],
        vec!["cluster", "split", "forty.toml", "--simulate", "8"],
        vec!["cluster", "split", "forty.toml", "--speeds", "nowhere", "--simulate", "8"],
        vec!["cluster", "work", "--unit", "40"],
        vec!["cluster", "work", "--unit", "0", "--plan", "old.json"],
        vec!["cluster", "work", "--unit", "0", "--plan", "edited.json"],
        vec!["cluster", "work", "--unit", "0", "--plan", "none.json"],
        vec!["cluster", "work", "--unit", "0", "--plan", "missing.json"],
        vec!["cluster", "work", "--unit", "0", "--out", "file"],
        vec!["cluster", "work", "--unit", "0", "--out", "ftp://host/folder"],
        vec!["cluster", "work", "--unit", "0", "--plan", "ftp://plan.json"],
        vec!["cluster", "split", "tab:pretrained-summary"],
        vec!["reproduce", "forty.toml", "--out", "s3://bucket/runs"],
        vec!["reproduce", "forty.toml", "--from", "s3://bucket/runs"],
        vec!["sweep", "base.toml", "--arm", "ppo", "--out", "gs://bucket"],
        vec!["cluster", "work"],
        vec!["cluster", "status", "--plan", "old.json"],
        vec!["cluster", "launch", "local", "--workers", "0"],
        vec!["cluster", "launch", "slurm", "--at-once", "0", "--dry-run"],
        vec!["cluster", "launch", "ray", "--python", "no-such-python"],
        vec!["sweep", "base.toml"],
        vec!["sweep", "base.toml", "--arm", "pop"],
        vec!["sweep", "base.toml", "--arm", "ppo", "--vary", "optimiser.rat=1,2"],
        vec!["sweep", "base.toml", "--arm", "ppo", "--vary", "optimiser.rate"],
        vec!["sweep", "base.toml", "--arm", "ppo", "--name", ".."],
    ];
    let mut transcript = String::new();
    for arguments in cases {
        let output = niwaki(&arguments, folder.path());
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        let single = line.ends_with('\n') && line.lines().count() == 1;
        assert!(output.stdout.is_empty() && single, "{arguments:?}: {line}");
        let (said, list) = line.split_once("so far are ").unwrap_or((&line, ""));
        let line = if list.is_empty() { line.clone() } else { format!("{said}so far are …\n") };
        let _ = writeln!(transcript, "$ niwaki {}\n{line}", arguments.join(" "));
    }
    insta::assert_snapshot!("machines_refusals", transcript);
}

/// A place in which nobody, not even the system's owner, may make a folder.
#[cfg(target_os = "linux")]
#[test]
fn a_place_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("forty.toml"), STUDY).unwrap();
    stdout(&niwaki(&["cluster", "split", "forty.toml"], folder.path()));
    for arguments in [
        &["cluster", "work", "--claim"][..],
        &["cluster", "status"],
        &["cluster", "launch", "local", "--workers", "1"],
    ] {
        let ended = niwaki(&[arguments, &["--out", "/sys/niwaki"]].concat(), folder.path());
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(2), "{said}");
        assert!(said.lines().count() == 1 && said.contains("choose a place that can be written"), "{said}");
    }
}

#[test]
fn help_texts() {
    let folder = tempfile::tempdir().unwrap();
    let mut all = String::new();
    for door in [
        &["cluster", "split"][..],
        &["cluster", "work"],
        &["cluster", "status"],
        &["sweep"],
        &["cluster", "launch"],
        &["cluster", "launch", "local"],
        &["cluster", "launch", "slurm"],
    ] {
        let said = stdout(&niwaki(&[door, &["--help"]].concat(), folder.path()));
        let _ = writeln!(all, "$ niwaki {} --help\n{said}", door.join(" "));
    }
    insta::assert_snapshot!("help_machines", all);
}
