//! Laws of the crate: what PyTorch says of tiny models, files that are damaged, shared prompts.
#![expect(clippy::unwrap_used, reason = "a law that cannot be set up has failed")]

mod files;
mod gguf;
mod peer;
mod record;
mod shared;
mod support;
mod writer;
