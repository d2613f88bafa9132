//! Dumps as trainers write them: batches used several times, tokens without a score, numbers that JSON does not know.

use crate::layouts::{fixture, read};
use crate::support::number;
use niwaki_advise::measure::Measured;
use niwaki_advise::schema::Naming;
use niwaki_advise::trajectory::Against;
use niwaki_advise::verl::{Settings, Tally};
use std::fs;
use std::path::PathBuf;

fn written(text: &str, against: Against) -> Result<Measured, niwaki_advise::Error> {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join("dump.jsonl");
    fs::write(&file, text).unwrap();
    read(&[file], Naming::default(), against)
}

#[test]
fn the_last_use_of_a_batch_counts_and_earlier_ones_do_not() {
    // Batch 0 was used three times, batch 1 twice; the policy moves on with every use.
    let line = |iteration: usize, age: usize, lane: usize| {
        let new = -1.0 - 0.1 * age as f64 - 0.01 * lane as f64;
        format!(
            "{{\"iteration\": {iteration}, \"use\": {age}, \"group\": {lane}, \"old_log_prob\": [-1, -1], \
             \"new_log_prob\": [{new}, {new}], \"reward\": {lane}}}\n"
        )
    };
    let mut all = String::new();
    for (iteration, uses) in [(0, 3), (1, 2)] {
        for age in 0..uses {
            (0..4).for_each(|lane| all += &line(iteration, age, lane));
        }
    }
    let last: String =
        [(0, 2), (1, 1)].iter().flat_map(|&(i, age)| (0..4).map(move |lane| line(i, age, lane))).collect();
    let (came, expected) = (written(&all, Against::Old).unwrap(), written(&last, Against::Old).unwrap());
    assert_eq!((came.facts.trajectories, came.facts.earlier_uses, expected.facts.earlier_uses), (8, 12, 0));
    assert_eq!(format!("{:?}", came.numbers), format!("{:?}", expected.numbers));
}

#[test]
fn words_of_python_stand_at_masked_steps_alone() {
    let good = "{\"old_log_prob\": [-1, NaN, -2], \"new_log_prob\": [-1, -Infinity, -2], \"mask\": [1, 0, 1], \
                \"advantage\": 1, \"note\": \"NaN is \\\" text\"}\n";
    let plain = "{\"old_log_prob\": [-1, -2], \"new_log_prob\": [-1, -2], \"advantage\": 1}\n";
    let (came, expected) =
        (written(&good.repeat(2), Against::Old).unwrap(), written(&plain.repeat(2), Against::Old).unwrap());
    assert_eq!(format!("{:?}", came.numbers), format!("{:?}", expected.numbers));
    let refused = written(&good.replace("[1, 0, 1]", "[1, 1, 1]"), Against::Old).unwrap_err().to_string();
    assert!(
        refused.ends_with("old_log_prob[1] is NaN; every value at a step of the policy must be finite"),
        "{refused}"
    );
}

#[test]
fn tokens_without_a_score_are_left_out_and_counted() {
    let line = "{\"old_log_prob\": [-1, -2, -3], \"new_log_prob\": [-1.1, -2.1, -2.9], \"advantage\": 1, \
                \"sampling_per_token_logps\": [-1.2, NaN, -3.3]}\n";
    let old = written(&line.repeat(2), Against::Old).unwrap();
    assert_eq!((old.facts.steps, old.facts.unscored_steps), (6, 2));
    let mut tally = Tally::new(Settings::default());
    (0..2).for_each(|_| tally.add(&[-1.0, -3.0], &[-1.2, -3.3]));
    assert_eq!(old.verl, tally.metrics());
    // Held against the engine itself, such a step is no step.
    let engine = written(&line.repeat(2), Against::Behaviour).unwrap();
    assert_eq!((engine.facts.steps, engine.facts.unscored_steps), (4, 2));
}

#[test]
fn without_old_log_probs_the_current_policy_is_compared_with_the_engine() {
    let line = "{\"log_probs\": [-1.1, -2.1], \"advantage\": 1, \"rollout_log_probs\": [-1.2, -2.5]}\n";
    let came = written(&line.repeat(2), Against::Old).unwrap();
    let mut tally = Tally::new(Settings::default());
    (0..2).for_each(|_| tally.add(&[-1.1, -2.1], &[-1.2, -2.5]));
    assert_eq!(came.verl, tally.metrics());
    // Mean of −ℓ: ℓ is 0.1 and 0.4.
    assert!((number(&came, "kl_k1") + 0.25).abs() < 1e-12);
}

#[test]
fn one_value_per_trajectory_may_stand_in_a_column() {
    let came = read(&[fixture("columns.npz")], Naming::default(), Against::Old).unwrap();
    let facts = &came.facts;
    assert_eq!((facts.trajectories, facts.steps, facts.iterations, facts.groups), (6, 15, 2, 4));
    assert!((number(&came, "kl_k1") - 0.1).abs() < 1e-12);
}

