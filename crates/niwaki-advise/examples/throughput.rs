//! Time and memory of reading and measuring dumps: `cargo run --release -p niwaki-advise --example throughput -- FILE…`

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use niwaki_advise::measure::{Measure, Settings};
use niwaki_advise::read::Dump;
use niwaki_advise::schema::Naming;
use niwaki_advise::trajectory::Against;
use std::path::PathBuf;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let files: Vec<PathBuf> = std::env::args().skip(1).map(PathBuf::from).collect();
    let start = Instant::now();
    let mut dump = Dump::open(&files, Naming::default(), Against::Old, false)?;
    dump.prepare(|_| {})?;
    let mut measure = Measure::new(Settings::default());
    let mut measuring = 0.0;
    dump.each(|chunk, _| {
        let before = Instant::now();
        measure.add(chunk);
        measuring += before.elapsed().as_secs_f64();
    })?;
    let measured = measure.finish();
    let seconds = start.elapsed().as_secs_f64();
    let peak = std::fs::read_to_string("/proc/self/status")?
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .map_or_else(
            || "unknown".to_owned(),
            |line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "),
        );
    println!(
        "{} steps of {} trajectories in {seconds:.2} s ({measuring:.2} s of it measuring), {:.1} M steps/s, peak {peak}",
        measured.facts.steps,
        measured.facts.trajectories,
        measured.facts.steps as f64 / seconds / 1e6
    );
    Ok(())
}
