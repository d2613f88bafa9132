//! The correction kernel: objective, cotangent, channels and diagnostics of one batch on one core.
//!
//! `cargo bench -p niwaki-correction` prints, below each time, bytes of log-probs per second (current and rollout
//! log-probs both counted): the aim is 1 GB/s in the columns `fastest` and `median`. Two limits of the machine stand
//! beside it and slow down with it when it is shared: `copy` moves the same bytes; `two_exponentials` reads them and
//! takes the two exponentials that every step needs, in order, with nothing to carry from step to step.

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

/// `factor + ratio` of each step, `e^(ℓ/4) + e^ℓ`: the kernel's exponentials and nothing else.
#[inline(always)]
fn exponentials<F: Real>([log_prob, rollout, sums]: [&mut [F]; 3], exp: impl Fn(F) -> F) {
    let quarter = F::from_f64(0.25);
    for ((sum, &new), &old) in sums.iter_mut().zip(log_prob.iter()).zip(rollout.iter()) {
        *sum = exp(quarter * (new - old)) + exp(new - old);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,fma")]
fn exponentials_avx512<F: Real>(arrays: [&mut [F]; 3]) {
    exponentials(arrays, |x| x.exp_by(F::fused));
}

#[divan::bench(types = [f64, f32])]
fn two_exponentials<F: Real>(bencher: Bencher) {
    let mut arrays = arrays::<F>(STEPS);
    bencher.counter(BytesCount::of_many::<F>(2 * STEPS)).bench_local(|| {
        let [a, b, c] = black_box(&mut arrays);
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("fma")
        {
            // SAFETY: the processor has the features that the function is compiled for.
            return unsafe { exponentials_avx512([a, b, c]) };
        }
        exponentials([a, b, c], F::exp);
    });
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
