//! Tallies of shares add up to that of the whole, to the last bit, and a file that is not one is refused.

use crate::support::{part, ragged, sampled, tables};
use niwaki_advise::measure::{Differ, Measure, Settings, Unreadable};
use niwaki_advise::trajectory::{Chunk, Clock};
use niwaki_advise::verdict::{Action, Verdict};
use niwaki_advise::{Error, Question, advise};
use niwaki_exact::{Pair, Process, Reward};
use niwaki_stream::Key;
use std::collections::BTreeMap;
use std::fs;

fn measured(chunk: &Chunk, settings: Settings) -> Measure {
    let mut measure = Measure::new(settings);
    measure.add(chunk);
    measure
}

/// A chunk with everything that a dump may hold: groups in several iterations, rewards, the sampling engine's log-probs.
fn full(lanes: usize, longest: usize, spread: f64, seed: u64) -> Chunk {
    let mut chunk = ragged(lanes, longest, spread, seed);
    chunk.behaviour = chunk.old.iter().map(|old| (old * 1.01 - 0.01).min(0.0)).collect();
    chunk.behaviour[3] = f64::NAN;
    // Versions that rise within trajectories, some of them far behind.
    chunk.clock = Some(Clock::Versions);
    chunk.versions = vec![0; chunk.steps()];
    for (lane, row) in chunk.offsets.clone().windows(2).enumerate() {
        let first = 400 - (lane as i64 * 37) % 400;
        for step in row[0]..row[1] {
            chunk.versions[step] = first + (step - row[0]) as i64 / 7;
        }
    }
    chunk
}

#[test]
fn any_split_in_any_order_is_the_whole() {
    let mut noise = Key::new(3, "splits").open();
    for (case, (longest, spread)) in [(12, 0.1), (300, 0.3), (40, 60.0)].into_iter().enumerate() {
        let chunk = full(160, longest, spread, case as u64);
        let verl = niwaki_advise::verl::Settings {
            rejection: niwaki_advise::verl::Rejection::parse("token_k1,seq_mean_k3", "0.5_2.0,0.01").unwrap(),
            ..Default::default()
        };
        let settings = Settings { verl, ..Settings::default() };
        let whole = measured(&chunk, settings);
        for ranks in [2, 3, 8] {
            // Every trajectory to a rank by chance, so that groups span ranks and some ranks may have none.
            let owner: Vec<u64> = (0..160).map(|_| noise.below(ranks)).collect();
            let mut shares: Vec<Measure> = (0..ranks)
                .map(|rank| measured(&part(&chunk, (0..160).filter(|&lane| owner[lane] == rank)), settings))
                .collect();
            for at in (1..shares.len()).rev() {
                shares.swap(at, noise.below(at as u64 + 1) as usize);
            }
            // One after the other, and two by two; through files and not.
            let mut chain = Measure::new(settings);
            shares
                .iter()
                .for_each(|share| chain.merge(&Measure::from_tally(&share.tally()).unwrap()).unwrap());
            assert_eq!(chain.tally(), whole.tally());
            while shares.len() > 1 {
                let last = shares.pop().unwrap();
                let at = noise.below(shares.len() as u64) as usize;
                shares[at].merge(&last).unwrap();
            }
            assert_eq!(shares[0].tally(), whole.tally());
            let json = |measure: &Measure| serde_json::to_string(&measure.finish()).unwrap();
            assert_eq!(json(&shares[0]), json(&whole));
        }
    }
}

#[test]
fn trajectories_without_a_group_fold_alike_in_any_split() {
    let mut chunk = ragged(90, 20, 0.2, 8);
    chunk.lanes.iter_mut().for_each(|lane| lane.group = None);
    let whole = measured(&chunk, Settings::default());
    let mut odd = measured(&part(&chunk, (0..90).filter(|lane| lane % 2 == 1)), Settings::default());
    odd.merge(&measured(&part(&chunk, (0..90).rev().filter(|lane| lane % 2 == 0)), Settings::default()))
        .unwrap();
    assert_eq!(odd.tally(), whole.tally());
    assert!(whole.finish().facts.folds > 15);
}

#[test]
fn more_iterations_than_places_thin_alike() {
    let chunk = ragged(3000, 70, 0.2, 9);
    let mut numbered = chunk.clone();
    numbered.lanes.iter_mut().enumerate().for_each(|(at, lane)| lane.iteration = at as i64);
    let whole = measured(&numbered, Settings::default());
    let mut late = measured(&part(&numbered, 1500..3000), Settings::default());
    late.merge(&measured(&part(&numbered, 0..1500), Settings::default())).unwrap();
    assert_eq!(late.tally(), whole.tally());
}

