//! The device against the CPU: every op, every optimiser and the laws of a population, on the machine at hand.
//!
//! [`compare`] runs one program on both with the same random inputs and cotangents and gives the relative errors;
//! each op of [`crate::ops`] has programs for each of its variants; [`run`] goes through them all. The reference is the
//! CPU engine in f64, which the finite-difference laws hold.

mod laws;

use super::{Cuda, Options, Precision};
use crate::cpu::Cpu;
use crate::engine::{Choosing, Engine, Span};
use crate::graph::{Graph, IndexSource, Value};
use crate::init::initialise;
use crate::layout::Param;
use crate::ops::{Activation, Op};
use crate::plan::Plan;
use crate::{Error, Init, Result};
use niwaki_stream::Key;

/// How far the device may be from the reference, ‖difference‖ / ‖reference‖: sums in f32 in another order; operands of
/// products rounded (or cut, by the tensor cores) to 10 or 7 bits of mantissa, a few products deep, and in bf16 what is stored between
/// ops, too.
#[must_use]
pub fn tolerance(precision: Precision) -> f64 {
    match precision {
        Precision::F32 => 2e-5,
        Precision::Tf32 => 4e-3,
        Precision::Bf16 => 3e-2,
    }
}

/// A name and a program, which gives its outputs.
pub(crate) type Case = (&'static str, fn(&mut Graph) -> Result<Vec<Value>>);

/// Rows of a program's values, as a rule.
pub(crate) const ROWS: usize = 6;

pub(crate) fn matrix(g: &mut Graph, name: &str, from: usize, to: usize) -> Result<Param> {
    g.param(name, &[from, to], Init::Linear { fan_in: from })
}

/// A value that leads back to a parameter, so that cotangents of it are computed: a linear map of an input.
pub(crate) fn grown(g: &mut Graph, name: &str, rows: usize, width: usize) -> Result<Value> {
    let x = g.scalars(name, rows, 12);
    let weight = matrix(g, &format!("{name}.weight"), 12, width)?;
    g.linear(x, weight, None, Activation::None)
}

/// What follows from a value that is no output itself: in bf16 it may then be stored in halves, as what [`grown`] gives.
pub(crate) fn followed(g: &mut Graph, value: Value) -> Result<Value> {
    let (width, name) = (g.shape(value).width, format!("after.{}", value.position()));
    let weight = matrix(g, &name, width, 12)?;
    g.linear(value, weight, None, Activation::None)
}

/// One comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What was compared.
    pub name: String,
    /// Relative error of the outputs, or of what the name says.
    pub outputs: f64,
    /// Relative error of the gradient, the worst member's.
    pub gradient: f64,
    /// The most that either may be.
    pub limit: f64,
}

impl Outcome {
    /// Whether both errors are within the limit; not a number never is.
    #[must_use]
    pub fn passes(&self) -> bool {
        self.outputs <= self.limit && self.gradient <= self.limit
    }
}

/// ‖a − b‖ / ‖b‖; equal infinities do not count, and zero against zero is 0.
fn relative(a: impl Iterator<Item = f64>, b: impl Iterator<Item = f64>) -> f64 {
    let (mut error, mut size) = (0.0, 0.0);
    for (a, b) in a.zip(b) {
        if a != b || b.is_finite() {
            error += (a - b) * (a - b);
            size += b * b;
        }
    }
    if error == 0.0 { 0.0 } else { (error / size).sqrt() }
}

/// The cotangent that every comparison uses: smooth, with no symmetry that could hide a wrong index.
fn cotangent(member: usize, output: usize, entry: usize) -> f64 {
    (1.3 + entry as f64 * 0.71 + member as f64 * 2.3 + output as f64 * 5.1).sin()
}

/// The same random parameters and inputs for any engine.
pub struct Filler<'a> {
    graph: &'a Graph,
    seed: u64,
    /// The order in which members draw: member `m` of the engine gets draw `order[m]`.
    order: Vec<usize>,
}

