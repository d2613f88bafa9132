//! Dumps as we write them: small, read back as they were, and thinned without a bias.

use crate::layouts::read;
use crate::support::{measure, number, part, ragged, sampled, tables};
use niwaki_advise::measure::{Measured, Settings};
use niwaki_advise::schema::Naming;
use niwaki_advise::trajectory::{Against, Chunk};
use niwaki_advise::verdict::Verdict;
use niwaki_advise::write::parquet;
use niwaki_advise::{Question, advise};
use niwaki_exact::{Pair, Process, Reward};
use niwaki_stream::Key;
use std::fs;

/// What a chunk says after it was written and read.
fn through_a_file(chunk: &Chunk, budget: Option<u64>) -> Measured {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.parquet");
    fs::write(&file, parquet(chunk, budget).unwrap().bytes).unwrap();
    read(&[file], Naming::default(), Against::Old).unwrap()
}

/// Log-probs, advantages and rewards of whole batches, with the sampling engine's scores.
fn full(lanes: usize, longest: usize) -> Chunk {
    let mut chunk = ragged(lanes, longest, 0.05, 4);
    chunk.behaviour = chunk.old.iter().map(|old| (old * 1.01 - 0.01).min(0.0)).collect();
    chunk.behaviour[3] = f64::NAN;
    chunk
}

#[test]
fn a_dump_reads_back_as_it_was_written() {
    // Trajectories of one step, of none, and pages that end within the file: more steps than one page holds.
    let mut chunk = full(900, 400);
    chunk.offsets.push(chunk.steps());
    chunk.lanes.push(chunk.lanes[0]);
    assert!(chunk.steps() > 1 << 17);
    let (before, after) = (measure(&chunk, Settings::default()), through_a_file(&chunk, None));
    assert_eq!(before.facts.trajectories, after.facts.trajectories);
    assert_eq!((before.facts.steps, before.facts.groups), (after.facts.steps, after.facts.groups));
    assert_eq!(before.facts.verl_pair, after.facts.verl_pair);
    for (one, other) in before.numbers.iter().zip(&after.numbers) {
        // Values are rounded to a millionth; everything else is as it was.
        let width = one.high.unwrap_or(one.value) - one.low.unwrap_or(one.value);
        let slack = (3e-5 * one.value.abs()).max(1e-3 * width).max(1e-9);
        let alike = (one.value - other.value).abs() <= slack || (one.value.is_nan() && other.value.is_nan());
        assert!(alike, "{}: {} became {}", one.name, one.value, other.value);
    }
    // The same trajectories are the same bytes.
    assert_eq!(parquet(&chunk, None).unwrap().bytes, parquet(&chunk.clone(), None).unwrap().bytes);
}

#[test]
fn a_step_takes_eight_bytes_at_most() {
    // Three policies and an advantage for every step: the largest that a dump holds. Log-probs spread over three units.
    let chunk = full(600, 400);
    let each = parquet(&chunk, None).unwrap().bytes.len() as f64 / chunk.steps() as f64;
    assert!(each <= 10.0, "{each} bytes a step with an advantage for each");
    let mut constant = chunk.clone();
    for row in chunk.offsets.windows(2) {
        constant.advantage[row[0]..row[1]].fill(chunk.advantage[row[0]]);
    }
    let each = parquet(&constant, None).unwrap().bytes.len() as f64 / chunk.steps() as f64;
    assert!(each <= 8.0, "{each} bytes a step");
    constant.behaviour.clear();
    let each = parquet(&constant, None).unwrap().bytes.len() as f64 / chunk.steps() as f64;
    assert!(each <= 5.5, "{each} bytes a step of two policies");
}

#[test]
fn a_thinned_dump_has_the_means_of_the_whole() {
    // One batch, numbered differently each time, so that other groups are kept: sums over what was kept, over its chance, have
    // the mean that the whole has. Groups of eight of different lengths; a quarter of the steps.
    let whole = ragged(160, 12, 0.3, 7);
    let draws = 1500_usize;
    let names = ["bias_total", "mean_advantage", "clip_fraction"];
    let expected = measure(&whole, Settings::default());
    let (mut steps, mut sums, mut squares) = (0.0, [0.0; 3], [0.0; 3]);
    for draw in 0..draws {
        let mut chunk = whole.clone();
        chunk.lanes.iter_mut().for_each(|lane| {
            lane.iteration = draw as i64;
            lane.weight = 1.0;
        });
        let written = parquet(&chunk, Some(whole.steps() as u64 / 4)).unwrap();
        assert!((written.chance - 0.25).abs() < 0.01);
        steps += written.steps as f64 / written.chance;
        if draw < 300 {
            let found = through_a_file(&chunk, Some(whole.steps() as u64 / 2));
            for (at, name) in names.iter().enumerate() {
                let value = number(&found, name);
                sums[at] += value;
                squares[at] += value * value;
            }
        }
    }
    // A group has about 26 steps of 1,040; at p = ¼ the estimate of their number has a standard error of about
    // √(40 groups · 26² · 3) = 285, the mean of 1,500 of 7.4. Five of those are allowed.
    let off = steps / draws as f64 - whole.steps() as f64;
    assert!(off.abs() < 37.0, "{off} of {}", whole.steps());
    let unweighted = {
        let mut chunk = whole.clone();
        chunk.lanes.iter_mut().for_each(|lane| lane.weight = 1.0);
        measure(&chunk, Settings::default())
    };
    assert_ne!(number(&expected, "bias_total"), number(&unweighted, "bias_total"));
    for (at, name) in names.iter().enumerate() {
        let mean = sums[at] / 300.0;
        let error = ((squares[at] / 300.0 - mean * mean) / 300.0).sqrt();
        let off = mean - number(&unweighted, name);
        // Ratios of unbiased sums: what is left of a bias is below their spread over the number of groups.
        assert!(off.abs() < 5.0 * error, "{name}: {off} beside {error}");
    }
}

