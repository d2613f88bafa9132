//! A model's files: opened, checked, read into parameters, and saved as a Hugging Face folder.

use crate::config::{EMBEDDING, Form, Tensor, squares};
use crate::weights::{Gguf, Shards, Source, Translated};
use crate::{Config, Error, Result, Text, Vocabulary};
use niwaki_files::{Digest, free_space, read_own_text, write_atomically};
use niwaki_nn::Layout;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::{Map, Value, json};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A model's description.
const CONFIG: &str = "config.json";
/// A model's tokenizer.
const TOKENIZER: &str = "tokenizer.json";

/// A pretrained decoder: its sizes, its tensors and its tokenizer.
#[derive(Debug)]
pub struct Model {
    path: PathBuf,
    config: Config,
    /// `config.json`, as it came or as it would be written.
    description: Map<String, Value>,
    source: Box<dyn Source>,
    text: Text,
}

impl Model {
    /// Opens a Hugging Face folder or a GGUF file. Every tensor is found and of the right shape, or the model is refused.
    ///
    /// # Errors
    /// If a file is missing, damaged or of an unknown kind; the message names the file and, where it is one, the tensor.
    pub fn open(path: &Path) -> Result<Self> {
        let model = if path.is_dir() { Self::open_folder(path)? } else { Self::open_gguf(path)? };
        for Tensor { name, shape, .. } in model.config.each_tensor() {
            let found = model.source.shape(&name)?;
            if found != shape {
                let reason = format!("has shape {found:?}, expected {shape:?}");
                return Err(Error::tensor(model.source.path(), &name, reason));
            }
        }
        let next = Config::of_layer(model.config.layers, "input_layernorm.weight");
        if model.source.shape(&next).is_ok() {
            let reason = format!("is there, and the model is said to have {} blocks", model.config.layers);
            return Err(Error::tensor(model.source.path(), &next, reason));
        }
        Ok(model)
    }

