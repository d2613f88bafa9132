//! A run that was stopped or killed ends with the bytes of one that was not.

use super::{POLICIES, with};
use niwaki_train::run::{self, Ending, Identity, Occupied, Told, Trajectory};
use niwaki_train::spec::Played;
use niwaki_train::{Device, Recipe};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Every file of a folder.
pub(super) fn raw_files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Every file of a folder, the events without their times.
pub(super) fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = raw_files(folder);
    files.entry(run::EVENTS.to_owned()).and_modify(|bytes| *bytes = run::timeless_events(bytes));
    files
}

/// Trains until an iteration, as Ctrl-C would have it.
pub(super) fn train_until(recipe: &Recipe, folder: &Path, last: usize) -> Ending {
    let stop = AtomicBool::new(false);
    run::train(recipe, &Device::Cpu, folder, &stop, &|_, _| {}, |told| {
        let Told::Record(record) = told else { return };
        stop.store(record.iteration >= last, Ordering::Relaxed);
    })
    .unwrap()
}

#[test]
fn stopped_after_every_iteration_it_ends_with_the_same_bytes() {
    for policy in POLICIES {
        for more in [&["optimiser.kind=adam", "optimiser.rate=0.01"][..], &["optimiser.schedule=cosine"]] {
            // Tables are enumerated.
            let kept: &[&str] = if policy == "tabular" { &["dump.policies=true"] } else { &[] };
            let recipe = with(policy, &[more, kept, &["dump.every=2", "checkpoint.every=2"]].concat());
            let folder = tempfile::tempdir().unwrap();
            let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
            let Ending::Done(summary) = train_until(&recipe, &whole, usize::MAX) else { panic!("{policy}") };
            for last in 1..5 {
                assert_eq!(train_until(&recipe, &cut, last), Ending::Stopped { iteration: last });
            }
            assert_eq!(train_until(&recipe, &cut, usize::MAX), Ending::Done(summary), "{policy}");
            let names: Vec<String> = files(&whole).into_keys().collect();
            let mut expected = vec![run::CHECKPOINT, run::CURVE, run::DUMP, run::EVENTS];
            expected.extend(matches!(recipe.task, Played::Shops(_)).then_some(run::OPTIMA));
            expected.extend(recipe.spec.dump.policies.then_some(run::POLICIES));
            expected.extend([run::SPEC, run::SUMMARY]);
            assert_eq!(names, expected);
            assert!(files(&whole) == files(&cut), "{policy} {more:?}");
            // A finished run is left as it is.
            train_until(&recipe, &cut, usize::MAX);
            assert!(files(&whole) == files(&cut), "{policy} {more:?}, again");
        }
    }
}

/// An iteration may be left before its batch is scored, before its first step, and between any two passes behind it.
#[test]
fn left_within_an_iteration_it_ends_with_the_same_bytes() {
    use niwaki_train::Error;
    use std::cell::Cell;
    let parts = ["update.minibatches=2", "checkpoint.every=1"];
    for (policy, more) in [("tabular", &parts[1..]), ("bag", &parts[..]), ("causal", &parts[1..])] {
        let recipe = with(policy, more);
        let folder = tempfile::tempdir().unwrap();
        let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
        train_until(&recipe, &whole, usize::MAX);
        train_until(&recipe, &cut, 2);
        let mut moved = Vec::new();
        for place in 1.. {
            let opened = run::Folder::open(&cut, &recipe.spec, Occupied::Refuse).unwrap();
            let mut runs = run::Runs::open(vec![opened], vec![recipe.clone()], &Device::Cpu).unwrap();
            let asked = Cell::new(0);
            let leave = || {
                asked.set(asked.get() + 1);
                asked.get() == place
            };
            match runs.advance_unless(&leave) {
                Err(Error::Left { moved: has_moved }) => {
                    assert_eq!((runs.done(), runs.kept()), (2, 2));
                    // What was not moved is the second iteration still, whatever was drawn since.
                    if !has_moved {
                        runs.save().unwrap();
                    }
                    moved.push(has_moved);
                }
                Ok(()) => break,
                Err(error) => panic!("{error}"),
            }
        }
        // Once behind the rollout and before each of four epochs or eight parts of them, and once behind the last.
        let steps = recipe.schedule.rest.reuse * recipe.spec.update.minibatches;
        assert_eq!(moved, [&[false; 2][..], &vec![true; steps]].concat(), "{policy}");
        train_until(&recipe, &cut, usize::MAX);
        assert!(files(&whole) == files(&cut), "{policy}");
    }
}

#[test]
fn a_long_iteration_is_left_soon_and_ends_with_the_same_bytes() {
    use std::time::{Duration, Instant};
    let recipe = with("tabular", &["iterations=2", "update.reuse=10000", "checkpoint.every=1"]);
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    train_until(&recipe, &whole, usize::MAX);
    for _ in 0..3 {
        let stop = AtomicBool::new(false);
        let (ended, waited) = std::thread::scope(|scope| {
            let asking = scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(600));
                stop.store(true, Ordering::Relaxed);
                Instant::now()
            });
            let ended = run::train(&recipe, &Device::Cpu, &cut, &stop, &|_, _| {}, |_| {}).unwrap();
            let now = Instant::now();
            (ended, now.saturating_duration_since(asking.join().unwrap()))
        });
        // An iteration of seconds, left after one pass of a millisecond; a loaded machine is given time.
        assert!(waited < Duration::from_secs(2), "{waited:?} {ended:?}");
    }
    train_until(&recipe, &cut, usize::MAX);
    assert!(files(&whole) == files(&cut));
}

