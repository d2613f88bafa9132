//! The paper's table is reproduced; results do not depend on threads, company or interruption.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

mod machines;
mod pretrained;
mod readings;
mod registered;
mod scheduling;

use niwaki_exact::diagnostics::{Grid, Policies, Row, summarise};
use niwaki_study::claim::{Judgement, Ours};
use niwaki_study::diagnostics::Diagnostics;
use niwaki_study::find;
use niwaki_study::training::{Board, Endpoint, Plan, Results, Runner, Speed, judge, training_page};
use niwaki_train::reading::Judged;
use niwaki_train::{Device, run as run_folder};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Mutex;

fn study(label: &str) -> Diagnostics {
    find(label).unwrap().diagnostics().unwrap()
}

#[test]
fn the_summary_table_is_reproduced() {
    // The paper's 25 seeds: every MSE within two standard errors, cosines and ESS within 0.02.
    let study = study("tab:diag-summary");
    let summaries = summarise(&study.grid(None).unwrap().run(|| {}).unwrap()).unwrap();
    let outcomes = study.judge(&summaries).unwrap();
    let mut counted = 0;
    for outcome in &outcomes {
        let Ours::Number(ours, _) = outcome.ours else { continue };
        let paper = outcome.paper.unwrap();
        if outcome.group.starts_with("MSE") {
            assert!(outcome.sems.unwrap().abs() < 2.0, "{outcome:?}");
        } else if outcome.group.starts_with("cosine") || outcome.group.starts_with("ESS") {
            assert!((ours - paper).abs() <= 0.02, "{outcome:?}");
        } else {
            continue;
        }
        counted += 1;
    }
    assert_eq!(counted, 21, "seven losses, three quantities each");
    // The floor of the full correction's bias, and the place of the lowest MSE.
    for outcome in outcomes.iter().filter(|outcome| outcome.group.is_empty()) {
        assert_eq!(outcome.judgement, Judgement::Agrees, "{outcome:?}");
    }
}

#[test]
fn rows_do_not_depend_on_threads_or_on_company() {
    let grid = study("app:diagnostics").grid(Some(2)).unwrap();
    let run = |threads: usize, grid: &Grid| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| grid.run(|| {})).unwrap()
    };
    let bits = |rows: Vec<Row>| {
        rows.into_iter()
            .map(|row| (row.measured.mse.to_bits(), row.measured.cosine.to_bits()))
            .collect::<Vec<_>>()
    };
    let alone = Grid { drifts: vec![0.3], ..grid.clone() };
    assert_eq!(bits(run(1, &grid)), bits(run(3, &grid)));
    let among: Vec<_> = run(2, &grid).into_iter().filter(|row| row.drift == 0.3).collect();
    assert_eq!(bits(run(2, &alone)), bits(among));
}

#[test]
fn no_more_pairs_at_once_than_memory_holds() {
    let grid = study("app:diagnostics").grid(Some(3)).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    let seen = |pairs: u64| {
        let memory = pairs * u64::try_from(grid.process.bytes()).unwrap();
        let threads = Mutex::new(HashSet::new());
        let tick = || _ = threads.lock().unwrap().insert(std::thread::current().id());
        let rows = pool.install(|| Grid { memory, ..grid.clone() }.run(tick)).unwrap();
        assert_eq!(rows.len(), grid.pairs() * grid.losses.len());
        threads.into_inner().unwrap().len()
    };
    // One is measured even where there is no room for it.
    assert_eq!((seen(0), seen(1)), (1, 1));
    assert!(seen(2) <= 2);
}

