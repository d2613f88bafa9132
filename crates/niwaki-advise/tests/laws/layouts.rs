//! One dump in every layout gives the same numbers.

use niwaki_advise::measure::{Measure, Measured, Settings};
use niwaki_advise::read::Dump;
use niwaki_advise::schema::{Field, Naming};
use niwaki_advise::trajectory::Against;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn read(
    files: &[PathBuf],
    naming: Naming,
    against: Against,
) -> Result<Measured, niwaki_advise::Error> {
    let mut dump = Dump::open(files, naming, against, false)?;
    dump.prepare(|_| {})?;
    let (bytes, mut measure, mut last) = (dump.bytes(), Measure::new(Settings::default()), 0);
    dump.each(|chunk, done| {
        measure.add(chunk);
        assert!(last <= done && done <= bytes, "{done} after {last} of {bytes}");
        last = done;
    })?;
    Ok(measure.finish())
}

fn plainly(name: &str) -> Measured {
    read(&[fixture(name)], Naming::default(), Against::Old).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_layout_gives_the_same_numbers() {
    let expected = plainly("dump.jsonl");
    assert_eq!((expected.facts.trajectories, expected.facts.iterations, expected.facts.groups), (40, 2, 10));
    for name in [
        "plain.parquet",
        "snappy.parquet",
        "second.parquet",
        "gzip.parquet",
        "polars.parquet",
        "padded.npz",
        "flat.npz",
    ] {
        let came = plainly(name);
        assert_eq!(came.facts, expected.facts, "{name}");
        assert_eq!(format!("{:?}", came.numbers), format!("{:?}", expected.numbers), "{name}");
        assert_eq!(format!("{:?}", came.iterations), format!("{:?}", expected.iterations), "{name}");
    }
}

#[test]
fn several_files_are_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let text = fs::read_to_string(fixture("dump.jsonl")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let parts = [&lines[..15], &lines[15..]].map(|part| part.join("\n"));
    let files: Vec<PathBuf> = (0..2).map(|at| folder.path().join(format!("{at}.jsonl"))).collect();
    files.iter().zip(&parts).for_each(|(file, part)| fs::write(file, part).unwrap());
    let came = read(&files, Naming::default(), Against::Old).unwrap();
    assert_eq!(format!("{came:?}"), format!("{:?}", plainly("dump.jsonl")));
}

#[test]
fn names_of_ones_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("own.jsonl");
    let text = fs::read_to_string(fixture("dump.jsonl")).unwrap();
    fs::write(&file, text.replace("\"log_probs\"", "\"lp\"")).unwrap();
    let naming = Naming::default().with(Field::NewLogProb, "lp");
    let came = read(&[file], naming, Against::Old).unwrap();
    assert_eq!(format!("{came:?}"), format!("{:?}", plainly("dump.jsonl")));
}

#[test]
fn rewards_stand_in_for_advantages() {
    // Two groups of two: rewards 1, 0 (mean ½) and 0, 0. Advantages ½, −½, 0, 0; half of the groups are silent.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rewards.jsonl");
    let rows: Vec<String> = [(0, 1.0), (1, 0.0), (0, 0.0), (1, 0.0)]
        .map(|(group, reward)| {
            format!(
                r#"{{"group": {group}, "old_log_prob": [-1, -2], "new_log_prob": [-1.5, -1.75], "reward": {reward}}}"#
            )
        })
        .to_vec();
    fs::write(&file, rows.join("\n")).unwrap();
    let came = read(&[file], Naming::default(), Against::Old).unwrap();
    let number = |name: &str| came.numbers.iter().find(|number| number.name == name).unwrap().value;
    assert_eq!((number("zero_signal"), number("silent_groups"), number("mean_advantage")), (0.5, 0.5, 0.0));
    assert_eq!(number("zero_reward_batches"), 0.0);
    // ¼ of the trajectories is rewarded: (¾)⁴ = 0.31640625.
    assert!((number("chance_of_none") - 0.316_406_25).abs() < 1e-15);
}

#[test]
fn the_sampling_engine_can_be_what_counts() {
    let own = read(&[fixture("dump.jsonl")], Naming::default(), Against::Behaviour).unwrap();
    assert_eq!(own.facts.verl_pair, "new against old");
    assert_ne!(own.numbers[0].value, plainly("dump.jsonl").numbers[0].value);
    assert_eq!(plainly("dump.jsonl").facts.verl_pair, "old against behaviour");
}
