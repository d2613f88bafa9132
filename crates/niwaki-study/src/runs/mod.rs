//! Finished runs of one's own: what one says, and several side by side.
//!
//! | module | what belongs there |
//! |---|---|
//! | `read` | a run from its folder, and all runs below one |
//! | `page` | the page of one run: curve, drift, ESS, clipping, what was licensed |
//! | `compare` | runs that differ in more than their seed, paired by seed |
//! | `report` | that comparison as text, JSON and a page |

mod compare;
mod page;
mod read;
mod report;

pub use compare::{Comparison, Difference, Endpoint, Group};
pub use page::run_page;
pub use read::{Found, Judged, Run};
