//! The whole command (train, sweep, compare, oracle, …) with a task and a loss of one's own.

use niwaki::{Parts, main_with};
use niwaki_correction::{Rule, family::Reads};
use niwaki_tasks::Sequence;
use std::process::ExitCode;

/// A lock of dials: every dial asks for the next face on the dial after it, so that an early choice decides what later ones are worth.
#[derive(Debug)]
struct Lock {
    faces: usize,
    dials: usize,
}

impl Sequence for Lock {
    fn vocab(&self) -> usize {
        self.faces
    }

    fn horizon(&self) -> usize {
        self.dials
    }

    fn reward(&self, tokens: &[usize]) -> f64 {
        let fits = tokens.windows(2).filter(|pair| pair[1] == (pair[0] + 1) % self.faces).count();
        fits as f64 / (self.dials - 1) as f64
    }
}

fn main() -> ExitCode {
    let lock = |faces, dials| {
        if dials > 1 { Ok(Lock { faces, dials }) } else { Err("a lock has at least two dials") }
    };
    let three_back = Rule { reads: Reads::Window(3), ..Rule::tempered(0.5) };
    main_with(Parts::default().task("lock", lock).loss("three-back", three_back))
}
