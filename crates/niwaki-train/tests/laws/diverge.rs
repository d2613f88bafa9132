//! Divergence: the run stops, its last good checkpoint is kept, and the folder goes on with another rate.

use super::resume::{files, raw_files, train_until};
use super::with;
use niwaki_train::run::{self, Ending};
use niwaki_train::{Device, Error, Recipe};
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;

/// A decay that multiplies weights by −10⁹ with every step, of which there is one per iteration: they overflow soon.
const WILD: [&str; 6] = [
    "optimiser.kind=adam",
    "optimiser.rate=1.0",
    "optimiser.decay=1e9",
    "update.reuse=1",
    "checkpoint.every=1",
    "iterations=8",
];
const TAME: [&str; 4] = ["optimiser.kind=adam", "optimiser.rate=0.01", "update.reuse=1", "iterations=8"];

fn train(recipe: &Recipe, folder: &Path) -> Result<Ending, Error> {
    run::train(recipe, &Device::Cpu, folder, &AtomicBool::new(false), &|_, _| {}, |_| {})
}

/// Where training diverged, and which checkpoint was kept.
fn lost(recipe: &Recipe, folder: &Path) -> (usize, usize) {
    match train(recipe, folder).unwrap_err() {
        Error::Lost { iteration, after, .. } => (iteration, after),
        other => panic!("{other}"),
    }
}

#[test]
fn the_last_good_checkpoint_is_kept_and_another_rate_goes_on() {
    for policy in ["bag"] {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        let (wild, tame) = (with(policy, &WILD), with(policy, &TAME));
        let (iteration, after) = lost(&wild, &at("run"));
        assert!(after > 0 && after < iteration && iteration < 8, "{policy}: {iteration} {after}");
        let kept = raw_files(&at("run"));
        let copy = |name: &str| {
            fs::create_dir_all(at(name)).unwrap();
            kept.iter().for_each(|(file, bytes)| fs::write(at(name).join(file), bytes).unwrap());
        };
        copy("cut");
        copy("other");
        // The same spec diverges again, and says the same in one line that names the remedy.
        assert_eq!(lost(&wild, &at("run")), (iteration, after));
        let said = train(&wild, &at("run")).unwrap_err().to_string();
        assert!(said.contains(&format!("diverged in iteration {iteration} of seed 0")), "{said}");
        assert!(said.contains(&format!(
            "the checkpoint of iteration {after} is kept; go on from it in the same folder"
        )));
        assert_eq!(raw_files(&at("run"))[run::CHECKPOINT], kept[run::CHECKPOINT]);

        let Ending::Done(summary) = train(&tame, &at("run")).unwrap() else { panic!("{policy}") };
        assert_eq!((summary.done, summary.turns.len()), (8, 1));
        assert_eq!(summary.turns[0].after, after);
        // Stopped after every iteration it ends with the same bytes, and a finished run is left as it is.
        for last in after + 1..8 {
            assert_eq!(train_until(&tame, &at("cut"), last), Ending::Stopped { iteration: last });
        }
        train_until(&tame, &at("cut"), usize::MAX);
        assert!(files(&at("run")) == files(&at("cut")), "{policy}");
        assert_eq!(train(&tame, &at("run")).unwrap(), Ending::Done(summary));
        // What came before the turn is held to what it was.
        let curve = at("cut").join(run::CURVE);
        let text = fs::read_to_string(&curve).unwrap();
        fs::write(&curve, text.replacen("\"iteration\":1,", "\"iteration\":2,", 1)).unwrap();
        assert!(matches!(train(&tame, &at("cut")).unwrap_err(), Error::Damaged { .. }));
        // Only rates may differ, and only where training diverged.
        let reuse = with(policy, &[&TAME[..], &["update.reuse=2"]].concat());
        assert!(matches!(train(&reuse, &at("other")).unwrap_err(), Error::OtherRun { .. }));
        assert!(matches!(train(&wild, &at("run")).unwrap_err(), Error::OtherRun { .. }));
        let slow = with(policy, &[&TAME[..], &["optimiser.rate=0.02"]].concat());
        train_until(&slow, &at("stopped"), 3);
        assert!(matches!(train(&tame, &at("stopped")).unwrap_err(), Error::OtherRun { .. }));
    }
}

#[test]
fn a_turn_that_was_killed_goes_on() {
    let home = tempfile::tempdir().unwrap();
    let (wild, tame) = (with("bag", &WILD), with("bag", &TAME));
    let (whole, cut) = (home.path().join("whole"), home.path().join("cut"));
    for folder in [&whole, &cut] {
        lost(&wild, folder);
    }
    let before = raw_files(&cut);
    train(&tame, &whole).unwrap();
    drop(run::Folder::open(&cut, &tame.spec, run::Occupied::Refuse).unwrap());
    let turned = raw_files(&cut);
    assert!(turned[run::CHECKPOINT] != before[run::CHECKPOINT]);
    // Killed once the turn was noted, and once the checkpoint was its own too, each before the spec was written.
    for new in [&[run::TURNS][..], &[run::TURNS, run::CHECKPOINT]] {
        for (name, bytes) in &before {
            fs::write(cut.join(name), if new.contains(&name.as_str()) { &turned[name] } else { bytes })
                .unwrap();
        }
        let _ = fs::remove_file(cut.join(run::SUMMARY));
        train(&tame, &cut).unwrap();
        assert!(files(&cut) == files(&whole));
    }
}

#[test]
fn nothing_saved_before_a_divergence_is_begun_anew() {
    let home = tempfile::tempdir().unwrap();
    let (run, plain) = (home.path().join("run"), home.path().join("plain"));
    let every = "checkpoint.every=0";
    let (_, after) = lost(&with("bag", &[&WILD[..], &[every]].concat()), &run);
    assert_eq!(after, 0);
    let tame = with("bag", &[&TAME[..], &[every]].concat());
    let Ending::Done(summary) = train(&tame, &run).unwrap() else { panic!() };
    assert!(summary.turns.is_empty());
    train(&tame, &plain).unwrap();
    assert!(files(&run) == files(&plain), "a run like any other");
}

#[test]
fn a_wild_bonus_ends_or_diverges_and_says_the_same_again() {
    for policy in ["tabular", "bag"] {
        let home = tempfile::tempdir().unwrap();
        let recipe = with(policy, &["update.entropy=1e308"]);
        let said = |ended: Result<Ending, Error>| ended.map_err(|error| error.to_string());
        let first = said(train(&recipe, home.path()));
        assert_eq!(said(train(&recipe, home.path())), first, "{policy}");
        if let Err(line) = first {
            assert!(line.contains("training diverged in iteration"), "{line}");
        }
    }
}
