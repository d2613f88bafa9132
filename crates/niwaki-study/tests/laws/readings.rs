//! One reading: the summary of a run, its study, the comparison of runs, and the board say the same numbers of the same runs,
//! whether these are finished, unfinished, diverged or damaged.

use niwaki_study::board::board_data;
use niwaki_study::runs::{Comparison, Row};
use niwaki_study::training::{Board, Endpoint, Plan, Results, Runner};
use niwaki_train::Device;
use niwaki_train::reading::{Damaged, Reader, Run, Standing};
use niwaki_train::run::{CURVE, SUMMARY};
use std::fs;
use std::path::{Path, PathBuf};

/// Two losses and an arm whose weights overflow; two rates, matched, and eight seeds: enough for a verdict.
const STUDY: &str = r#"
label = "readings"
title = "Readings"
question = "Does everything say the same?"
seeds = 8
endpoints = ["auc", "final"]
[base]
iterations = 8
[base.task]
horizon = 4
[base.rollout]
lanes = 32
[base.policy]
kind = "bag"
width = 8
[base.optimiser]
kind = "adam"
rate = 0.05
[base.update]
reuse = 1
[[arm]]
name = "ppo"
[[arm]]
name = "full"
[[arm]]
name = "wild"
set = { "optimiser.decay" = 1e9, "optimiser.rate" = 1.0 }
seeds = 2
[compare]
against = ["ppo"]
endpoints = ["auc", "final"]
"#;

fn comparison(places: &[PathBuf]) -> Comparison {
    Comparison::of(Reader::new(Row::of).below(places).unwrap(), None).unwrap()
}

fn with(text: &str) -> Plan {
    Plan::new(niwaki_train::spec::strictly("readings", text).unwrap(), None).unwrap()
}

#[test]
fn everything_says_the_same_of_the_same_runs() {
    let home = tempfile::tempdir().unwrap();
    let plan = with(STUDY);
    Runner::new(home.path(), Device::Cpu).run(&plan).unwrap();
    let results = Results::read(&plan, home.path()).unwrap();
    let board = Board { plan: &plan, results: &results };
    let place = home.path().join(plan.folder());
    let compared = comparison(std::slice::from_ref(&place));
    let data = board_data(&compared).unwrap();
    assert_eq!((compared.over().count(), compared.unfinished().count()), (18, 0));

    let mut diverged = 0;
    for (planned, run) in plan.runs.iter().zip(&results.runs) {
        let read = Run::read(&home.path().join(&planned.home)).unwrap();
        let row = compared.over().find(|row| row.folder == read.folder).unwrap();
        let summary = read.summary.clone().unwrap();
        let of = |endpoint: Endpoint| {
            let all = [run.value(endpoint), endpoint.of(&read.course), row.value(compared.judged, endpoint)];
            assert!(all.iter().all(|value| *value == all[0]), "{endpoint}: {all:?}");
            all[0]
        };
        assert_eq!((of(Endpoint::Auc), of(Endpoint::Final)), (summary.auc, summary.final_eta));
        assert_eq!(row.drift, Some(summary.mean_drift));
        let said = data["runs"].as_array().unwrap();
        let said = said.iter().find(|said| said[0] == row.folder.display().to_string()).unwrap();
        for (place, endpoint) in [(6, Endpoint::Auc), (7, Endpoint::Final)] {
            let (said, value) = (said[place].as_f64().unwrap(), run.value(endpoint).unwrap());
            assert!((said - value).abs() <= 1e-5 * value.abs(), "{said} {value}");
        }
        if planned.arm == 2 {
            // What it did not come to counts as nothing earned, everywhere.
            diverged += 1;
            assert_eq!((read.standing, of(Endpoint::Final)), (Standing::Diverged, Some(0.0)));
            assert!(summary.done < 8 && said[3] == 2 && said[7].as_f64() == Some(0.0));
        } else {
            assert_eq!((read.standing, &said[3]), (Standing::Finished, &serde_json::json!(0)));
        }
    }
    assert_eq!(diverged, 2);

    // One comparison: the study's, and that of the folders.
    for endpoint in [Endpoint::Auc, Endpoint::Final] {
        let ours = board.compare(1, 0, 0, endpoint).unwrap().unwrap();
        let full = compared.groups.iter().position(|group| group.name.starts_with("full")).unwrap();
        let theirs = compared.difference(full, endpoint, compared.baseline).unwrap().unwrap();
        assert_eq!((ours.decision, ours.signs, ours.sem), (theirs.decision, theirs.signs, theirs.sem));
        let place = compared.endpoints().iter().position(|known| *known == endpoint).unwrap();
        let said = &data["differences"][place][compared.baseline.to_string()][full];
        assert!((said[1].as_f64().unwrap() - ours.decision.mean).abs() <= 1e-5 * ours.decision.mean.abs());
        assert_eq!(said[5], ours.decision.verdict.words());
        let interval = ours.decision.interval.unwrap();
        for (said, value) in [(&said[2], interval.low), (&said[3], interval.high)] {
            assert!((said.as_f64().unwrap() - value).abs() <= 1e-5 * value.abs());
        }
    }

    marked(&plan, home.path(), &compared);
}

