//! A fine-tuned decoder out of its run's folder, as a Hugging Face folder that other tools load.

use crate::Error;
use crate::policy::{record_policy, writer_policy};
use crate::run::{CHECKPOINT, SPEC};
use crate::spec::{Played, PolicyKind, Spec};
use niwaki_files::read_own_text;
use niwaki_nn::Checkpoint;
use niwaki_policies::Policy;
use std::io;
use std::path::Path;

/// Writes the decoder of a run's last checkpoint into a folder; returns the iterations behind it.
///
/// # Errors
/// If the folder holds no run of a decoder, or none that was saved yet; if the model that it started from is gone or
/// another; if the disk refuses.
pub fn export(run: &Path, folder: &Path) -> Result<u64, Error> {
    let refuse = |name: &str, reason: String| Error::OtherRun { path: run.join(name), reason };
    let text = read_own_text(&run.join(SPEC))
        .and_then(|bytes| String::from_utf8(bytes).map_err(io::Error::other))
        .map_err(|error| refuse(SPEC, format!("{error}; expected the folder of a run")))?;
    let spec = Spec::read(&run.join(SPEC).display().to_string(), &text, &[])?;
    if spec.policy.kind != PolicyKind::Decoder {
        let reason = format!("task '{}' was not learned by a decoder", spec.task.kind);
        return Err(refuse(SPEC, reason));
    }
    // Holds the model and the task's file to what the run began with.
    let recipe = spec.check()?;
    let path = run.join(CHECKPOINT);
    if !path.exists() {
        return Err(refuse(CHECKPOINT, "the run has saved no policy yet: let it go on".to_owned()));
    }
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
    if kept.state["spec"].as_str() != Some(spec.hash()?.as_str()) {
        return Err(refuse(CHECKPOINT, format!("it was saved by another run than that of {SPEC}")));
    }
    spec.pretrained()?.model.save(folder, &layout, &vocabulary, &kept.parameters)?;
    Ok(kept.state["iteration"].as_u64().unwrap_or_default())
}
