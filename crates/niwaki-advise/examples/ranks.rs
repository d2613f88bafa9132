//! Does the verdict depend on the ranks that share a batch? `cargo run --release -p niwaki-advise --example ranks -- [SEEDS]`
//!
//! 200 pairs of tabular policies (four rewards, five drifts, ten seeds), 1,024 trajectories each in groups of eight. Each batch is
//! shared by 1, 2 and 8 ranks, by chance, so that groups span ranks; tallies are written, read, and merged in three orders. Also
//! what a rank's own share says without the others, what a dump thinned to a quarter says, and how many bytes a step takes.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use niwaki_advise::measure::{Measure, Settings};
use niwaki_advise::read::Dump;
use niwaki_advise::schema::{Field, Naming};
use niwaki_advise::trajectory::{Against, Came, Chunk, Record};
use niwaki_advise::verdict::Verdict;
use niwaki_advise::write::parquet;
use niwaki_exact::{Process, Reward, Table, Values};
use niwaki_stream::{Key, Stream};

const LANES: usize = 1024;
const GROUP: usize = 8;
const BATCH: f64 = 256.0;

/// What was counted.
#[derive(Default)]
struct Counts {
    pairs: usize,
    verdicts: usize,
    orders: usize,
    equal: usize,
    share: usize,
    thinned: usize,
    opposite: usize,
    steps: usize,
    bytes: usize,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let seeds: u64 = std::env::args().nth(1).map_or(Ok(10), |text| text.parse())?;
    let process = Process::new(4, 5)?;
    let settings = Settings { batch: Some(BATCH), ..Settings::default() };
    let folder = tempfile::tempdir()?;
    let mut counts = Counts::default();
    for reward in Reward::LADDER.into_iter().take(4) {
        let payoff = reward.payoff(process)?;
        for drift in [0.03, 0.1, 0.3, 0.6, 1.0] {
            for seed in 0..seeds {
                let mut noise = Key::new(seed, "ranks").open();
                let logits: Vec<f64> = (0..process.edges()).map(|_| 0.5 * noise.normal()).collect();
                let moved: Vec<f64> = logits.iter().map(|logit| logit + drift * noise.normal()).collect();
                let (old, new) = (Table::new(process, &logits)?, Table::new(process, &moved)?);
                let values = Values::new(&old, &payoff)?;
                let records: Vec<Record> =
                    (0..LANES).map(|lane| drawn(&old, &new, &values, lane, &mut noise)).collect();
                let measured = |own: &dyn Fn(usize) -> bool| -> Result<Measure, Box<dyn std::error::Error>> {
                    let (mut chunk, mut measure) = (Chunk::default(), Measure::new(settings));
                    for (_, record) in records.iter().enumerate().filter(|(lane, _)| own(*lane)) {
                        chunk.push(record, None)?;
                    }
                    measure.add(&chunk);
                    Ok(measure)
                };
                let whole = measured(&|_| true)?;
                let (bytes, verdict) = (whole.tally(), Verdict::new(&whole.finish()));
                let mut same = true;
                for world in [1_u64, 2, 8] {
                    let owner: Vec<u64> = (0..LANES).map(|_| noise.below(world)).collect();
                    let mut shares: Vec<Vec<u8>> = Vec::new();
                    for rank in 0..world {
                        shares.push(measured(&|lane| owner[lane] == rank)?.tally());
                    }
                    for _ in 0..3 {
                        for at in (1..shares.len()).rev() {
                            shares.swap(at, noise.below(at as u64 + 1) as usize);
                        }
                        let mut merged = Measure::from_tally(&shares[0])?;
                        for share in &shares[1..] {
                            merged.merge(&Measure::from_tally(share)?)?;
                        }
                        counts.orders += 1;
                        counts.equal += usize::from(merged.tally() == bytes);
                        same &= Verdict::new(&merged.finish()) == verdict;
                    }
                    if world == 8 {
                        let alone = Verdict::new(&Measure::from_tally(&shares[0])?.finish());
                        counts.share += usize::from(kind(&alone) == kind(&verdict));
                    }
                }
                counts.pairs += 1;
                counts.verdicts += usize::from(same);

                let mut chunk = Chunk::default();
                records.iter().try_for_each(|record| chunk.push(record, None))?;
                let written = parquet(&chunk, None)?;
                counts.steps += written.steps;
                counts.bytes += written.bytes.len();
                let file = folder.path().join("dump.parquet");
                std::fs::write(&file, parquet(&chunk, Some(chunk.steps() as u64 / 4))?.bytes)?;
                let mut thinned = Measure::new(settings);
                Dump::open(&[file], Naming::default(), Against::Old, false)?
                    .each(|chunk, _| thinned.add(chunk))?;
                let thinned = Verdict::new(&thinned.finish());
                counts.thinned += usize::from(kind(&thinned) == kind(&verdict));
                let decided = [kind(&thinned), kind(&verdict)];
                counts.opposite +=
                    usize::from(decided.contains(&"ShortWarmup") && decided.contains(&"CorrectionWasted"));
            }
        }
    }
    let Counts { pairs, verdicts, orders, equal, share, thinned, opposite, steps, bytes } = counts;
    println!("same verdict at 1, 2 and 8 ranks: {verdicts} of {pairs} pairs");
    println!("merged tallies that equal the whole, byte for byte: {equal} of {orders} orders");
    println!("verdict of one rank of eight alone is of the same kind: {share} of {pairs}");
    println!(
        "verdict of a dump thinned to a quarter is of the same kind: {thinned} of {pairs}; the opposite: {opposite}"
    );
    println!("bytes a step, of {steps} steps in trajectories of 5: {:.2}", bytes as f64 / steps as f64);
    Ok(())
}

/// The first word of what it says to do.
fn kind(verdict: &Verdict) -> &'static str {
    use niwaki_advise::verdict::Action;
    match verdict.action {
        Action::CorrectionWasted => "CorrectionWasted",
        Action::ShortWarmup { .. } => "ShortWarmup",
        Action::ReduceReuse => "ReduceReuse",
        Action::NotEnoughData { .. } => "NotEnoughData",
        Action::NoSignal => "NoSignal",
    }
}

/// A trajectory drawn from the old policy, with its exact advantages.
fn drawn(old: &Table, new: &Table, values: &Values, lane: usize, noise: &mut Stream) -> Record {
    let process = old.process();
    let (mut node, mut edges) = (0, Vec::new());
    for _ in 0..process.horizon() {
        let row = process.vocab() * node;
        let mut left = noise.uniform();
        let token = old.prob()[row..row + process.vocab()].iter().position(|prob| {
            left -= prob;
            left < 0.0
        });
        let token = token.unwrap_or(process.vocab() - 1);
        edges.push(row + token);
        node = row + token + 1;
    }
    let mut record = Record::default();
    record.group = Some((lane / GROUP) as u64);
    let mut fill = |field: Field, of: &[f64]| {
        record.fill(field, Came::Many).extend(edges.iter().map(|&edge| of[edge]));
    };
    fill(Field::OldLogProb, old.log_prob());
    fill(Field::NewLogProb, new.log_prob());
    fill(Field::Advantage, values.advantage());
    record
}
