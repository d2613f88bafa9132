//! From a folder of instances to a trained policy, and from that to schedules: `train`, `solve --policy`, `bench shop`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a command said in a folder: exit code, standard output, standard error.
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

/// The single line of a refusal.
fn refused(arguments: &[&str], folder: &Path) -> String {
    let (code, out, error) = niwaki(arguments, folder);
    assert_eq!((code, out.as_str(), error.lines().count()), (2, "", 1), "{arguments:?}: {error}");
    error
}

/// A small pointer and few iterations.
const SPEC: &str = "iterations = 3\n[policy]\nkind = \"pointer\"\nwidth = 8\nheads = 2\nblocks = 1\n\
                    [rollout]\nlanes = 16\ngroup = 4\n[advantage]\nkind = \"group\"\n\
                    [evaluate]\nevery = 1\nlanes = 0\ngreedy = true\n";

fn draw(task: &str, jobs: &str, machines: &str, count: &str, out: &str, folder: &Path) -> Vec<PathBuf> {
    done(&["generate", task, "--jobs", jobs, "--machines", machines, "--count", count, "--out", out], folder);
    let entries = fs::read_dir(folder.join(out)).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = entries.collect();
    files.sort();
    files
}

#[test]
fn a_folder_trains_a_policy_that_schedules() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::create_dir(home.join("specs")).unwrap();
    let files = draw("hard-flow", "5", "3", "6", "specs/mine", home);
    fs::write(
        home.join("specs/flow.toml"),
        format!("{SPEC}[task]\nkind = \"flow-shop\"\nfolder = \"mine\"\nvalidation = 2\n"),
    )
    .unwrap();
    // The folder is meant beside the spec, wherever the command is run.
    let train = ["train", "specs/flow.toml", "--out", "run"];
    let said = done(&train, home);
    assert!(said.contains("every optimum is proven"), "{said}");
    let spec = fs::read_to_string(home.join("run/spec.toml")).unwrap();
    assert!(
        spec.contains("digest = ") && spec.contains("jobs = 5") && spec.contains("machines = 3"),
        "{spec}"
    );
    assert_eq!(done(&train, home), said, "nothing is left to do");

    let file = files[0].display().to_string();
    let solve = ["solve", &file, "--policy", "run", "--samples", "20", "--beam", "3", "--multistart"];
    let said = done(&[&solve[..], &["--out", "s.csv", "--gantt", "g.svg"]].concat(), home);
    // Greedy, five starts, twenty samples, a beam of three.
    assert!(said.contains("policy run, 3 iterations: 29 schedules tried, the best by "), "{said}");
    let makespan = said.lines().find_map(|line| line.strip_prefix("makespan ")).unwrap();
    assert_eq!(done(&["verify", &file, "s.csv"], home), format!("ok: makespan {makespan}\n"));
    assert!(fs::read_to_string(home.join("g.svg")).unwrap().contains("<svg"));
    let alone = done(&solve, home);
    assert_eq!(said, format!("{alone}wrote s.csv\nwrote g.svg\n"), "the seed says it all");

    // A flow shop with more jobs is no other problem to the policy; one with more machines is.
    let more = draw("hard-flow", "8", "3", "1", "more", home).remove(0).display().to_string();
    assert!(done(&["solve", &more, "--policy", "run"], home).contains("129 schedules tried"));
    let wide = draw("hard-flow", "5", "4", "1", "wide", home).remove(0).display().to_string();
    let line = refused(&["solve", &wide, "--policy", "run"], home);
    assert!(
        line.ends_with("the policy schedules flow shops with 3 machines, the instance has 4 machines\n"),
        "{line}"
    );
    let job = draw("job-shop", "3", "2", "1", "job", home).remove(0).display().to_string();
    assert!(
        refused(&["solve", &job, "--policy", "run"], home)
            .contains("this is a job shop, but the task is 'flow-shop'")
    );
    assert!(refused(&["solve", &file, "--policy", "specs"], home).contains("specs/spec.toml: No such file"));
    assert!(
        refused(&["solve", &file, "--policy", "run", "--method", "neh"], home)
            .contains("cannot be used with")
    );
    done(&["train", "--set", "iterations=1", "--set", "task.horizon=3", "--out", "table", "--quiet"], home);
    assert!(
        refused(&["solve", &file, "--policy", "table"], home)
            .contains("policy 'tabular' on task 'two-branch'")
    );

    // Two policies and a heuristic beside sought optima.
    let bench = ["bench", "shop", "specs/mine", "--optima", "5s", "--methods", "neh", "--policy", "run"];
    let said = done(&[&bench[..], &["--samples", "4", "--out", "all.csv"]].concat(), home);
    assert!(said.contains("schedules tried") && said.contains("neh") && said.contains("run"), "{said}");
    let csv = fs::read_to_string(home.join("all.csv")).unwrap();
    assert_eq!(csv.lines().count(), 1 + 2 * 6);
    assert!(!csv.contains(",-"), "nobody is below the optimum: {csv}");
    assert!(
        refused(&["bench", "shop", "job", "--optima", "1s", "--policy", "run"], home)
            .contains("this is a job shop")
    );

    // Another instance, another run.
    fs::write(&files[5], fs::read_to_string(&files[4]).unwrap()).unwrap();
    assert!(refused(&train, home).contains("the folder holds spec"));
    assert!(
        refused(&["train", "run/spec.toml", "--out", "new"], home).contains("task.digest: the instances in")
    );
    fs::write(&files[5], "1 1\n0 3\n").unwrap();
    let line = refused(&train, home);
    assert!(line.contains("0005.txt: 1 jobs, 1 machines and 1 operations, but"), "{line}");
    assert!(!home.join("new").exists());
}

