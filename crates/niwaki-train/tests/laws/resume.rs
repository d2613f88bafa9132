//! A run that was stopped or killed ends with the bytes of one that was not.

use super::{POLICIES, with};
use niwaki_train::run::{self, Ending, Trajectory};
use niwaki_train::{Device, Error, Recipe};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// Every file of a folder.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Trains until an iteration, as Ctrl-C would have it.
fn train_until(recipe: &Recipe, folder: &Path, last: usize) -> Ending {
    let stop = AtomicBool::new(false);
    run::train(recipe, &Device::Cpu, folder, &stop, &|_, _| {}, |record| {
        stop.store(record.iteration >= last, Ordering::Relaxed);
    })
    .unwrap()
}

#[test]
fn stopped_after_every_iteration_it_ends_with_the_same_bytes() {
    for policy in POLICIES {
        for more in [&["optimiser.kind=adam", "optimiser.rate=0.01"][..], &["optimiser.schedule=cosine"]] {
            let recipe = with(policy, &[more, &["dump.every=2", "checkpoint.every=2"]].concat());
            let folder = tempfile::tempdir().unwrap();
            let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
            let Ending::Done(summary) = train_until(&recipe, &whole, usize::MAX) else { panic!("{policy}") };
            for last in 1..5 {
                assert_eq!(train_until(&recipe, &cut, last), Ending::Stopped { iteration: last });
            }
            assert_eq!(train_until(&recipe, &cut, usize::MAX), Ending::Done(summary), "{policy}");
            let names: Vec<String> = files(&whole).into_keys().collect();
            let mut expected = vec![run::CHECKPOINT, run::CURVE, run::DUMP, run::EVENTS];
            expected.extend(recipe.tokens().is_none().then_some(run::OPTIMA));
            expected.extend([run::SPEC, run::SUMMARY]);
            assert_eq!(names, expected);
            assert!(files(&whole) == files(&cut), "{policy} {more:?}");
            // A finished run is left as it is.
            train_until(&recipe, &cut, usize::MAX);
            assert!(files(&whole) == files(&cut), "{policy} {more:?}, again");
        }
    }
}

#[test]
fn lines_beyond_the_checkpoint_and_halves_of_files_are_cut_off() {
    let recipe = with("tabular", &["checkpoint.every=2", "dump.every=1"]);
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    train_until(&recipe, &whole, usize::MAX);
    train_until(&recipe, &cut, 2);
    // A kill in the third iteration: its record, half of another, a part of a dump, and half a checkpoint beside.
    for name in [run::CURVE, run::DUMP] {
        let mut bytes = fs::read(cut.join(name)).unwrap();
        bytes.extend_from_slice(b"{\"iteration\":3}\n{\"itera");
        fs::write(cut.join(name), bytes).unwrap();
    }
    fs::write(cut.join("checkpoint.safetensors.123.part"), "half").unwrap();
    train_until(&recipe, &cut, usize::MAX);
    assert!(files(&whole) == files(&cut));
}

#[test]
fn a_dump_holds_what_the_curve_measured() {
    use niwaki_correction::{Batch, Rows, Surrogate, Workspace};
    let recipe =
        with("bag", &["dump.every=2", "advantage.kind=group", "rollout.group=8", "update.correction=full"]);
    let folder = tempfile::tempdir().unwrap();
    train_until(&recipe, folder.path(), usize::MAX);
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let curve: Vec<niwaki_train::Record> =
        text(run::CURVE).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let dump: Vec<Trajectory> =
        text(run::DUMP).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
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
fn what_is_not_this_run_is_refused_and_left_alone() {
    let recipe = with("tabular", &[]);
    let folder = tempfile::tempdir().unwrap();
    train_until(&recipe, folder.path(), usize::MAX);
    let before = files(folder.path());
    let refusal = |recipe: &Recipe| {
        let error =
            run::train(recipe, &Device::Cpu, folder.path(), &AtomicBool::new(false), &|_, _| {}, |_| {})
                .unwrap_err();
        assert!(matches!(error, Error::OtherRun { .. } | Error::Engine(_)), "{error:?}");
        error.to_string()
    };
    assert!(refusal(&with("tabular", &["seed=1"])).contains("with seed 1; choose another --out"));
    assert!(refusal(&with("tabular", &["update.reuse=2"])).contains("the folder holds spec"));
    assert!(files(folder.path()) == before);

    // Another run's checkpoint under our spec.
    let other = tempfile::tempdir().unwrap();
    train_until(&with("tabular", &["seed=1"]), other.path(), usize::MAX);
    let path = folder.path().join(run::CHECKPOINT);
    fs::copy(other.path().join(run::CHECKPOINT), &path).unwrap();
    assert!(refusal(&recipe).contains("it was saved by another run"));
    // A damaged one, a short curve, and files without a spec.
    fs::write(&path, &before[run::CHECKPOINT][..1000]).unwrap();
    assert!(refusal(&recipe).contains("truncated"));
    fs::write(&path, &before[run::CHECKPOINT]).unwrap();
    fs::write(folder.path().join(run::CURVE), &before[run::CURVE][..300]).unwrap();
    assert!(refusal(&recipe).contains("damaged"), "{}", refusal(&recipe));
    fs::write(folder.path().join(run::CURVE), &before[run::CURVE]).unwrap();
    fs::remove_file(folder.path().join(run::SPEC)).unwrap();
    assert!(refusal(&recipe).contains("there is no spec.toml"));
    fs::write(folder.path().join(run::SPEC), &before[run::SPEC]).unwrap();
    train_until(&recipe, folder.path(), usize::MAX);
    assert!(files(folder.path()) == before);
}

#[test]
fn one_process_at_a_time() {
    let recipe = with("tabular", &[]);
    let folder = tempfile::tempdir().unwrap();
    let held = run::Folder::open(folder.path(), &recipe).unwrap();
    let refusal = run::Folder::open(folder.path(), &recipe).unwrap_err().to_string();
    assert!(refusal.contains("another process trains in this folder"), "{refusal}");
    drop(held);
    run::Folder::open(folder.path(), &recipe).unwrap();
}
