//! Laws of the population on the device, and the optimisers against the CPU's.

use super::{Filler, Outcome, choices, pull_on_device, pull_on_host, relative, tolerance};
use crate::cpu::Cpu;
use crate::cuda::{Cuda, Options, Precision};
use crate::engine::{Choosing, Engine};
use crate::graph::{Graph, Value};
use crate::ops::Activation;
use crate::optimiser::{Optimiser, StepRule};
use crate::{Init, Result};

const MEMBERS: usize = 5;
const ITEMS: usize = 33;

/// A block with everything that sums over rows: embedding, norm, perceptron, head. Gives the chosen log-probabilities
/// and how the program can choose its own tokens.
fn program() -> Result<(Graph, Vec<Value>, Choosing)> {
    let mut g = Graph::new();
    let tokens = g.indices("tokens", 8, 5);
    let table = g.param("table", &[5, 128], Init::Normal { deviation: 1.0 })?;
    let x = g.embed(table, tokens)?;
    let gain = g.param("gain", &[128], Init::Ones)?;
    let bias = g.param("bias", &[128], Init::Zeros)?;
    let normed = g.layer_norm(x, gain, bias)?;
    let up = g.param("up", &[128, 256], Init::Linear { fan_in: 128 })?;
    let up_bias = g.param("up.bias", &[256], Init::Linear { fan_in: 128 })?;
    let raised = g.linear(normed, up, Some(up_bias), Activation::Gelu)?;
    let down = g.param("down", &[256, 128], Init::Linear { fan_in: 256 })?;
    let lowered = g.linear_onto(x, raised, down, None)?;
    let head = g.param("head", &[128, 4], Init::Linear { fan_in: 128 })?;
    let logits = g.linear(lowered, head, None, Activation::None)?;
    let actions = g.indices("actions", 8, 4);
    let (log_prob, _) = g.pick_log_prob(logits, actions, None)?;
    Ok((g, vec![log_prob], Choosing { logits, actions, tokens }))
}

fn pulled(graph: &Graph, outputs: &[Value], order: &[usize], options: &Options) -> Result<Cuda> {
    let mut engine = Cuda::new(graph, outputs, order.len(), options)?;
    Filler::ordered(graph, 11, order).fill(&mut engine, ITEMS, |x| x)?;
    pull_on_device(&mut engine, order, 0)?;
    Ok(engine)
}

fn widen(flat: Vec<f32>) -> impl Iterator<Item = f64> {
    flat.into_iter().map(f64::from)
}

fn worst(a: f64, b: f64) -> f64 {
    if b <= a { a } else { b }
}

/// Errors between member `at` of one engine and member `to` of another.
fn between(one: &Cuda, at: usize, other: &Cuda, to: usize) -> Result<(f64, f64)> {
    let outputs = relative(
        one.output(at, 0).iter().map(|&x| f64::from(x)),
        other.output(to, 0).iter().map(|&x| f64::from(x)),
    );
    Ok((outputs, relative(widen(one.gradient(at)?), widen(other.gradient(to)?))))
}

