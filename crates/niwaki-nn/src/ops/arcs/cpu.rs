//! Attention along arcs on the CPU, state by state.

use super::{Arcs, AttendArcs, Sizes};
use crate::cpu::kernels::{LANES, add_scaled, dot, largest};
use crate::cpu::{Block, Real};
use crate::graph::{Graph, Value};
use crate::ops::OnCpu;
use crate::plan::Backward;
use niwaki_simd::vectorised;

/// Slope of the scores below zero.
const SLOPE: f64 = 0.2;

/// What counts as no weight before weights are divided by their sum, which is one or more: it changes no sum, and numbers without a
/// leading digit, of which it saves the processor the handling, take a hundred times as long as others.
const NOTHING: f64 = 1e-25;

/// Columns that are summed at a time.
const COLUMNS: usize = 64;

impl AttendArcs {
    /// The rows of operations that are read: those with arcs.
    pub(crate) fn operations_read<F: Real>(&self, block: &Block<'_, F>) -> Vec<u32> {
        let rows = block.mask(self.arcs.present).chunks_exact(self.sizes(block.graph).machines);
        let with_arcs = (0..).zip(rows).filter(|(_, arcs)| arcs.iter().any(|&arc| arc != 0));
        with_arcs.map(|(row, _)| row).collect()
    }
}

/// One state as the passes read it.
#[derive(Clone, Copy)]
struct State<'a, F> {
    operations: &'a [F],
    machines: &'a [F],
    times: &'a [F],
    present: &'a [u8],
    along: &'a [F],
    source: &'a [F],
    target: &'a [F],
}

impl OnCpu for AttendArcs {
    fn scratch(&self, graph: &Graph) -> usize {
        let Sizes { operations, width, .. } = self.sizes(graph);
        // Scores of operations, weights and slopes of one machine's arcs and loop; one row.
        operations + 2 * room(operations) + width
    }

    fn forward<F: Real>(&self, block: &mut Block<'_, F>, _: usize) {
        let sizes = self.sizes(block.graph);
        let own = sizes.machines * sizes.width;
        let mut list = vec![0; sizes.operations];
        for (place, out) in block.result(self.output).chunks_exact_mut(own).enumerate() {
            attend(self.state(block, sizes, place), sizes, out, block.scratch, &mut list);
        }
    }

    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, gradient: &mut [F]) {
        let (sizes, layout) = (self.sizes(block.graph), block.graph.layout());
        let Sizes { operations, machines, width } = sizes;
        let Arcs { along, source, target, .. } = self.arcs;
        let params = [along, source, target].map(|param| layout.slice(param).range());
        let Ok(mut params) = gradient.get_disjoint_mut(params) else { return };
        let d = block.pulled(self.output);
        let values = [self.arcs.operations, self.arcs.machines, self.arcs.times];
        let sizes_of = [operations * width, machines * width, operations * machines];
        let mut list = vec![0; operations];
        // One operand after the other, so that one value may be two of them; the parameters with the first.
        for (part, (value, size)) in values.into_iter().zip(sizes_of).enumerate() {
            let into = block.zeroed(value, &step.writes, part);
            if into.is_none() && part > 0 {
                continue;
            }
            let mut into = into.unwrap_or_default().chunks_exact_mut(size);
            for (place, d) in d.chunks_exact(machines * width).enumerate() {
                let to = Into { part, values: into.next().unwrap_or_default(), params: &mut params };
                attend_backward(self.state(block, sizes, place), sizes, d, to, block.scratch, &mut list);
            }
        }
    }
}

impl AttendArcs {
    fn state<'a, F: Real>(&self, block: &Block<'a, F>, sizes: Sizes, place: usize) -> State<'a, F> {
        let Sizes { operations, machines, width } = sizes;
        let part = |of: Value, size: usize| &block.value(of)[place * size..(place + 1) * size];
        let arcs = operations * machines;
        State {
            operations: part(self.arcs.operations, operations * width),
            machines: part(self.arcs.machines, machines * width),
            times: part(self.arcs.times, arcs),
            present: &block.mask(self.arcs.present)[place * arcs..(place + 1) * arcs],
            along: block.parameter(self.arcs.along),
            source: block.parameter(self.arcs.source),
            target: block.parameter(self.arcs.target),
        }
    }
}

/// Where a state's cotangents go: those of one operand (0 operations, 1 machines, 2 times), and with the first one those of
/// the parameters.
struct Into<'a, 'p, F> {
    part: usize,
    values: &'a mut [F],
    params: &'a mut [&'p mut [F]; 3],
}

/// Scalars for a machine's arcs and its loop, in whole registers.
const fn room(operations: usize) -> usize {
    (operations + 1).next_multiple_of(LANES)
}

