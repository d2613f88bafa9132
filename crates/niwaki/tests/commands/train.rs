//! `train`: what it leaves behind, what interrupts it, and what it refuses.

use niwaki_train::run;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A short run, saved often.
const RUN: [&str; 8] =
    ["train", "--set", "task.horizon=6", "--set", "iterations=150", "--set", "checkpoint.every=7", "--quiet"];

fn command(arguments: &[&str], folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
    command.args(arguments).current_dir(folder).env_remove("COLUMNS");
    command
}

fn niwaki(arguments: &[&str], folder: &Path) -> Output {
    command(arguments, folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    let read = |entry: fs::DirEntry| {
        let (name, bytes) = (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap());
        // When an iteration was done is the clock's.
        let bytes = if name == run::EVENTS { run::timeless_events(&bytes) } else { bytes };
        (name, bytes)
    };
    entries.map(read).collect()
}

fn with_out<'a>(run: &[&'a str], out: &'a str) -> Vec<&'a str> {
    [run, &["--out", out]].concat()
}

#[test]
fn killed_at_twenty_moments_it_ends_with_the_same_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let run = [&RUN[..], &["--set", "iterations=60", "--set", "dump.every=20"]].concat();
    let began = Instant::now();
    assert!(niwaki(&with_out(&run, "whole"), folder.path()).status.success());
    let whole = began.elapsed();
    let arguments = with_out(&run, "killed");
    let (mut killed, mut place) = (0, 0_u32);
    while killed < 20 {
        // Moments spread over the run by the golden ratio; a run that ended before its kill is begun again.
        place += 1;
        let moment = whole.mul_f64(f64::from(place) * 0.618_034 % 1.0);
        let mut child =
            command(&arguments, folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(moment);
        child.kill().unwrap();
        if child.wait().unwrap().success() {
            assert!(files(&folder.path().join("whole")) == files(&folder.path().join("killed")));
            fs::remove_dir_all(folder.path().join("killed")).unwrap();
        } else {
            killed += 1;
        }
        assert!(place < 200, "{killed} kills in {place} attempts");
    }
    assert!(niwaki(&arguments, folder.path()).status.success());
    assert!(files(&folder.path().join("whole")) == files(&folder.path().join("killed")));
}

#[cfg(unix)]
#[test]
fn signals_save_say_how_to_go_on_and_exit_130() {
    // Ctrl-C, a batch system's request, a terminal that was closed.
    for signal in ["-INT", "-TERM", "-HUP"] {
        stopped_by(signal);
    }
}

