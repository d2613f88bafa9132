//! Gantt charts: machines down, time across, colour by job, as one SVG without scripts.
//!
//! The drawing carries its own style, follows the reader's light or dark theme, and answers a hover over an operation
//! with its job, machine and times. This room must not know how a schedule was made.

mod chart;
mod colour;
mod dates;

pub use chart::{Details, Gantt, gantt};
pub use dates::Window;