#[inline(always)]
fn leaky<F: Real>(z: F) -> F {
    if z > F::ZERO { z } else { F::from_f64(SLOPE) * z }
}

/// The operations at a machine's arcs, rising, in room for all. No branch hangs on an arc.
#[inline(always)]
fn arcs_of<'a>(present: &[u8], machines: usize, machine: usize, list: &'a mut [u32]) -> &'a [u32] {
    let mut count = 0;
    for (o, arcs) in (0..).zip(present.chunks_exact(machines)) {
        list[count] = o;
        count += usize::from(arcs[machine] != 0);
    }
    &list[..count]
}

/// Weights of a machine's arcs, which are listed, and behind them of its loop. `raw` becomes the scores before [`leaky`].
///
/// `scores` are those of the operations alone, `along` that of a unit of time.
#[inline(always)]
fn weigh<F: Real>(
    state: State<'_, F>,
    machine: usize,
    list: &[u32],
    scores: &[F],
    along: F,
    weights: &mut [F],
    raw: &mut [F],
) {
    let machines = state.times.len() / scores.len();
    let width = state.target.len();
    let own = dot(state.target, &state.machines[machine * width..(machine + 1) * width]);
    let count = list.len();
    for (raw, &o) in raw.iter_mut().zip(list) {
        let o = o as usize;
        *raw = scores[o] + state.times[o * machines + machine] * along + own;
    }
    raw[count] = own + own;
    // Whole registers: one number at a time would take as long for a few as for many.
    let padded = (count + 1).next_multiple_of(LANES);
    raw[count + 1..padded].fill(F::LOWEST);
    // The highest score comes from the highest before.
    let highest = leaky(largest(&raw[..padded]));
    let weights = &mut weights[..padded];
    for (weights, raw) in weights.as_chunks_mut::<LANES>().0.iter_mut().zip(raw.as_chunks::<LANES>().0) {
        for lane in 0..LANES {
            let power = (leaky(raw[lane]) - highest).exponential();
            weights[lane] = if power < F::from_f64(NOTHING) { F::ZERO } else { power };
        }
    }
    let mut total = F::ZERO;
    weights[..=count].iter().for_each(|&weight| total += weight);
    for weights in weights.as_chunks_mut::<LANES>().0 {
        weights.iter_mut().for_each(|weight| *weight = *weight / total);
    }
}

/// What [`weigh`] finds, with everything in its place, zero where there is no arc, the loop's last; and the slopes of the scores.
#[inline(always)]
fn weigh_in_place<F: Real>(
    state: State<'_, F>,
    machine: usize,
    list: &[u32],
    scores: &[F],
    along: F,
    weights: &mut [F],
    slopes: &mut [F],
) {
    weigh(state, machine, list, scores, along, weights, slopes);
    let mut count = list.len();
    for slope in &mut slopes[..=count] {
        *slope = if *slope > F::ZERO { F::ONE } else { F::from_f64(SLOPE) };
    }
    let (last, machines) = (scores.len(), state.times.len() / scores.len());
    // From the last one on, so that none is overwritten.
    (weights[last], slopes[last]) = (weights[count], slopes[count]);
    for o in (0..last).rev() {
        if state.present[o * machines + machine] != 0 {
            count -= 1;
            (weights[o], slopes[o]) = (weights[count], slopes[count]);
        } else {
            weights[o] = F::ZERO;
        }
    }
}

/// Adds the rows of a machine's operations, each times its weight, to some columns; returns the sum of the arcs' times, weighted alike.
#[inline(always)]
fn add_rows<F: Real>(
    state: State<'_, F>,
    [machines, machine]: [usize; 2],
    list: &[u32],
    weights: &[F],
    first: usize,
    sums: &mut [F],
) -> F {
    let width = state.target.len();
    let mut time = F::ZERO;
    for (&o, &weight) in list.iter().zip(weights) {
        let o = o as usize;
        add_scaled(sums, weight, &state.operations[o * width + first..][..sums.len()]);
        time += weight * state.times[o * machines + machine];
    }
    time
}

