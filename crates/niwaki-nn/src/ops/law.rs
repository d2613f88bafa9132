//! Gradients against central differences, with the harness of the crate's other laws.

pub(super) use crate::harness::{columns, leaf, param};

use crate::graph::{Graph, Value};
use crate::harness::{loaded, pull, weight};
use crate::{Cpu, Engine};

/// Items per member: several, so that items are kept apart.
const ITEMS: usize = 3;

fn objective(engine: &mut Cpu<f64>, outputs: usize, seed: u64) -> f64 {
    engine.forward().unwrap();
    let term = |output: usize| -> f64 {
        let values = engine.output(0, output);
        values.iter().enumerate().map(|(place, v)| v * weight(output, seed as usize, place)).sum()
    };
    (0..outputs).map(term).sum()
}

/// Every parameter's gradient against a central difference, in f64.
pub(super) fn check(name: &str, graph: &Graph, outputs: &[Value]) {
    let seed = 11;
    let mut engine = loaded::<f64>(graph, outputs, &[seed], ITEMS);
    pull(&mut engine, graph, outputs, &[seed]);
    let gradient = engine.gradient(0).unwrap();
    let flat = engine.parameters(0).unwrap();
    let largest = gradient.iter().fold(0.0_f64, |most, g| most.max(g.abs()));
    assert!(largest > 1e-3, "{name}: the gradient vanishes, the law would say nothing");
    for slice in graph.layout().slices() {
        for place in slice.range() {
            // Truncation h²/6 · f''' and rounding 1e-16 · f / h are both near 1e-10 for sums of size one.
            let h = 1e-5;
            let mut at = |change: f64| {
                let mut moved = flat.clone();
                moved[place] += change;
                engine.set_parameters(0, &moved).unwrap();
                objective(&mut engine, outputs.len(), seed)
            };
            let difference = (at(h) - at(-h)) / (2.0 * h);
            let error = (difference - gradient[place]).abs();
            assert!(
                error < 2e-8 * (1.0 + largest),
                "{name}: {}[{}]: gradient {}, difference {difference}",
                slice.name,
                place - slice.offset,
                gradient[place]
            );
        }
    }
}
