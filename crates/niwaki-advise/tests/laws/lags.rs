//! How old the sampling policies were: from files and arrays, split and merged, and what is refused.

use crate::layouts::read;
use crate::support::{measure, number, part};
use niwaki_advise::measure::{AgeRow, LimitRow, Measure, Measured, Settings};
use niwaki_advise::schema::{Field, Naming};
use niwaki_advise::trajectory::{Against, Came, Chunk, Record};
use niwaki_advise::{Question, advise};
use niwaki_stream::Key;
use std::fs;

/// Log-ratios of an asynchronous run: engines differ by a standard deviation of .02 a step, each version of age adds a variance of
/// .0016, and reuse adds .0009.
fn asynchronous(lanes: usize, seed: u64, ages: bool) -> Vec<Record> {
    let mut noise = Key::new(seed, "lags").open();
    let row = |lane: usize, noise: &mut niwaki_stream::Stream| {
        let steps = 20 + noise.below(20) as usize;
        // The weights of the engine are exchanged in the middle of some trajectories.
        let (start, exchange) = (noise.below(4) as i64, noise.below(40) as usize);
        let mut record = Record::default();
        for step in 0..steps {
            let age = if step >= exchange { (start - 1).max(0) } else { start };
            let spread = (0.0004 + 0.0016 * age as f64).sqrt();
            let old = -3.0 - noise.uniform();
            let values = [
                (Field::OldLogProb, old),
                (Field::BehaviourLogProb, old - spread * noise.normal()),
                (Field::NewLogProb, old + 0.03 * noise.normal()),
                if ages { (Field::Age, age as f64) } else { (Field::Version, (40 - age) as f64) },
            ];
            for (field, value) in values {
                let mut kept = record.values(field).to_vec();
                kept.push(value);
                *record.fill(field, Came::Many) = kept;
            }
        }
        record.fill(Field::Advantage, Came::One).push(noise.normal());
        record.group = Some((lane / 4) as u64);
        record
    };
    (0..lanes).map(|lane| row(lane, &mut noise)).collect()
}

fn packed(records: &[Record]) -> Chunk {
    let mut chunk = Chunk::default();
    records.iter().for_each(|record| chunk.push(record, None).unwrap());
    chunk
}

fn tables(measured: &Measured) -> (&[AgeRow], &[LimitRow]) {
    (&measured.ages, &measured.limits)
}