#[test]
fn the_dispatcher_that_comes_with_the_program_schedules_any_shop() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let flexible = draw("sd1", "5", "3", "1", "flexible", home).remove(0).display().to_string();
    let job = draw("l2d", "4", "4", "1", "job", home).remove(0).display().to_string();
    for file in [&flexible, &job] {
        let solve = ["solve", file, "--policy", "builtin:flexible", "--samples", "20"];
        let said = done(&[&solve[..], &["--out", "s.csv"]].concat(), home);
        assert!(
            said.contains("policy builtin:flexible, ") && said.contains(": 21 schedules tried"),
            "{said}"
        );
        let value = |said: &str| -> u32 {
            said.lines().find_map(|line| line.strip_prefix("makespan ")).unwrap().parse().unwrap()
        };
        let makespan = value(&said);
        assert_eq!(done(&["verify", file, "s.csv"], home), format!("ok: makespan {makespan}\n"));
        let better = done(&[&solve[..], &["--improve", "--time", "300ms"]].concat(), home);
        assert!(value(&better) <= makespan, "{better}");
    }
    // At a low temperature samples are the likeliest schedule.
    let cold = ["solve", &job, "--policy", "builtin:jobs", "--samples", "5", "--temperature"];
    let greedy = done(&["solve", &job, "--policy", "builtin:jobs", "--samples", "0"], home);
    let makespan = |said: &str| said.lines().find(|line| line.starts_with("makespan ")).unwrap().to_owned();
    assert_eq!(makespan(&done(&[&cold[..], &["0.001"]].concat(), home)), makespan(&greedy));
    let line = refused(&[&cold[..], &["0"]].concat(), home);
    assert!(line.contains("expected a number between 0.001 and 1000"), "{line}");
    // What nothing would heed is refused.
    let flags: [&[&str]; 5] = [
        &["--samples", "3"],
        &["--temperature", "0.5"],
        &["--beam", "3"],
        &["--multistart"],
        &["--device", "cpu"],
    ];
    for flag in flags {
        let bench = ["bench", "shop", "job", "--optima", "1s"];
        for command in [&["solve", &job][..], &bench] {
            let line = refused(&[command, flag].concat(), home);
            assert!(line.contains(&format!("{}: it tells a policy how to schedule", flag[0])), "{line}");
        }
    }
    done(&["template", "plan.csv"], home);
    let line = refused(&["solve", "plan.csv", "--policy", "builtin:flexible"], home);
    assert!(line.contains("--policy: plan.csv is searched as a general shop"), "{line}");
    let line = refused(&["solve", "plan.csv", "--method", "neh"], home);
    assert!(line.contains("--method: plan.csv is searched as a general shop"), "{line}");
    let line = refused(&["solve", &job, "--policy", "builtin:best"], home);
    assert!(
        line.contains(
            "builtin:best: no such policy comes with the program; expected builtin:flexible or builtin:jobs"
        ),
        "{line}"
    );
}

