//! What built-in tasks and losses have, a stranger's have too.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use std::{fs, thread};

const SPEC: &str = "iterations = 80\n[task]\nkind = \"lock\"\nvocab = 3\nhorizon = 5\n[update]\nreuse = 4\n";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_own-task"));
    command.current_dir(folder).args(arguments);
    command
}

fn run(folder: &Path, arguments: &[&str]) -> String {
    let Output { status, stdout, stderr } = command(folder, arguments).output().unwrap();
    let (said, wrong) = (String::from_utf8(stdout).unwrap(), String::from_utf8(stderr).unwrap());
    assert!(status.success(), "{arguments:?}: {said}{wrong}");
    said
}

fn refused(folder: &Path, arguments: &[&str]) -> String {
    let ended = command(folder, arguments).output().unwrap();
    assert_eq!(ended.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(ended.stderr).unwrap()
}

#[test]
fn a_killed_run_of_an_own_task_and_loss_resumes_to_the_same_bytes() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("lock.toml"), SPEC).unwrap();
    let train = |out| {
        [
            "train",
            "lock.toml",
            "--set",
            "update.correction=three-back",
            "--set",
            "checkpoint.every=5",
            "--quiet",
            "--out",
            out,
        ]
    };
    run(home.path(), &train("whole"));
    let mut killed = command(home.path(), &train("killed")).spawn().unwrap();
    thread::sleep(Duration::from_millis(150));
    let _ = killed.kill();
    killed.wait().unwrap();
    run(home.path(), &train("killed"));
    for file in ["curve.jsonl", "summary.json", "spec.toml", "index.html"] {
        let bytes = |folder: &str| fs::read(home.path().join(folder).join(file)).unwrap();
        assert!(bytes("whole") == bytes("killed"), "{file}");
    }
    let spec = fs::read_to_string(home.path().join("whole/spec.toml")).unwrap();
    assert!(spec.contains("kind = \"lock\"") && spec.contains("correction = \"three-back\""), "{spec}");
}

#[test]
fn an_own_task_and_loss_are_swept_and_measured_by_name() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("lock.toml"), SPEC).unwrap();
    let sweep =
        ["sweep", "lock.toml", "--arm", "ppo", "--arm", "three-back", "--seeds", "8", "--out", "swept"];
    let said = run(home.path(), &sweep);
    assert!(said.contains("three-back"), "{said}");
    assert!(home.path().join("swept").read_dir().unwrap().count() > 0);
    let said = run(home.path(), &["oracle", "--losses", "ppo", "three-back", "--horizon", "4"]);
    assert!(said.contains("three-back"), "{said}");
}

#[test]
fn slips_are_one_line() {
    let home = tempfile::tempdir().unwrap();
    fs::write(home.path().join("lock.toml"), SPEC).unwrap();
    let said = refused(home.path(), &["train", "lock.toml", "--set", "task.kind=locks"]);
    assert!(said.contains("did you mean 'lock'?"), "{said}");
    let said = refused(home.path(), &["train", "lock.toml", "--set", "task.horizon=1"]);
    assert!(said.contains("a lock has at least two dials"), "{said}");
    let said = refused(home.path(), &["train", "lock.toml", "--set", "update.correction=three-back:2"]);
    assert!(said.contains("three-back"), "{said}");
}