/// Waits until a run has written some of its curve.
#[cfg(unix)]
fn wait_for_curve(curve: &Path) {
    let began = Instant::now();
    while fs::metadata(curve).map_or(0, |curve| curve.len()) < 1000 {
        assert!(began.elapsed() < Duration::from_secs(60), "no curve");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(unix)]
fn stopped_by(signal: &str) {
    let folder = tempfile::tempdir().unwrap();
    // Long enough to be interrupted on any machine.
    let arguments = ["train", "--set", "iterations=1000000", "--set", "task.horizon=4", "--out", "run"];
    let child = command(&arguments, folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let curve = folder.path().join("run/curve.jsonl");
    wait_for_curve(&curve);
    let sent = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("stopped and saved after iteration"), "{said}");
    assert!(said.contains("of 1000000 in run; the same command goes on from there"), "{said}");
    // What was saved is all that there is: no line beyond the checkpoint.
    let count = fs::read_to_string(curve).unwrap().lines().count();
    assert!(said.contains(&format!("iteration {count} of")), "{said} {count}");
}

/// Iterations that take long: of many passes, and of one that takes longer than anyone waits.
#[cfg(unix)]
#[test]
fn a_signal_within_an_iteration_is_answered_soon_and_loses_nothing_saved() {
    let folder = tempfile::tempdir().unwrap();
    let asked = |arguments: &[&str], moment: Duration, signal: &str| {
        let child = command(arguments, folder.path()).stdout(Stdio::piped()).spawn().unwrap();
        std::thread::sleep(moment);
        // A run that is done by now cannot be asked.
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).stderr(Stdio::null()).status();
        let began = Instant::now();
        let ended = child.wait_with_output().unwrap();
        assert!(began.elapsed() < Duration::from_secs(4), "{signal}: {:?}", began.elapsed());
        ended
    };
    let many =
        ["iterations=3", "task.horizon=6", "rollout.lanes=64", "update.reuse=4000", "checkpoint.every=1"];
    let many: Vec<&str> = many.iter().flat_map(|setting| ["--set", setting]).collect();
    let many = [&["train", "--quiet"][..], &many].concat();
    let began = Instant::now();
    assert!(niwaki(&with_out(&many, "whole"), folder.path()).status.success());
    let whole = began.elapsed();
    let signals = ["-INT", "-TERM", "-HUP", "-TERM", "-INT"];
    for (place, signal) in (1_u32..).zip(signals) {
        let moment = whole.mul_f64(f64::from(place) * 0.618_034 % 1.0);
        let ended = asked(&with_out(&many, "cut"), moment, signal);
        assert!(matches!(ended.status.code(), Some(130 | 0)), "{:?}", ended.status);
    }
    assert!(niwaki(&with_out(&many, "cut"), folder.path()).status.success());
    assert!(files(&folder.path().join("whole")) == files(&folder.path().join("cut")));
    // One pass over it is minutes.
    let one = ["policy.kind=bag", "policy.width=8", "task.horizon=100000", "rollout.lanes=4"];
    let one: Vec<&str> = one.iter().flat_map(|setting| ["--set", setting]).collect();
    let one = [&["train"][..], &one].concat();
    let ended = asked(&with_out(&one, "one"), Duration::from_secs(2), "-TERM");
    assert_eq!(ended.status.code(), Some(130));
    let said = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(said, "stopped before an iteration was saved; the same command goes on from what is in one\n");
}

/// As far as 8 GB of addresses go; the policy keeps keys and values of 1.6 million steps.
#[cfg(target_os = "linux")]
#[test]
fn a_run_beyond_the_memory_that_is_left_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    for policy in ["policy.kind=causal", "policy.kind=bag --set policy.width=4096"] {
        let line = format!(
            "ulimit -v 8000000; exec {} train --set {policy} --set task.horizon=100000 --set rollout.lanes=16 --out run",
            env!("CARGO_BIN_EXE_niwaki"),
        );
        let ended = Command::new("bash").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
        let said = String::from_utf8(ended.stderr).unwrap();
        assert_eq!((ended.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.starts_with("niwaki: policy, rollout.lanes: the run needs about "), "{said}");
        assert!(
            said.contains("iB of memory and ") && said.ends_with(" are left; give smaller sizes\n"),
            "{said}"
        );
        assert!(files(folder.path()).is_empty());
    }
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_one_line_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    assert!(niwaki(&with_out(&RUN, "whole"), folder.path()).status.success());
    // No file may grow beyond 48 KiB: checkpoints do not, the curve of 150 iterations does.
    let line = format!(
        "trap '' XFSZ; ulimit -f 48; exec {} {}",
        env!("CARGO_BIN_EXE_niwaki"),
        with_out(&RUN, "full").join(" ")
    );
    let full = Command::new("bash").args(["-c", &line]).current_dir(folder.path()).output().unwrap();
    let said = String::from_utf8(full.stderr).unwrap();
    assert_eq!(full.status.code(), Some(2), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.contains("File too large"), "{said}");
    assert!(niwaki(&with_out(&RUN, "full"), folder.path()).status.success());
    assert!(files(&folder.path().join("whole")) == files(&folder.path().join("full")));
}