#[test]
fn given_tables_are_taken_to_the_bit() {
    let drawn = study("tab:diag-summary").grid(Some(1)).unwrap();
    let edges = drawn.process.edges();
    let old: Vec<f64> = (0..edges).map(|j| 0.1 * (j as f64).sin()).collect();
    let new: Vec<f64> = (0..edges).map(|j| (j as f64).cos()).collect();
    let given = Grid { policies: Policies::Given { old: old.clone(), new }, drifts: vec![1.0, 0.5], ..drawn };
    let rows = given.run(|| {}).unwrap();
    assert!(rows[0].apart.mean_kl > rows[rows.len() - 1].apart.mean_kl, "half the way is nearer");
    let same = Grid { policies: Policies::Given { new: old.clone(), old }, drifts: vec![1.0], ..given };
    assert!(same.run(|| {}).unwrap().iter().all(|row| row.apart.mean_kl == 0.0));
}

#[test]
fn empty_axes_and_odd_drifts_are_refused() {
    let grid = study("tab:diag-summary").grid(Some(1)).unwrap();
    let refuse = |grid: Grid| grid.run(|| {}).unwrap_err().to_string();
    assert_eq!(refuse(grid.with_losses(vec![])), "the list of losses is empty; name at least one");
    assert_eq!(refuse(grid.at(&[])), "the list of drifts is empty; name at least one");
    assert_eq!(refuse(grid.at(&[0.3, 1.0, 0.3])), "the list of drifts holds the same twice; name each once");
    let twice = [&grid.losses[..], &grid.losses[..1]].concat();
    assert_eq!(refuse(grid.with_losses(twice)), "the list of losses holds the same twice; name each once");
    assert_eq!(refuse(grid.at(&[f64::NAN])), "drift NaN is not a positive number");
}

const SMALL: &str = r#"
label = "tab:small"
title = "A small study"
question = "Does the runner keep its promises?"
seeds = 3
endpoints = ["auc", "final"]
anatomy = true

[base]
iterations = 6
[base.task]
horizon = 3
[base.rollout]
lanes = 16

[[arm]]
name = "ppo"
[[arm]]
name = "tempered:0"
[[arm]]
name = "full"
seeds = 2

[[grid]]
key = "advantage.kind"
name = "by"
values = ["returns", "exact"]

[compare]
against = ["ppo"]
endpoints = ["auc"]

[[lead]]
arm = "tempered:0"
over = "ppo"
cell = "by=exact"
endpoint = "auc"
expect = "not-ahead"
"#;

fn small(settings: &str) -> Plan {
    Plan::new(niwaki_train::spec::strictly("small", &format!("{SMALL}{settings}")).unwrap(), None).unwrap()
}

fn run(plan: &Plan, out: &Path) -> Option<Speed> {
    try_run(plan, out).unwrap()
}

fn try_run(plan: &Plan, out: &Path) -> Result<Option<Speed>, niwaki_study::Error> {
    Runner::new(out, Device::Cpu).run(plan)
}

