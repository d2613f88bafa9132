//! The command `niwaki`, with its built-in parts alone.

use mimalloc::MiMalloc;
use niwaki::{Parts, main_with};
use std::process::ExitCode;

/// Keeps what one measurement returns for the next.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    main_with(Parts::default())
}
