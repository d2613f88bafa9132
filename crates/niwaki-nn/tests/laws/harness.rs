//! Loads a program with noise. The unit tests of ops read this file too.

use niwaki_nn::graph::IndexSource;
use niwaki_nn::{Columns, Cpu, Engine, Graph, Init, Op, Param, Real, Span, Value};
use niwaki_stream::Key;

/// A parameter that starts from noise.
pub(crate) fn param(graph: &mut Graph, name: &str, shape: &[usize]) -> Param {
    graph.param(name, shape, Init::Normal { deviation: 0.7 }).unwrap()
}

/// A value that depends on a parameter and differs between items: a table's rows plus an input.
pub(crate) fn leaf(graph: &mut Graph, name: &str, rows: usize, width: usize) -> Value {
    let table = param(graph, &format!("{name}.table"), &[rows, width]);
    let order: Vec<i32> = (0..rows as i32).collect();
    let order = graph.constant(&order);
    let embedded = graph.embed(table, order).unwrap();
    let noise = graph.scalars(&format!("{name}.noise"), rows, width);
    graph.add(embedded, noise).unwrap()
}

/// All columns of a value from `start` on.
pub(crate) fn columns(value: Value, start: usize) -> Columns {
    Columns { value, start }
}

/// A population with noise in every input, a function of each member's seed alone: about a fifth of the indices are
/// negative, a third of masks zero. A choice is never hidden: its log-probability would be −∞.
pub(crate) fn loaded<F: Real>(graph: &Graph, outputs: &[Value], seeds: &[u64], items: usize) -> Cpu<F> {
    let mut engine = Cpu::new(graph, outputs, seeds.len());
    engine.set_items(items).unwrap();
    for (place, input) in graph.inputs().iter().enumerate() {
        let data = noise(seeds, items * graph.shape(input.what).size(), "scalars", place, |stream| {
            F::from_f64(stream.normal())
        });
        engine.load_scalars(input.what, &data).unwrap();
    }
    let mut chosen = vec![Vec::new(); graph.index_sources().len()];
    for (place, source) in graph.index_sources().iter().enumerate() {
        if let IndexSource::Input { rows, bound, .. } = source {
            let index =
                graph.ops().iter().filter_map(|op| op.index()).find(|i| i.position() == place).unwrap();
            let data = noise(seeds, items * rows, "indices", place, |stream| {
                stream.below(*bound as u64 + 1) as i32 - i32::from(stream.uniform() < 0.2) * 1_000
            });
            let data: Vec<i32> = data.iter().map(|&entry| entry.min(*bound as i32 - 1)).collect();
            engine.load_indices(index, &data).unwrap();
            chosen[place] = data;
        }
    }
    for (place, mask) in graph.masks().iter().enumerate() {
        let handle = graph.ops().iter().filter_map(|op| op.mask()).find(|m| m.position() == place).unwrap();
        let mut data = noise(seeds, items * mask.what.size(), "masks", place, |stream| {
            u8::from(stream.uniform() < 0.67)
        });
        for op in graph.ops() {
            if let Op::Pick(pick) = op
                && pick.mask == Some(handle)
            {
                for (row, &action) in
                    chosen[pick.action.position()].iter().enumerate().filter(|pair| *pair.1 >= 0)
                {
                    data[row * mask.what.width + action as usize] = 1;
                }
            }
        }
        engine.load_mask(handle, &data).unwrap();
    }
    for (member, &seed) in seeds.iter().enumerate() {
        let mut flat: Vec<F> = niwaki_nn::initialise(graph.layout(), seed);
        // Gains and biases too must be off their usual ones and zeros.
        let mut stream = Key::new(seed, "shake").open();
        for slice in graph.layout().slices() {
            flat[slice.range()].iter_mut().for_each(|p| *p += F::from_f64(0.1 * stream.normal()));
        }
        engine.set_parameters(member, &flat).unwrap();
    }
    engine
}

fn noise<T>(
    seeds: &[u64],
    count: usize,
    purpose: &'static str,
    place: usize,
    draw: impl Fn(&mut niwaki_stream::Stream) -> T,
) -> Vec<T> {
    let mut data = Vec::new();
    for &seed in seeds {
        let mut stream = Key::new(seed, purpose).lane(place as u64).open();
        data.extend((0..count).map(|_| draw(&mut stream)));
    }
    data
}

/// Fixed weights on an output, the cotangent of `Σ weight · output`; never the same for two places.
pub(crate) fn weight(output: usize, member: usize, place: usize) -> f64 {
    ((output * 31 + member * 17 + place) as f64 * 0.618_033_988_75).fract() - 0.4
}

/// Pulls the weights back. With an index, `seeds` name the members so that weights follow a permuted member.
pub(crate) fn pull<F: Real>(engine: &mut Cpu<F>, graph: &Graph, outputs: &[Value], seeds: &[u64]) {
    let surrogate = |span: Span, _seen: &[&[F]], cotangents: &mut [&mut [F]]| {
        for (output, cotangent) in cotangents.iter_mut().enumerate() {
            let first = span.items.start * graph.shape(outputs[output]).size();
            for (place, cotangent) in cotangent.iter_mut().enumerate() {
                *cotangent = F::from_f64(weight(output, seeds[span.member] as usize, first + place));
            }
        }
    };
    engine.pull_back(&surrogate).unwrap();
}
