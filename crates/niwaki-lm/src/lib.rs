//! Pretrained decoders as programs of the population engine.
//!
//! Knows files of other tools, the engine's ops, records and prompts; nothing of training. A [`Model`] is a Hugging Face
//! folder or a GGUF file, opened and checked; [`Decoder`] writes its program for any tree of tokens, so that rows which
//! share a prompt share its keys and values; [`Model::parameters`] fills that program's parameters, and [`Model::save`]
//! writes what became of them as a Hugging Face folder again.
//!
//! | file | what belongs there |
//! |---|---|
//! | `config.rs` | sizes and kinds of a decoder, read from `config.json`, and its tensors by name |
//! | `weights/` | tensors of safetensors and GGUF files, memory-mapped, and how they are packed |
//! | `text.rs` | text to tokens and back |
//! | `decoder.rs` | the program: a decoder's blocks over a tree of tokens |
//! | `model.rs` | a model's files: opened, checked, read into parameters, saved |
//! | `generate.rs` | text that a model writes, token by token |
//! | `record/` | records that a model fills slot by slot: tokens, all prefixes at once, the policy that is trained |
//! | `writer.rs` | free text behind prompts: the policy that is trained |

mod config;
mod decoder;
mod error;
mod generate;
mod model;
mod record;
mod text;
pub mod weights;
mod writer;

pub use config::{Architecture, Config, Form, Tensor};
pub use decoder::{Decoder, Rows, Tree, Vocabulary};
pub use error::{Error, Result};
pub use generate::{Generation, generate};
pub use model::Model;
pub use record::{Conditionals, RecordPolicy, RecordScratch, RecordTokens, RecordTree, enumerate};
pub use text::{Text, within_tokenizer};
pub use writer::{Choices, WriterPolicy, WriterScratch};