#[test]
fn a_policy_leaves_its_run_without_what_only_training_needs() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let file = draw("hard-flow", "5", "3", "1", "files", home).remove(0).display().to_string();
    fs::write(home.join("small.toml"), SPEC).unwrap();
    let mut train = vec!["train", "small.toml", "--out", "run", "--quiet"];
    let task =
        ["task.kind=flow-shop", "task.jobs=5", "task.machines=3", "task.training=4", "task.validation=2"];
    task.iter().chain(&["optimiser.kind=adam"]).for_each(|setting| train.extend(["--set", setting]));
    done(&train, home);
    assert_eq!(done(&["export", "run", "--out", "own"], home), "own: the policy after 3 iterations\n");
    let size = |folder: &str| fs::metadata(home.join(folder).join("checkpoint.safetensors")).unwrap().len();
    assert!(2 * size("own") < size("run"), "Adam's moments are left behind");
    let schedule = |folder: &str| {
        let said = done(&["solve", &file, "--policy", folder], home);
        said.lines().filter(|line| !line.starts_with("policy ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(schedule("own"), schedule("run"));
    assert!(refused(&["export", "run", "--out", "own"], home).contains("own exists already"));
    assert!(refused(&["export", "files", "--out", "new"], home).contains("expected the folder of a run"));
    let line = refused(&["solve", &file, "--policy", "own", "--device", "cuda"], home);
    assert!(line.contains("own holds a pointer, which schedules on the CPU; leave the flag out"), "{line}");
}

#[test]
fn job_shops_and_two_orders_are_trained_and_scheduled() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("small.toml"), SPEC).unwrap();
    let tasks = [("job-shop", "3", "2"), ("two-orders", "2", "2")];
    for (kind, jobs, machines) in tasks {
        let (kind_key, jobs_key, machines_key) =
            (format!("task.kind={kind}"), format!("task.jobs={jobs}"), format!("task.machines={machines}"));
        let mut train = vec!["train", "small.toml", "--out", kind, "--quiet"];
        for setting in [&kind_key, &jobs_key, &machines_key, "task.training=4", "task.validation=2"] {
            train.extend(["--set", setting]);
        }
        done(&train, home);
        let file =
            draw(kind, jobs, machines, "1", &format!("{kind}-files"), home).remove(0).display().to_string();
        let said = done(&["solve", &file, "--policy", kind, "--beam", "8"], home);
        assert!(
            said.contains("late 0 of 2 jobs") || kind == "job-shop",
            "one of the orders is on time: {said}"
        );
    }
    let other = draw("job-shop", "4", "2", "1", "other", home).remove(0).display().to_string();
    let line = refused(&["solve", &other, "--policy", "job-shop"], home);
    assert!(
        line.ends_with("the policy schedules job shops with 3 jobs and 2 machines, the instance has 4 jobs and 2 machines\n"),
        "{line}"
    );
}

#[test]
fn a_run_of_a_study_schedules_too() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let base: String = SPEC
        .lines()
        .map(|line| {
            let line = line.strip_prefix('[').map_or_else(|| line.to_owned(), |rest| format!("[base.{rest}"));
            line + "\n"
        })
        .collect();
    let head = "label = \"x\"\ntitle = \"t\"\nquestion = \"q\"\nseeds = 1\nendpoints = [\"greedy-auc\"]\n";
    let task = "[base.task]\nkind = \"flow-shop\"\njobs = 4\nmachines = 3\ntraining = 4\nvalidation = 2\n";
    fs::write(home.join("study.toml"), format!("{head}[base]\n{base}{task}[[arm]]\nname = \"ppo\"\n"))
        .unwrap();
    done(&["reproduce", "study.toml", "--out", "out"], home);
    let file = draw("hard-flow", "4", "3", "1", "one", home).remove(0).display().to_string();
    let said = done(&["solve", &file, "--policy", "out/x/ppo/base/0"], home);
    assert!(said.contains("policy out/x/ppo/base/0, 3 iterations"), "{said}");
}

/// A checkpoint whose last number is not finite, under a checksum that fits: a forger's, or one of an earlier build.
fn forge(checkpoint: &Path) {
    const BEFORE: &[u8] = br#"\"sum\":\""#;
    let mut bytes = fs::read(checkpoint).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    let at = bytes.windows(BEFORE.len()).position(|window| window == BEFORE).unwrap() + BEFORE.len();
    let place = at..at + niwaki_files::Digest::DIGITS;
    bytes[place.clone()].fill(b'0');
    let sum = niwaki_files::Digest::of(&bytes).to_string();
    bytes[place].copy_from_slice(sum.as_bytes());
    fs::write(checkpoint, bytes).unwrap();
}

