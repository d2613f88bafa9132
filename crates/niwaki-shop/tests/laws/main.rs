//! Properties of this crate, one file per room; one binary, so that they link once.

mod construction;
mod optimum;
