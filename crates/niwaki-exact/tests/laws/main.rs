//! The laws of the oracle, in one binary.
//!
//! | file | what belongs there |
//! |---|---|
//! | `golden.rs` | values of an independent implementation in extended precision |

#![expect(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

mod golden;
mod support;
