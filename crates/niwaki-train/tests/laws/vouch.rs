//! The files of a run vouch for each other: whatever is truncated, edited, swapped or taken away is named with a remedy,
//! the remedy works, and nothing resumes to other bytes.

use super::resume::{files, raw_files, train_until};
use super::with;
use niwaki_train::run::{self, Told};
use niwaki_train::{Device, Error, Recipe};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

fn try_train(recipe: &Recipe, folder: &Path) -> Result<Vec<String>, Error> {
    let mut mended = Vec::new();
    run::train(recipe, &Device::Cpu, folder, &AtomicBool::new(false), &|_, _| {}, |told| {
        if let Told::Mended(path) = told {
            mended.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    })?;
    Ok(mended)
}

/// A refusal in one line that names the file.
fn refusal(recipe: &Recipe, folder: &Path, name: &str) -> String {
    let error = try_train(recipe, folder).unwrap_err();
    assert!(matches!(error, Error::OtherRun { .. } | Error::Damaged { .. }), "{name}: {error:?}");
    let text = error.to_string();
    assert!(text.contains(name) && !text.contains('\n'), "{name}: {text}");
    text
}

fn write_all(folder: &Path, files: &BTreeMap<String, Vec<u8>>) {
    fs::remove_dir_all(folder).unwrap();
    fs::create_dir(folder).unwrap();
    files.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).unwrap());
}

/// A flow shop's run with a dump has every file there is; a table's is small.
fn recipes(seed: &str) -> [Recipe; 2] {
    let more = ["dump.every=1", "checkpoint.every=2", "rollout.lanes=8", seed];
    ["pointer", "tabular"].map(|policy| with(policy, &more))
}

#[test]
fn nothing_but_the_run_itself_is_accepted() {
    for (recipe, other) in recipes("seed=0").into_iter().zip(recipes("seed=1")) {
        let home = tempfile::tempdir().unwrap();
        let (folder, foreign) = (home.path().join("run"), home.path().join("foreign"));
        for last in [3, usize::MAX] {
            train_until(&recipe, &folder, last);
            train_until(&other, &foreign, last);
            let good = raw_files(&folder);
            for (name, bytes) in &good {
                let path = folder.join(name);
                let swapped = fs::read(foreign.join(name)).unwrap();
                let mut edited = bytes.clone();
                edited[bytes.len() / 2] ^= 1;
                let cut = bytes[..2 * bytes.len() / 3].to_vec();
                let line = bytes.split_inclusive(|&byte| byte == b'\n').next().unwrap().len();
                for (how, bad) in [
                    ("edited", edited),
                    ("cut", cut),
                    ("a line", bytes[line..].to_vec()),
                    ("swapped", swapped),
                ] {
                    fs::write(&path, &bad).unwrap();
                    if bad == *bytes {
                        continue;
                    }
                    if name == run::EVENTS {
                        assert_eq!(try_train(&recipe, &folder).unwrap(), [run::EVENTS], "{how}");
                        write_all(&folder, &good);
                        continue;
                    }
                    if name == run::SPEC && try_train(&recipe, &folder).is_ok() {
                        // A changed comment, or no spec at all: its file is written anew.
                        assert!(fs::read(&path).unwrap() == *bytes, "{how}");
                        write_all(&folder, &good);
                        continue;
                    }
                    let said = refusal(&recipe, &folder, name);
                    assert_eq!(fs::read(&path).unwrap(), bad, "a refused file is left alone");
                    // The first remedy: put it back.
                    fs::write(&path, bytes).unwrap();
                    assert!(raw_files(&folder) == good, "{name} {how}");
                    assert!(said.contains("put it back") || said.contains("remove this one"), "{said}");
                }
            }
            // The second: remove the folder.
            fs::write(folder.join(run::CURVE), "").unwrap();
            let said = refusal(&recipe, &folder, run::CURVE);
            assert!(
                said.ends_with(&format!("remove the folder {} to train this run again", folder.display())),
                "{said}"
            );
            write_all(&folder, &good);
            let wanted = files(&folder);
            fs::remove_dir_all(&folder).unwrap();
            train_until(&recipe, &folder, last);
            assert!(files(&folder) == wanted);
        }
    }
}

#[test]
fn no_flipped_bit_of_a_half_way_checkpoint_resumes_to_other_bytes() {
    let recipe = with("bag", &["optimiser.kind=adam", "optimiser.rate=0.01"]);
    let home = tempfile::tempdir().unwrap();
    let (whole, folder) = (home.path().join("whole"), home.path().join("cut"));
    train_until(&recipe, &whole, usize::MAX);
    let wanted = files(&whole);
    train_until(&recipe, &folder, 2);
    let half_way = files(&folder);
    let good = &half_way[run::CHECKPOINT];
    // The header's length, the header, and the numbers: every place that 100 even steps come to, another bit each time.
    let places = (0..8).chain((0..100).map(|step| step * good.len() / 100));
    for (count, place) in places.enumerate() {
        let mut bad = good.clone();
        bad[place] ^= 1 << (count % 8);
        fs::write(folder.join(run::CHECKPOINT), &bad).unwrap();
        refusal(&recipe, &folder, run::CHECKPOINT);
    }
    fs::write(folder.join(run::CHECKPOINT), good).unwrap();
    train_until(&recipe, &folder, usize::MAX);
    assert!(files(&folder) == wanted);
}

