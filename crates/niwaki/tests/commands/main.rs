//! The command as users meet it, one file per door; one binary, so that they link once.

mod shop;
