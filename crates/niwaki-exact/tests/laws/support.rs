//! Pairs of policies that the laws share.

use niwaki_correction::Surrogate;
use niwaki_exact::{Process, Table};

/// The logits of the fixture: θ_old = 0.1·sin(1 + j) and θ_new = θ_old + 0.7·cos(2 + 3j), j = 4p + a.
pub(crate) fn fixture_tables(process: Process) -> (Table, Table) {
    let index = |edge: usize| (4 * (edge / process.vocab()) + edge % process.vocab()) as f64;
    let old: Vec<f64> = (0..process.edges()).map(|edge| 0.1 * (1.0 + index(edge)).sin()).collect();
    let new: Vec<f64> =
        (0..process.edges()).map(|edge| old[edge] + 0.7 * (2.0 + 3.0 * index(edge)).cos()).collect();
    (Table::new(process, &old).unwrap(), Table::new(process, &new).unwrap())
}

/// A loss without its clip, as the paper's diagnostics use it.
pub(crate) fn unclipped(name: &str) -> Surrogate {
    name.parse::<Surrogate>().unwrap().without_clip()
}
