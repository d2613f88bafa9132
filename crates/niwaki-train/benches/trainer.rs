//! Speed of the trainer: the paper's tabular run, and one iteration of a small causal transformer.
//!
//! `cargo bench -p niwaki-train`

use niwaki_train::{Device, Recipe, Spec, gather};

fn main() {
    divan::main();
}

fn recipe(settings: &[&str]) -> Recipe {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    Spec::read("bench", "", &settings).and_then(|spec| spec.check()).expect("a spec that runs")
}

/// 200 iterations of 256 trajectories of 8 steps, four epochs each, with exact η after every iteration.
#[divan::bench(args = ["ppo", "tempered:0.1", "full"], sample_count = 10)]
fn tabular_run(bencher: divan::Bencher<'_, '_>, correction: &str) {
    let recipe = recipe(&[&format!("update.correction={correction}")]);
    bencher.bench_local(|| {
        let mut cohort = gather(vec![recipe.clone()], &Device::Cpu).expect("fits");
        (0..recipe.spec.iterations).map(|_| cohort.advance().expect("trains")[0].batch_reward).sum::<f64>()
    });
}

/// Rollout, four epochs and no evaluation: width 32, two blocks, 256 trajectories of 8 steps.
#[divan::bench(sample_count = 10)]
fn causal_iteration(bencher: divan::Bencher<'_, '_>) {
    let settings =
        ["policy.kind=causal", "policy.width=32", "policy.heads=2", "policy.blocks=2", "evaluate.lanes=0"];
    let mut cohort = gather(vec![recipe(&settings)], &Device::Cpu).expect("fits");
    bencher.bench_local(|| cohort.advance().expect("trains")[0].batch_reward);
}