/// All laws. Between runs on the device sums may differ in order (the library chooses products by the batch), and with
/// rounded operands a last bit can tip a rounding.
pub(super) fn run(options: &Options) -> Result<Vec<Outcome>> {
    let (graph, outputs, choosing) = program()?;
    let order: Vec<usize> = (0..MEMBERS).collect();
    let crowd = pulled(&graph, &outputs, &order, options)?;
    let limit = match options.precision {
        Precision::F32 => 2e-6,
        Precision::Tf32 => 2e-4,
        Precision::Bf16 => 2e-3,
    };
    let mut outcomes = Vec::new();

    let reversed: Vec<usize> = order.iter().rev().copied().collect();
    let permuted = pulled(&graph, &outputs, &reversed, options)?;
    let (mut out, mut gradient) = (0.0, 0.0);
    for member in 0..MEMBERS {
        let (o, g) = between(&permuted, member, &crowd, reversed[member])?;
        (out, gradient) = (worst(out, o), worst(gradient, g));
    }
    let name = "law: permuting members permutes results".to_owned();
    outcomes.push(Outcome { name, outputs: out, gradient, limit });

    let (mut out, mut gradient) = (0.0, 0.0);
    for member in [0, 3] {
        let alone = pulled(&graph, &outputs, &[member], options)?;
        let (o, g) = between(&alone, 0, &crowd, member)?;
        (out, gradient) = (worst(out, o), worst(gradient, g));
    }
    let name = "law: a member alone is the member in a crowd".to_owned();
    outcomes.push(Outcome { name, outputs: out, gradient, limit });

    // A member needs its arena and a little more, so this has room for one or two: at least three groups.
    let arena = crate::Plan::training(&graph, &outputs).arena() * ITEMS * 4;
    let tight = Options { memory: Some(5 * arena / 2), ..options.clone() };
    let split = pulled(&graph, &outputs, &order, &tight)?;
    let (mut out, mut gradient) = (0.0, 0.0);
    for member in 0..MEMBERS {
        let (o, g) = between(&split, member, &crowd, member)?;
        (out, gradient) = (worst(out, o), worst(gradient, g));
    }
    if split.notice().is_none() {
        out = f64::NAN;
    }
    let name = "law: a cohort split for memory, with a notice, gives the same".to_owned();
    outcomes.push(Outcome { name, outputs: out, gradient, limit });

    let name = "law: choices follow the logits, norm and perceptron";
    outcomes.push(choices(name, &graph, choosing, 4, (MEMBERS, ITEMS), options)?);

    for (name, optimiser) in [
        ("n-sgd", Optimiser::normalised_sgd()),
        ("sgd, clipped", Optimiser::sgd().clipped(1.0)),
        ("adam", Optimiser::adam()),
        (
            "adamw, clipped",
            Optimiser {
                rule: StepRule::Adam { first: 0.8, second: 0.9, epsilon: 1e-3, decay: 0.1 },
                clip: Some(1.0),
            },
        ),
    ] {
        outcomes.push(stepped(name, &graph, &outputs, &optimiser, options)?);
    }
    Ok(outcomes)
}

/// Three updates on both devices from the same start: the parameters' movement and the norms.
fn stepped(
    name: &str,
    graph: &Graph,
    outputs: &[Value],
    optimiser: &Optimiser,
    options: &Options,
) -> Result<Outcome> {
    let mut host = Cpu::<f64>::new(graph, outputs, MEMBERS);
    let mut device = Cuda::new(graph, outputs, MEMBERS, options)?;
    let filler = Filler::new(graph, 11, MEMBERS);
    filler.fill(&mut host, ITEMS, f64::from)?;
    filler.fill(&mut device, ITEMS, |x| x)?;
    let start: Vec<Vec<f64>> = (0..MEMBERS).map(|member| host.parameters(member)).collect::<Result<_>>()?;
    let order: Vec<usize> = (0..MEMBERS).collect();
    // A member with rate zero stays where it is.
    let rates = [0.01, 0.0, 0.02, 0.03, 0.04];
    let mut norms = 0.0;
    for _ in 0..3 {
        pull_on_host(graph, outputs, &mut host, 0)?;
        pull_on_device(&mut device, &order, 0)?;
        let expected = host.step(optimiser, &rates)?;
        let got = device.step(optimiser, &rates)?;
        norms = worst(norms, relative(got.into_iter(), expected.into_iter()));
    }
    let mut moved = 0.0;
    for member in 0..MEMBERS {
        let travel =
            |end: Vec<f64>| end.into_iter().zip(&start[member]).map(|(end, start)| end - start).collect();
        let got: Vec<f64> = travel(widen(device.parameters(member)?).collect());
        let expected: Vec<f64> = travel(host.parameters(member)?);
        if expected.iter().all(|&step| step == 0.0) {
            moved = worst(moved, if got.iter().all(|&step| step == 0.0) { 0.0 } else { f64::NAN });
        } else {
            moved = worst(moved, relative(got.into_iter(), expected.into_iter()));
        }
    }
    // Small steps are rounded where they meet parameters of order 1 in f32; Adam's first steps have the size of the rate
    // whatever the gradient's, so that an entry near zero with its sign in doubt moves the other way.
    let limit = (8.0 * tolerance(options.precision)).max(2e-3);
    Ok(Outcome { name: format!("optimiser: {name}, three updates"), outputs: norms, gradient: moved, limit })
}
