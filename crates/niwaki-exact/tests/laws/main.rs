//! The laws of the oracle, in one binary.
//!
//! | file | what belongs there |
//! |---|---|
//! | `golden.rs` | values of an independent implementation in extended precision |
//! | `twin.rs` | the slow, obvious twin: every sequence listed and given to the surrogate as one batch |
//! | `differences.rs` | gradients against central differences |
//! | `identities.rs` | the paper's identities |
//! | `alignment.rs` | the noise of one trajectory's gradient, and what a batch makes of it |
//! | `channels.rs` | the two channels and the conditions, against their definitions |
//! | `decoupled.rs` | three policies: the engine that sampled, the old one, the one now |
//! | `merging.rs` | histories that merge |

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod alignment;
mod channels;
mod decoupled;
mod differences;
mod golden;
mod identities;
mod merging;
mod support;
mod twin;
