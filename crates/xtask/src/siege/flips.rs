//! One bit of one file of a run's or a study's folder, turned over; then the same command again.
//!
//! The command refuses the folder and leaves it alone, or it ends with the bytes of an undisturbed run. What it must not do
//! is to go on from a wrong number.

use super::attempt::{Arena, Attempt, files};
use super::faults::{Play, left};
use super::words::{STUDY, line};
use super::{Row, Scale};
use crate::root;
use anyhow::{Context, ensure};
use niwaki_stream::Key;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Stops a run at its checkpoint half-way: an interruption is asked for as soon as there is one.
const HALFWAY: &str = "checkpoint.safetensors";

/// A run of some iterations, saved after each.
pub(super) const RUN: &str = "train ROOT/examples/train/tabular-ppo.toml --out out --set iterations=40 --set task.horizon=3 \
    --set checkpoint.every=1 --set dump.every=4";

/// Files that people bring, and the doors that read them.
const BROUGHT: &[(&str, &str)] = &[
    ("solve --time 1s --method rule:spt", "data/jsp/ft06.txt"),
    ("solve --time 1s --method rule:spt", "data/fjsp/kacem/k1.fjs"),
    ("solve --time 1s", "fuzz/corpus/plan.csv/small.csv"),
    ("solve --time 1s", "fuzz/corpus/plan.json/small.json"),
    ("verify ROOT/fuzz/corpus/plan.csv/small.csv", "fuzz/corpus/plan.schedule/small.csv"),
    ("advise", "crates/niwaki-advise/tests/fixtures/dump.jsonl"),
    ("advise", "crates/niwaki-advise/tests/fixtures/flat.npz"),
    ("advise", "crates/niwaki-advise/tests/fixtures/padded.npz"),
    ("advise", "crates/niwaki-advise/tests/fixtures/plain.parquet"),
    ("advise", "crates/niwaki-advise/tests/fixtures/gzip.parquet"),
    ("advise", "crates/niwaki-advise/tests/fixtures/snappy.parquet"),
    ("advise", "crates/niwaki-advise/tests/fixtures/polars.parquet"),
    ("train --print-spec", "examples/train/flow-shop.toml"),
    ("oracle --horizon 2 --vocab 2 --seeds 1 --losses ppo --reward-table", "fuzz/corpus/table.npy/f4.npy"),
    ("bench shop ROOT/data/jsp --prefix ft06 --bounds", "data/jsp/bounds.csv"),
];

pub(super) fn attack(arena: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    let each = if scale == Scale::Quick { 4 } else { 100 };
    let shop = "train ROOT/examples/train/flow-shop.toml --out out --set iterations=4 --set task.jobs=4 --set task.machines=2 \
        --set task.training=4 --set task.validation=2 --set policy.width=4 --set policy.heads=1 --set policy.hidden=4 \
        --set rollout.lanes=4 --set rollout.group=2 --set update.reuse=1 --set warmup.iterations=1 --set checkpoint.every=1";
    let mut rows = Vec::new();
    for (what, asked, halfway) in [
        ("of a finished run's files", line(RUN), false),
        ("of a half-way run's files", line(RUN), true),
        ("of a finished run of shops", line(shop), false),
        ("of a finished study's files", Attempt::new("reproduce own.toml --out out"), false),
    ] {
        rows.push(row(arena, what, &asked, halfway, each)?);
    }
    rows.push(brought(arena, each)?);
    Ok(rows)
}

/// Files that people bring, with a bit turned over: an answer or a refusal, in time and within the cap on memory.
fn brought(arena: &Arena, each: u64) -> anyhow::Result<Row> {
    let mut row = Row::new("flipped bits of files that people bring");
    for (door, file) in BROUGHT {
        let bytes = fs::read(root().join(file)).with_context(|| format!("cannot read {file}"))?;
        let ending = file.rsplit('/').next().unwrap_or(file);
        let mut noise = Key::new(2026, "brought").iteration(bytes.len() as u64).open();
        for _ in 0..each {
            let bit = noise.below(8 * bytes.len() as u64) as usize;
            let folder = arena.folder("brought")?;
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            fs::write(folder.join(ending), &changed)?;
            let broke = arena.broken(&line(door).word(ending).within(30), &folder)?;
            row.add(broke.map(|broke| format!("{file} bit {bit}: {broke}")));
        }
    }
    Ok(row)
}

fn row(arena: &Arena, what: &str, asked: &Attempt, halfway: bool, each: u64) -> anyhow::Result<Row> {
    let mut row = Row::new(&format!("flipped bits {what}"));
    let play = Play::new(arena, asked, ("own.toml", STUDY))?;
    let kept = if halfway { stopped(arena, &play)? } else { play.whole(arena)? };
    for (name, bytes) in &kept {
        // What the user wrote is not a file of the run.
        if name == Path::new("own.toml") {
            continue;
        }
        let mut noise = Key::new(2026, "flips").iteration(bytes.len() as u64).open();
        for _ in 0..each {
            let bit = noise.below(8 * bytes.len().max(1) as u64) as usize;
            let folder = play.ground(arena)?;
            put(&folder, &kept)?;
            let mut changed = bytes.clone();
            match changed.get_mut(bit / 8) {
                Some(byte) => *byte ^= 1 << (bit % 8),
                None => continue,
            }
            fs::write(folder.join(name), &changed)?;
            let broke = judged(arena, &play, &folder, name, &changed)?;
            row.add(broke.map(|broke| format!("{what}, {} bit {bit}: {broke}", name.display())));
        }
    }
    ensure!(row.count > 0, "no file of {what} was flipped");
    Ok(row)
}

/// What came of the second run: a refusal that changed nothing of the file, or the bytes that should be there.
fn judged(
    arena: &Arena,
    play: &Play,
    folder: &Path,
    name: &Path,
    changed: &[u8],
) -> anyhow::Result<Option<String>> {
    let ended = arena.run(&play.asked, folder)?;
    if let Some(broke) = ended.broke() {
        return Ok(Some(broke));
    }
    if ended.code() == Some(2) {
        let same = fs::read(folder.join(name)).is_ok_and(|now| now == changed);
        return Ok((!same).then(|| format!("was refused and changed: {}", ended.said.trim_end())));
    }
    Ok(play.differs(&left(folder)?))
}

/// A run's files when it had saved some iterations and was stopped.
pub(super) fn stopped(arena: &Arena, play: &Play) -> anyhow::Result<BTreeMap<PathBuf, Vec<u8>>> {
    let folder = play.ground(arena)?;
    let wait = format!(
        "me=$$; (for i in $(seq 400); do sleep 0.01; if [ -e out/{HALFWAY} ]; then kill -INT $me; break; fi; done) & disown"
    );
    let ended = arena.run(&play.asked.clone().after(&wait), &folder)?;
    ensure!(
        ended.code() == Some(130),
        "the run could not be stopped half-way: {:?} {}",
        ended.status,
        ended.said
    );
    files(&folder).context("no files")
}

pub(super) fn put(folder: &Path, kept: &BTreeMap<PathBuf, Vec<u8>>) -> anyhow::Result<()> {
    for (name, bytes) in kept {
        let path = folder.join(name);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, bytes)?;
    }
    Ok(())
}
