//! Streaming measurements of any number of trajectories, in constant memory.
//!
//! | file | what belongs there |
//! |---|---|
//! | `steps.rs` | one trajectory's ratios, taken once |
//! | `position.rs`, `part.rs` | sums that add up: by position, over all |
//! | `scaled.rs` | sums of exponentials that never overflow |
//! | `signal.rs` | rewards by iteration, groups without variance (C3) |
//! | `amplification.rs` | how much longer a correction makes the gradient |
//! | `histogram.rs` | log-ratios in bins of equal relative width |
//! | `estimates.rs` | what the sums say |
//! | `jackknife.rs` | intervals, by leaving folds out |
//! | `run.rs` | the whole run: folds, iterations, groups |
//! | `numbers.rs` | the scalars by name, for people and for `--fail-on` |

mod amplification;
mod estimates;
mod histogram;
mod jackknife;
mod numbers;
mod part;
mod position;
mod run;
mod scaled;
mod signal;
mod steps;

pub use amplification::AmplificationRow;
pub use estimates::{AMPLIFIED, REACHED};
pub use numbers::{NAMES, Number};
pub use run::{AlphaRow, Bin, Facts, IterationRow, Measure, Measured, PositionRow, Settings};
