//! Bounds on relaxed problems that can be solved fast.

pub(crate) mod one_machine;