#[test]
fn it_ends_with_a_table_and_the_curves_path() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["train", "--set", "iterations=10", "--set", "task.horizon=4"];
    let said = stdout(&niwaki(&arguments, folder.path()));
    assert!(said.contains("AUC") && said.contains("zero-reward batches"), "{said}");
    let curve: PathBuf = said.lines().rev().nth(1).unwrap().strip_prefix("curve: ").unwrap().into();
    // The page's bytes follow from the run alone.
    let page = said.lines().last().unwrap().strip_prefix("wrote ").unwrap();
    let page = fs::read_to_string(folder.path().join(page)).unwrap();
    assert!(page.contains("What the policy earns") && page.contains("Effective sample size"));
    let lines = fs::read_to_string(folder.path().join(&curve)).unwrap();
    assert_eq!(lines.lines().count(), 10);
    let spec = fs::read_to_string(folder.path().join(&curve).with_file_name("spec.toml")).unwrap();
    let hash = spec.lines().next().unwrap().strip_prefix("# niwaki train, spec ").unwrap();
    assert!(curve.starts_with(format!("runs/train/default-{hash}/0")), "{}", curve.display());
    // The same command again has nothing to do and says the same.
    assert_eq!(stdout(&niwaki(&arguments, folder.path())), said);
    // The resolved spec is a spec.
    let copied = stdout(&niwaki(
        &["train", "--print-spec", "--set", "iterations=10", "--set", "task.horizon=4"],
        folder.path(),
    ));
    assert_eq!(spec.split_once('\n').unwrap().1, copied);
    fs::write(folder.path().join("copied.toml"), &copied).unwrap();
    let again = stdout(&niwaki(&["train", "copied.toml", "--out", "again"], folder.path()));
    assert_eq!(fs::read_to_string(folder.path().join("again/curve.jsonl")).unwrap(), lines);
    assert!(again.ends_with("curve: again/curve.jsonl\nwrote again/index.html\n"), "{again}");
    assert_eq!(fs::read_to_string(folder.path().join("again/index.html")).unwrap(), page);
}

#[cfg(unix)]
#[test]
fn a_page_never_stands_beside_an_unfinished_run() {
    let folder = tempfile::tempdir().unwrap();
    let run = ["train", "--quiet", "--set", "task.horizon=4", "--out", "run", "--set"];
    stdout(&niwaki(&[&run[..], &["iterations=5"]].concat(), folder.path()));
    // All that a finished run leaves but its page is taken away, so the folder is anybody's.
    let page = folder.path().join("run/index.html");
    let kept = fs::read(&page).unwrap();
    fs::remove_dir_all(folder.path().join("run")).unwrap();
    fs::create_dir(folder.path().join("run")).unwrap();
    fs::write(&page, &kept).unwrap();
    let mut child = command(&[&run[..], &["iterations=1000000"]].concat(), folder.path()).spawn().unwrap();
    wait_for_curve(&folder.path().join("run/curve.jsonl"));
    let gone = !page.exists();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(gone && !page.exists());
}

#[test]
fn another_programs_file_is_not_a_page_of_a_run() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("run/index.html");
    let run = ["train", "--quiet", "--set", "task.horizon=4", "--set", "iterations=5", "--out", "run"];
    stdout(&niwaki(
        &["oracle", "--quiet", "--horizon", "2", "--seeds", "1", "--out", "oracle.html"],
        folder.path(),
    ));
    let oracle = fs::read(folder.path().join("oracle.html")).unwrap();
    // Notes, words that are no text, a page that another command made.
    for theirs in [&b"my notes"[..], &b"\xff<code>niwaki train spec.toml</code>"[..], &oracle] {
        fs::create_dir_all(page.parent().unwrap()).unwrap();
        fs::write(&page, theirs).unwrap();
        for _ in 0..2 {
            let ran = niwaki(&run, folder.path());
            let said = String::from_utf8(ran.stderr).unwrap();
            assert!(ran.status.success() && said.lines().count() == 1, "{said}");
            assert!(said.starts_with("niwaki: run/index.html: not written by niwaki train"), "{said}");
            assert_eq!(fs::read(&page).unwrap(), theirs);
        }
        fs::remove_file(&page).unwrap();
        assert_eq!(stdout(&niwaki(&run, folder.path())), "");
        let ours = fs::read_to_string(&page).unwrap();
        assert!(ours.contains("How stale each batch became"));
        // Its own page is written again without a word.
        assert!(niwaki(&run, folder.path()).stderr.is_empty());
        assert_eq!(fs::read_to_string(&page).unwrap(), ours);
        fs::remove_dir_all(page.parent().unwrap()).unwrap();
    }
    fs::create_dir_all(&page).unwrap();
    let said = String::from_utf8(niwaki(&run, folder.path()).stderr).unwrap();
    assert!(
        said.starts_with("niwaki: run/index.html: not written by niwaki train") && page.is_dir(),
        "{said}"
    );
}

