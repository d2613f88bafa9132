//! Files: reading, writing and telling layouts apart.
//!
//! One file per layout, each with `sniff`, `read` and `write`, and one line in [`Format`]'s table. Every complaint
//! carries line and column. Nothing is allocated from a number in a header before the data that it announces has
//! been seen, so a lying header costs nothing. This room must not know how instances are solved or drawn.
//!
//! | layout | file | problems |
//! |---|---|---|
//! | [`Format::Standard`] | `standard.rs` | job shop: OR-Library's `machine time` pairs, one line per job |
//! | [`Format::Pairs`] | `pairs.rs` | flow shop: the same pairs with machines 0, 1, 2, … in order (VFR), after `# flow shop` |
//! | [`Format::Taillard`] | `taillard.rs` | flow shop: Taillard's header and machine-major matrix |
//! | [`Format::TaillardJob`] | `taillard_job.rs` | job shop: Taillard's header and two matrices |
//! | [`Format::Fjs`] | `fjs.rs` | flexible job shop, machines from 0 or 1, optional third header number |
//! | [`Format::JobShopLib`] | `job_shop_lib.rs` | job shop and flexible job shop: JobShopLib's matrices in JSON |
//! | [`Format::ScheduleOpt`] | `schedule_opt.rs` | job shop and flexible job shop: ScheduleOpt's records in JSON |
//! | [`Format::SchedulingLab`] | `scheduling_lab.rs` | flexible job shop: SchedulingLab's nested lists in JSON |
//! | [`Format::Niwaki`] | `native.rs` | all five, with windows, lags and due dates, in JSON |

mod bounds;
mod engines;
mod fjs;
mod format;
mod job_shop_lib;
pub(crate) mod json;
mod native;
mod pairs;
mod recognise;
mod schedule;
mod schedule_opt;
mod scheduling_lab;
mod standard;
mod taillard;
mod taillard_job;
mod text;

pub use bounds::{Known, KnownBounds};
pub use engines::{Best, EngineTable, Reached};
pub use format::{Format, load, read, write};
pub use recognise::{Recognised, recognise};
pub(crate) use recognise::{is_plan, read_general, text_of};
pub use schedule::{read_job_sequences, read_schedule, write_schedule_csv, write_schedule_json};
