//! Laws of the population on the device, and the optimisers against the CPU's.

use super::{Filler, Outcome, choices, pull_on_device, pull_on_host, relative, tolerance};
use crate::cpu::Cpu;
use crate::cuda::{Cuda, Options, Precision};
use crate::engine::{Choosing, Engine};
use crate::graph::{Graph, Value};
use crate::ops::Activation;
use crate::optimiser::{Optimiser, StepRule, Storage};
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
        ("adamw, clipped", Optimiser { rule: adam(1e-3, 0.1, Storage::Whole), clip: Some(1.0) }),
    ] {
        outcomes.push(stepped(name, &graph, &outputs, &optimiser, options)?);
    }
    // An ε far above the gradients: where it is small, an entry near zero with its sign in doubt moves as far as any other.
    let rule = adam(1.0, 0.0, Storage::Whole);
    for (name, optimiser) in
        [("sgd", Optimiser::sgd()), ("adam, clipped", Optimiser { rule, clip: Some(1.0) })]
    {
        outcomes.push(in_a_row(name, &optimiser, options)?);
        outcomes.push(looked_up(name, &optimiser, options)?);
    }
    outcomes.push(kept_in_bf16(&graph, &outputs, options)?);
    Ok(outcomes)
}

const fn adam(epsilon: f64, decay: f64, storage: Storage) -> StepRule {
    StepRule::Adam { first: 0.8, second: 0.9, epsilon, decay, storage }
}

/// A first step whose results are kept in bf16: those of one that keeps them whole, rounded on the host.
fn kept_in_bf16(graph: &Graph, outputs: &[Value], options: &Options) -> Result<Outcome> {
    let order: Vec<usize> = (0..MEMBERS).collect();
    let stepped = |storage: Storage| -> Result<Cuda> {
        let mut engine = Cuda::new(graph, outputs, MEMBERS, options)?;
        Filler::new(graph, 11, MEMBERS).fill(&mut engine, ITEMS, |x| x)?;
        pull_on_device(&mut engine, &order, 0)?;
        engine.step(&Optimiser { rule: adam(1e-3, 0.1, storage), clip: None }, &[0.01; MEMBERS])?;
        Ok(engine)
    };
    let (whole, rounded) = (stepped(Storage::Whole)?, stepped(Storage::Bf16)?);
    let kept = |values: &[f32]| values.iter().map(|&x| Storage::Bf16.kept(x)).collect::<Vec<f32>>();
    let mut exact = 0.0;
    for member in 0..MEMBERS {
        exact = worst(exact, same(&kept(&whole.parameters(member)?), &rounded.parameters(member)?));
        for (whole, rounded) in whole.state(member)?.1.iter().zip(&rounded.state(member)?.1) {
            exact = worst(exact, same(&kept(whole), rounded));
        }
    }
    let name = "law: what adam keeps in bf16 is rounded as on the host".to_owned();
    Ok(Outcome { name, outputs: exact, gradient: 0.0, limit: 0.0 })
}

/// Zero where two members' scalars have the same bits, or no number.
fn same(one: &[f32], other: &[f32]) -> f64 {
    let equal = one.len() == other.len() && one.iter().zip(other).all(|(a, b)| a.to_bits() == b.to_bits());
    if equal { 0.0 } else { f64::NAN }
}

/// Updates one after the other, of which none is waited for: the bits of updates that are.
fn in_a_row(name: &str, optimiser: &Optimiser, options: &Options) -> Result<Outcome> {
    let (members, width) = (2, 512);
    let mut g = Graph::new();
    let mut x = g.scalars("x", 4, width);
    for layer in 0..10 {
        let weight = g.param(&format!("weight.{layer}"), &[width, width], Init::Linear { fan_in: width })?;
        x = g.linear(x, weight, None, Activation::Tanh)?;
    }
    let order: Vec<usize> = (0..members).collect();
    let run = |waits: bool| -> Result<Cuda> {
        let mut engine = Cuda::new(&g, &[x], members, options)?;
        Filler::new(&g, 11, members).fill(&mut engine, 4, |x| x)?;
        for _ in 0..5 {
            pull_on_device(&mut engine, &order, 0)?;
            engine.step(optimiser, &[0.01, 0.02])?;
            if waits {
                engine.synchronize()?;
            }
        }
        pull_on_device(&mut engine, &order, 0)?;
        Ok(engine)
    };
    let (together, apart) = (run(false)?, run(true)?);
    let (mut out, mut gradient) = (0.0, 0.0);
    for member in 0..members {
        out = worst(out, same(together.output(member, 0), apart.output(member, 0)));
        out = worst(out, same(&together.parameters(member)?, &apart.parameters(member)?));
        gradient = worst(gradient, same(&together.gradient(member)?, &apart.gradient(member)?));
    }
    let name = format!("law: updates in a row are updates that are waited for, {name}");
    Ok(Outcome { name, outputs: out, gradient, limit: 0.0 })
}