#[test]
fn the_examples_are_specs_that_can_run() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/train");
    let mut count = 0;
    for entry in fs::read_dir(&examples).unwrap() {
        let path = entry.unwrap().path();
        stdout(&niwaki(&["train", path.to_str().unwrap(), "--print-spec"], &examples));
        count += 1;
    }
    assert_eq!(count, 15);
}

#[test]
fn refusals_are_one_line_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("typo.toml"), "[update]\nresue = 3\n").unwrap();
    fs::write(at("broken.toml"), "[update\n").unwrap();
    fs::write(at("file"), "not a folder").unwrap();
    let small =
        ["train", "--quiet", "--set", "task.horizon=3", "--set", "iterations=3", "--set", "rollout.lanes=8"];
    for out in ["run", "foreign", "short"] {
        let seed = if out == "foreign" { "seed=1" } else { "seed=0" };
        stdout(&niwaki(&with_out(&[&small[..], &["--set", seed]].concat(), out), folder.path()));
    }
    fs::copy(at("foreign/checkpoint.safetensors"), at("run/checkpoint.safetensors")).unwrap();
    fs::write(at("short/curve.jsonl"), "").unwrap();
    let set = |setting: &'static str| vec!["train", "--set", setting, "--out", "never"];
    let cases: Vec<Vec<&str>> = vec![
        vec!["train", "missing.toml"],
        vec!["train", "typo.toml"],
        vec!["train", "broken.toml"],
        set("task.horizn=3"),
        set("seed"),
        set("task.horizon=30"),
        set("rollout.lanes=0"),
        set("update.minibatches=7"),
        set("task.kind=two-brunch"),
        set("update.correction=temperd:0.1"),
        set("policy.kind=casual"),
        set("foo=1"),
        set("task.jobs=5"),
        vec!["train", "--set", "policy.kind=causal", "--set", "policy.heads=3", "--out", "never"],
        vec!["train", "--set", "policy.kind=causal", "--set", "policy.width=1000000000", "--out", "never"],
        vec!["train", "--set", "policy.kind=causal", "--set", "policy.blocks=1000000000", "--out", "never"],
        vec![
            "train",
            "--set",
            "task.kind=flow-shop",
            "--set",
            "policy.kind=pointer",
            "--set",
            "task.jobs=100000",
            "--out",
            "never",
        ],
        vec!["bench", "engine", "--members", "18446744073709551615"],
        vec!["train", "--device", "cuda"],
        vec!["train", "--precision", "bf16"],
        with_out(&small, "file"),
        with_out(&small, "file/below"),
        with_out(&small, "foreign"),
        with_out(&small, "run"),
        with_out(&small, "short"),
    ];
    let mut all = String::new();
    for case in cases {
        let output = niwaki(&case, folder.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{case:?}: {said}");
        assert!(output.stdout.is_empty());
        all += &format!("{}\n    {said}", case.join(" "));
    }
    assert!(!at("never").exists(), "a refused spec leaves nothing behind");
    insta::assert_snapshot!("train_refusals", all);
}

