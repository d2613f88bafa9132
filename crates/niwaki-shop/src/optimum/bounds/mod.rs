//! Bounds on relaxed problems that can be solved fast.

pub(super) mod one_machine;
