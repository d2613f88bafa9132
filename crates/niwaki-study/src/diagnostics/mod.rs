//! Studies of the exact estimator diagnostics, which [`niwaki_exact::diagnostics`] measures.
//!
//! | file | what belongs there |
//! |---|---|
//! | `spec.rs` | a study file of this kind |
//! | `judge.rs` | its statements held against what was measured |
//! | `page.rs` | its page |
//! | `report.rs` | from the file to the report |

mod judge;
mod page;
mod report;
mod spec;

pub use page::study_page;
pub(crate) use report::report;
pub use spec::Diagnostics;