/// The share of one of several ranks: groups go to ranks as TRL's shuffle leaves them.
fn shares(chunk: &Chunk, world: u32, settings: Settings) -> Vec<Measure> {
    let lanes = chunk.lanes.len();
    (0..world)
        .map(|rank| {
            let own = (0..lanes).filter(|lane| (*lane as u32).wrapping_mul(2_654_435_761) % world == rank);
            let mut measure = Measure::new(settings).of_rank(rank, world);
            measure.add(&part(chunk, own));
            measure
        })
        .collect()
}

#[test]
fn the_verdict_does_not_depend_on_the_ranks() {
    // 200 exact pairs: four rewards, five drifts, ten seeds.
    let process = Process::new(4, 5).unwrap();
    let settings = Settings { batch: Some(256.0), ..Settings::default() };
    let (mut alike, mut alone, mut all) = (0, 0, 0);
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for reward in Reward::LADDER.into_iter().take(4) {
        let payoff = reward.payoff(process).unwrap();
        for drift in [0.03, 0.1, 0.3, 0.6, 1.0] {
            for seed in 0..10 {
                let (old, new) = tables(process, drift, seed);
                let pair = Pair::new(&old, &new, &payoff).unwrap();
                let mut noise = Key::new(seed, "ranks").open();
                let mut chunk = sampled(&old, &new, pair.old_values(), 1024, &mut noise);
                // Eight completions of a prompt.
                chunk.lanes.iter_mut().enumerate().for_each(|(at, lane)| lane.group = Some(at as u64 / 8));
                let whole = Verdict::new(&measured(&chunk, settings).finish());
                *kinds.entry(format!("{:?}", whole.action).chars().take(8).collect()).or_default() += 1;
                all += 1;
                let same = [1, 2, 8].into_iter().all(|world| {
                    let mut parts = shares(&chunk, world, settings);
                    let mut merged = parts.pop().unwrap();
                    parts.iter().for_each(|part| merged.merge(part).unwrap());
                    let verdict = Verdict::new(&merged.finish());
                    verdict == whole
                });
                alike += usize::from(same);
                let share = Verdict::new(&shares(&chunk, 8, settings)[0].finish());
                assert!(share.says.starts_with("of 1 of 8 ranks, a share of the batch: "), "{}", share.says);
                alone += usize::from(
                    std::mem::discriminant(&share.action) == std::mem::discriminant(&whole.action),
                );
            }
        }
    }
    assert_eq!((alike, all), (200, 200), "one share alone agrees in {alone}");
    // A law about one verdict would say nothing.
    assert!(kinds.len() >= 3, "{kinds:?}");
    assert!(alone < 200, "a single share would do");
}

#[test]
fn a_share_knows_how_large_the_batch_is() {
    let chunk = ragged(160, 12, 0.1, 1);
    let parts = shares(&chunk, 8, Settings::default());
    let whole = measured(&chunk, Settings::default()).finish().facts.batch;
    let share = parts[0].finish().facts;
    // By chance about an eighth of the trajectories each.
    assert!((share.batch / whole - 1.0).abs() < 0.3, "{} {whole}", share.batch);
    assert!(share.ranks.unwrap().is_share());
    let mut all = parts[0].clone();
    parts[1..].iter().for_each(|part| all.merge(part).unwrap());
    let facts = all.finish().facts;
    assert_eq!(facts.batch, whole);
    assert!(!facts.ranks.unwrap().is_share());
    assert_eq!(all.merge(&parts[3]), Err(Differ::Twice { rank: 3, iteration: 0 }));
}

#[test]
fn what_does_not_go_together_is_refused_by_name() {
    let chunk = ragged(20, 6, 0.1, 1);
    let own = measured(&chunk, Settings::default());
    let refuse = |other: &Measure| own.clone().merge(other).unwrap_err().to_string();
    let clip = niwaki_correction::Clip { low: 0.2, high: 0.28, dual: None };
    assert_eq!(
        refuse(&measured(&chunk, Settings { clip, ..Settings::default() })),
        "clip is (0.2, 0.28) there and (0.2, 0.2) here; tallies of one run are measured under the same settings"
    );
    let mut scored = chunk.clone();
    scored.behaviour.clone_from(&scored.old);
    assert_eq!(own.clone().merge(&measured(&scored, Settings::default())), Err(Differ::Engines));
    let mut aged = chunk.clone();
    (aged.clock, aged.versions) = (Some(Clock::Ages), vec![0; chunk.steps()]);
    assert_eq!(
        refuse(&measured(&aged, Settings::default())),
        "steps have ages there and neither versions nor ages here; give the same to every trajectory"
    );
    let of_four = Measure::new(Settings::default()).of_rank(0, 4);
    let error = of_four.clone().merge(&Measure::new(Settings::default()).of_rank(1, 8)).unwrap_err();
    assert_eq!(error.to_string(), "a batch is shared by 8 ranks there and by 4 here");
    // The mean reward of a prompt whose completions lie on two ranks is neither's.
    let mut made = chunk;
    made.lanes.iter_mut().for_each(|lane| lane.own_baseline = true);
    let [one, other] = [0, 1]
        .map(|half| measured(&part(&made, (0..20).filter(|lane| lane % 2 == half)), Settings::default()));
    assert_eq!(one.clone().merge(&other), Err(Differ::Baselines { iteration: 0 }));
    let before = one.tally();
    let mut kept = one;
    assert!(kept.merge(&other).is_err());
    assert_eq!(kept.tally(), before);
    // Whole prompts on each rank are sound.
    let [one, other] = [0..8, 8..20].map(|lanes| measured(&part(&made, lanes), Settings::default()));
    assert!(one.clone().merge(&other).is_ok());
}

