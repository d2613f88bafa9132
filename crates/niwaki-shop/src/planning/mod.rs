//! What the commands of a shop do, as calls that return values: open, schedule, judge, draw, convert.
//!
//! The caller parses flags before and prints afterwards; errors here carry data and never name a flag.
//!
//! | file | what |
//! |---|---|
//! | `problem.rs` | files of any layout, read and turned into each other |
//! | `method.rs` | the ways to schedule a special problem, by name |
//! | `solve.rs` | a checked schedule of a special problem with what it was judged by |
//! | `draws.rs` | instances drawn as files |
//! | `against.rs` | the exact search against best-known bounds and other engines over a folder |
//! | `contest.rs` | methods and policies against best-known values over a folder |
//! | `chart.rs` | what Gantt charts show beyond bars |

pub mod against;
mod chart;
pub mod contest;
mod draws;
mod method;
mod problem;
mod solve;

pub use chart::{chart, details};
pub use draws::{DrawnFile, Draws};
pub use method::Method;
pub use problem::{Layout, Opened, Problem, open, usual_objective};
pub use solve::{Score, Solved, judge, solve};
