//! Speed of the oracle: one pair with the twelve testbed variants and gradients, and the whole diagnostics study.
//!
//! `cargo bench -p niwaki-exact`

use mimalloc::MiMalloc;
use niwaki_correction::Surrogate;
use niwaki_correction::family::{MEMBERS, TESTBED};
use niwaki_exact::{Pair, Process, Reward, Table, Workspace};
use niwaki_stream::Key;

/// The command's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() {
    divan::main();
}

fn noise(process: Process, seed: u64, scale: f64) -> Vec<f64> {
    let mut stream = Key::new(seed, "bench").open();
    (0..process.edges()).map(|_| scale * stream.normal()).collect()
}

fn losses() -> Vec<Surrogate> {
    let parse = |name: &&str| name.parse::<Surrogate>().expect("the testbed's names are names");
    TESTBED.iter().map(parse).map(Surrogate::without_clip).collect()
}

/// From logits to bias, variance, MSE, cosine and ESS of all twelve.
#[divan::bench(args = [6, 8, 10], sample_count = 10)]
fn pair(bencher: divan::Bencher<'_, '_>, horizon: usize) {
    let process = Process::new(4, horizon).expect("fits");
    let (old, by) = (noise(process, 1, 0.1), noise(process, 2, 1.0));
    let new: Vec<f64> = old.iter().zip(by).map(|(old, by)| old + by).collect();
    let (payoff, losses) = (Reward::TwoBranch.payoff(process).expect("long enough"), losses());
    bencher.bench_local(|| {
        let (old, new) =
            (Table::new(process, &old).expect("finite"), Table::new(process, &new).expect("finite"));
        let pair = Pair::new(&old, &new, &payoff).expect("one process");
        let mut workspace = Workspace::default();
        losses.iter().map(|loss| pair.measure(loss, &mut workspace).expect("finite").mse).sum::<f64>()
    });
}

/// Forty losses on one pair, alignment at the trainer's batch included.
#[divan::bench(sample_count = 20)]
fn forty_losses(bencher: divan::Bencher<'_, '_>) {
    let process = Process::new(4, 6).expect("fits");
    let (old, by) = (noise(process, 1, 0.1), noise(process, 2, 1.0));
    let new: Vec<f64> = old.iter().zip(by).map(|(old, by)| old + by).collect();
    let (old, new) = (Table::new(process, &old).expect("finite"), Table::new(process, &new).expect("finite"));
    let payoff = Reward::TwoBranch.payoff(process).expect("long enough");
    let all = MEMBERS.iter().flat_map(|member| member.tried).filter(|name| !name.starts_with("max-k"));
    let losses: Vec<Surrogate> =
        all.take(40).map(|name| name.parse::<Surrogate>().expect("a name").without_clip()).collect();
    assert_eq!(losses.len(), 40);
    bencher.bench_local(|| {
        let pair = Pair::new(&old, &new, &payoff).expect("one process");
        let mut workspace = Workspace::default();
        let at =
            |loss| pair.measure(loss, &mut workspace).and_then(|found| found.alignment(256)).expect("finite");
        losses.iter().map(at).sum::<f64>()
    });
}

/// Four rewards × six drifts × twelve variants × 25 seeds at T = 6, on two threads.
#[divan::bench(sample_count = 3)]
fn diagnostics_study() -> f64 {
    let process = Process::new(4, 6).expect("fits");
    let base = noise(process, 1, 0.1);
    let old = Table::new(process, &base).expect("finite");
    let payoffs = Reward::LADDER.map(|reward| reward.payoff(process).expect("long enough"));
    let losses = losses();
    let seeds = |from: u64| {
        let mut workspace = Workspace::default();
        let mut total = 0.0;
        for seed in (from..25).step_by(2) {
            let by = noise(process, 10 + seed, 1.0);
            for drift in [0.01, 0.03, 0.1, 0.3, 0.6, 1.0] {
                let new: Vec<f64> = base.iter().zip(&by).map(|(base, by)| base + drift * by).collect();
                let new = Table::new(process, &new).expect("finite");
                for payoff in &payoffs {
                    let pair = Pair::new(&old, &new, payoff).expect("one process");
                    for loss in &losses {
                        total += pair.measure(loss, &mut workspace).expect("finite").mse;
                    }
                }
            }
        }
        total
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| seeds(1));
        seeds(0) + other.join().expect("no panic")
    })
}