#[test]
fn damage_is_one_line() {
    let tally = measured(&full(12, 9, 0.1, 2), Settings::default()).tally();
    assert!(Measure::from_tally(&tally).is_ok());
    let refuse = |bytes: &[u8]| Measure::from_tally(bytes).map(drop).unwrap_err();
    for length in 0..tally.len() {
        let error = refuse(&tally[..length]);
        assert!(!error.to_string().contains('\n'), "{error}");
    }
    for at in 0..tally.len() {
        let mut changed = tally.clone();
        changed[at] ^= 0x10;
        refuse(&changed);
    }
    let mut longer = tally.clone();
    longer.push(0);
    assert_eq!(refuse(&longer).to_string(), "a damaged tally: it goes on behind its end");
    let mut newer = tally.clone();
    newer[12] = 9;
    assert_eq!(refuse(&newer), Unreadable::Version { version: 9 });
    assert_eq!(refuse(b"{\"old_log_prob\": [-1]}"), Unreadable::Mark);
}

/// FNV-1a, as the file's foot has it.
fn signed(mut bytes: Vec<u8>) -> Vec<u8> {
    let length = bytes.len() - 8;
    bytes.truncate(length);
    let sum = niwaki_files::Digest::of(&bytes).value();
    bytes.extend(sum.to_le_bytes());
    bytes
}

#[test]
fn bytes_with_a_sound_checksum_may_lie() {
    let tally = measured(&full(12, 9, 0.1, 2), Settings::default()).tally();
    let mut noise = Key::new(1, "lies").open();
    let mut read = 0;
    for _ in 0..4000 {
        let mut lie = tally.clone();
        for _ in 0..1 + noise.below(3) {
            let at = 24 + noise.below(tally.len() as u64 - 32) as usize;
            lie[at] = noise.below(256) as u8;
        }
        // Refused or read: never a panic, and what is read can be merged and finished.
        if let Ok(mut found) = Measure::from_tally(&signed(lie)) {
            read += 1;
            let _ = found.merge(&found.clone());
            let _ = Verdict::new(&found.finish());
        }
    }
    assert!(read > 0);
}

#[test]
fn files_of_ranks_are_one_run() {
    let folder = tempfile::tempdir().unwrap();
    let chunk = ragged(160, 12, 0.3, 1);
    let parts = shares(&chunk, 4, Settings::default());
    let files: Vec<_> = (0..4).map(|rank| folder.path().join(format!("rank{rank}.tally"))).collect();
    files.iter().zip(&parts).for_each(|(file, part)| fs::write(file, part.tally()).unwrap());
    let ask = |files: &[std::path::PathBuf]| advise(files, Question::default(), &mut |_, _| {});
    let found = ask(&files).unwrap();
    let whole = measured(&chunk, Settings::default()).finish();
    assert_eq!(format!("{:?}", found.measured.numbers), format!("{:?}", whole.numbers));
    assert!(matches!(found.verdict.action, action if action == Verdict::new(&whole).action));
    assert!(ask(&files[..3]).unwrap().text(100).contains("3 of 4 ranks"));
    let dump = folder.path().join("dump.jsonl");
    fs::write(&dump, "{}").unwrap();
    let error = ask(&[files[0].clone(), dump]).unwrap_err();
    assert!(matches!(&error, Error::Mixed { .. }), "{error}");
    fs::write(&files[1], &parts[1].tally()[..100]).unwrap();
    let error = ask(&files).unwrap_err().to_string();
    assert!(error.ends_with("rank1.tally: a damaged tally: it ends too early"), "{error}");
    // A batch may be named afterwards: no sum depends on it.
    fs::write(&files[1], parts[1].tally()).unwrap();
    let settings = Settings { batch: Some(16.0), ..Settings::default() };
    let asked = advise(&files, Question { settings, ..Question::default() }, &mut |_, _| {}).unwrap();
    assert_eq!(asked.measured.facts.batch, 16.0);
    assert!(!matches!(asked.verdict.action, Action::NoSignal));
}