#[test]
fn divergence_is_one_line_and_another_rate_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let run = |settings: &[&str]| {
        let mut all = vec!["train", "--quiet", "--out", "run"];
        let common = [
            "policy.kind=bag",
            "task.horizon=3",
            "iterations=8",
            "checkpoint.every=1",
            "optimiser.kind=adam",
        ];
        common.iter().chain(settings).for_each(|setting| all.extend(["--set", setting]));
        niwaki(&all, folder.path())
    };
    // Weights are multiplied by −10⁹ in every step.
    let output = run(&["update.reuse=1", "optimiser.rate=1.0", "optimiser.decay=1e9"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(
        said.contains("run: training diverged in iteration") && said.contains("is kept; go on from it"),
        "{said}"
    );
    // The remedy, followed.
    stdout(&run(&["update.reuse=1", "optimiser.rate=0.01"]));
    assert_eq!(fs::read_to_string(folder.path().join("run/curve.jsonl")).unwrap().lines().count(), 8);
    stdout(&run(&["update.reuse=1", "optimiser.rate=0.01"]));
}

#[cfg(unix)]
#[test]
fn a_folder_need_not_be_utf8() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let name = std::ffi::OsStr::from_bytes(b"--out=r\xffn");
    let small = ["train", "--set", "task.horizon=3", "--set", "iterations=2", "--set", "rollout.lanes=8"];
    let output = command(&small, folder.path()).arg(name).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let study = "label = \"x\"\ntitle = \"t\"\nquestion = \"q\"\nseeds = 1\nendpoints = [\"auc\"]\n[base]\niterations = 2\n\
                 [base.task]\nhorizon = 3\n[[arm]]\nname = \"ppo\"\n";
    fs::write(folder.path().join("study.toml"), study).unwrap();
    let output = command(&["reproduce", "study.toml"], folder.path()).arg(name).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The regression: a finished study whose curve was truncated was reported with another AUC, and exit code 0.
#[test]
fn a_truncated_curve_of_a_study_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let study = "label = \"x\"\ntitle = \"t\"\nquestion = \"q\"\nseeds = 1\nendpoints = [\"auc\"]\n[base]\niterations = 9\n\
                 [base.task]\nhorizon = 3\n[[arm]]\nname = \"ppo\"\n";
    fs::write(folder.path().join("study.toml"), study).unwrap();
    let reproduce = ["reproduce", "study.toml", "--out", "out"];
    let first = stdout(&niwaki(&reproduce, folder.path()));
    let home = folder.path().join("out/x/ppo/base/0");
    let curve = home.join("curve.jsonl");
    let text = fs::read_to_string(&curve).unwrap();
    let half: Vec<&str> = text.lines().take(4).collect();
    fs::write(&curve, half.join("\n") + "\n").unwrap();
    for more in [&[][..], &["--report-only"]] {
        let output = niwaki(&[&reproduce[..], more].concat(), folder.path());
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("curve.jsonl: it ends after line 4, but the run came to line 9"), "{said}");
        assert!(
            said.trim_end().ends_with("remove the folder out/x/ppo/base/0 to train this run again"),
            "{said}"
        );
    }
    fs::remove_dir_all(home).unwrap();
    let again = stdout(&niwaki(&reproduce, folder.path()));
    let table = |said: &str| said.split_once('\n').unwrap().1.to_owned();
    assert_eq!(table(&again), table(&first), "but for the speed");
}

#[test]
fn help_text() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!("help_train", stdout(&niwaki(&["train", "--help"], folder.path())));
}

#[test]
fn runs_are_compared_seed_by_seed() {
    let folder = tempfile::tempdir().unwrap();
    for (correction, seeds) in [("ppo", 0..3), ("tempered:0.25", 1..4)] {
        for seed in seeds {
            let (seed, out) = (format!("seed={seed}"), format!("runs/{correction}/{seed}").replace(':', "-"));
            let correction = format!("update.correction={correction}");
            let small = ["--set", "iterations=5", "--set", "task.horizon=3", "--set", "evaluate.every=1"];
            let arm = ["train", "--quiet", "--set", &correction, "--set", &seed, "--out", &out];
            stdout(&niwaki(&[&arm[..], &small[..]].concat(), folder.path()));
        }
    }
    let said =
        stdout(&niwaki(&["compare", "runs/ppo", "runs/tempered-0.25", "--out", "both"], folder.path()));
    assert!(said.contains("ppo") && said.contains("tempered:0.25") && said.contains("of 2"), "{said}");
    assert!(said.ends_with("wrote both/compare.json\nwrote both/index.html\n"), "{said}");
    let json = fs::read_to_string(folder.path().join("both/compare.json")).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["niwaki"], env!("CARGO_PKG_VERSION"));
    // Seeds 1 and 2 are those that both have; the difference is that of the curves' means, taken here by hand.
    let mean = |arm: &str, seed: u64| {
        let path = folder.path().join(format!("runs/{arm}/{seed}/curve.jsonl"));
        let lines: Vec<serde_json::Value> = fs::read_to_string(path)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        lines.iter().map(|line| line["eta"].as_f64().unwrap()).sum::<f64>() / lines.len() as f64
    };
    let by_hand = [1, 2].map(|seed| mean("tempered-0.25", seed) - mean("ppo", seed));
    let auc = &json["differences"][0];
    assert_eq!((auc["endpoint"].as_str(), auc["pairs"].as_u64()), (Some("auc"), Some(2)));
    assert!((auc["mean"].as_f64().unwrap() - (by_hand[0] + by_hand[1]) / 2.0).abs() < 1e-12, "{auc}");
    let wins = by_hand.iter().filter(|difference| **difference > 0.0).count();
    assert_eq!(auc["wins"].as_u64(), Some(wins as u64));
    let refused = niwaki(&["compare", "nowhere"], folder.path());
    assert_eq!(refused.status.code(), Some(2));
    // What is not finished is told, and counted nowhere.
    fs::remove_file(folder.path().join("runs/ppo/0/summary.json")).unwrap();
    let told = niwaki(&["compare", "runs", "--json"], folder.path());
    let json: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    assert_eq!(json["unfinished"], serde_json::json!(["runs/ppo/0"]));
    let said = String::from_utf8_lossy(&told.stderr);
    assert!(said.contains("1 run is not finished and not counted: runs/ppo/0"), "{said}");
}

