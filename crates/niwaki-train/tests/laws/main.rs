//! Laws of the trainer; one binary, so that they link once.
#![expect(clippy::unwrap_used, reason = "a law that cannot be set up has failed")]

mod diverge;
mod hgnn;
mod learning;
mod pairing;
mod pointer;
mod ragged;
mod resume;
mod update;
mod vouch;

use niwaki_train::{Cohort, Device, Recipe, Record, Spec, gather};

/// A recipe from settings over the defaults.
fn recipe(settings: &[&str]) -> Recipe {
    let settings: Vec<String> = settings.iter().map(|&setting| setting.to_owned()).collect();
    Spec::read("law", "", &settings).unwrap().check().unwrap()
}

/// Settings of a small run of each kind of policy.
fn small(policy: &str) -> Vec<&'static str> {
    let mut settings = vec!["iterations=5", "rollout.lanes=32", "evaluate.lanes=48", "evaluate.every=2"];
    if !policy.starts_with("pointer") && !plays_graphs(policy) && !["decoder", "writer"].contains(&policy) {
        settings.push("task.horizon=4");
    }
    match policy {
        "tabular" => {}
        "bag" => settings.extend(["policy.kind=bag", "policy.width=8"]),
        "causal" => settings.extend([
            "policy.kind=causal",
            "policy.width=16",
            "policy.heads=2",
            "policy.blocks=1",
            "policy.hidden=32",
        ]),
        "pointer" | "pointer on job shops" => settings.extend([
            if policy == "pointer" { "task.kind=flow-shop" } else { "task.kind=job-shop" },
            if policy == "pointer" { "task.machines=3" } else { "task.machines=2" },
            if policy == "pointer" { "task.jobs=5" } else { "task.jobs=3" },
            "task.training=6",
            "task.validation=3",
            "policy.kind=pointer",
            "policy.width=8",
            "policy.heads=2",
            "policy.blocks=1",
            "rollout.group=8",
            "advantage.kind=group",
            "evaluate.greedy=true",
        ]),
        "hgnn" | "hgnn on job shops" => settings.extend([
            if policy == "hgnn" { "task.kind=flexible-shop" } else { "task.kind=job-shop" },
            if policy == "hgnn" { "task.draw=sd1" } else { "task.order=active" },
            if policy == "hgnn" { "advantage.kind=critic" } else { "advantage.kind=group" },
            "task.machines=2",
            "task.jobs=3",
            "task.deadline=1.3",
            "task.training=6",
            "task.validation=3",
            "policy.kind=hgnn",
            "policy.width=4",
            "policy.hidden=8",
            "rollout.group=4",
            "evaluate.greedy=true",
        ]),
        "dual" => settings.extend([
            "task.kind=flexible-shop",
            "task.draw=mixed",
            "task.order=free",
            "advantage.kind=group",
            "task.machines=3",
            "task.jobs=5",
            "task.deadline=1.1",
            "task.training=6",
            "task.validation=3",
            "policy.kind=dual",
            "policy.width=4",
            "policy.hidden=6",
            "rollout.group=4",
            "evaluate.greedy=true",
        ]),
        "decoder" => settings.extend([
            "task.kind=record",
            concat!("task.file=", env!("CARGO_MANIFEST_DIR"), "/../niwaki-lm/tests/fixtures/record.toml"),
            "task.priming=neutral",
            "task.reward=two-branch",
            "policy.kind=decoder",
            concat!("policy.model=", env!("CARGO_MANIFEST_DIR"), "/../niwaki-lm/tests/fixtures/tiny-qwen2"),
            "update.minibatches=4",
        ]),
        "writer" => settings.extend([
            "task.kind=text",
            concat!("task.file=", env!("CARGO_MANIFEST_DIR"), "/../niwaki-lm/tests/fixtures/text.toml"),
            "policy.kind=decoder",
            "policy.temperature=1.5",
            concat!("policy.model=", env!("CARGO_MANIFEST_DIR"), "/../niwaki-lm/tests/fixtures/tiny-qwen2"),
            "rollout.group=8",
            "advantage.kind=group",
        ]),
        other => panic!("no such policy: {other}"),
    }
    settings
}

const POLICIES: [&str; 10] = [
    "tabular",
    "bag",
    "causal",
    "pointer",
    "pointer on job shops",
    "hgnn",
    "hgnn on job shops",
    "dual",
    "decoder",
    "writer",
];

/// Whether a policy reads shops as graphs.
fn plays_graphs(policy: &str) -> bool {
    policy.starts_with("hgnn") || policy == "dual"
}

/// A small recipe of a policy with more settings.
fn with(policy: &str, more: &[&str]) -> Recipe {
    recipe(&[small(policy), more.to_vec()].concat())
}

fn cohort(recipes: &[Recipe]) -> Box<dyn Cohort> {
    gather(recipes.to_vec(), &Device::Cpu).unwrap()
}

/// The curves of some recipes trained together, `[member][iteration]`.
fn curves(recipes: &[Recipe]) -> Vec<Vec<Record>> {
    let mut cohort = cohort(recipes);
    let mut curves = vec![Vec::new(); recipes.len()];
    for _ in 0..recipes[0].spec.iterations {
        for (curve, record) in curves.iter_mut().zip(cohort.advance().unwrap()) {
            curve.push(record);
        }
    }
    curves
}

fn curve(recipe: &Recipe) -> Vec<Record> {
    curves(std::slice::from_ref(recipe)).remove(0)
}
