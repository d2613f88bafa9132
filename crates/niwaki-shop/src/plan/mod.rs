//! A planner's files: tables of named jobs, operations, machines, shifts and setups, as CSV, JSON or XLSX; schedules with names and
//! dates on the way out. A file becomes a [`Plan`]: a general shop and the clock that gives its whole numbers a meaning.
//!
//! | file | what |
//! |---|---|
//! | `table.rs`, `csv.rs` | tables with places, from and to JSON and CSV |
//! | `time.rs`, `date.rs` | lengths and moments as people write them; the calendar |
//! | `read.rs`, `machines.rs`, `operations.rs` | tables to a shop |
//! | `columns.rs` | columns that are not read, and what they may mean |
//! | `local.rs` | decimal commas and dates of a country to those that the readers know |
//! | `settings.rs` | unit, start and objective |
//! | `shifts.rs` | shifts and breaks to closed times |
//! | `write.rs` | a shop to tables |
//! | `schedule.rs` | schedules with names and dates: CSV and JSON, out and in |
//! | `ics.rs` | schedules as iCalendar |
//! | `xlsx.rs` | spreadsheets to tables |
//! | `template.rs` | a file to start from |

mod columns;
mod csv;
mod date;
mod ics;
mod local;
mod machines;
mod operations;
mod read;
mod schedule;
mod settings;
mod shifts;
mod table;
mod template;
mod time;
mod write;
mod xlsx;

pub use date::{Date, parse_date};
pub use read::Plan;
pub use template::template;
pub use time::{Clock, Unit};

/// The tables of a plan.
const TABLES: [&str; 7] = ["settings", "jobs", "machines", "shifts", "breaks", "setups", "operations"];

/// The kind that a plan in JSON names.
const KIND: &str = "shop";
