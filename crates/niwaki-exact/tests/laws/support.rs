//! Pairs of policies, losses and listings that the laws share.

use niwaki_correction::family::MEMBERS;
use niwaki_correction::{Clip, Surrogate};
use niwaki_exact::{Process, Table};
use niwaki_stream::Key;

/// Every member as the laws write it: caps that bind, windows that cut, floors that bite.
pub(crate) fn losses() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().flat_map(|member| member.tried).copied()
}

/// No clip, PPO's, and an asymmetric one with a dual side tight enough to bind.
pub(crate) const CLIPS: [Option<Clip>; 3] =
    [None, Some(Clip::PPO), Some(Clip { low: 0.3, high: 0.1, dual: Some(1.4) })];

/// The logits of the fixture: θ_old = 0.1·sin(1 + j) and θ_new = θ_old + 0.7·cos(2 + 3j), j = 4p + a.
pub(crate) fn fixture_tables(process: Process) -> (Table, Table) {
    let index = |edge: usize| (4 * (edge / process.vocab()) + edge % process.vocab()) as f64;
    let old: Vec<f64> = (0..process.edges()).map(|edge| 0.1 * (1.0 + index(edge)).sin()).collect();
    let new: Vec<f64> =
        (0..process.edges()).map(|edge| old[edge] + 0.7 * (2.0 + 3.0 * index(edge)).cos()).collect();
    (Table::new(process, &old).unwrap(), Table::new(process, &new).unwrap())
}

/// Logits with normal noise of the given scale.
pub(crate) fn noise(length: usize, seed: u64, scale: f64) -> Vec<f64> {
    let mut stream = Key::new(seed, "laws").open();
    (0..length).map(|_| scale * stream.normal()).collect()
}

/// A loss without its clip, as the paper's diagnostics use it.
pub(crate) fn unclipped(name: &str) -> Surrogate {
    name.parse::<Surrogate>().unwrap().without_clip()
}

/// Every sequence with its probability and the edges it walks.
pub(crate) fn listed(table: &Table) -> Vec<(f64, Vec<usize>)> {
    let process = table.process();
    let mut sequences = vec![];
    process.each_sequence(|_, tokens| {
        let edges: Vec<usize> =
            (0..process.horizon()).map(|t| process.vocab() * process.row(&tokens[..t]) + tokens[t]).collect();
        sequences.push((edges.iter().map(|&edge| table.prob()[edge]).product(), edges));
    });
    sequences
}

/// ‖x − y‖ ≤ tolerance · max(‖x‖, ‖y‖) + floor.
pub(crate) fn assert_near(what: &str, came: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(came.len(), expected.len(), "{what}");
    let norm = |x: &[f64]| x.iter().map(|x| x * x).sum::<f64>().sqrt();
    let off: Vec<f64> = came.iter().zip(expected).map(|(came, expected)| came - expected).collect();
    let (off, size) = (norm(&off), norm(came).max(norm(expected)));
    assert!(off <= tolerance * size + 1e-17, "{what}: off by {off:e} of {size:e}");
}