/// Runs that are not finished, or damaged, are marked and counted, and nothing of theirs is a number anywhere.
fn marked(plan: &Plan, home: &Path, before: &Comparison) {
    let folder = |arm: usize, seed: usize| {
        let mut runs = plan.runs.iter().filter(|run| run.arm == arm);
        home.join(&runs.nth(seed).unwrap().home)
    };
    let (unfinished, damaged) = (folder(1, 0), folder(1, 1));
    fs::remove_file(unfinished.join(SUMMARY)).unwrap();
    let curve = fs::read_to_string(unfinished.join(CURVE)).unwrap();
    let half: String = curve.split_inclusive('\n').take(3).collect();
    // A line that is being written has no end yet.
    fs::write(unfinished.join(CURVE), half + "{\"iteration\":4").unwrap();
    let curve = fs::read_to_string(damaged.join(CURVE)).unwrap();
    fs::write(damaged.join(CURVE), curve.replacen("\"iteration\":2", "\"iteration\":7", 1)).unwrap();

    let after = comparison(&[home.join(plan.folder())]);
    let (row, [Damaged { folder, reason }]) = (after.unfinished().next().unwrap(), &after.damaged[..]) else {
        panic!("{:?}", after.damaged)
    };
    assert_eq!((row.folder.as_path(), row.done, folder), (unfinished.as_path(), 3, &damaged));
    assert!(reason.contains("curve.jsonl: line 2"), "{reason}");
    assert_eq!(after.endpoints().map(|endpoint| row.value(after.judged, endpoint)), [None, None]);
    assert_eq!((after.over().count(), after.unfinished().count()), (16, 1));
    let lines = after.left_out();
    assert!(lines[0].starts_with("1 run is not finished and not counted"), "{lines:?}");
    assert!(lines[1].starts_with("1 run cannot be read and is not counted"), "{lines:?}");
    let data = board_data(&after).unwrap();
    assert_eq!(data["counts"], serde_json::json!([14, 1, 2, 1]));
    let full = after.groups.iter().position(|group| group.name.starts_with("full")).unwrap();
    let found = after.difference(full, Endpoint::Auc, after.baseline).unwrap().unwrap();
    assert_eq!(found.decision.pairs, 6);
    // The seeds that are left say what they said.
    let were = before.values(full, Endpoint::Auc);
    assert!(after.values(full, Endpoint::Auc).iter().all(|(seed, value)| were[seed] == *value));
    // A study that trains again mends the one and names the other.
    let refused = Results::read(plan, home).unwrap_err().to_string();
    assert!(refused.contains("curve.jsonl: line 2"), "{refused}");
}

#[test]
fn folders_of_all_kinds_are_read_or_named() {
    let home = tempfile::tempdir().unwrap();
    let plan = with(&STUDY.replace("seeds = 8", "seeds = 1"));
    Runner::new(home.path(), Device::Cpu).run(&plan).unwrap();
    let place = home.path().join(plan.folder());
    let at = |name: &str| home.path().join(name);
    // A copy of a run, another program's spec, a curve alone, and a link that leads back.
    let from = home.path().join(&plan.runs[0].home);
    fs::create_dir_all(at("copy")).unwrap();
    for entry in fs::read_dir(&from).unwrap().map(Result::unwrap) {
        fs::copy(entry.path(), at("copy").join(entry.file_name())).unwrap();
    }
    fs::create_dir_all(at("other")).unwrap();
    fs::write(at("other/spec.toml"), "name = \"something else\"\n").unwrap();
    fs::create_dir_all(at("curve")).unwrap();
    fs::write(at("curve/curve.jsonl"), "{}\n").unwrap();
    fs::create_dir_all(at("notes")).unwrap();
    fs::write(at("notes/readme.md"), "nothing\n").unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(home.path(), at("notes/above")).unwrap();
    let found = comparison(&[home.path().to_owned()]);
    assert_eq!((found.over().count(), found.twice.len(), found.damaged.len()), (4, 1, 2));
    // Given twice is read once.
    let twice = comparison(&[place.clone(), place.clone(), home.path().to_owned()]);
    assert_eq!((twice.over().count(), twice.twice.len()), (4, 1));
    assert!(Reader::new(Row::of).below(&[at("nowhere")]).is_err());
    // What did not change is not read again, and what did is.
    let mut reader = Reader::new(Row::of);
    assert_eq!(reader.below(&[at("copy")]).unwrap().runs[0].done, 8);
    fs::remove_file(at("copy/summary.json")).unwrap();
    assert_eq!(reader.below(&[at("copy")]).unwrap().runs[0].standing, Standing::Running);
    fs::remove_dir_all(at("copy")).unwrap();
    assert!(reader.below(&[home.path().to_owned()]).unwrap().runs.len() == 4);
}