vectorised! {
    /// One state's result.
    fn attend<F: Real>(state: State<'_, F>, sizes: Sizes, out: &mut [F], scratch: &mut [F], list: &mut [u32]) {
        let Sizes { operations, machines, width } = sizes;
        let (scores, rest) = scratch.split_at_mut(operations);
        let (weights, rest) = rest.split_at_mut(room(operations));
        let raw = &mut rest[..room(operations)];
        let rows = state.operations.chunks_exact(width).zip(state.present.chunks_exact(machines));
        for (score, (row, arcs)) in scores.iter_mut().zip(rows) {
            // Nobody asks for the score of an operation without arcs: it is over.
            *score = if arcs.iter().any(|&arc| arc != 0) { dot(state.source, row) } else { F::ZERO };
        }
        let along = dot(state.source, state.along);
        for (machine, out) in out.chunks_exact_mut(width).enumerate() {
            let list = arcs_of(state.present, machines, machine, list);
            weigh(state, machine, list, scores, along, weights, raw);
            let mut time = F::ZERO;
            // As many columns at a time as registers hold.
            let (parts, rest) = out.as_chunks_mut::<COLUMNS>();
            for (part, out) in parts.iter_mut().enumerate() {
                let mut sums = [F::ZERO; COLUMNS];
                time = add_rows(state, [machines, machine], list, weights, part * COLUMNS, &mut sums);
                *out = sums;
            }
            if !rest.is_empty() {
                rest.fill(F::ZERO);
                time = add_rows(state, [machines, machine], list, weights, parts.len() * COLUMNS, rest);
            }
            add_scaled(out, time, state.along);
            add_scaled(out, weights[list.len()], &state.machines[machine * width..(machine + 1) * width]);
        }
    }

    /// Adds one state's cotangents.
    fn attend_backward<F: Real>(state: State<'_, F>, sizes: Sizes, d: &[F], to: Into<'_, '_, F>, scratch: &mut [F], list: &mut [u32]) {
        let Sizes { operations, machines, width } = sizes;
        let Into { part, values, params: [d_along, d_source, d_target] } = to;
        let (scores, rest) = scratch.split_at_mut(operations);
        let (weights, rest) = rest.split_at_mut(room(operations));
        let (slopes, rest) = rest.split_at_mut(room(operations));
        let sum = &mut rest[..width];
        for (score, row) in scores.iter_mut().zip(state.operations.chunks_exact(width)) {
            *score = dot(state.source, row);
        }
        let along = dot(state.source, state.along);
        for (machine, d) in d.chunks_exact(width).enumerate() {
            let list = arcs_of(state.present, machines, machine, list);
            weigh_in_place(state, machine, list, scores, along, weights, slopes);
            let own = &state.machines[machine * width..(machine + 1) * width];
            let (d_time, d_own) = (dot(d, state.along), dot(d, own));
            let pulled = |o: usize| {
                let row = &state.operations[o * width..(o + 1) * width];
                dot(d, row) + state.times[o * machines + machine] * d_time
            };
            let mut mean = weights[operations] * d_own;
            for (o, &weight) in weights[..operations].iter().enumerate() {
                if weight != F::ZERO {
                    mean += weight * pulled(o);
                }
            }
            // From here on slopes hold `x`.
            slopes[operations] *= weights[operations] * (d_own - mean);
            let mut to_target = slopes[operations] + slopes[operations];
            let (mut spent, mut scored) = (F::ZERO, F::ZERO);
            sum.fill(F::ZERO);
            for o in 0..operations {
                let weight = weights[o];
                if weight == F::ZERO {
                    continue;
                }
                let (row, time) = (&state.operations[o * width..(o + 1) * width], state.times[o * machines + machine]);
                slopes[o] *= weight * (pulled(o) - mean);
                let x = slopes[o];
                to_target += x;
                match part {
                    0 => {
                        spent += weight * time;
                        scored += x * time;
                        add_scaled(sum, x, row);
                        if let Some(into) = values.get_mut(o * width..(o + 1) * width) {
                            add_scaled(into, weight, d);
                            add_scaled(into, x, state.source);
                        }
                    }
                    1 => {}
                    _ => values[o * machines + machine] += weight * d_time + x * along,
                }
            }
            match part {
                0 => {
                    add_scaled(d_along, spent, d);
                    add_scaled(d_along, scored, state.source);
                    add_scaled(d_source, F::ONE, sum);
                    add_scaled(d_source, scored, state.along);
                    add_scaled(d_target, to_target, own);
                }
                1 => {
                    let into = &mut values[machine * width..(machine + 1) * width];
                    add_scaled(into, weights[operations], d);
                    add_scaled(into, to_target, state.target);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cpu, Engine, Init};

    /// One state with two operations, 1 and 3, and two machines, both 2; times 1 everywhere. All vectors are 1.
    fn attended(present: &[u8]) -> Vec<f64> {
        let mut graph = Graph::new();
        let (operations, machines) = (graph.scalars("o", 2, 1), graph.scalars("m", 2, 1));
        let times = graph.scalars("t", 2, 2);
        let [along, source, target] =
            ["along", "source", "target"].map(|name| graph.param(name, &[1], Init::Ones).unwrap());
        let mask = graph.mask("present", 2, 2);
        let arcs = Arcs { operations, machines, times, along, source, target, present: mask };
        let output = graph.attend_arcs(arcs).unwrap();
        let mut engine = Cpu::<f64>::new(&graph, &[output], 1);
        engine.set_items(1).unwrap();
        engine.set_parameters(0, &crate::initialise(graph.layout(), 0)).unwrap();
        engine.load_scalars(operations, &[1.0, 3.0]).unwrap();
        engine.load_scalars(machines, &[2.0, 2.0]).unwrap();
        engine.load_scalars(times, &[1.0; 4]).unwrap();
        engine.load_mask(mask, present).unwrap();
        engine.forward().unwrap();
        engine.output(0, 0).to_vec()
    }

    #[test]
    fn a_machine_sees_its_arcs_and_itself_and_nothing_else() {
        // Operations with their times are 2 and 4: scores 2 + 2, 4 + 2 and the loop's 2 · 2. Machine 0 has both arcs:
        // (2 e⁴ + 4 e⁶ + 2 e⁴) / (e⁴ + e⁶ + e⁴) = (4 + 4 e²) / (2 + e²). Machine 1 has none and sees itself alone.
        let e = 2.0_f64.exp();
        let came = attended(&[1, 0, 1, 0]);
        assert!((came[0] - (4.0 + 4.0 * e) / (2.0 + e)).abs() < 1e-14, "{came:?}");
        assert_eq!(came[1], 2.0);
    }

    #[test]
    fn many_operations_and_wide_rows_by_the_formula() {
        // Several registers of operations, more columns than are summed together; one score is far below the others.
        let (operations, machines, width) = (4 * LANES + 6, 3, COLUMNS + 6);
        let noise = |count: usize, by: f64| (0..count).map(|at| (at as f64 * by).sin()).collect::<Vec<f64>>();
        let mut graph = Graph::new();
        let (of, on) = (graph.scalars("o", operations, width), graph.scalars("m", machines, width));
        let times = graph.scalars("t", operations, machines);
        let [along, source, target] = ["along", "source", "target"]
            .map(|name| graph.param(name, &[width], Init::Normal { deviation: 0.5 }).unwrap());
        let present = graph.mask("present", operations, machines);
        let arcs = Arcs { operations: of, machines: on, times, along, source, target, present };
        let output = graph.attend_arcs(arcs).unwrap();
        let parameters: Vec<f64> = crate::initialise(graph.layout(), 3);
        let (mut o, m) = (noise(operations * width, 0.7), noise(machines * width, 0.3));
        o[5 * width..6 * width].iter_mut().for_each(|entry| *entry *= 500.0);
        let (t, there) = (noise(operations * machines, 1.1), noise(operations * machines, 2.3));
        let there: Vec<u8> = there.iter().map(|&x| u8::from(x > -0.3)).collect();
        let mut engine = Cpu::<f64>::new(&graph, &[output], 1);
        engine.set_items(1).unwrap();
        engine.set_parameters(0, &parameters).unwrap();
        engine.load_scalars(of, &o).unwrap();
        engine.load_scalars(on, &m).unwrap();
        engine.load_scalars(times, &t).unwrap();
        engine.load_mask(present, &there).unwrap();
        engine.forward().unwrap();
        let [along, source, target] =
            [along, source, target].map(|param| &parameters[graph.layout().slice(param).range()]);
        let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
        for machine in 0..machines {
            let own = &m[machine * width..(machine + 1) * width];
            let seen = (0..operations).filter(|o| there[o * machines + machine] == 1).map(|at| {
                let row = o[at * width..(at + 1) * width].iter().zip(along);
                row.map(|(x, along)| x + t[at * machines + machine] * along).collect::<Vec<f64>>()
            });
            let seen: Vec<Vec<f64>> = seen.collect();
            let scored = |v: &Vec<f64>| leaky(dot(source, v) + dot(target, own));
            let scores: Vec<f64> = seen.iter().map(scored).chain([leaky(2.0 * dot(target, own))]).collect();
            let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let powers: Vec<f64> = scores.iter().map(|score| (score - top).exp()).collect();
            let total: f64 = powers.iter().sum();
            let rows = || seen.iter().map(Vec::as_slice).chain([own]);
            for column in 0..width {
                let expected =
                    rows().zip(&powers).map(|(row, power)| row[column] * power).sum::<f64>() / total;
                let came = engine.output(0, 0)[machine * width + column];
                assert!((came - expected).abs() < 1e-9 * expected.abs().max(1.0), "{came} {expected}");
            }
        }
    }
}
