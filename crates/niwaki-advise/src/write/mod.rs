//! Dumps as we write them: parquet, in at most eight bytes a step, thinned by a budget.
//!
//! | file | what belongs there |
//! |---|---|
//! | `dump.rs` | the columns of a dump, and how values are rounded |
//! | `thin.rs` | which trajectories keep their steps, and with what chance |
//! | `parquet.rs` | columns as a file |
//! | `thrift.rs` | the encoding of headers |

mod dump;
mod parquet;
mod thin;
mod thrift;

pub use dump::{Written, parquet};
