//! What a tally costs: `cargo run --release -p niwaki-advise --example tallies -- COMPLETIONS STEPS RANKS`
//!
//! Completions of prompts in groups of eight, shuffled over ranks: the time to measure a rank's share, the size of its tally, and
//! the time to write, read, merge and finish. Checks that what is merged is the whole, to the last bit.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use niwaki_advise::measure::{Measure, Settings};
use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::{Came, Chunk, Record};
use niwaki_stream::Key;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes = std::env::args().skip(1).map(|text| text.parse::<usize>());
    let mut size = |usual: usize| sizes.next().unwrap_or(Ok(usual));
    let (completions, steps, ranks) = (size(2048)?, size(1500)?, size(8)?);
    let mut noise = Key::new(1, "tallies").open();
    let mut shares = vec![Chunk::default(); ranks];
    let (mut record, mut whole) = (Record::default(), Measure::new(Settings::default()));
    for completion in 0..completions {
        let length = steps / 2 + noise.below(steps as u64 / 2 + 1) as usize;
        record.clear();
        let old: Vec<f64> = (0..length).map(|_| -noise.uniform() - 0.1).collect();
        let new =
            old.iter().map(|old| (old + 0.02 * noise.normal()).min(0.0) as f32 as f64).collect::<Vec<_>>();
        record.fill(Field::OldLogProb, Came::Many).extend(old);
        record.fill(Field::NewLogProb, Came::Many).extend(new);
        record.fill(Field::Advantage, Came::One).push(noise.normal());
        record.group = Some(completion as u64 / 8);
        shares[noise.below(ranks as u64) as usize].push(&record, None)?;
    }
    let milliseconds = |since: Instant| 1e3 * since.elapsed().as_secs_f64();
    let tokens: usize = shares.iter().map(Chunk::steps).sum();
    let start = Instant::now();
    let measured: Vec<Measure> = (shares.iter().enumerate())
        .map(|(rank, chunk)| {
            let mut measure = Measure::new(Settings::default()).of_rank(rank as u32, ranks as u32);
            measure.add(chunk);
            measure
        })
        .collect();
    let measuring = milliseconds(start);
    let start = Instant::now();
    let tallies: Vec<Vec<u8>> = measured.iter().map(Measure::tally).collect();
    let writing = milliseconds(start) / ranks as f64;
    let start = Instant::now();
    let mut merged = Measure::from_tally(&tallies[0])?;
    for tally in &tallies[1..] {
        merged.merge(&Measure::from_tally(tally)?)?;
    }
    let merging = milliseconds(start);
    let start = Instant::now();
    let found = merged.finish();
    let finishing = milliseconds(start);
    shares.iter().for_each(|share| whole.add(share));
    let expected = whole.finish();
    let bytes: usize = tallies.iter().map(Vec::len).sum();
    println!(
        "{completions} completions, {tokens} steps, {ranks} ranks: a rank measures in {:.1} ms ({:.0} ns a step), writes {:.0} kB in \
         {writing:.1} ms; {ranks} tallies are {:.2} MB, read and merged in {merging:.1} ms, finished in {finishing:.1} ms; \
         {:.3} bytes a step; numbers as of one dump: {}",
        measuring / ranks as f64,
        1e6 * measuring / tokens as f64,
        bytes as f64 / ranks as f64 / 1e3,
        bytes as f64 / 1e6,
        bytes as f64 / tokens as f64,
        found.numbers == expected.numbers && found.positions == expected.positions
    );
    Ok(())
}