/// Lines of a dump with a field more.
fn with_field(lines: usize, field: impl Fn(usize) -> String) -> String {
    let line = |at: usize| {
        format!(
            "{{\"old_log_prob\":[-0.5,-1.5],\"new_log_prob\":[-0.6,-1.2],\"advantage\":{},{}}}\n",
            if at.is_multiple_of(2) { 1 } else { -1 },
            field(at)
        )
    };
    (0..lines).map(line).collect()
}

fn asked(text: &str) -> Result<niwaki_advise::Advice, niwaki_advise::Error> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.jsonl");
    fs::write(&file, text).unwrap();
    niwaki_advise::advise(&[file], niwaki_advise::Question::default(), &mut |_, _| {})
}

#[test]
fn groups_beyond_two_to_the_53_stay_apart() {
    let base = 9_007_199_254_740_992_u64;
    let few = asked(&with_field(40, |at| format!("\"group\":{}", base + at as u64 / 4))).unwrap();
    assert_eq!(few.measured.facts.groups, 10);
    let negative = asked(&with_field(40, |at| format!("\"group\":-{}", base + at as u64 / 4))).unwrap();
    assert_eq!(negative.measured.facts.groups, 10);
    // A number of more digits than 64 bits hold comes as a float, which has lost them.
    let long = asked(&with_field(4, |_| "\"group\":36893488147419103233".to_owned())).unwrap_err();
    assert!(
        long.to_string().contains("line 1: group") && long.to_string().contains("write it as text"),
        "{long}"
    );
    assert!(asked(&with_field(4, |_| "\"iteration\":9007199254740993".to_owned())).is_err());
}

#[test]
fn what_is_not_read_is_told() {
    let told =
        asked(&with_field(8, |_| "\"prompt\":\"a\",\"rewards\":5,\"reward\":5,\"steps\":2".to_owned()))
            .unwrap();
    assert_eq!(told.measured.facts.unread, ["prompt", "rewards", "steps"]);
    assert!(told.text(100).contains("not read: prompt, rewards, steps"));
    // Which of two was meant would change every number.
    let second = asked(&with_field(8, |_| "\"advantages\":5".to_owned())).unwrap_err().to_string();
    assert!(second.ends_with("line 1: advantages is a second advantage; keep one of the two"), "{second}");
    let slip = asked(&with_field(8, |_| "\"masks\":[1,0]".to_owned())).unwrap_err().to_string();
    assert!(slip.contains("line 1: masks is not read; it looks like mask"), "{slip}");
    assert!(asked(&with_field(8, |_| "\"mask\":[1,1],\"masks\":[1,0]".to_owned())).is_ok());
}

#[test]
fn whole_numbers_of_eight_bytes_name_groups_in_archives() {
    fn npy(kind: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let mut header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
        while (header.len() + 11) % 64 != 0 {
            header.push(' ');
        }
        header.push('\n');
        let length = u16::try_from(header.len()).unwrap().to_le_bytes();
        [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), values].concat()
    }
    let floats = |count: usize, value: &dyn Fn(usize) -> f64| {
        (0..count).flat_map(|at| value(at).to_le_bytes()).collect::<Vec<u8>>()
    };
    let asked = |kind: &str, groups: &[u8]| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dump.npz");
        let mut archive = zip::ZipWriter::new(fs::File::create(&file).unwrap());
        let stored = zip::write::SimpleFileOptions::default();
        let sign = |at: usize| if at.is_multiple_of(2) { 1.0 } else { -1.0 };
        for (name, array) in [
            ("old_log_prob", npy("<f8", "40, 2", &floats(80, &|_| -1.0))),
            ("new_log_prob", npy("<f8", "40, 2", &floats(80, &|at| -1.0 - at as f64 / 100.0))),
            ("advantage", npy("<f8", "40,", &floats(40, &sign))),
            ("group", npy(kind, "40,", groups)),
        ] {
            archive.start_file(name, stored).unwrap();
            std::io::Write::write_all(&mut archive, &array).unwrap();
        }
        archive.finish().unwrap();
        niwaki_advise::advise(&[file], niwaki_advise::Question::default(), &mut |_, _| {})
    };
    let whole: Vec<u8> = (0..40).flat_map(|at| (u64::MAX - at / 4).to_le_bytes()).collect();
    for kind in ["<u8", "<i8"] {
        assert_eq!(asked(kind, &whole).unwrap().measured.facts.groups, 10, "{kind}");
    }
    let blurred = asked("<f8", &floats(40, &|at| 1e17 + at as f64)).unwrap_err().to_string();
    assert!(blurred.contains("group") && blurred.contains("2^53"), "{blurred}");
}