/// Every file of the runs below a folder, by name; speed and the times of events are the clock's and left out.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(at) = todo.pop() {
        for entry in std::fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                todo.push(path);
            } else if !path.ends_with("speed.json") {
                let name = path.strip_prefix(folder).unwrap().display().to_string();
                let bytes = std::fs::read(&path).unwrap();
                found.push(if path.ends_with(run_folder::EVENTS) {
                    (name, run_folder::timeless_events(&bytes))
                } else {
                    (name, bytes)
                });
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_study_resumes_and_ends_with_the_same_bytes() {
    let (whole, broken) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = small("");
    let speed = run(&plan, whole.path()).unwrap();
    // (3 + 3 + 2 seeds) × 2 cells × 6 iterations
    assert_eq!((speed.runs, speed.run_iterations), (16, 96));
    let wanted = files(whole.path());
    assert_eq!(wanted.len(), 16 * 5, "spec, curve, events, checkpoint and summary each, and nothing else");
    assert_eq!(run(&plan, whole.path()), None, "nothing is left to do");

    run(&plan, broken.path());
    let home = |run: usize| broken.path().join(&plan.runs[run].home);
    // A run that died before its summary, one that never began, one that died at the beginning, with litter.
    std::fs::remove_file(home(0).join("summary.json")).unwrap();
    std::fs::remove_dir_all(home(7)).unwrap();
    for name in ["summary.json", "checkpoint.safetensors"] {
        std::fs::remove_file(home(9).join(name)).unwrap();
    }
    for litter in ["lock", "summary.json.77.ThreadId(2).part", "curve.jsonl.7.part"] {
        std::fs::write(home(9).join(litter), "").unwrap();
    }
    // A finished run whose spec was changed, and one whose spec was taken away: their summaries vouch for them.
    std::fs::write(home(2).join("spec.toml"), "seed = 4").unwrap();
    std::fs::remove_file(home(3).join("spec.toml")).unwrap();
    assert_eq!(run(&plan, broken.path()).unwrap().runs, 3);
    assert!(files(broken.path()) == wanted);
    // More seeds later only add runs.
    let more = Plan::new(plan.study.clone(), Some(4)).unwrap();
    assert_eq!(run(&more, broken.path()).unwrap().runs, 3 * 2 * 4 - 16);
}

#[test]
fn two_at_once_share_a_folder() {
    let (alone, shared) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let plan = small("");
    run(&plan, alone.path());
    let counts: Vec<u64> = std::thread::scope(|scope| {
        let one = || run(&plan, shared.path()).map_or(0, |speed| speed.runs);
        let both = [scope.spawn(one), scope.spawn(one)];
        both.map(|thread| thread.join().unwrap()).to_vec()
    });
    assert_eq!(counts.iter().sum::<u64>(), 16, "each run is trained once");
    assert!(files(shared.path()) == files(alone.path()));
}

#[test]
fn strength_zero_is_ppo_through_the_whole_study() {
    let folder = tempfile::tempdir().unwrap();
    let plan = small("");
    run(&plan, folder.path());
    let results = Results::read(&plan, folder.path()).unwrap();
    let board = Board { plan: &plan, results: &results };
    for cell in 0..2 {
        let (ppo, zero, full) = (board.runs(0, cell), board.runs(1, cell), board.runs(2, cell));
        for (a, b) in ppo.iter().zip(&zero) {
            assert_eq!(a.course.points(Judged::Eta), b.course.points(Judged::Eta));
        }
        // The first epoch of every arm is the same, so the first batch is; the curves part later.
        assert_eq!(ppo[0].course.curve[0].batch_reward, full[0].course.curve[0].batch_reward);
        assert_ne!(ppo[0].course.points(Judged::Eta), full[0].course.points(Judged::Eta));
    }
    let found = board.compare(1, 0, 1, Endpoint::Auc).unwrap().unwrap();
    assert_eq!((found.decision.mean, found.signs.ties), (0.0, 3));
    // Two seeds of `full` are paired with the same seeds of PPO.
    assert_eq!(board.compare(2, 0, 0, Endpoint::Auc).unwrap().unwrap().signs.untied(), 2);
}

#[test]
fn a_report_is_a_function_of_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let plan = small("");
    assert!(Results::read(&plan, folder.path()).unwrap_err().to_string().contains("holds no finished run"));
    run(&plan, folder.path());
    let page = || {
        let results = Results::read(&plan, folder.path()).unwrap();
        let board = Board { plan: &plan, results: &results };
        let outcomes = judge(&board).unwrap();
        assert_eq!(outcomes.len(), 1);
        // Three pairs are too few to say so.
        assert_eq!(outcomes[0].judgement, Judgement::Open);
        let made = niwaki_page::Made::new("test");
        training_page(&board, &outcomes, &board.comparisons().unwrap(), made).unwrap().to_html()
    };
    let text = page();
    assert_eq!(text, page());
    assert!(text.contains("is not ahead of PPO") && text.contains("16 of 16"));
    // Neither the clock's file nor the one that nobody reads blocks a report.
    let speed = folder.path().join(plan.folder()).join("speed.json");
    // A file of a terabyte, of which the disk has none.
    std::fs::File::create(&speed).unwrap().set_len(1 << 40).unwrap();
    assert!(page().contains("16 of 16"));
    #[cfg(unix)]
    {
        std::fs::remove_file(&speed).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &speed).unwrap();
        assert!(page().contains("16 of 16"));
        std::fs::remove_file(&speed).unwrap();
    }
    std::fs::write(&speed, "{").unwrap();
    std::fs::write(folder.path().join(&plan.runs[0].home).join(run_folder::EVENTS), "x").unwrap();
    assert!(page().contains("16 of 16"));
}

