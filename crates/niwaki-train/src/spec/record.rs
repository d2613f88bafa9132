//! Records and prompts: their files, and the pretrained model that fills them or writes on.
//!
//! A model is gigabytes, and the runs of a study have the same one: what was opened last is kept and given out again as long
//! as its files are as they were. A spec may leave the model out, so that a study can be planned before anybody has one;
//! nothing trains without.

use super::check::refuse;
use super::memory::available_memory;
use super::task::RECORD;
use super::{AdvantageKind, OptimiserKind, PolicyKind, Recipe, Spec};
use crate::Error;
use niwaki_files::{Digest, read_bytes};
use niwaki_lm::{Form, Model, RecordTokens};
use niwaki_tasks::{Record, TextTask};
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

/// A pretrained model that a spec names.
#[derive(Debug)]
pub struct Pretrained {
    /// The model.
    pub model: Model,
    /// What names its content.
    pub digest: Digest,
}

/// What a file is called, how long it is and when it was changed.
type Stamp = (PathBuf, u64, Option<SystemTime>);

/// The model that was opened last.
static LAST: Mutex<Option<(Vec<Stamp>, Arc<Pretrained>)>> = Mutex::new(None);

/// The stamps of a model's files.
fn stamps(path: &Path) -> Vec<Stamp> {
    let stamp = |path: PathBuf, about: Metadata| (path, about.len(), about.modified().ok());
    let mut stamps: Vec<Stamp> =
        fs::metadata(path).map(|about| stamp(path.to_owned(), about)).into_iter().collect();
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        stamps.extend(entry.metadata().map(|about| stamp(entry.path(), about)));
    }
    stamps.sort();
    stamps
}

/// Opens a model, unless it is the last one that was opened.
fn open(path: &Path) -> niwaki_lm::Result<Arc<Pretrained>> {
    let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
    let stamps = stamps(path);
    if let Some((_, kept)) = last.as_ref().filter(|(known, _)| *known == stamps) {
        return Ok(kept.clone());
    }
    let model = Model::open(path)?;
    let digest = model.digest();
    let opened = Arc::new(Pretrained { model, digest });
    *last = Some((stamps, opened.clone()));
    Ok(opened)
}

impl Recipe {
    /// Refuses what can be planned but not trained here: a decoder without a model, sizes that another machine may hold.
    ///
    /// # Errors
    /// If the model is missing, or the memory.
    pub fn check_ready(&self) -> Result<(), Error> {
        if self.spec.policy.kind == PolicyKind::Decoder {
            self.spec.pretrained()?;
        }
        self.check_fits(available_memory())
    }
}

impl Spec {
    /// The record that a spec names.
    ///
    /// # Errors
    /// If its file is not a record.
    pub(crate) fn record(&self) -> Result<Record, Error> {
        match &self.task.file {
            Some(file) => Record::read(file).map_err(|error| refuse("task.file", error.to_string())),
            None => Ok(Record::of_the_paper()?),
        }
    }

    /// The prompts that a spec names.
    ///
    /// # Errors
    /// If it names none, or its file has none.
    pub(crate) fn text(&self) -> Result<TextTask, Error> {
        let Some(file) = &self.task.file else {
            let reason = "task 'text' has its prompts in one: write where it is".to_owned();
            return Err(refuse("task.file", reason));
        };
        TextTask::read(file).map_err(|error| refuse("task.file", error.to_string()))
    }

    /// Whether a decoder can write behind the prompts.
    pub(super) fn check_writer(&self) -> Result<(), Error> {
        if self.policy.kind != PolicyKind::Decoder {
            return Err(refuse("policy.kind", "task 'text' is played by 'decoder' only".to_owned()));
        }
        if self.advantage.kind == AdvantageKind::Critic {
            let reason = "a decoder has no critic; use 'returns' or 'group'".to_owned();
            return Err(refuse("advantage.kind", reason));
        }
        self.check_temperature()?;
        self.check_groups()
    }

