//! Good schedules quickly: textbook heuristics, each with the law that pins it.
//!
//! Permutation flow shops: [`neh()`], and [`IteratedGreedy`] on top of [`Insertion`], Taillard's acceleration.
//! Two machines: [`johnson()`], also with lags. One machine: [`jackson()`]. This room proves nothing: bounds and proofs
//! belong to [`crate::optimum`].

mod greedy;
mod insertion;
mod jackson;
mod johnson;
mod neh;

pub use greedy::IteratedGreedy;
pub use insertion::Insertion;
pub use jackson::{jackson, max_lateness};
pub use johnson::{johnson, johnson_with_lags};
pub use neh::{neh, neh_from};
