//! A policy out of its run's folder: a fine-tuned decoder as a Hugging Face folder that other tools load, any other as a folder that schedules and scores.

use crate::Error;
use crate::policy::{record_policy, writer_policy};
use crate::run::{CHECKPOINT, SPEC};
use crate::spec::{Played, PolicyKind, Spec};
use niwaki_files::{read_own_text, write_atomically};
use niwaki_nn::{Checkpoint, checkpoint_state, copy_without_moments};
use niwaki_policies::Policy;
use std::io;
use std::path::Path;

/// Writes the policy of a run's last checkpoint into a folder, without what only training needs; returns the iterations behind it.
///
/// # Errors
/// If the folder holds no run, or none that was saved yet; if the model that a decoder started from is gone or
/// another; if the disk refuses.
pub fn export(run: &Path, folder: &Path) -> Result<u64, Error> {
    let refuse = |name: &str, reason: String| Error::OtherRun { path: run.join(name), reason };
    let text = read_own_text(&run.join(SPEC))
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
        .map_err(|error| refuse(SPEC, format!("{error}; expected the folder of a run")))?;
    let spec = Spec::read(&run.join(SPEC).display().to_string(), &text, &[])?;
    let path = run.join(CHECKPOINT);
    if !path.exists() {
        return Err(refuse(CHECKPOINT, "the run has saved no policy yet: let it go on".to_owned()));
    }
    let state = checkpoint_state(&path)?;
    if state["spec"].as_str() != Some(spec.hash()?.as_str()) {
        return Err(refuse(CHECKPOINT, format!("it was saved by another run than that of {SPEC}")));
    }
    if spec.policy.kind != PolicyKind::Decoder {
        let cannot =
            |error: io::Error| Error::OtherRun { path: folder.to_owned(), reason: error.to_string() };
        std::fs::create_dir_all(folder).map_err(cannot)?;
        copy_without_moments(&path, &folder.join(CHECKPOINT))?;
        write_atomically(&folder.join(SPEC), text.as_bytes()).map_err(cannot)?;
        return Ok(state["iteration"].as_u64().unwrap_or_default());
    }
    // Holds the model and the task's file to what the run began with.
    let recipe = spec.check()?;
    let (layout, vocabulary) = match &recipe.task {
        Played::Texts(task) => {
            let policy = writer_policy(&spec, task)?;
            (policy.graph().layout().clone(), policy.vocabulary().clone())
        }
        _ => {
            let policy = record_policy(&spec)?;
            (policy.graph().layout().clone(), policy.vocabulary().clone())
        }
    };
    let kept = Checkpoint::<f32>::load(&layout, &path)?;
    spec.pretrained()?.model.save(folder, &layout, &vocabulary, &kept.parameters)?;
    Ok(kept.state["iteration"].as_u64().unwrap_or_default())
}
