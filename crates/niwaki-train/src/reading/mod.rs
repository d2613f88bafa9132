//! Runs read back: how one stands, and what it came to. Every page, table and comparison reads them here.
//!
//! | file | what belongs there |
//! |---|---|
//! | `run.rs` | a run from its folder: finished, running, diverged, or damaged; all runs below a folder |
//! | `course.rs` | how it went: its curve, and what counts where it came no further |
//! | `judged.rs` | what it is judged by |
//! | `endpoint.rs` | numbers read off a course: the list, with definitions |
//! | `name.rs` | what endpoints are called |

mod course;
mod endpoint;
mod judged;
mod name;
mod run;

pub use course::{Course, mean_curve, mean_of};
pub use endpoint::Endpoint;
pub(crate) use endpoint::mean_of_all;
pub use judged::Judged;
pub use name::{FirstTokens, Stretch};
pub use run::{Damaged, Found, Reader, Run, Standing};
