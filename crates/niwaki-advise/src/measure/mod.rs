//! Streaming measurements of any number of trajectories, in constant memory.
//!
//! | file | what belongs there |
//! |---|---|
//! | `steps.rs` | one trajectory's ratios, taken once |
//! | `exact.rs` | sums that no order changes |
//! | `position.rs`, `part.rs` | sums that add up: by position, over all |
//! | `scaled.rs` | numbers beyond floats, and what sums of exponentials say |
//! | `signal.rs` | rewards by iteration, groups without variance (C3) |
//! | `amplification.rs` | how much longer a correction makes the gradient |
//! | `lags.rs` | log-ratios by the age of the policy that sampled |
//! | `histogram.rs` | log-ratios in bins of equal relative width |
//! | `estimates.rs` | what the sums say |
//! | `jackknife.rs` | intervals, by leaving folds out |
//! | `folds.rs` | the fold of a trajectory, which follows from itself alone |
//! | `run.rs` | the whole run: folds, iterations, groups |
//! | `merge.rs`, `tally.rs`, `code.rs` | shares of a run: added up, as a file, and its numbers as bytes |
//! | `rows.rs` | what is measured, as tables |
//! | `settings.rs` | what the measurements depend on beside the data |
//! | `numbers.rs` | the scalars by name, for people and for `--fail-on` |

mod amplification;
mod code;
mod estimates;
mod exact;
mod folds;
mod histogram;
mod jackknife;
mod lags;
mod merge;
mod numbers;
mod part;
mod position;
mod rows;
mod run;
mod scaled;
mod settings;
mod signal;
mod steps;
mod tally;

pub(crate) use code::{Damaged, Reader, Writer};
pub(crate) use exact::{Exact, Range};
pub(crate) use folds::mixed;

pub use amplification::AmplificationRow;
pub use estimates::{AMPLIFIED, REACHED};
pub use lags::{AgeRow, LimitRow};
pub use merge::Differ;
pub use numbers::{NAMES, Number};
pub use rows::{AlphaRow, Bin, Facts, IterationRow, Measured, PositionRow, Ranks};
pub use run::Measure;
pub use settings::Settings;
pub use tally::Unreadable;
