//! The five problems. Each is checked once, when it is made; everything downstream may rely on it.
//!
//! What is checked: shapes agree, machines exist, each operation can run somewhere, lags do not contradict each
//! other, and the sum of all times and lags stays within [`HORIZON`], so that no schedule without needless
//! waiting can overflow. This room must not know how instances are read, drawn or solved.

mod any;
mod check;
mod flexible;
mod flow;
mod job;
mod lags;
mod single;

pub use any::Instance;
pub use check::HORIZON;
pub use flexible::{Alternative, FlexibleShop, Window};
pub use flow::FlowShop;
pub use job::{JobShop, Operation};
pub use lags::{LaggedJob, TwoMachineLags};
pub use single::SingleMachine;

use check::{some_jobs_and_machines, within_horizon};
