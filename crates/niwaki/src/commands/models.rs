//! Pretrained models on a record, and the policies of a run, as the oracle's pairs.

use crate::terminal;
use anyhow::{Context, ensure};
use niwaki_correction::Surrogate;
use niwaki_exact::diagnostics::{BATCH, Grid, Policies};
use niwaki_exact::{Payoff, Process};
use niwaki_lm::{Model, enumerate};
use niwaki_tasks::{Record, Sequence, payoff};
use niwaki_train::Spec;
use niwaki_train::run::{Identity, POLICIES, SPEC, read_policies};
use std::path::{Path, PathBuf};

/// What the oracle is asked: the policies that a run kept, iteration by iteration, under the run's own reward.
pub(super) fn along(run: &Path, losses: Vec<Surrogate>, memory: u64) -> anyhow::Result<Grid> {
    let path = run.join(SPEC);
    let text = niwaki_files::read_text(&path)
        .with_context(|| format!("--run {}: not the folder of a run", run.display()))?;
    let spec = Spec::read(&path.display().to_string(), &text, &[])?;
    ensure!(
        spec.dump.policies,
        "--run {}: the run did not keep its policies; train it with --set dump.policies=true",
        run.display()
    );
    let kept = read_policies(run, &Identity::within(run, &spec)?)?;
    ensure!(kept.len() > 1, "{}: no iteration is done yet", run.join(POLICIES).display());
    let task = asked(&spec).check()?.tokens().context("the run's task has no prefixes to enumerate")?;
    let process = Process::within(task.vocab(), task.horizon(), memory)?;
    let reward = spec.task.reward.clone().unwrap_or_else(|| spec.task.kind.clone());
    let rewards = vec![(reward, payoff(task.as_ref())?)];
    let batch = spec.rollout.lanes as u64;
    let policies = Policies::Along(kept.into_iter().map(|table| table.logits).collect());
    Ok(Grid { process, rewards, drifts: vec![1.0], policies, losses, batch: batch.max(2), drawn: 0, memory })
}

/// The spec as far as the oracle needs it: what the model said is kept, so that a run can be asked about where its model is not.
fn asked(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    if let Some(model) = spec.policy.model.take_if(|model| !model.exists()) {
        // It names the record's content and the model's in one.
        spec.task.digest = None;
        if let Some(file) = &spec.task.file {
            let (model, file) = (model.display(), file.display());
            terminal::warn(&format!(
                "without the model {model} niwaki cannot tell whether {file} is still the run's record"
            ));
        }
    }
    spec
}

/// What the oracle is asked: what the models of `--model` say at all prefixes of a record, under each of its rewards.
pub(super) fn grid(
    models: &[PathBuf],
    task: &Path,
    priming: Option<&str>,
    losses: Vec<Surrogate>,
    memory: u64,
) -> anyhow::Result<Grid> {
    let [old, new] = models else {
        anyhow::bail!(
            "--model was given {}; give it twice, the model that rolled out and then the one being updated",
            if models.len() == 1 { "once".to_owned() } else { format!("{} times", models.len()) }
        );
    };
    let record = Record::read(task).context("--task")?;
    let slots = record.slots();
    let vocab = slots[0].candidates.len();
    if let Some(slot) = slots.iter().find(|slot| slot.candidates.len() != vocab) {
        anyhow::bail!(
            "--task {}: slot '{}' has {} candidates and slot '{}' has {vocab}; the oracle needs as many in every slot",
            task.display(),
            slot.name,
            slot.candidates.len(),
            slots[0].name
        );
    }
    Process::new(vocab, slots.len())?;
    let process = Process::within(vocab, slots.len(), memory)?;
    let table = |path: &PathBuf| {
        let found =
            Model::open(path).and_then(|model| enumerate(&model, &record, priming)).context("--model")?;
        found.table().context("the slots differ in their candidates")
    };
    let policies = Policies::Given { old: table(old)?, new: table(new)? };
    let rewards = record.rewards().map(|name| {
        let task = record.task(Some(name))?;
        let payoff = Payoff::from_fn(process, |choices| task.reward(choices))?;
        Ok((name.to_owned(), payoff))
    });
    let rewards = rewards.collect::<anyhow::Result<Vec<_>>>()?;
    ensure!(!rewards.is_empty(), "--task {}: the record has no reward", task.display());
    Ok(Grid { process, rewards, drifts: vec![1.0], policies, losses, batch: BATCH, drawn: 0, memory })
}
