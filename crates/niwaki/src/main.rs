//! The command `niwaki`, with its built-in parts alone.

mod allocator;

use allocator::Allocator;
use niwaki::{Parts, main_with};
use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

fn main() -> ExitCode {
    main_with(Parts::default())
}