#[test]
fn a_grid_is_compared_at_the_same_settings() {
    let folder = tempfile::tempdir().unwrap();
    for loss in ["full", "ppo"] {
        for rate in ["0.1", "0.3"] {
            for seed in ["1", "2"] {
                let out = format!("runs/{loss}/{rate}/{seed}");
                let set = [
                    format!("update.correction={loss}"),
                    format!("optimiser.rate={rate}"),
                    format!("seed={seed}"),
                ];
                let small = ["--set", "iterations=3", "--set", "task.horizon=3", "--quiet", "--out", &out];
                let set = set.iter().flat_map(|set| ["--set", set.as_str()]);
                stdout(&niwaki(
                    &["train"].into_iter().chain(set).chain(small).collect::<Vec<_>>(),
                    folder.path(),
                ));
            }
        }
    }
    let compared = |more: &[&str]| {
        let told = stdout(&niwaki(&[&["compare", "runs", "--json"], more].concat(), folder.path()));
        let json: serde_json::Value = serde_json::from_str(&told).unwrap();
        let pairs = json["differences"].as_array().unwrap().iter();
        let pair = |one: &serde_json::Value| {
            format!("{} / {}", one["group"].as_str().unwrap(), one["against"].as_str().unwrap())
        };
        let mut pairs: Vec<String> = pairs.map(pair).collect();
        pairs.dedup();
        pairs
    };
    // PPO is the baseline although 'full' comes first, at each rate; 0.3 is the default and says so.
    let by_loss = [
        "full, optimiser.rate = 0.1 / ppo, optimiser.rate = 0.1",
        "full, optimiser.rate = 0.3 / ppo, optimiser.rate = 0.3",
    ];
    assert_eq!(compared(&[]), by_loss);
    assert_eq!(compared(&["--against", "ppo"]), by_loss);
    let by_rate = [
        "full, optimiser.rate = 0.1 / full, optimiser.rate = 0.3",
        "ppo, optimiser.rate = 0.1 / ppo, optimiser.rate = 0.3",
    ];
    assert_eq!(compared(&["--against", "optimiser.rate=0.3"]), by_rate);
    for (asked, says) in [
        ("gspo", "no run has update.correction = gspo; there are full, ppo"),
        ("optimiser.rate=7", "no run has optimiser.rate = 7; there are 0.1, 0.3"),
        ("task.horizon=3", "the runs do not differ in task.horizon; they differ in optimiser.rate"),
    ] {
        let refused = niwaki(&["compare", "runs", "--against", asked], folder.path());
        assert_eq!(refused.status.code(), Some(2));
        let said = String::from_utf8_lossy(&refused.stderr);
        assert!(said.contains(says), "{said}");
    }
}