#[test]
fn a_finished_run_whose_files_do_not_belong_together_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = small("");
    run(&plan, folder.path());
    let wanted = files(folder.path());
    let home = folder.path().join(&plan.runs[0].home);
    let other = folder.path().join(&plan.runs[1].home);
    for name in [run_folder::CURVE, run_folder::SUMMARY, run_folder::CHECKPOINT] {
        let path = home.join(name);
        let good = std::fs::read(&path).unwrap();
        let line = good.iter().position(|&byte| byte == b'\n').unwrap_or(9) + 1;
        let mut edited = good.clone();
        edited[good.len() / 2] ^= 1;
        let swapped = std::fs::read(other.join(name)).unwrap();
        for bad in [good[..good.len() / 2].to_vec(), good[..line].to_vec(), edited, swapped] {
            std::fs::write(&path, bad).unwrap();
            let refusal = try_run(&plan, folder.path()).unwrap_err().to_string();
            assert!(refusal.starts_with(&format!("{}: ", path.display())), "{refusal}");
            if name != run_folder::CHECKPOINT {
                assert_eq!(Results::read(&plan, folder.path()).unwrap_err().to_string(), refusal);
            }
            // The remedy, followed to the letter.
            assert!(
                refusal.ends_with(&format!("remove the folder {} to train this run again", home.display()))
            );
        }
        std::fs::remove_dir_all(&home).unwrap();
        assert_eq!(run(&plan, folder.path()).unwrap().runs, 1);
        assert!(files(folder.path()) == wanted);
    }
    // Without its checkpoint a run is still finished.
    std::fs::remove_file(home.join(run_folder::CHECKPOINT)).unwrap();
    assert_eq!(run(&plan, folder.path()), None);
}

/// The regression: a study is finished, its rate edited, the second call killed while it replaces the first run, and the
/// old file put back. The new curve must not be reported as the old study's.
#[test]
fn a_run_that_replaces_another_is_never_taken_for_it() {
    let folder = tempfile::tempdir().unwrap();
    let old = small("");
    run(&old, folder.path());
    let wanted = files(folder.path());
    let faster = SMALL.replace("[base.task]", "[base.optimiser]\nrate = 1.5\n[base.task]");
    let new = Plan::new(niwaki_train::spec::strictly("faster", &faster).unwrap(), None).unwrap();
    let home = folder.path().join(&old.runs[0].home);
    let old_files = |name: &str| std::fs::read(home.join(name)).unwrap();
    let kept: Vec<_> = [run_folder::SUMMARY, run_folder::SPEC].map(|name| (name, old_files(name))).into();
    // The call is killed once the new run's files are there: whatever the moment, the old summary is gone before.
    let claim = run_folder::Claim::take(&home, None).unwrap().unwrap();
    let recipe = &new.runs[0].recipe;
    run_folder::Folder::enter(claim, &recipe.spec, run_folder::Occupied::Replace).unwrap();
    assert!(!home.join(run_folder::SUMMARY).exists());
    assert_eq!(Results::read(&old, folder.path()).unwrap().runs.len(), 15);
    assert_eq!(run(&old, folder.path()).unwrap().runs, 1);
    assert!(files(folder.path()) == wanted);
    // The new run is finished, and the user puts the old summary and the old spec back.
    run(&new, folder.path());
    for (name, bytes) in kept {
        std::fs::write(home.join(name), bytes).unwrap();
        let one = Plan { runs: vec![old.runs[0].clone()], ..old.clone() };
        let refusal = Results::read(&one, folder.path()).map(|results| results.runs.len());
        assert!(refusal.is_err(), "{name}: {refusal:?}");
    }
}
