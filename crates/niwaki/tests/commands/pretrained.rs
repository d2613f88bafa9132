//! A pretrained decoder from file to file: `train`, `export`, `oracle --model`.

use niwaki_lm::{Model, enumerate};
use niwaki_tasks::{Record, Sequence};
use std::fs;
use std::path::Path;
use std::process::Command;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../niwaki-lm/tests/fixtures");

fn niwaki(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
    let run = command.args(arguments).current_dir(folder).env_remove("COLUMNS").output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

fn done(arguments: &[&str], folder: &Path) -> String {
    let (code, out, error) = niwaki(arguments, folder);
    assert_eq!(code, 0, "{arguments:?}: {error}");
    out
}

fn refused(arguments: &[&str], folder: &Path) -> String {
    let (code, out, error) = niwaki(arguments, folder);
    assert_eq!((code, out.as_str(), error.lines().count()), (2, "", 1), "{arguments:?}: {error}");
    error
}

/// Policies are kept on one machine and asked about on another, which has no need of the model.
#[test]
fn the_policies_of_a_run_outlive_its_model() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let task = format!("{FIXTURES}/record.toml");
    fs::create_dir(home.join("model")).unwrap();
    for entry in fs::read_dir(format!("{FIXTURES}/tiny-llama")).unwrap() {
        let file = entry.unwrap();
        fs::copy(file.path(), home.join("model").join(file.file_name())).unwrap();
    }
    let spec = format!(
        "iterations = 2\n[task]\nkind = \"record\"\nfile = {task:?}\nreward = \"two-branch\"\n[policy]\nkind = \"decoder\"\n\
         model = \"model\"\n[rollout]\nlanes = 8\n[optimiser]\nkind = \"adam\"\nrate = 0.01\n[dump]\npolicies = true\n"
    );
    fs::write(home.join("run.toml"), spec).unwrap();
    done(&["train", "run.toml", "--out", "run"], home);
    let ask = ["oracle", "--run", "run"];
    let before = done(&ask, home);
    assert!(before.contains("2 iterations"), "{before}");
    fs::remove_dir_all(home.join("model")).unwrap();
    let (code, out, error) = niwaki(&ask, home);
    assert_eq!((code, out), (0, before));
    assert!(
        error.contains("whether") && error.contains("record.toml") && error.lines().count() == 1,
        "{error}"
    );
}

#[test]
fn a_decoder_is_trained_exported_and_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path();
    let (model, task) = (format!("{FIXTURES}/tiny-llama"), format!("{FIXTURES}/record.toml"));
    let spec = format!(
        "iterations = 3\n[task]\nkind = \"record\"\nfile = {task:?}\nreward = \"two-branch\"\npriming = \"neutral\"\n[policy]\nkind = \"decoder\"\n\
         model = {model:?}\n[rollout]\nlanes = 32\n[update]\nminibatches = 4\n[optimiser]\nkind = \"adam\"\nrate = 0.01\n\
         betas = [0.9, 0.95]\nclip_norm = 1.0\n"
    );
    fs::write(home.join("run.toml"), spec).unwrap();
    done(&["train", "run.toml", "--out", "run"], home);
    done(&["export", "run", "--out", "tuned"], home);
    assert!(refused(&["export", "run", "--out", "tuned"], home).contains("--out tuned exists already"));

    let oracle = |old: &str, new: &str| -> serde_json::Value {
        let arguments = [
            "oracle",
            "--model",
            old,
            "--model",
            new,
            "--task",
            &task,
            "--priming",
            "neutral",
            "--format",
            "json",
        ];
        let said: serde_json::Value = serde_json::from_str(&done(&arguments, home)).unwrap();
        said["rows"].clone()
    };
    // The exact return in the last line of the curve is the tuned model's own.
    let curve = fs::read_to_string(home.join("run/curve.jsonl")).unwrap();
    let last: serde_json::Value = serde_json::from_str(curve.lines().last().unwrap()).unwrap();
    let eta = last["eta"].as_f64().unwrap();
    let record = Record::read(Path::new(&task)).unwrap();
    let tuned = Model::open(&home.join("tuned")).unwrap();
    let own = enumerate(&tuned, &record, Some("neutral")).unwrap();
    let task_of = record.task(Some("two-branch")).unwrap();
    assert!((own.expected(|choices| task_of.reward(choices)) - eta).abs() < 1e-6, "{eta}");
    let moved = oracle(&model, "tuned");
    let full = moved.as_array().unwrap().iter().find(|row| row["loss"] == "full").unwrap();
    assert_eq!(
        (&full["reward"], &full["vocab"], &full["horizon"]),
        (&"late-only".into(), &2.into(), &3.into())
    );
    // The whole correction has no bias; the two models are apart.
    assert!(
        full["bias"].as_f64().unwrap().abs() < 1e-12 && full["mean_kl"].as_f64().unwrap() > 0.0,
        "{full}"
    );
    assert_eq!(oracle("tuned", "tuned")[0]["mean_kl"].as_f64(), Some(0.0));

    let once = ["oracle", "--model", &model, "--task", &task];
    assert!(refused(&once, home).contains("--model was given once; give it twice"));
    let line = refused(&["oracle", "--model", &model, "--model", "none", "--task", &task], home);
    assert!(line.contains("--model: none: "), "{line}");
    let line = refused(&["train", "run.toml", "--set", "task.priming=three"], home);
    assert!(line.contains("no priming is called 'three'; there are: fatal, neutral"), "{line}");
    let line = refused(&["train", "run.toml", "--set", "policy.kind=tabular"], home);
    assert!(line.contains("policy 'tabular' has no key 'model'; leave it out"), "{line}");
}
