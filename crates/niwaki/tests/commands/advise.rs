//! `advise` as users meet it.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn niwaki(arguments: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
    command.args(arguments).current_dir(folder).env_remove("COLUMNS").output().unwrap()
}

fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/advise").join(name)
}

fn json(arguments: &[&str], folder: &Path) -> serde_json::Value {
    let mut all = vec!["advise", "--format", "json"];
    all.extend(arguments);
    let output = niwaki(&all, folder);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_examples_get_the_verdicts_of_their_regimes() {
    let folder = tempfile::tempdir().unwrap();
    let mut transcript = String::new();
    for name in ["null.jsonl", "easy.jsonl", "win.jsonl", "trap.jsonl"] {
        let file = example(name).display().to_string();
        let came = json(&[&file], folder.path());
        let says = came["verdict"]["says"].as_str().unwrap();
        let _ = writeln!(transcript, "{name}: {} ({says})", came["verdict"]["action"]["kind"]);
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn the_examples_are_what_the_trainer_writes() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["null", "easy", "win", "trap"] {
        let spec = example(&format!("{name}.toml")).display().to_string();
        let output = niwaki(&["train", &spec, "--out", name], folder.path());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let numbers = |text: String| -> Vec<f64> {
            let split = |c: char| !(c.is_ascii_digit() || matches!(c, '-' | '.' | 'e' | 'E' | '+'));
            // A line's check follows from its bytes, and these from the last place of its numbers.
            let lines = text.lines().map(|line| line.split(",\"check\"").next().unwrap_or_default());
            lines.flat_map(|line| line.split(split)).filter_map(|number| number.parse().ok()).collect()
        };
        let here = numbers(fs::read_to_string(folder.path().join(name).join("dump.jsonl")).unwrap());
        let there = numbers(fs::read_to_string(example(&format!("{name}.jsonl"))).unwrap());
        assert_eq!(here.len(), there.len(), "{name}");
        // Another processor's exponentials may differ in the last place.
        assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-9), "{name}");
    }
}

#[test]
fn the_summary_in_words() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(example("win.jsonl"), folder.path().join("win.jsonl")).unwrap();
    let output = niwaki(&["advise", "win.jsonl"], folder.path());
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn a_page_and_json_are_written_whole_and_the_same_again() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(example("win.jsonl"), folder.path().join("win.jsonl")).unwrap();
    let write = |out: &str| {
        let output = niwaki(&["advise", "win.jsonl", "--out", out], folder.path());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.lines().last().unwrap(), format!("wrote {out}/index.html"));
        ["index.html", "advise.json"]
            .map(|name| fs::read_to_string(folder.path().join(out).join(name)).unwrap())
    };
    let (one, two) = (write("one"), write("two"));
    assert_eq!(one[1], two[1]);
    assert_eq!(one[0], two[0].replace("--out two", "--out one"));
    assert_eq!(one[0].matches("<figcaption").count(), 8);
    assert!(one[1].contains("rollout_corr/chi2_seq_raw"));
}

#[test]
fn conditions_fail_with_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let file = example("win.jsonl").display().to_string();
    let code = |gates: &[&str]| {
        let mut arguments = vec!["advise", file.as_str()];
        gates.iter().for_each(|gate| arguments.extend(["--fail-on", gate]));
        let output = niwaki(&arguments, folder.path());
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(code(&["ess<0.0001", "drift>1e9"]), (Some(0), String::new()));
    let (failed, line) = code(&["ess<0.0001", "ess<=1", "drift>0"]);
    assert_eq!(failed, Some(1));
    assert!(line.starts_with("niwaki: failed: ess <= 1 (0.") && line.lines().count() == 2, "{line}");
}