    fn check_temperature(&self) -> Result<(), Error> {
        let temperature = self.policy.temperature.unwrap_or(1.0);
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(refuse("policy.temperature", format!("{temperature} is not a number above 0")));
        }
        Ok(())
    }

    /// The pretrained model that a spec names.
    ///
    /// # Errors
    /// If it names none, or it cannot be read.
    pub fn pretrained(&self) -> Result<Arc<Pretrained>, Error> {
        let Some(path) = &self.policy.model else {
            let reason =
                "policy 'decoder' starts from one: write where its folder or GGUF file is".to_owned();
            return Err(refuse("policy.model", reason));
        };
        open(path).map_err(|error| refuse("policy.model", error.to_string()))
    }

    /// Whether a decoder can play, and whether every candidate is one of its tokens.
    pub(super) fn check_decoder(&self) -> Result<(), Error> {
        let decoder = self.policy.kind == PolicyKind::Decoder;
        if self.task.priming.is_some() && !decoder {
            return Err(refuse("task.priming", "only policy 'decoder' reads it; leave it out".to_owned()));
        }
        if !decoder {
            return Ok(());
        }
        if self.task.kind != RECORD {
            let reason = format!("'decoder' plays records and text; task '{}' needs another", self.task.kind);
            return Err(refuse("policy.kind", reason));
        }
        if self.advantage.kind == AdvantageKind::Critic {
            let reason = "a decoder has no critic; use 'returns' or 'group'".to_owned();
            return Err(refuse("advantage.kind", reason));
        }
        self.check_temperature()?;
        let record = self.record()?;
        let prompt = record.prompt(self.task.priming.as_deref());
        prompt.map_err(|error| refuse("task.priming", error.to_string()))?;
        if self.policy.model.is_some() {
            let text = self.pretrained()?;
            let tokens = RecordTokens::new(text.model.text(), &record, self.task.priming.as_deref());
            tokens.map_err(|error| refuse("policy.model", error.to_string()))?;
        }
        Ok(())
    }

    /// How many parameters a decoder's blocks have; none before it has a model.
    pub(super) fn decoder_parameters(&self) -> Result<u128, Error> {
        if self.policy.model.is_none() {
            return Ok(0);
        }
        let tensors = self.pretrained()?.model.config().tensors();
        // Of tables, only the rows of tokens that occur are trained.
        let trained = tensors.iter().filter(|tensor| tensor.form != Form::Table);
        Ok(trained.map(|tensor| super::times(&tensor.shape)).fold(0, u128::saturating_add))
    }

    /// Bytes of a checkpoint where they are many: a decoder's parameters and what Adam remembers of them.
    pub(crate) fn checkpoint_bytes(&self) -> Result<u128, Error> {
        if self.policy.kind != PolicyKind::Decoder {
            return Ok(0);
        }
        let copies = if self.optimiser.kind == OptimiserKind::Adam { 3 } else { 1 };
        Ok(self.decoder_parameters()?.saturating_mul(4 * copies))
    }

    /// What names the record's content and, for a decoder, that of its model.
    pub(super) fn record_digest(&self) -> Result<String, Error> {
        let mut digest = match &self.task.file {
            Some(file) => Digest::of(
                read_bytes(file)
                    .map_err(|error| refuse("task.file", format!("{}: {error}", file.display())))?,
            ),
            None => Digest::of(Record::OF_THE_PAPER),
        };
        if self.policy.model.is_some() {
            digest = digest.and(self.pretrained()?.digest.to_string());
        }
        let digest = digest.to_string();
        match self.task.digest.as_deref().filter(|&said| said != digest) {
            None => Ok(digest),
            Some(said) => {
                let reason = format!(
                    "the task's file and the model are now those of {digest}, not of {said}; put them back, or leave it out for a new run"
                );
                Err(refuse("task.digest", reason))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../niwaki-lm/tests/fixtures");

    fn read(settings: &[&str]) -> Result<Spec, Error> {
        let base = [
            "task.kind=record".to_owned(),
            format!("task.file={FIXTURES}/record.toml"),
            "task.reward=two-branch".to_owned(),
        ];
        let settings = settings.iter().map(|&setting| setting.to_owned());
        Spec::read("run.toml", "", &base.into_iter().chain(settings).collect::<Vec<_>>())
    }

    fn refusal(settings: &[&str]) -> String {
        read(settings).and_then(|spec| spec.check()).unwrap_err().to_string().replace(FIXTURES, "")
    }

    #[test]
    fn records_that_cannot_be_played_are_named() {
        let decoder = "policy.kind=decoder";
        assert_eq!(
            refusal(&["task.vocab=4"]),
            "task.vocab=4: task 'record' has no key 'vocab'; leave it out"
        );
        assert_eq!(
            refusal(&["task.file=none.toml"]).split_once(" (").unwrap().0,
            "task.file: none.toml: No such file or directory"
        );
        assert_eq!(
            refusal(&["task.reward=two-brnch"]),
            "task.reward: /record.toml: no reward is called 'two-brnch'; there are: late-only, two-branch"
        );
        assert_eq!(
            refusal(&["task.priming=fatal"]),
            "task.priming: only policy 'decoder' reads it; leave it out"
        );
        assert_eq!(
            refusal(&[decoder, "task.priming=three"]),
            "task.priming: /record.toml: no priming is called 'three'; there are: fatal, neutral"
        );
        assert_eq!(
            refusal(&[decoder, "policy.width=8"]),
            "policy.width=8: policy 'decoder' has no key 'width'; leave it out"
        );
        assert!(refusal(&[decoder, "policy.model=none"]).starts_with("policy.model: none: "));
        assert_eq!(
            refusal(&[decoder, "policy.temperature=0"]),
            "policy.temperature: 0 is not a number above 0"
        );
        assert!(refusal(&[decoder, "advantage.kind=critic"]).contains("a decoder has no critic"));
        let spec = Spec::read("run.toml", "[policy]\nkind = \"decoder\"\n", &[]).unwrap();
        assert_eq!(
            spec.check().unwrap_err().to_string(),
            "policy.kind: 'decoder' plays records and text; task 'two-branch' needs another"
        );
        // What is planned without a model is not ready.
        let planned = read(&[decoder]).unwrap().check().unwrap();
        assert!(
            planned
                .check_ready()
                .unwrap_err()
                .to_string()
                .starts_with("policy.model: policy 'decoder' starts")
        );
        // Every sequence policy plays records.
        assert!(read(&["policy.kind=bag"]).unwrap().check().unwrap().check_ready().is_ok());
    }

    #[test]
    fn the_hash_names_the_content_of_record_and_model() {
        let place = tempfile::tempdir().unwrap();
        let model = place.path().join("model");
        fs::create_dir(&model).unwrap();
        for entry in fs::read_dir(Path::new(FIXTURES).join("tiny-qwen2")).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), model.join(entry.file_name())).unwrap();
        }
        let setting = format!("policy.model={}", model.display());
        let checked = || read(&["policy.kind=decoder", &setting]).unwrap().check().unwrap();
        let first = checked();
        let hash = |recipe: &Recipe| recipe.spec.hash().unwrap();
        let mut moved = first.spec.clone();
        moved.policy.model = Some("elsewhere".into());
        assert_eq!(moved.hash().unwrap(), hash(&first));
        assert_eq!(hash(&first.spec.check().unwrap()), hash(&first));
        // Other weights of the same length: the file is told apart by its time, and then by its content.
        let weights = model.join("model.safetensors");
        let mut bytes = fs::read(&weights).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::remove_file(&weights).unwrap();
        fs::write(&weights, bytes).unwrap();
        assert_ne!(hash(&checked()), hash(&first));
        let refused = first.spec.check().unwrap_err().to_string();
        assert!(
            refused.starts_with("task.digest: the task's file and the model are now those of"),
            "{refused}"
        );
    }
}