impl<'a> Filler<'a> {
    /// Members in their own order.
    #[must_use]
    pub fn new(graph: &'a Graph, seed: u64, members: usize) -> Self {
        Self { graph, seed, order: (0..members).collect() }
    }

    /// Member `m` of the engine gets what member `order[m]` gets in [`Filler::new`].
    #[must_use]
    pub fn ordered(graph: &'a Graph, seed: u64, order: &[usize]) -> Self {
        Self { graph, seed, order: order.to_vec() }
    }

    /// Sets items, parameters and inputs.
    ///
    /// # Errors
    /// If the engine refuses.
    pub fn fill<E: Engine>(
        &self,
        engine: &mut E,
        items: usize,
        scalar: impl Fn(f32) -> E::Scalar,
    ) -> Result<()> {
        engine.set_items(items)?;
        for (member, &draw) in self.order.iter().enumerate() {
            let mut stream = Key::new(self.seed, "check parameters").lane(draw as u64).open();
            let start: Vec<f32> = initialise(self.graph.layout(), self.seed + draw as u64);
            let mut flat: Vec<E::Scalar> = start.iter().map(|&start| scalar(start)).collect();
            for slice in self.graph.layout().slices() {
                for at in slice.range() {
                    flat[at] = scalar(start[at] + 0.1 * stream.normal() as f32);
                }
            }
            engine.set_parameters(member, &flat)?;
        }
        for (position, input) in self.graph.inputs().iter().enumerate() {
            let size = items * self.graph.shape(input.what).size();
            let data = self.draw("check scalars", position, size, |stream| scalar(stream.normal() as f32));
            engine.load_scalars(input.what, &data)?;
        }
        for (position, source) in self.graph.index_sources().iter().enumerate() {
            if let IndexSource::Input { rows, bound, .. } = source {
                // One in ten is absent.
                let data = self.draw("check indices", position, items * rows, |stream| {
                    let entry = stream.below(*bound as u64) as i32;
                    if stream.below(10) == 0 { -1 } else { entry }
                });
                engine.load_indices(crate::Index(position), &data)?;
            }
        }
        for (position, mask) in self.graph.masks().iter().enumerate() {
            let data = self.draw("check masks", position, items * mask.what.size(), |stream| {
                u8::from(stream.below(10) < 7)
            });
            engine.load_mask(crate::Mask(position), &data)?;
        }
        Ok(())
    }

    fn draw<T>(
        &self,
        purpose: &'static str,
        position: usize,
        size: usize,
        next: impl Fn(&mut niwaki_stream::Stream) -> T,
    ) -> Vec<T> {
        let mut data = Vec::with_capacity(size * self.order.len());
        for &draw in &self.order {
            let mut stream = Key::new(self.seed, purpose).iteration(position as u64).lane(draw as u64).open();
            data.extend((0..size).map(|_| next(&mut stream)));
        }
        data
    }
}

/// Which items are asked for nothing: in the first round none, then three of four, then one of three, others for each
/// member.
fn is_silent(round: usize, member: usize, item: usize) -> bool {
    match round {
        0 => false,
        1 => !(7 * item + 3 * member).is_multiple_of(4),
        _ => (item + member).is_multiple_of(3),
    }
}

/// What a round asks of an entry.
fn asked(round: usize, member: usize, output: usize, (item, entry, size): (usize, usize, usize)) -> f32 {
    if is_silent(round, member, item) { 0.0 } else { cotangent(member, output, item * size + entry) as f32 }
}

/// Pulls a round's cotangents back on the device; `order` names the draw of each member.
fn pull_on_device(engine: &mut Cuda, order: &[usize], round: usize) -> Result<()> {
    engine.pull_back(&|span: Span, _: &[&[f32]], wanted: &mut [&mut [f32]]| {
        for (output, wanted) in wanted.iter_mut().enumerate() {
            let size = (wanted.len() / span.items.len().max(1)).max(1);
            for (item, wanted) in span.items.clone().zip(wanted.chunks_exact_mut(size)) {
                for (entry, to) in wanted.iter_mut().enumerate() {
                    *to = asked(round, order[span.member], output, (item, entry, size));
                }
            }
        }
    })
}

