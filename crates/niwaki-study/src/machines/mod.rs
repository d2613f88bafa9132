//! Many machines: a study as units of work that any process can take.
//!
//! The way is studies → [`Split`] (a document: which runs train together, what comes before what) → [`Crew`] (a process that
//! claims units by leases) → [`Worker`] (one unit: trained in private, put in place whole) → the results folder, which
//! `reproduce` reports as if one machine had made it. [`Standing`] says how far all of it is. There is no scheduler here:
//! where there is one, it gets the numbers of units; elsewhere as many crews are started as there are devices.
//!
//! **Why a unit can be run twice.** A run is a pure function of its spec, seed and device. An attempt at a unit trains in a
//! folder that no other process knows, and finished runs are renamed into place one by one. A folder cannot be renamed onto
//! one that is not empty: the first attempt to end is the one that stands, and a later one finds the same bytes or refuses.
//! So a process may be killed, duplicated, stopped for an hour and woken: no run is lost, doubled or mixed. Leases only
//! keep processes from doing the same work; nothing else depends on them, nor on a clock or a lock.
//!
//! **What an attempt leaves to the next.** A new attempt at a unit copies what earlier ones saved, checkpoint first, and goes
//! on from there; it never shares a file with them.
//!
//! **Stages.** The units of a pilot come first, those that measure strengths next, the arms' last. Which runs the arms have
//! is known before the pilot has run, but for the value that it chooses and for cells that it leaves out: a unit is named
//! by its runs with the pilot's first value, and trained with what the finished pilot chose.
//!
//! | module | what belongs there |
//! |---|---|
//! | `unit.rs` | a unit, its stage, what it comes after |
//! | `split.rs` | from studies to units, and the document |
//! | `depot.rs`, `archive.rs` | runs on their way into a store: folders, or archives where it is not a folder |
//! | `worker.rs` | one unit |
//! | `crew.rs` | a process that claims units |
//! | `collect.rs` | finished runs out of a store that is not a folder |
//! | `standing.rs` | how every unit stands |
//! | `status.rs` | how far a plan is, for people |
//! | `simulate.rs` | how long it would take on so many machines |
//! | [`launch`] | the plan as schedulers take it |

mod archive;
mod collect;
mod crew;
mod depot;
pub mod launch;
mod simulate;
mod split;
mod standing;
mod status;
mod unit;
mod worker;

pub use collect::collect;
pub use crew::{Crew, Terms, Told, leases};
pub use simulate::{Scaling, Simulated};
pub use split::{Split, Splitting};
pub use standing::{Standing, State};
pub use status::{Failed, Running, Status};
pub use unit::{Stage, Unit};
pub use worker::{Worked, Worker};