#[test]
fn refusals_are_one_line_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    let good = "{\"old_log_prob\": [-1, -2], \"new_log_prob\": [-1, -2], \"advantage\": 1}\n";
    at("good.jsonl", good);
    at("lengths.jsonl", &format!("{good}{}", good.replace("[-1, -2], \"adv", "[-1], \"adv")));
    at("nan.jsonl", &good.replace("1}", "NaN}"));
    at("positive.jsonl", &good.replace("\"new_log_prob\": [-1", "\"new_log_prob\": [1"));
    at("missing.jsonl", &good.replace("new_log_prob", "newlogprob"));
    at("cut.jsonl", &good[..good.len() - 20]);
    at("empty.jsonl", "");
    at("ages.jsonl", &format!("{}{good}", good.replace("1}", "1, \"use\": 3}")));
    at("cut.parquet", "PAR1");
    at("cut.npz", "PK");
    let cases: Vec<Vec<&str>> = vec![
        vec!["advise"],
        vec!["advise", "none.jsonl"],
        vec!["advise", "dump.csv"],
        vec!["advise", "lengths.jsonl"],
        vec!["advise", "nan.jsonl"],
        vec!["advise", "positive.jsonl"],
        vec!["advise", "missing.jsonl"],
        vec!["advise", "cut.jsonl"],
        vec!["advise", "empty.jsonl"],
        vec!["advise", "cut.parquet"],
        vec!["advise", "cut.npz"],
        vec!["advise", "good.jsonl", "good.jsonl"],
        vec!["advise", "none-*.jsonl"],
        vec!["advise", "good.jsonl", "--clip", "-1"],
        vec!["advise", "ages.jsonl"],
        vec!["advise", "-"],
        vec!["advise", "good.jsonl", "--fail-on", "es<0.3"],
        vec!["advise", "good.jsonl", "--fail-on", "ess"],
        vec!["advise", "good.jsonl", "--map", "advantge=x"],
        vec!["advise", "good.jsonl", "--map", "x"],
        vec!["advise", "good.jsonl", "--clip", "2"],
        vec!["advise", "good.jsonl", "--ess-floor", "1"],
        vec!["advise", "good.jsonl", "--batch", "0"],
        vec!["advise", "good.jsonl", "--against", "behaviour"],
        vec!["advise", "good.jsonl", "--rollout-is", "word"],
        vec!["advise", "good.jsonl", "--rollout-is-threshold", "0"],
    ];
    at("dump.csv", "a,b");
    let mut transcript = String::new();
    for arguments in cases {
        let output = niwaki(&arguments, folder.path());
        let line = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {line}");
        assert!(output.stdout.is_empty() && line.lines().count() == 1, "{arguments:?}: {line}");
        let _ = writeln!(transcript, "$ niwaki {}\n{line}", arguments.join(" "));
    }
    insta::assert_snapshot!(transcript);
}

