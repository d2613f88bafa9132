//! Writes the example dumps: `cargo run --release -p niwaki-advise --example regimes -- examples/advise`.
//!
//! A tabular policy on the enumerable testbed, trained by PPO in four regimes of the paper; each dump holds the first
//! iterations as a trainer would write them, after the update epochs on each batch.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

#[path = "tabular/mod.rs"]
mod tabular;

use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::Record;
use niwaki_exact::Reward;
use std::fmt::Write as _;
use std::path::PathBuf;
use tabular::Run;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("give the folder to write into")?);
    std::fs::create_dir_all(&folder)?;
    let run = Run {
        reward: Reward::TwoBranch,
        horizon: 6,
        lanes: 64,
        reuse: 12,
        rate: 0.3,
        clip: Some(0.2),
        iterations: 8,
        priming: 0.0,
        warmup: None,
        seed: 1,
    };
    let regimes = [
        // Hard credit assignment under aggressive reuse: bias to repair.
        ("win", run),
        // Primed onto a first token that never pays, with a small batch: rewards all but vanish.
        ("trap", Run { priming: 4.0, lanes: 32, iterations: 16, ..run }),
        // Published hyper-parameters hardly move the policy.
        ("null", Run { reuse: 3, rate: 0.003, ..run }),
        // A reward that no prefix can spoil.
        ("easy", Run { reward: Reward::LateOnly, reuse: 4, rate: 0.1, ..run }),
    ];
    for (name, run) in regimes {
        let mut text = String::new();
        let trained = run.train(run.iterations)?;
        for record in &trained.dump {
            line(&mut text, record)?;
        }
        let (first, last) = (trained.eta[0], trained.eta[run.iterations]);
        println!("{name}: {} trajectories, return {first:.3} before and {last:.3} after", trained.dump.len());
        std::fs::write(folder.join(format!("{name}.jsonl")), text)?;
    }
    Ok(())
}

/// One trajectory; five decimals are more than the verdict needs.
fn line(text: &mut String, record: &Record) -> std::fmt::Result {
    let list = |field: Field| {
        let values: Vec<String> = record.values(field).iter().map(|value| format!("{value:.5}")).collect();
        values.join(",")
    };
    writeln!(
        text,
        "{{\"iteration\":{},\"old_log_prob\":[{}],\"new_log_prob\":[{}],\"advantage\":{},\"reward\":{}}}",
        record.iteration.unwrap_or(0),
        list(Field::OldLogProb),
        list(Field::NewLogProb),
        list(Field::Advantage),
        record.values(Field::Reward)[0]
    )
}
