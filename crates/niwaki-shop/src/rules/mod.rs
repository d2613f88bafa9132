//! Dispatching rules: at each decision, the candidate with the best priority.
//!
//! [`DispatchRule`] is the priority, [`Dispatcher`] the way it is used: on non-delay or active schedules, once or in many
//! randomised samples. Rules play the lanes of [`crate::construct`] like any policy would; this room must not know how
//! schedules are built.

mod dispatcher;
mod rule;

pub use dispatcher::Dispatcher;
pub use rule::DispatchRule;
