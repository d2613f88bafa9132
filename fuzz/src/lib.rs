//! Every reader against inputs that lie.
//!
//! A case is a pure function of a reader's name and a number: a seed of its corpus, changed a few times by noise that the
//! number names. So a pass is the same on every machine, and a case that failed is had again by its number. A reader
//! passes a case where it returns, with a value or a refusal: it must not panic, not go on for ever, and not take more
//! memory than its stated share of the input.
//!
//! Plain mutation on stable Rust, and no coverage feedback: `cargo fuzz` needs a nightly compiler and would be run by
//! hand only, while this runs with every check. What it lacks in aim it makes up in seeds (each layout's own features)
//! and in changes that know what a length, a count or a number looks like.
//!
//! | file | what belongs there |
//! |---|---|
//! | `readers/` | the readers, their seeds, and what they may take |
//! | `mutate.rs` | changes to bytes and to numbers within text |
//! | `meter.rs` | an allocator that counts |
//! | `campaign.rs` | cases in order, what came of them, and the watch |

pub mod campaign;
pub mod meter;
pub mod mutate;
pub mod readers;