fn pull_on_host(graph: &Graph, outputs: &[Value], engine: &mut Cpu<f64>, round: usize) -> Result<()> {
    let sizes: Vec<usize> = outputs.iter().map(|&output| graph.shape(output).size()).collect();
    engine.pull_back(&|span: Span, _: &[&[f64]], wanted: &mut [&mut [f64]]| {
        for (output, wanted) in wanted.iter_mut().enumerate() {
            let size = sizes[output];
            for (item, wanted) in span.items.clone().zip(wanted.chunks_exact_mut(size)) {
                for (entry, to) in wanted.iter_mut().enumerate() {
                    *to = f64::from(asked(round, span.member, output, (item, entry, size)));
                }
            }
        }
    })
}

/// Runs a program on the device and in f64 on the CPU; errors of outputs and gradients, of gradients with items left out,
/// of the forward pass alone, and of the pass row by row where the program allows it.
///
/// # Errors
/// If either engine refuses the program.
pub fn compare(
    name: &str,
    graph: &Graph,
    outputs: &[Value],
    members: usize,
    items: usize,
    options: &Options,
) -> Result<Outcome> {
    let mut host = Cpu::<f64>::new(graph, outputs, members);
    let mut device = Cuda::new(graph, outputs, members, options)?;
    let filler = Filler::new(graph, 7, members);
    filler.fill(&mut host, items, f64::from)?;
    filler.fill(&mut device, items, |x| x)?;
    pull_on_host(graph, outputs, &mut host, 0)?;
    let order: Vec<usize> = (0..members).collect();
    let mut worst =
        Outcome { name: name.to_owned(), outputs: 0.0, gradient: 0.0, limit: tolerance(options.precision) };
    let against = |device: &Cuda, host: &Cpu<f64>, worst: &mut Outcome| {
        for member in 0..members {
            // What is only shown does not travel with a pull-back.
            for output in (0..outputs.len()).filter(|&output| !graph.is_shown(outputs[output])) {
                let got = device.output(member, output).iter().map(|&x| f64::from(x));
                let error = relative(got, host.output(member, output).iter().copied());
                worst.outputs = if error <= worst.outputs { worst.outputs } else { error };
            }
        }
    };
    let gradients = |device: &Cuda, host: &Cpu<f64>, worst: &mut Outcome| {
        for member in 0..members {
            let got = device.gradient(member)?;
            let error = relative(got.iter().map(|&x| f64::from(x)), host.gradient(member)?.into_iter());
            worst.gradient = if error <= worst.gradient { worst.gradient } else { error };
        }
        Ok::<_, Error>(())
    };
    // Twice: the second replay must not depend on what the first left behind.
    for _ in 0..2 {
        pull_on_device(&mut device, &order, 0)?;
        against(&device, &host, &mut worst);
        gradients(&device, &host, &mut worst)?;
    }
    // Then with items left out, the first choice of them again after the second.
    for round in [1, 2, 1] {
        let silent = |member| (0..items).map(|item| is_silent(round, member, item)).collect();
        device.leave_out(&(0..members).map(silent).collect::<Vec<_>>())?;
        for _ in 0..2 {
            pull_on_device(&mut device, &order, round)?;
        }
        pull_on_host(graph, outputs, &mut host, round)?;
        gradients(&device, &host, &mut worst)?;
    }
    device.forward()?;
    against(&device, &host, &mut worst);
    if Plan::stepping(graph, outputs).is_ok() {
        for row in 0..graph.tallest() {
            device.forward_row(row)?;
        }
        against(&device, &host, &mut worst);
    }
    Ok(worst)
}

