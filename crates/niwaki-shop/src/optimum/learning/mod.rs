//! A small search engine that learns from its conflicts (lazy clause generation).
//!
//! Variables are whole numbers between two bounds. Every literal is a [`Fact`], "this bound is at least this
//! value", made when it is needed and never stored apart. Constraints draw conclusions and note why; a conflict is
//! traced back through these notes to its first unique implication point, and the clause learnt there is never
//! violated again. The engine must not know what is being scheduled.
//!
//! Method: Ohrimenko, Stuckey and Codish, "Propagation via lazy clause generation", Constraints 14 (2009); the
//! search (activities, saved phases, Luby restarts, clauses kept by their number of levels) follows MiniSat and
//! Glucose.

mod activity;
mod analyse;
mod clauses;
mod difference;
mod engine;
mod fact;
mod trail;

pub(crate) use difference::Difference;
pub(crate) use engine::{Engine, Global, Outcome};
pub(crate) use fact::{Fact, Var};
pub(crate) use trail::{Conflict, Trail};