    fn open_folder(folder: &Path) -> Result<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            read_own_text(&path).map_err(|error| Error::file(&path, error)).map(|bytes| (path, bytes))
        };
        let (path, text) = read(CONFIG)?;
        let description: Map<String, Value> =
            serde_json::from_slice(&text).map_err(|error| Error::file(&path, error))?;
        let config = Config::read(&path, &description)?;
        let (path, tokenizer) = read(TOKENIZER)?;
        let text = Text::new(&path, tokenizer)?;
        let source = Box::new(Shards::open(folder)?);
        Ok(Self { path: folder.to_owned(), config, description, source, text })
    }

    fn open_gguf(path: &Path) -> Result<Self> {
        let source = Translated::new(Gguf::open(path)?)?;
        let config = source.config().clone();
        let beside = path.with_file_name(TOKENIZER);
        let text = match read_own_text(&beside) {
            Ok(description) => Text::new(&beside, description)?,
            Err(error) if error.kind() == ErrorKind::NotFound => Text::of_gguf(source.file())?,
            Err(error) => return Err(Error::file(&beside, error)),
        };
        let description = config.describe();
        Ok(Self { path: path.to_owned(), config, description, source: Box::new(source), text })
    }

    /// Where it came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its sizes.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// Its tokenizer.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The checksum of its description, its tokenizer and its weights: what names the model wherever it lies.
    #[must_use]
    pub fn digest(&self) -> Digest {
        let description = Value::Object(self.description.clone()).to_string();
        self.source.digest(Digest::of(description).and(self.text.description()))
    }

    /// The flat parameters of a program that [`crate::Decoder`] wrote with this vocabulary.
    ///
    /// # Errors
    /// If the program has a parameter that the model has not, or a tensor cannot be read.
    pub fn parameters(&self, layout: &Layout, vocabulary: &Vocabulary) -> Result<Vec<f32>> {
        let tensors = self.config.tensors();
        let mut flat = vec![0.0; layout.len()];
        for slice in layout.slices() {
            let mut parts = tensors.iter().filter(|tensor| tensor.param == slice.name).peekable();
            if parts.peek().is_none() {
                return Err(Error::tensor(self.source.path(), &slice.name, "is none of this decoder's"));
            }
            let columns = slice.shape.last().copied().unwrap_or(1);
            let to = &mut flat[slice.range()];
            for tensor in parts {
                let stored = self.source.scalars(&tensor.name)?;
                if let Some(place) = stored.iter().position(|x| !x.is_finite()) {
                    let reason = format!("scalar {place} is {}", stored[place]);
                    return Err(Error::tensor(self.source.path(), &tensor.name, reason));
                }
                match tensor.form {
                    Form::Vector => to[tensor.start..][..stored.len()].copy_from_slice(&stored),
                    Form::Matrix => {
                        squares(tensor.shape[0], tensor.shape[1], |out, at| {
                            to[at * columns + tensor.start + out] = stored[out * tensor.shape[1] + at];
                        });
                    }
                    Form::Table => {
                        let width = tensor.shape[1];
                        self.holds(vocabulary)?;
                        for (to, token) in to.chunks_exact_mut(width).zip(vocabulary.tokens()) {
                            to.copy_from_slice(&stored[token as usize * width..][..width]);
                        }
                    }
                }
            }
        }
        Ok(flat)
    }

    /// Writes the model with a program's parameters in place of its own, as a Hugging Face folder in `f32`.
    ///
    /// # Errors
    /// If the disk refuses, or the parameters are of another program.
    pub fn save(
        &self,
        folder: &Path,
        layout: &Layout,
        vocabulary: &Vocabulary,
        parameters: &[f32],
    ) -> Result<()> {
        let refused = |error: std::io::Error| Error::file(folder, error);
        fs::create_dir_all(folder).map_err(refused)?;
        let needed: u64 =
            self.config.tensors().iter().map(|one| 4 * one.shape.iter().product::<usize>() as u64).sum();
        if let Some(free) = free_space(folder).filter(|&free| free < needed) {
            let reason = format!("the model needs {} MB and {} MB are free", needed >> 20, free >> 20);
            return Err(Error::file(folder, reason));
        }
        let mut written = Vec::new();
        for tensor in self.config.tensors() {
            let scalars = self.merged(&tensor, layout, vocabulary, parameters)?;
            let bytes: Vec<u8> = scalars.iter().flat_map(|x| x.to_le_bytes()).collect();
            written.push((tensor, bytes));
        }
        let views = written.iter().map(|(tensor, bytes)| {
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
            view.map(|view| (tensor.name.as_str(), view)).map_err(|error| Error::file(folder, error))
        });
        let views: Vec<(&str, TensorView<'_>)> = views.collect::<Result<_>>()?;
        // `transformers` asks for this entry.
        let entry = Some([("format".to_owned(), "pt".to_owned())].into());
        let tensors = safetensors::serialize(views, entry).map_err(|error| Error::file(folder, error))?;
        let mut description = self.description.clone();
        description.remove("torch_dtype");
        description.remove("quantization_config");
        description.insert("dtype".to_owned(), json!("float32"));
        let description = format!("{:#}\n", Value::Object(description));
        // The weights last: a folder that has them is whole.
        for (name, bytes) in [
            (CONFIG, description.as_bytes()),
            (TOKENIZER, self.text.description()),
            ("model.safetensors", &tensors),
        ] {
            write_atomically(&folder.join(name), bytes).map_err(refused)?;
        }
        Ok(())
    }

    /// Whether the tables have a row for every token: a tokenizer may have more of them than its model.
    fn holds(&self, vocabulary: &Vocabulary) -> Result<()> {
        let entries = self.config.vocab;
        match vocabulary.tokens().find(|&token| token as usize >= entries) {
            Some(token) => {
                let reason = format!("has {entries} rows, and the tokenizer has a token {token}");
                Err(Error::tensor(self.source.path(), EMBEDDING, reason))
            }
            None => Ok(()),
        }
    }

    /// A tensor as the checkpoint has it, with the program's parameters where the program has it.
    fn merged(
        &self,
        tensor: &Tensor,
        layout: &Layout,
        vocabulary: &Vocabulary,
        parameters: &[f32],
    ) -> Result<Vec<f32>> {
        let Some(own) = tensor.taken(layout, parameters) else { return self.source.scalars(&tensor.name) };
        if tensor.form != Form::Table {
            return Ok(own);
        }
        self.holds(vocabulary)?;
        let (mut whole, width) = (self.source.scalars(&tensor.name)?, tensor.shape[1]);
        for (own, token) in own.chunks_exact(width).zip(vocabulary.tokens()) {
            whole[token as usize * width..][..width].copy_from_slice(own);
        }
        Ok(whole)
    }
}
