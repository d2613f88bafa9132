//! Runs of one's own: what one says, and several side by side.
//!
//! | module | what belongs there |
//! |---|---|
//! | `page` | the page of one run: curve, drift, ESS, clipping, what was licensed |
//! | `row` | a run among many |
//! | `arms` | what runs differ in: arms, and the settings at which they are matched |
//! | `compare` | arms against a baseline, paired by seed |
//! | `report` | that comparison as text and JSON |

mod arms;
mod compare;
mod page;
mod report;
mod row;

pub use arms::{Group, Part, Settings};
pub use compare::Comparison;
pub(crate) use compare::paired;
pub use page::run_page;
pub use row::{Point, Row};
