//! Gantt charts: machines down, time across, colour by job, as one SVG.
//!
//! The drawing carries its own style, follows the reader's light or dark theme, and answers a hover over an operation
//! with its job, machine and times. A page's script finds what it needs to zoom and to light one job up: `data-j` names jobs,
//! `data-x` and `data-size` say which times are drawn, `data-clock` which dates they are. This room must not know how a schedule was made.

mod bars;
mod chart;
mod colour;
mod dates;

pub use chart::{Details, Gantt, gantt};
pub use dates::{Lag, Window};
