//! The trainer: from a spec to a trained policy and its curve.
//!
//! A [`Spec`] says what to train; checked, it is a [`Recipe`]. Recipes that share their shapes train as one
//! [`Cohort`] on a device: [`gather`] makes it, [`Cohort::advance`] runs one iteration of all members and returns one
//! [`Record`] each. Two members with the same seed see the same initial weights and uniforms, whatever their arm and
//! whatever else is in the cohort.
//!
//! | module | what belongs there |
//! |---|---|
//! | [`spec`] | the file of a run: tables, defaults, checks, hash |
//! | [`player`] | who plays: a population of policies on a task, with their optimiser |
//! | [`advantage`] | advantages of trajectories |
//! | [`update`] | one training batch and the loss it hands to the player |
//! | [`trainer`] | Algorithm 1 |
//! | [`policy`] | the policies that a spec can name |
//! | [`cohort`] | recipes and a device → a trainer |
//! | [`record`] | a line of the curve |
//! | [`task`] | token tasks of a user's own, by name |
//! | [`run`] | the folder of one run: files, stop and resume |
//! | [`reading`] | runs read back: how one stands, endpoints, what they mean |
//! | [`export`] | a fine-tuned decoder out of such a folder, as a Hugging Face folder |
//! | [`trained`] | a policy out of such a folder, to schedule instances or to score sequences |

pub mod advantage;
pub mod cohort;
mod error;
mod parts;
pub mod player;
pub mod policy;
mod pretrained;
pub mod reading;
pub mod record;
pub mod run;
pub mod spec;
mod spread;
pub mod trained;
pub mod trainer;
pub mod update;

pub use cohort::{Cohort, Device, gather};
pub use error::{Error, remedy};
pub use parts::task;
pub use pretrained::export;
pub use record::{Measured, Record};
pub use spec::{Recipe, Spec};
pub use trained::{GraphScheduler, Trained, TrainedGraph, TrainedPolicy};
