//! The campaign against every reader: `cargo run -p niwaki-fuzz -- --inputs 10000000`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a campaign tells its table")]

use niwaki_fuzz::campaign::{self, Tally};
use niwaki_fuzz::meter::Counting;
use niwaki_fuzz::readers::{Reader, folder, readers};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const USAGE: &str = "\
usage: niwaki-fuzz [--inputs N] [--seconds N] [--reader NAME] [--from CASE] [--write FILE]
  --inputs    cases over all readers [default: 100000]
  --seconds   stop each reader after its share of this time, over all cores
  --reader    one reader only
  --from      the first case
  --write     write the input of case --from of --reader into a file, and run nothing";

struct Asked {
    inputs: u64,
    seconds: Option<u64>,
    reader: Option<String>,
    from: u64,
    write: Option<String>,
}

fn asked() -> Option<Asked> {
    let mut asked = Asked { inputs: 100_000, seconds: None, reader: None, from: 0, write: None };
    let mut words = std::env::args().skip(1);
    while let Some(flag) = words.next() {
        let value = words.next()?;
        match flag.as_str() {
            "--inputs" => asked.inputs = value.parse().ok()?,
            "--seconds" => asked.seconds = Some(value.parse().ok()?),
            "--reader" => asked.reader = Some(value),
            "--from" => asked.from = value.parse().ok()?,
            "--write" => asked.write = Some(value),
            _ => return None,
        }
    }
    Some(asked)
}

fn main() -> ExitCode {
    let Some(asked) = asked() else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    let mut chosen = readers();
    chosen.retain(|reader| asked.reader.as_ref().is_none_or(|name| name == reader.name));
    if let Some(file) = &asked.write {
        let written = chosen.first().map(|reader| std::fs::write(file, campaign::input(reader, asked.from)));
        return if matches!(written, Some(Ok(()))) { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    // Panics are counted, with their words; their traces would drown the table.
    std::panic::set_hook(Box::new(|_| {}));
    let Ok(tallies) = all(&chosen, &asked) else {
        eprintln!("niwaki-fuzz: no folder for temporary files");
        return ExitCode::from(2);
    };
    let mut sum = Tally::default();
    println!("| reader | seeds | inputs | read | refused | failures | peak MB | slowest ms |");
    println!("|---|---:|---:|---:|---:|---:|---:|---:|");
    for (reader, tally) in chosen.iter().zip(tallies) {
        row(reader.name, reader.seeds.len(), &tally);
        sum.merge(tally);
    }
    row("all", chosen.iter().map(|reader| reader.seeds.len()).sum(), &sum);
    if sum.failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Each reader's cases, one reader per core at a time, each with a folder of its own.
fn all(chosen: &[Reader], asked: &Asked) -> std::io::Result<Vec<Tally>> {
    let shares: u64 = chosen.iter().map(|reader| reader.share).sum();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let time =
        asked.seconds.map(|seconds| Duration::from_secs(seconds) * cores as u32 / chosen.len().max(1) as u32);
    let (home, next) = (folder()?, AtomicUsize::new(0));
    let tallies = Mutex::new(vec![Tally::default(); chosen.len()]);
    std::thread::scope(|scope| {
        let work = || {
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                let Some(reader) = chosen.get(place) else { return };
                let folder = home.path().join(reader.name);
                if let Err(error) = std::fs::create_dir(&folder) {
                    eprintln!("{}: {error}", reader.name);
                    continue;
                }
                let cases = asked.from..asked.from + asked.inputs * reader.share / shares.max(1);
                let tally = campaign::run(reader, cases, time.map(|time| Instant::now() + time), &folder);
                for (case, what) in tally.failures.iter().take(10) {
                    eprintln!("{} case {case}: {what}", reader.name);
                }
                if let Ok(mut tallies) = tallies.lock() {
                    tallies[place] = tally;
                }
            }
        };
        for _ in 0..cores {
            scope.spawn(work);
        }
    });
    Ok(tallies.into_inner().unwrap_or_default())
}

fn row(name: &str, seeds: usize, tally: &Tally) {
    let Tally { inputs, read, peak, slowest, failures } = tally;
    let (peak, slowest, failures) = (*peak as f64 / 1e6, slowest * 1e3, failures.len() as u64);
    let refused = inputs.saturating_sub(read + failures);
    println!("| {name} | {seeds} | {inputs} | {read} | {refused} | {failures} | {peak:.1} | {slowest:.0} |");
}
