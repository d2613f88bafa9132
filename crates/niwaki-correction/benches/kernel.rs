//! The correction kernel: objective, cotangent, channels and diagnostics of one batch on one core.
//!
//! `cargo bench -p niwaki-correction` prints bytes of log-probs per second (current and rollout log-probs both
//! counted); `copy` beside it is the machine's own limit for moving the same bytes.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use niwaki_correction::{Batch, Real, Rows, Surrogate, Workspace};

/// Steps of a batch: 256 trajectories of 100 steps, say.
const STEPS: usize = 25_600;

/// Log-probs, rollout log-probs and advantages that differ from step to step.
fn arrays<F: Real>(steps: usize) -> [Vec<F>; 3] {
    let wave = |scale: f64, shift: f64| {
        (0..steps).map(|i| F::from_f64(-1.0 + scale * (0.37 * i as f64 + shift).sin())).collect::<Vec<_>>()
    };
    [wave(0.1, 0.0), wave(0.1, 0.4), wave(1.0, 2.0)]
}

fn kernel<F: Real>(bencher: Bencher, name: &str, horizon: usize) {
    let [log_prob, rollout, advantage] = arrays::<F>(STEPS / horizon * horizon);
    let surrogate: Surrogate = name.parse().expect("a known loss");
    let mut workspace = Workspace::default();
    let batch = Batch::new(Rows::uniform(horizon), &log_prob, &rollout, &advantage);
    bencher.counter(BytesCount::of_many::<F>(2 * log_prob.len())).bench_local(|| {
        let evaluation = surrogate.evaluate(black_box(&batch), &mut workspace).expect("a valid batch");
        black_box(evaluation.objective)
    });
}

#[divan::bench(args = [("ppo", 8), ("tempered:0.25", 8), ("tempered:0.25", 50), ("tempered:0.25", 1024), ("clipped:0.25,1", 50), ("truncated:4", 50), ("minpro", 50), ("gspo", 50)])]
fn f64_kernel(bencher: Bencher, (name, horizon): (&str, usize)) {
    kernel::<f64>(bencher, name, horizon);
}

#[divan::bench(args = [("ppo", 8), ("tempered:0.25", 8), ("tempered:0.25", 50), ("tempered:0.25", 1024)])]
fn f32_kernel(bencher: Bencher, (name, horizon): (&str, usize)) {
    kernel::<f32>(bencher, name, horizon);
}

#[divan::bench]
fn copy(bencher: Bencher) {
    let [log_prob, rollout, _] = arrays::<f64>(STEPS);
    let mut to = vec![0.0; 2 * log_prob.len()];
    bencher.counter(BytesCount::of_many::<f64>(2 * log_prob.len())).bench_local(|| {
        to[..log_prob.len()].copy_from_slice(black_box(&log_prob));
        to[log_prob.len()..].copy_from_slice(black_box(&rollout));
        black_box(to[7])
    });
}

fn main() {
    divan::main();
}