/// Lets a program choose its own tokens, row by row, and then scores them all at once: the share of choices that are not
/// those that the scores and the uniforms call for.
///
/// `beginning` is the token before the first row; `members × items` trajectories are drawn.
///
/// # Errors
/// If the program cannot run row by row, or the device fails.
pub fn choices(
    name: &str,
    graph: &Graph,
    choosing: Choosing,
    beginning: i32,
    (members, items): (usize, usize),
    options: &Options,
) -> Result<Outcome> {
    let shape = graph.shape(choosing.logits);
    let mut engine = Cuda::new(graph, &[choosing.logits], members, options)?;
    Filler::new(graph, 11, members).fill(&mut engine, items, |x| x)?;
    let size = items * shape.rows;
    let mut stream = Key::new(3, "uniforms").open();
    let uniforms: Vec<f64> = (0..members * size).map(|_| stream.uniform()).collect();
    let actions = engine.choose_rows(choosing, beginning, &uniforms)?.unwrap_or_default();
    let token = |place: usize| if place.is_multiple_of(shape.rows) { beginning } else { actions[place - 1] };
    let tokens: Vec<i32> = (0..actions.len()).map(token).collect();
    engine.load_indices(choosing.tokens, &tokens)?;
    engine.forward()?;
    let wrong = |&place: &usize| {
        let logits = &engine.output(place / size, 0)[place % size * shape.width..][..shape.width];
        let weights: Vec<f64> = logits.iter().map(|&logit| f64::from(logit).exp()).collect();
        let target = uniforms[place] * weights.iter().sum::<f64>();
        let mut sum = 0.0;
        let expected = weights.iter().take_while(|&weight| {
            sum += weight;
            sum <= target
        });
        actions[place] != expected.count() as i32
    };
    let share = (0..actions.len()).filter(wrong).count() as f64 / actions.len() as f64;
    // A uniform within rounding of a running sum may fall on either side: the probabilities' error, a few choices wide.
    let limit = tolerance(options.precision).max(1e-3);
    Ok(Outcome { name: name.to_owned(), outputs: share, gradient: 0.0, limit })
}

/// Every comparison, in order; `report` hears each as it is done.
///
/// # Errors
/// If the device is not there or refuses a program.
pub fn run(options: &Options, mut report: impl FnMut(&Outcome)) -> Result<Vec<Outcome>> {
    let mut outcomes = ops(options, "", &mut report)?;
    for outcome in laws::run(options)? {
        report(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// The comparisons of ops alone, of those with `text` in the names of their cases.
///
/// # Errors
/// If the device is not there or refuses a program.
pub fn ops(options: &Options, text: &str, mut report: impl FnMut(&Outcome)) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    for (name, case) in Op::cases().into_iter().filter(|(name, _)| name.contains(text)) {
        let mut graph = Graph::new();
        let outputs = case(&mut graph)?;
        for (members, items) in [(1, 5), (3, 40)] {
            let name = format!("{name}, {members} × {items}");
            let mut outcome = compare(&name, &graph, &outputs, members, items, options)
                .map_err(|error| Error::Device { device: "cuda", reason: format!("{name}: {error}") })?;
            if name.contains("relu") && options.precision != Precision::F32 {
                // A unit whose sum rounds across zero has another slope altogether.
                outcome.limit *= 8.0;
            }
            report(&outcome);
            outcomes.push(outcome);
        }
    }
    Ok(outcomes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_errors() {
        let size = |a: &[f64], b: &[f64]| relative(a.iter().copied(), b.iter().copied());
        // (3, 4) against (3, 5): 1 / √34.
        assert!((size(&[3.0, 4.0], &[3.0, 5.0]) - 1.0 / 34_f64.sqrt()).abs() < 1e-15);
        assert_eq!(size(&[0.0, f64::NEG_INFINITY], &[0.0, f64::NEG_INFINITY]), 0.0);
        assert!(!Outcome { name: String::new(), outputs: f64::NAN, gradient: 0.0, limit: 1.0 }.passes());
        assert!(size(&[1.0], &[0.0]).is_infinite());
    }

    #[test]
    fn without_a_gpu_the_error_is_one_line_that_names_the_mend() {
        // On a machine with a GPU there is nothing to refuse.
        let graph = Graph::new();
        if let Err(error) = Cuda::new(&graph, &[], 1, &Options::default()) {
            let line = error.to_string();
            assert!(!line.contains('\n') && line.contains("use the CPU"), "{line}");
        }
    }
}