#[test]
fn intervals_of_thinned_dumps_are_honest() {
    let process = Process::new(3, 4).unwrap();
    let payoff = Reward::TwoBranch.payoff(process).unwrap();
    let (old, new) = tables(process, 0.4, 11);
    let pair = Pair::new(&old, &new, &payoff).unwrap();
    let exact: f64 = pair.conditions().bias_witness.iter().sum();
    let (mut inside, mut wider) = (0, 0.0);
    for batch in 0..400_u64 {
        let mut noise = Key::new(11, "thinned").iteration(batch).open();
        let mut chunk = sampled(&old, &new, pair.old_values(), 1600, &mut noise);
        for (at, lane) in chunk.lanes.iter_mut().enumerate() {
            lane.group = Some(niwaki_advise::keys::key_of_whole((at / 4) as i128 + 1000 * i128::from(batch)));
        }
        let interval = |measured: &Measured| {
            let found = measured.numbers.iter().find(|number| number.name == "bias_total").unwrap();
            (found.low.unwrap(), found.high.unwrap())
        };
        let thinned = through_a_file(&chunk, Some(chunk.steps() as u64 / 4));
        let (low, high) = interval(&thinned);
        inside += usize::from(low <= exact && exact <= high);
        if batch < 40 {
            let all = interval(&measure(&chunk, Settings::default()));
            wider += (high - low) / (all.1 - all.0) / 40.0;
        }
    }
    // 400 intervals: a standard error of 1.1 points; three of those on either side of 95%.
    let share = inside as f64 / 400.0;
    assert!((0.917..=0.983).contains(&share), "{share} cover");
    // A quarter of the data: twice the width.
    assert!((1.7..2.4).contains(&wider), "{wider}");
}

#[test]
fn a_thinned_dump_says_so_and_keeps_rewards_and_batches() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("dump.parquet");
    let mut whole = ragged(400, 12, 0.3, 5);
    whole.lanes.iter_mut().for_each(|lane| lane.weight = 1.0);
    fs::write(&file, parquet(&whole, Some(whole.steps() as u64 / 8)).unwrap().bytes).unwrap();
    let found = advise(&[file], Question::default(), &mut |_, _| {}).unwrap();
    let text = found.text(100).replace("\n", " ");
    assert!(text.contains("thinned: the steps of "), "{text}");
    let (all, facts) = (measure(&whole, Settings::default()), &found.measured.facts);
    assert_eq!((facts.trajectories, facts.batch), (all.facts.trajectories, all.facts.batch));
    assert!(facts.thinned > 250 && facts.lanes + facts.thinned == 400, "{facts:?}");
    for (one, other) in all.iterations.iter().zip(&found.measured.iterations) {
        assert_eq!((one.mean_reward, one.rewarded), (other.mean_reward, other.rewarded));
    }
    for name in ["zero_reward_batches", "silent_batches", "chance_of_none", "headroom"] {
        assert_eq!(number(&all, name), number(&found.measured, name), "{name}");
    }
    // Shares of a thinned dump merge as any do.
    assert!(Verdict::new(&found.measured).says.len() > 10);
}

#[test]
fn thinning_is_by_whole_groups_wherever_they_lie() {
    let whole = ragged(160, 12, 0.3, 9);
    let budget = whole.steps() as u64 / 3;
    let kept = |chunk: &Chunk, share: u64| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("dump.parquet");
        fs::write(&file, parquet(chunk, Some(budget / share)).unwrap().bytes).unwrap();
        let mut dump =
            niwaki_advise::read::Dump::open(&[file], Naming::default(), Against::Old, false).unwrap();
        let mut chunk = dump.chunk();
        assert!(dump.next(&mut chunk).unwrap());
        chunk.lanes.iter().map(|lane| ((lane.iteration, lane.group), lane.kept > 0.0)).collect::<Vec<_>>()
    };
    let all: std::collections::BTreeMap<_, _> = kept(&whole, 1).into_iter().collect();
    let own = kept(&whole, 1);
    assert!(own.iter().all(|(group, kept)| all[group] == *kept));
    // Two ranks with half of the batch and half of the budget each: chances differ by a hair, and so few groups that one of 120
    // may lie between.
    let halves = [0, 1].map(|half| kept(&part(&whole, (0..160).filter(|lane| lane % 2 == half)), 2));
    let apart = halves.iter().flatten().filter(|(group, kept)| all[group] != *kept).count();
    assert!(apart <= 6, "{apart}");
}