#[test]
fn weights_that_are_not_finite_schedule_nothing() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    let file = draw("hard-flow", "4", "2", "1", "mine", home).remove(0).display().to_string();
    let task = "[task]\nkind = \"flow-shop\"\njobs = 4\nmachines = 2\ntraining = 4\nvalidation = 1\n";
    fs::write(home.join("flow.toml"), format!("{SPEC}{task}")).unwrap();
    done(&["train", "flow.toml", "--out", "run"], home);
    let solve = ["solve", &file, "--policy", "run", "--out", "s.csv"];
    done(&solve, home);
    fs::remove_file(home.join("s.csv")).unwrap();
    forge(&home.join("run/checkpoint.safetensors"));
    let line = refused(&solve, home);
    assert!(line.contains("run/checkpoint.safetensors") && line.contains("not finite"), "{line}");
    assert!(!home.join("s.csv").exists());
    // The run's own door says the same and leaves it alone.
    let before = fs::read(home.join("run/checkpoint.safetensors")).unwrap();
    fs::remove_file(home.join("run/summary.json")).unwrap();
    assert!(refused(&["train", "flow.toml", "--out", "run"], home).contains("not finite"));
    assert!(fs::read(home.join("run/checkpoint.safetensors")).unwrap() == before);

    // A spec that says something else than the one that was trained is refused before anything is built by it.
    done(&["train", "flow.toml", "--out", "other"], home);
    let spec = fs::read_to_string(home.join("other/spec.toml")).unwrap();
    fs::write(home.join("other/spec.toml"), spec.replace("width = 8", "width = 4611686018427387904"))
        .unwrap();
    let line = refused(&["solve", &file, "--policy", "other"], home);
    assert!(line.contains("another run than that of spec.toml"), "{line}");
}

/// A small graph network that learns from its own best schedules.
const DISPATCHER: &str = "iterations = 2\n[task]\nkind = \"flexible-shop\"\ndraw = \"sd1\"\norder = \"free\"\nreward = \"makespan\"\n\
                          jobs = 3\nmachines = 2\ntraining = 4\nvalidation = 2\n[policy]\nkind = \"dual\"\nwidth = 4\n\
                          [rollout]\nlanes = 8\ngroup = 4\n[advantage]\nkind = \"best\"\n[update]\nreuse = 1\n\
                          [optimiser]\nkind = \"adam\"\nrate = 0.01\n[evaluate]\nevery = 1\nlanes = 0\ngreedy = true\n";

#[test]
fn a_dispatcher_schedules_shops_of_any_size_and_the_search_goes_on_from_there() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path();
    fs::write(home.join("dispatcher.toml"), DISPATCHER).unwrap();
    done(&["train", "dispatcher.toml", "--out", "run"], home);
    // Larger than what it was trained on, and a job shop.
    for (task, jobs, machines) in [("sd1", "6", "4"), ("job-shop", "4", "3")] {
        let file = draw(task, jobs, machines, "1", task, home).remove(0).display().to_string();
        let solve = ["solve", &file, "--policy", "run", "--samples", "8", "--beam", "2"];
        let said = done(&[&solve[..], &["--out", "s.csv"]].concat(), home);
        assert!(said.contains("policy run, 2 iterations: 11 schedules tried, the best by "), "{said}");
        let makespan = |said: &str| -> u32 {
            said.lines().find_map(|line| line.strip_prefix("makespan ")).unwrap().parse().unwrap()
        };
        assert_eq!(done(&["verify", &file, "s.csv"], home), format!("ok: makespan {}\n", makespan(&said)));
        let improved = done(&[&solve[..], &["--improve", "--time", "2s"]].concat(), home);
        assert!(makespan(&improved) <= makespan(&said), "{improved}");
    }
    let file = home.join("sd1").read_dir().unwrap().next().unwrap().unwrap().path().display().to_string();
    assert!(refused(&["solve", &file, "--improve"], home).contains("--policy"));

    // What it cannot schedule: due dates, and more pairs than its states could hold.
    let lags = draw("lags", "4", "2", "1", "lags", home).remove(0).display().to_string();
    assert!(refused(&["solve", &lags, "--policy", "run"], home).contains("but the task is 'flexible-shop'"));
    let large = draw("l2d", "600", "30", "1", "large", home).remove(0).display().to_string();
    let line = refused(&["solve", &large, "--policy", "run"], home);
    assert!(line.contains("shops of at most 262144 pairs of operation and machine"), "{line}");

    // Weights of another shape, and weights that are no numbers.
    let (spec, kept) = (home.join("run/spec.toml"), home.join("run/checkpoint.safetensors"));
    let (text, bytes) = (fs::read_to_string(&spec).unwrap(), fs::read(&kept).unwrap());
    fs::write(&spec, text.replace("width = 4", "width = 6")).unwrap();
    refused(&["solve", &file, "--policy", "run"], home);
    fs::write(&spec, &text).unwrap();
    let mut broken = bytes.clone();
    let last = broken.len() - 4;
    broken[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&kept, &broken).unwrap();
    refused(&["solve", &file, "--policy", "run"], home);
    fs::write(&kept, &bytes).unwrap();
    done(&["solve", &file, "--policy", "run", "--samples", "1"], home);
}