/// A large table of which updates look up few rows, others each time: it moves as on the CPU, rows that were never looked up stay as they
/// are, the same rows have the same gradient twice, and an engine that takes over parameters and state goes on with the same bits.
fn looked_up(name: &str, optimiser: &Optimiser, options: &Options) -> Result<Outcome> {
    let (entries, width) = (40_000, 16);
    let mut g = Graph::new();
    let tokens = g.indices("tokens", 8, entries);
    let table = g.param("table", &[entries, width], Init::Normal { deviation: 1.0 })?;
    let x = g.embed(table, tokens)?;
    let head = g.param("head", &[width, 12], Init::Linear { fan_in: width })?;
    let y = g.linear(x, head, None, Activation::Tanh)?;
    let (outputs, order): (_, Vec<usize>) = ([y], (0..MEMBERS).collect());
    let looked_up = |round: usize| -> Vec<i32> {
        let token = |place: usize| ((7 * place + 13 * round) % 50 * 97) as i32;
        (0..MEMBERS * ITEMS * 8).map(|place| if place % 9 == 0 { -1 } else { token(place) }).collect()
    };
    let mut host = Cpu::<f64>::new(&g, &outputs, MEMBERS);
    let mut device = Cuda::new(&g, &outputs, MEMBERS, options)?;
    let filler = Filler::new(&g, 11, MEMBERS);
    filler.fill(&mut host, ITEMS, f64::from)?;
    filler.fill(&mut device, ITEMS, |x| x)?;
    let start: Vec<Vec<f32>> = (0..MEMBERS).map(|member| device.parameters(member)).collect::<Result<_>>()?;
    let rates = [0.01, 0.02, 0.03, 0.04, 0.05];
    let mut exact = 0.0;
    for round in 0..3 {
        host.load_indices(tokens, &looked_up(round))?;
        device.load_indices(tokens, &looked_up(round))?;
        pull_on_host(&g, &outputs, &mut host, 0)?;
        pull_on_device(&mut device, &order, 0)?;
        let before = device.gradient(0)?;
        pull_on_device(&mut device, &order, 0)?;
        exact = worst(exact, same(&before, &device.gradient(0)?));
        host.step(optimiser, &rates)?;
        device.step(optimiser, &rates)?;
    }
    let mut moved = 0.0;
    let mut heir = Cuda::new(&g, &outputs, MEMBERS, options)?;
    heir.set_items(ITEMS)?;
    for member in 0..MEMBERS {
        let flat = device.parameters(member)?;
        let travel = |end: f64, start: f32| end - f64::from(start);
        let ends = host.parameters(member)?;
        let expected: Vec<f64> =
            ends.iter().zip(&start[member]).map(|(&end, &start)| travel(end, start)).collect();
        let got: Vec<f64> =
            flat.iter().zip(&start[member]).map(|(&end, &start)| travel(f64::from(end), start)).collect();
        if expected.iter().zip(&got).any(|(&expected, &got)| expected == 0.0 && got != 0.0) {
            exact = f64::NAN;
        }
        moved = worst(moved, relative(got.into_iter(), expected.into_iter()));
        let (steps, moments) = device.state(member)?;
        heir.set_parameters(member, &flat)?;
        heir.set_state(member, steps, &moments)?;
    }
    for engine in [&mut device, &mut heir] {
        engine.load_indices(tokens, &looked_up(3))?;
        pull_on_device(engine, &order, 0)?;
        engine.step(optimiser, &rates)?;
    }
    for member in 0..MEMBERS {
        exact = worst(exact, same(&device.parameters(member)?, &heir.parameters(member)?));
    }
    let name = format!("law: rows that nobody looks up rest, {name}");
    let limit = (8.0 * tolerance(options.precision)).max(2e-3);
    Ok(Outcome { name, outputs: exact, gradient: moved, limit })
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
