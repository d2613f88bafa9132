//! Two pretrained models on a record, as the oracle's pair of policies.

use anyhow::{Context, ensure};
use niwaki_correction::Surrogate;
use niwaki_exact::diagnostics::{Grid, Policies};
use niwaki_exact::{Payoff, Process};
use niwaki_lm::{Model, enumerate};
use niwaki_tasks::{Record, Sequence};
use std::path::{Path, PathBuf};

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
            "--model came {}; give it twice, the model that rolled out and then the one being updated",
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
    Ok(Grid { process, rewards, drifts: vec![1.0], policies, losses, memory })
}