#[test]
fn a_file_that_is_missing_is_written_anew_or_named() {
    let recipe = &recipes("seed=0")[0];
    let home = tempfile::tempdir().unwrap();
    let (whole, folder) = (home.path().join("whole"), home.path().join("run"));
    train_until(recipe, &whole, usize::MAX);
    let wanted = files(&whole);
    train_until(recipe, &folder, 3);
    let half_way = raw_files(&folder);
    for name in half_way.keys() {
        fs::remove_file(folder.join(name)).unwrap();
        match name.as_str() {
            run::CURVE | run::DUMP | run::OPTIMA => {
                refusal(recipe, &folder, name);
            }
            // Where the spec is missing, the checkpoint says whose the folder is.
            _ => {
                train_until(recipe, &folder, usize::MAX);
                assert!(files(&folder) == wanted, "{name}");
            }
        }
        write_all(&folder, &half_way);
    }
}

#[test]
fn a_spec_that_a_power_cut_took_costs_nothing() {
    let (recipe, other) = (with("tabular", &["checkpoint.every=2"]), with("tabular", &["seed=1"]));
    let home = tempfile::tempdir().unwrap();
    let (whole, folder) = (home.path().join("whole"), home.path().join("run"));
    train_until(&recipe, &whole, usize::MAX);
    for last in [0, 3, usize::MAX] {
        for left in [Vec::new(), vec![0; 40]] {
            if last > 0 {
                train_until(&recipe, &folder, last);
                // Any other process is refused, with nothing changed.
                fs::write(folder.join(run::SPEC), &left).unwrap();
                refusal(&other, &folder, run::SPEC);
                assert!(fs::read(folder.join(run::SPEC)).unwrap() == left);
            } else {
                fs::create_dir_all(&folder).unwrap();
                fs::write(folder.join(run::SPEC), &left).unwrap();
                fs::write(folder.join(run::CURVE), "{\"iter").unwrap();
            }
            train_until(&recipe, &folder, usize::MAX);
            assert!(files(&folder) == files(&whole), "{last}");
            fs::remove_dir_all(&folder).unwrap();
        }
    }
    // What another program wrote there is not a power cut's doing.
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(run::SPEC), "mine").unwrap();
    refusal(&recipe, &folder, run::SPEC);
}

/// What it says of its optima is counted from a file that must be there.
#[test]
fn a_finished_run_without_its_optima_is_refused() {
    let recipe = with("pointer", &[]);
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("run");
    train_until(&recipe, &folder, usize::MAX);
    fs::remove_file(folder.join(run::OPTIMA)).unwrap();
    let said = refusal(&recipe, &folder, run::OPTIMA);
    assert!(said.contains("it is missing, and held the optima that summary.json was made of"), "{said}");
}

#[test]
fn what_is_taken_away_while_it_trains_is_written_anew() {
    let recipe = with("pointer", &["checkpoint.every=1"]);
    let home = tempfile::tempdir().unwrap();
    let (whole, folder) = (home.path().join("whole"), home.path().join("run"));
    train_until(&recipe, &whole, usize::MAX);
    for name in [run::CURVE, run::EVENTS, run::CHECKPOINT, run::SPEC, run::OPTIMA] {
        run::train(&recipe, &Device::Cpu, &folder, &AtomicBool::new(false), &|_, _| {}, |told| {
            if matches!(told, Told::Record(record) if record.iteration == 3) {
                fs::remove_file(folder.join(name)).unwrap();
            }
        })
        .unwrap();
        assert!(files(&folder) == files(&whole), "{name}");
        fs::remove_dir_all(&folder).unwrap();
    }
}

#[test]
fn a_run_of_another_kind_is_refused_and_left_alone() {
    let recipe = with("tabular", &[]);
    let folder = tempfile::tempdir().unwrap();
    train_until(&recipe, folder.path(), usize::MAX);
    let before = files(folder.path());
    for (other, said) in [
        (with("tabular", &["seed=1"]), "with seed 1; choose another folder, or remove this one"),
        (with("tabular", &["update.reuse=2"]), "the folder holds spec"),
        (with("bag", &[]), "the folder holds spec"),
    ] {
        let text = refusal(&other, folder.path(), run::SPEC);
        assert!(text.contains(said), "{text}");
    }
    assert!(files(folder.path()) == before);
}

/// A link to what has no end, in the place of the spec: read, it would fill the memory; written to, it would take everything.
#[cfg(unix)]
#[test]
fn a_spec_without_end_is_refused_and_left_alone() {
    let recipe = with("tabular", &[]);
    let home = tempfile::tempdir().unwrap();
    for last in [1, usize::MAX] {
        let folder = home.path().join(format!("run-{last}"));
        train_until(&recipe, &folder, last);
        let spec = folder.join(run::SPEC);
        fs::remove_file(&spec).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &spec).unwrap();
        let before = fs::read(folder.join(run::CURVE)).unwrap();
        let said = try_train(&recipe, &folder).unwrap_err().to_string();
        assert!(
            said.contains(run::SPEC) && said.contains("a pipe or a device stands in its place"),
            "{said}"
        );
        let said = run::restore_spec(&folder, &recipe.spec).unwrap_err().to_string();
        assert!(said.contains("a pipe or a device stands in its place"), "{said}");
        assert_eq!(fs::read(folder.join(run::CURVE)).unwrap(), before);
        // One that is longer than any spec is another run's.
        fs::remove_file(&spec).unwrap();
        fs::File::create(&spec).unwrap().set_len(1 << 40).unwrap();
        let said = try_train(&recipe, &folder).unwrap_err().to_string();
        assert!(said.contains(run::SPEC) && said.contains("longer than 256 MB"), "{said}");
    }
}
