//! What a policy plays.
//!
//! A task shows itself through a **view**: [`Sequence`] is the view of a process whose state is the sequence of
//! tokens chosen so far, [`Construction`] that of one which chooses among candidates with features, and [`GraphTask`] that
//! of a shop as a graph of operations and machines. A policy for a view plays every task that offers it and knows none of them by name. What a schedule pays is a [`Payment`], apart
//! from the task, so that runs with different deadlines can share one. A [`ShopPool`] says which shops are drawn, or read
//! from a user's folder ([`InstanceFolder`]), and builds the construction. A new task is one file here and one line in the spec
//! that names it.
//!
//! | module | tasks |
//! |---|---|
//! | [`ladder`] | the paper's four rewards over tokens, any vocabulary and horizon |
//! | [`choice`] | free choice and its environments: emergent terminal, coupled choices |
//! | [`graph`] | flexible and ordinary job shops: which pair of job and machine comes next |
//! | [`flow_shop`] | permutation flow shops: which job comes next |
//! | [`job_shop`] | job shops: which operation runs next on the machine that becomes free |
//! | [`lags`] | two-machine flow shops with lags and due dates |
//! | [`record`] | records as data: a template with slots, candidates, primings and rewards as rules |
//! | [`single_machine`] | one machine with due dates |
//! | [`text`] | free text behind prompts, with a verifier |
//! | [`two_orders`] | the smallest of these: who runs first, and how much slack that leaves |

pub mod choice;
mod construction;
mod error;
pub mod flow_shop;
mod folder;
pub mod graph;
pub mod job_shop;
pub mod ladder;
pub mod lags;
mod numbered;
mod orders;
mod payment;
mod pool;
pub mod record;
mod sequence;
pub mod single_machine;
pub mod text;
pub mod two_orders;

pub use choice::{Choice, Terminal};
pub use construction::{Building, Construction, Numbers, Routes, Stations};
pub use error::Error;
pub use flow_shop::FlowTask;
pub use folder::InstanceFolder;
pub use graph::{GraphLanes, GraphSizes, GraphTask};
pub use job_shop::JobTask;
pub use ladder::Ladder;
pub use lags::LagTask;
pub use payment::{Outcome, Payment};
pub use pool::{Generator, OptimaProgress, Reading, Shop, ShopPool, Source, construct};
pub use record::{Record, RecordTask};
pub use sequence::{Sequence, complete, payoff};
pub use single_machine::SingleMachineTask;
pub use text::{Prompt, TextTask};