#[test]
fn runs_stand_side_by_side_and_numbered_files_are_one() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::copy(example("win.jsonl"), at("win.jsonl")).unwrap();
    fs::copy(example("null.jsonl"), at("null.jsonl")).unwrap();
    let two = json(&["win.jsonl", "null.jsonl"], folder.path());
    let runs = two["runs"].as_array().unwrap();
    let alone = |name: &str| {
        let mut said = json(&[name], folder.path());
        // Signed once, not run by run.
        assert_eq!(said.as_object_mut().unwrap().remove("niwaki").unwrap(), env!("CARGO_PKG_VERSION"));
        said
    };
    assert_eq!((&runs[0], &runs[1]), (&alone("win.jsonl"), &alone("null.jsonl")));
    let output = niwaki(&["advise", "win.jsonl", "null.jsonl", "--out", "page"], folder.path());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("win.jsonl: short warmup"), "{said}");
    assert!(said.contains("null.jsonl: correction wasted") && said.contains("apart?"), "{said}");
    assert!(fs::read_to_string(at("page/index.html")).unwrap().contains("2 runs side by side"));

    // One run in two files, by their names, by the flag, or in a folder; and apart.
    let text = fs::read_to_string(example("win.jsonl")).unwrap();
    let (first, second) = text.split_at(text.match_indices('\n').nth(255).unwrap().0 + 1);
    fs::create_dir(at("parts")).unwrap();
    fs::write(at("parts/dump-1.jsonl"), first).unwrap();
    fs::write(at("parts/dump-2.jsonl"), second).unwrap();
    let whole = alone("win.jsonl")["measured"].clone();
    for given in [
        &["parts/dump-1.jsonl", "parts/dump-2.jsonl"][..],
        &["parts"],
        &["--run", "parts/dump-1.jsonl", "parts/dump-2.jsonl"],
        // As it comes from a shell that was told to leave it alone.
        &["parts/dump-*.jsonl"],
    ] {
        assert_eq!(json(given, folder.path())["measured"], whole, "{given:?}");
    }
    let output = niwaki(&["advise", "parts"], folder.path());
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("joined as one run: dump-1.jsonl … dump-2.jsonl (2 files)\n"), "{said}");
    let apart = json(&["--apart", "parts/dump-1.jsonl", "parts/dump-2.jsonl"], folder.path());
    assert_eq!(apart["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn standard_input_is_a_dump() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
    command.args(["advise", "-", "--format", "json"]).current_dir(folder.path());
    command.stdin(fs::File::open(example("win.jsonl")).unwrap());
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let came: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let file = example("win.jsonl").display().to_string();
    assert_eq!(came["measured"], json(&[&file], folder.path())["measured"]);
    assert_eq!(came["files"], serde_json::json!(["-"]));
}

#[test]
fn help_text() {
    let folder = tempfile::tempdir().unwrap();
    let output = niwaki(&["advise", "--help"], folder.path());
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn tallies_of_shares_say_what_the_dump_says() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(example("win.jsonl")).unwrap();
    let group = |(at, line): (usize, &str)| line.replacen('{', &format!("{{\"group\":{},", at / 8), 1);
    let lines: Vec<String> = text.lines().enumerate().map(group).collect();
    fs::write(folder.path().join("win.jsonl"), lines.join("\n")).unwrap();
    // Every third trajectory to each of three ranks: what is one group lies on all of them.
    for rank in 0..3 {
        let share: Vec<&str> = lines.iter().map(String::as_str).skip(rank).step_by(3).collect();
        fs::write(folder.path().join(format!("share-{rank}.jsonl")), share.join("\n")).unwrap();
        let (dump, tally) = (format!("share-{rank}.jsonl"), format!("rank{rank}.tally"));
        let output = niwaki(&["advise", &dump, "--out", &tally], folder.path());
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(said.lines().last().unwrap(), format!("wrote {tally}"));
    }
    let whole = json(&["win.jsonl"], folder.path());
    let merged = json(&["rank2.tally", "rank0.tally", "rank1.tally"], folder.path());
    assert_eq!(merged["measured"], whole["measured"]);
    assert_eq!(merged["verdict"]["because"], whole["verdict"]["because"]);
    let refuse = |arguments: &[&str]| {
        let mut all = vec!["advise"];
        all.extend(arguments);
        let output = niwaki(&all, folder.path());
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    assert_eq!(
        refuse(&["rank0.tally", "--clip", "0.3"]),
        "niwaki: --clip: rank0.tally was measured under its own settings; leave --clip out\n"
    );
    assert_eq!(
        refuse(&["rank0.tally", "win.jsonl", "--run"]),
        "niwaki: rank0.tally is a tally and win.jsonl is a dump; make a tally of that first: niwaki advise win.jsonl --out NAME.tally\n"
    );
    let bytes = fs::read(folder.path().join("rank1.tally")).unwrap();
    fs::write(folder.path().join("rank1.tally"), &bytes[..bytes.len() / 2]).unwrap();
    let refused = refuse(&["rank0.tally", "rank1.tally"]);
    assert_eq!(refused, "niwaki: rank1.tally: a damaged tally: it ends too early\n");
    let several = refuse(&["win.jsonl", "share-0.jsonl", "--out", "all.tally"]);
    assert!(
        several.contains("a tally is of one run, and these files are 2; give --run to join them"),
        "{several}"
    );
}