#[test]
fn lines_beyond_the_checkpoint_and_halves_of_files_are_cut_off() {
    let recipe = with("tabular", &["checkpoint.every=2", "dump.every=1", "dump.policies=true"]);
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    train_until(&recipe, &whole, usize::MAX);
    train_until(&recipe, &cut, 2);
    // A kill in the third iteration: its record, half of another, a part of a dump, and half a checkpoint beside.
    for name in [run::CURVE, run::DUMP, run::POLICIES] {
        let mut bytes = fs::read(cut.join(name)).unwrap();
        bytes.extend_from_slice(b"{\"iteration\":3}\n{\"itera");
        fs::write(cut.join(name), bytes).unwrap();
    }
    fs::write(cut.join("checkpoint.safetensors.123.part"), "half").unwrap();
    train_until(&recipe, &cut, usize::MAX);
    assert!(files(&whole) == files(&cut));
}

#[test]
fn policies_are_those_whose_returns_the_curve_has() {
    use niwaki_exact::{Table, Values};
    let recipe = with("tabular", &["dump.policies=true", "optimiser.rate=0.5"]);
    let folder = tempfile::tempdir().unwrap();
    train_until(&recipe, folder.path(), usize::MAX);
    let identity = Identity::of(&recipe.spec).unwrap();
    let curve = run::read_curve(folder.path(), &identity).unwrap();
    let policies = run::read_policies(folder.path(), &identity).unwrap();
    assert_eq!(policies.iter().map(|table| table.iteration).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5]);
    let payoff = niwaki_tasks::payoff(recipe.tokens().unwrap().as_ref()).unwrap();
    for (table, record) in policies[1..].iter().zip(&curve) {
        let table = Table::new(payoff.process(), &table.logits).unwrap();
        let eta = Values::new(&table, &payoff).unwrap().eta();
        assert!((eta - record.eta.unwrap()).abs() < 1e-12);
    }
    // A line that was changed, or taken away, is noticed.
    let path = folder.path().join(run::POLICIES);
    let text = fs::read_to_string(&path).unwrap();
    for (changed, said) in [
        (text.replace("\"iteration\":2", "\"iteration\":3"), "line 3"),
        (text.lines().take(4).map(|line| format!("{line}\n")).collect(), "ends after line 4"),
    ] {
        fs::write(&path, changed).unwrap();
        let refusal = run::verify(folder.path(), &recipe).unwrap_err().to_string();
        assert!(refusal.contains(said), "{refusal}");
    }
}

#[test]
fn a_dump_holds_what_the_curve_measured() {
    use niwaki_correction::{Batch, Rows, Surrogate, Workspace};
    let recipe =
        with("bag", &["dump.every=2", "advantage.kind=group", "rollout.group=8", "update.correction=full"]);
    let folder = tempfile::tempdir().unwrap();
    train_until(&recipe, folder.path(), usize::MAX);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let curve = run::read_curve(folder.path(), &Identity::of(&recipe.spec).unwrap()).unwrap();
    // What others read: plain objects with one key more.
    let trajectory = |line: &str| {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().remove("check").unwrap();
        serde_json::from_value(value).unwrap()
    };
    let dump: Vec<Trajectory> = text(run::DUMP).lines().map(trajectory).collect();
    // Iterations 2 and 4 of 5, 32 lanes each, in groups of 8.
    assert_eq!(dump.len(), 2 * 32);
    assert_eq!((dump[9].group, dump[63].group, dump[63].iteration), (Some(1), Some(3), 4));
    for (batch, record) in dump.chunks_exact(32).zip([&curve[1], &curve[3]]) {
        let gather = |field: fn(&Trajectory) -> &Vec<f64>| -> Vec<f64> {
            batch.iter().flat_map(|trajectory| field(trajectory).clone()).collect()
        };
        let (old, new) = (gather(|one| &one.old_log_prob), gather(|one| &one.new_log_prob));
        let advantage = gather(|one| &one.advantage);
        let surrogate: Surrogate = "full".parse().unwrap();
        let mut workspace = Workspace::default();
        let batch_of = Batch::new(Rows::uniform(4), &new, &old, &advantage);
        let measured = surrogate.evaluate(&batch_of, &mut workspace).unwrap().diagnostics;
        // The trainer measures in f32.
        assert!(
            (measured.drift - record.drift).abs() < 1e-5 * record.drift,
            "{} {}",
            measured.drift,
            record.drift
        );
        assert!(record.drift > 0.0);
        let reward = batch.iter().map(|one| one.reward).sum::<f64>() / 32.0;
        assert_eq!(reward, record.batch_reward);
    }
}

#[test]
fn one_process_at_a_time() {
    let recipe = with("tabular", &[]);
    let folder = tempfile::tempdir().unwrap();
    let open = || run::Folder::open(folder.path(), &recipe.spec, Occupied::Refuse);
    let held = open().unwrap();
    let refusal = open().unwrap_err().to_string();
    assert!(refusal.contains("another process trains in this folder"), "{refusal}");
    drop(held);
    open().unwrap();
}