#[test]
fn the_split_finds_what_was_put_in() {
    let found = measure(&packed(&asynchronous(600, 1, false)), Settings::default());
    assert_eq!(found.ages.iter().map(|row| row.age).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let shares: f64 = found.ages.iter().map(|row| row.steps).sum();
    assert!((shares - 1.0).abs() < 1e-12);
    for row in &found.ages {
        // A variance from some 3,000 steps of an age: a standard error of 2.6%; four of those.
        let expected = 0.0004 + 0.0016 * row.age as f64;
        assert!((row.sampler.unwrap() / expected - 1.0).abs() < 0.12, "{row:?} {expected}");
        assert!((row.reuse / 0.0009 - 1.0).abs() < 0.12, "{row:?}");
    }
    // What the ages add makes up the drift between the engine and the policy now; without a limit it is that.
    let parts: f64 = found.ages.iter().map(|row| row.drift).sum();
    let whole = found.limits.last().unwrap();
    assert!((parts / whole.drift - 1.0).abs() < 1e-2, "{parts} {}", whole.drift);
    assert_eq!((whole.trajectories, whole.steps), (1.0, 1.0));
    // A tighter limit leaves less, and what it leaves has drifted less.
    for two in found.limits.windows(2) {
        assert!(
            two[0].trajectories < two[1].trajectories
                && two[0].drift < two[1].drift
                && two[0].ess > two[1].ess
        );
    }
    // Reuse and the sampler are told apart among the numbers, too.
    let lengths = found.facts.mean_length;
    assert!((number(&found, "drift") / (0.0009 * lengths) - 1.0).abs() < 0.05);
    let apart: f64 = found.ages.iter().map(|row| row.steps * row.sampler.unwrap()).sum();
    assert!((number(&found, "sampler_drift") / (apart * lengths) - 1.0).abs() < 1e-2);
}

#[test]
fn ages_say_what_versions_say_and_ranks_do_not_matter() {
    let versions = measure(&packed(&asynchronous(200, 2, false)), Settings::default());
    let ages = measure(&packed(&asynchronous(200, 2, true)), Settings::default());
    assert_eq!(tables(&versions), tables(&ages));
    // A rank that has not seen the newest version: only together are ages known.
    let chunk = packed(&asynchronous(200, 2, false));
    let newest = *chunk.versions.iter().max().unwrap();
    let fresh = |lane: usize| chunk.versions[chunk.offsets[lane]..chunk.offsets[lane + 1]].contains(&newest);
    let measured = |keep: &dyn Fn(usize) -> bool| {
        let mut own = Measure::new(Settings::default());
        own.add(&part(&chunk, (0..200).filter(|&lane| keep(lane))));
        own
    };
    let (stale, young) = (measured(&|lane| !fresh(lane)), measured(&fresh));
    assert_eq!(stale.finish().ages[0].age, 0, "its own newest is taken for the newest there is");
    let mut both = stale.clone();
    both.merge(&Measure::from_tally(&young.tally()).unwrap()).unwrap();
    assert_eq!(tables(&both.finish()), tables(&versions));
    let mut back = young;
    back.merge(&stale).unwrap();
    assert_eq!(back.tally(), both.tally());
    // The trainer's version says how old the stalest rank is.
    let mut told = asynchronous(200, 2, false);
    told.iter_mut().for_each(|record| record.trainer_version = Some(42));
    let told = measure(&packed(&told), Settings::default());
    assert_eq!(told.ages.iter().map(|row| row.age).collect::<Vec<_>>(), [2, 3, 4, 5]);
}

/// A trajectory as a line.
fn line(more: &str) -> String {
    format!(
        r#"{{"old_log_prob": [-1, -2, -1], "new_log_prob": [-1.1, -2, -1], "behaviour_log_prob": [-1, -2.1, -1], "advantage": 1, {more}}}"#
    )
}

#[test]
fn files_say_so_under_the_names_of_other_trainers() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.jsonl");
    let text: String = [[3, 4, 4], [4, 4, 4], [5, 5, 5], [2, 3, 5]]
        .iter()
        .map(|versions| line(&format!(r#""versions": {versions:?}, "mask": [1, 1, 1]"#)) + "\n")
        .collect();
    fs::write(&file, text).unwrap();
    let found = advise(std::slice::from_ref(&file), Question::default(), &mut |_, _| {}).unwrap();
    assert_eq!(found.measured.ages.iter().map(|row| row.age).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let text = found.text(100).replace("\n", " ");
    assert!(text.contains("0 to 3 versions old") && text.contains("By the age of the policy"), "{text}");
    // Prompts are masked, and what stands there is not looked at.
    fs::write(&file, line(r#""versions": [-1, 7, 8], "mask": [0, 1, 1]"#) + "\n").unwrap();
    let found = read(std::slice::from_ref(&file), Naming::default(), Against::Old).unwrap();
    assert_eq!(found.ages.iter().map(|row| row.age).collect::<Vec<_>>(), [0, 1]);
    // One version for the trajectory.
    fs::write(&file, line(r#""version": 7, "trainer_version": 9"#) + "\n").unwrap();
    let found = read(&[file], Naming::default(), Against::Old).unwrap();
    assert_eq!((found.ages.len(), found.ages[0].age), (1, 2));
}

#[test]
fn what_we_write_keeps_versions_and_ages() {
    let folder = tempfile::tempdir().unwrap();
    for (at, ages) in [false, true].into_iter().enumerate() {
        let chunk = packed(&asynchronous(120, 3, ages));
        let file = folder.path().join(format!("{at}-dump.parquet"));
        let written = niwaki_advise::write::parquet(&chunk, None).unwrap();
        // Versions cost next to nothing.
        let mut bare = chunk.clone();
        (bare.clock, bare.versions) = (None, Vec::new());
        let more = written.bytes.len() - niwaki_advise::write::parquet(&bare, None).unwrap().bytes.len();
        assert!(2 * more < chunk.steps(), "{more} bytes for {} steps", chunk.steps());
        fs::write(&file, written.bytes).unwrap();
        let (found, live) =
            (read(&[file], Naming::default(), Against::Old).unwrap(), measure(&chunk, Settings::default()));
        for (one, other) in found.ages.iter().zip(&live.ages) {
            assert_eq!((one.age, one.steps), (other.age, other.steps));
            assert!((one.drift / other.drift - 1.0).abs() < 1e-3);
        }
        assert_eq!(found.ages.len(), live.ages.len());
    }
}

#[test]
fn hostile_versions_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.jsonl");
    let refuse = |lines: &[&str]| {
        let text: Vec<String> = lines.iter().map(|more| line(more)).collect();
        fs::write(&file, text.join("\n")).unwrap();
        let error =
            read(std::slice::from_ref(&file), Naming::default(), Against::Old).unwrap_err().to_string();
        assert!(!error.contains('\n'));
        error.split_once("dump.jsonl, ").unwrap().1.to_owned()
    };
    for (lines, said) in [
        (
            &[r#""version": [5, 4, 4]"#][..],
            "line 1: version[1] is 4 after 5; a later step is never sampled by an older policy",
        ),
        (
            &[r#""age": [1, 2, 2]"#],
            "line 1: age[1] is 2 after 1; a later step is never sampled by an older policy",
        ),
        (&[r#""age": [1, -1, -1]"#], "line 1: age[1] is -1; it must be a whole number from 0 on, below 2^53"),
        (
            &[r#""version": [1, 1.5, 2]"#],
            "line 1: version[1] is 1.5; it must be a whole number from 0 on, below 2^53",
        ),
        (
            &[r#""version": [1, NaN, 2]"#],
            "line 1: version[1] is NaN; it must be a whole number from 0 on, below 2^53",
        ),
        (&[r#""version": [1, 1e300, 2]"#], "line 1: version[1] is 1e300"),
        (&[r#""version": [1, 2]"#], "line 1: version has 2 values where old_log_prob has 3"),
        (
            &[r#""version": [1, 1, 2], "age": [1, 1, 0]"#],
            "line 1: version and a list of ages are both there; keep one of them",
        ),
        (
            &[r#""version": 4, "trainer_version": 3"#],
            "line 1: trainer_version is 3, below the version 4 of a step",
        ),
        (&[r#""trainer_version": 3"#], "line 1: trainer_version must be beside version"),
        (
            &[r#""version": 1"#, r#""age": [0, 0, 0]"#],
            "line 2: ages of steps where the first trajectory has versions",
        ),
        (
            &[r#""version": 1"#, r#""reward": 0"#],
            "line 2: neither versions nor ages of steps where the first trajectory has versions",
        ),
        (
            &[r#""reward": 0"#, r#""version": 1"#],
            "line 2: versions where the first trajectory has neither versions nor ages of steps",
        ),
        (&[r#""Versions": [1, 1, 2]"#], "line 1: Versions is not read; it looks like version"),
        (&[r#""kept": 1.5"#], "line 1: kept must be 0, or a chance of at least 1e-9 and at most 1; 1.5 came"),
        (&[r#""kept": -0.5"#], "line 1: kept must be 0, or a chance"),
        (&[r#""kept": NaN"#], "line 1: kept must be 0, or a chance"),
        (
            &[r#""kept": 0"#],
            "line 1: kept must be above 0 where steps are there; 0 beside 3 values of old_log_prob came",
        ),
    ] {
        let came = refuse(lines);
        assert!(came.starts_with(said), "{lines:?}: {came}");
    }
}
