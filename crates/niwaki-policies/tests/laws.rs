//! Laws of the policies: against PyTorch, and sampling against scoring.
#![expect(clippy::unwrap_used, reason = "a law that cannot be set up has failed")]

mod decode;
mod pointer;

use niwaki_nn::{Cpu, Engine, Real, Span, initialise};
use niwaki_policies::{BagShape, CausalShape, Draw, Drawn, Extras, TokenPolicy};
use niwaki_stream::{Key, Stream};
use serde_json::Value;

/// Numbers in [−1, 1): the hash of `causal_torch.py`.
fn hashed(stream: u64, place: usize) -> f64 {
    let mut x = (place as u64).wrapping_mul(2_654_435_761).wrapping_add(stream * 2_246_822_519 + 374_761_393);
    x &= 0xffff_ffff;
    for _ in 0..2 {
        x ^= x >> 16;
        x = x.wrapping_mul(73_244_475) & 0xffff_ffff;
    }
    x ^= x >> 16;
    x as f64 / f64::from(1_u32 << 31) - 1.0
}

fn fixture_case(place: usize) -> Value {
    let text = include_str!("fixtures/causal_torch.json");
    serde_json::from_str::<Value>(text).unwrap()["cases"][place].clone()
}

/// The fixture's policy, loaded with its weights and tokens; and the number of lanes.
fn loaded<F: Real>(case: &Value) -> (TokenPolicy, Cpu<F>, usize) {
    let size = |name: &str| case["shape"][name].as_u64().unwrap() as usize;
    let shape = CausalShape {
        vocab: size("vocab"),
        horizon: size("horizon"),
        width: size("width"),
        heads: size("heads"),
        blocks: size("blocks"),
        hidden: size("hidden"),
    };
    let (policy, lanes) = (shape.policy(Extras::default()).unwrap(), size("lanes"));
    let mut engine = Cpu::new(&policy.graph, &policy.outputs(), 1);
    engine.set_items(lanes).unwrap();
    let layout = policy.graph.layout();
    let mut flat = vec![F::ZERO; layout.len()];
    for (stream, slice) in layout.slices().iter().enumerate() {
        let (scale, centre) = match slice.name.rsplit_once('.').unwrap() {
            ("tokens" | "positions", _) => (1.0, 0.0),
            (_, "gain") => (0.1, 1.0),
            (_, "bias") => (0.1, 0.0),
            _ => ((slice.shape[0] as f64).sqrt().recip(), 0.0),
        };
        for (place, to) in flat[slice.range()].iter_mut().enumerate() {
            *to = F::from_f64(f64::from((centre + scale * hashed(stream as u64, place)) as f32));
        }
    }
    engine.set_parameters(0, &flat).unwrap();
    let count = lanes * shape.horizon;
    let actions: Vec<i32> =
        (0..count).map(|place| ((hashed(1000, place) + 1.0) / 2.0 * shape.vocab as f64) as i32).collect();
    policy.load(&mut engine, &actions, &[]).unwrap();
    (policy, engine, lanes)
}

/// Objective, log-probabilities and gradients against PyTorch's float64, relative to each gradient's norm.
fn agrees_with_pytorch<F: Real>(tolerance: f64) {
    for place in 0..2 {
        let case = fixture_case(place);
        let (policy, mut engine, lanes) = loaded::<F>(&case);
        let horizon = policy.horizon;
        let count = (lanes * horizon) as f64;
        let surrogate = |span: Span, _: &[&[F]], cotangents: &mut [&mut [F]]| {
            for (output, cotangent) in cotangents.iter_mut().enumerate() {
                for (at, d) in cotangent.iter_mut().enumerate() {
                    let weight = hashed(1001 + output as u64, span.items.start * horizon + at) / count;
                    *d = F::from_f64(if output < 2 { weight } else { 0.0 });
                }
            }
        };
        engine.pull_back(&surrogate).unwrap();
        let output = |output: usize| engine.output(0, output).iter().map(|x| x.to_f64());
        let objective: f64 = (0..2)
            .flat_map(|which| {
                output(which).enumerate().map(move |(at, x)| x * hashed(1001 + which as u64, at) / count)
            })
            .sum();
        assert!((objective - case["objective"].as_f64().unwrap()).abs() < tolerance, "objective {objective}");
        for (log_prob, expected) in output(0).zip(case["log_prob"].as_array().unwrap()) {
            assert!(
                (log_prob - expected.as_f64().unwrap()).abs() < tolerance * 10.0,
                "{log_prob} {expected}"
            );
        }
        let gradient = engine.gradient(0).unwrap();
        for slice in policy.graph.layout().slices() {
            let ours: Vec<f64> = gradient[slice.range()].iter().map(|g| g.to_f64()).collect();
            let theirs = &case["gradients"][&slice.name];
            let norm = theirs["norm"].as_f64().unwrap();
            let close = |what: &str, ours: f64, theirs: f64, size: f64| {
                let error = (ours - theirs).abs() / size;
                assert!(error < tolerance, "case {place}: {} {what}: {ours}, PyTorch {theirs}", slice.name);
            };
            close("norm", ours.iter().map(|g| g * g).sum::<f64>().sqrt(), norm, norm);
            let sign = |at: usize| if hashed(2000, at) < 0.0 { -1.0 } else { 1.0 };
            let product: f64 = ours.iter().enumerate().map(|(at, g)| g * sign(at)).sum();
            // Errors of n places, each within the tolerance of the norm over √n, add up to the norm over n · √n / n.
            close("product", product, theirs["product"].as_f64().unwrap(), norm * (ours.len() as f64).sqrt());
            for (ours, theirs) in ours.iter().zip(theirs["all"].as_array().into_iter().flatten()) {
                close("entry", *ours, theirs.as_f64().unwrap(), norm);
            }
        }
    }
}

#[test]
fn the_causal_transformer_agrees_with_pytorch_in_f64() {
    agrees_with_pytorch::<f64>(1e-10);
}

#[test]
fn the_causal_transformer_agrees_with_pytorch_in_f32() {
    agrees_with_pytorch::<f32>(1e-5);
}

/// One uniform per step, from a stream per lane.
fn uniforms(members: u64, lanes: usize, horizon: usize) -> Vec<f64> {
    let lanes = |member| (0..lanes as u64).map(move |lane| Key::new(member, "actions").lane(lane).open());
    let draw = |mut stream: Stream| (0..horizon).map(move |_| stream.uniform());
    (0..members).flat_map(lanes).flat_map(draw).collect()
}

fn sample(policy: &TokenPolicy, engine: &mut Cpu<f32>, members: u64, lanes: usize) -> Drawn {
    let mut drawn = Drawn::default();
    let uniforms = uniforms(members, lanes, policy.horizon);
    policy.draw(engine, Draw::Sampled(&uniforms), &|_, _| (), &mut drawn).unwrap();
    drawn
}

/// Cached sampling and teacher forcing give the same bits, whatever the number of lanes.
#[test]
fn sampled_log_probs_are_the_scored_ones_to_the_last_bit() {
    let policy = CausalShape::testbed(4, 8).policy(Extras::default()).unwrap();
    let mut engine = Cpu::<f32>::new(&policy.graph, &policy.outputs(), 2);
    for member in 0..2 {
        engine.set_parameters(member, &initialise(policy.graph.layout(), member as u64)).unwrap();
    }
    let mut kept: Option<Vec<f32>> = None;
    for lanes in [1, 3, 40] {
        engine.set_items(lanes).unwrap();
        let sampled = sample(&policy, &mut engine, 2, lanes);
        policy.load(&mut engine, &sampled.actions, &[]).unwrap();
        engine.forward().unwrap();
        let scored = [engine.output(0, 0), engine.output(1, 0)].concat();
        assert_eq!(sampled.log_prob, scored, "{lanes} lanes");
        // Lane 0 does not notice the others.
        let first = &sampled.log_prob[..8];
        assert_eq!(kept.get_or_insert_with(|| first.to_vec()), first);
        assert!(
            sampled.log_prob.iter().all(|&x| x < 0.0) && sampled.actions.iter().all(|&a| (0..4).contains(&a))
        );
    }
}

/// Sampled tokens occur as often as their probabilities say.
#[test]
fn samples_follow_the_policy() {
    let shape = CausalShape { vocab: 3, horizon: 1, width: 8, heads: 1, blocks: 1, hidden: 8 };
    let policy = shape.policy(Extras::default()).unwrap();
    let mut engine = Cpu::<f32>::new(&policy.graph, &policy.outputs(), 1);
    engine.set_parameters(0, &initialise(policy.graph.layout(), 5)).unwrap();
    let lanes = 20_000;
    engine.set_items(lanes).unwrap();
    let sampled = sample(&policy, &mut engine, 1, lanes);
    for token in 0..3 {
        let places = || (0..lanes).filter(|&lane| sampled.actions[lane] == token);
        let prob = f64::from(sampled.log_prob[places().next().unwrap()]).exp();
        // The share of 20,000 draws has a standard error of at most 0.0036; the margin is four of them.
        assert!((places().count() as f64 / lanes as f64 - prob).abs() < 0.0145, "token {token}");
    }
}

/// The bag policy scores what it samples to the last bit, never draws a closed token, and is primed where it says.
#[test]
fn the_bag_policy_samples_open_tokens_and_can_be_primed() {
    let shape = BagShape { vocab: 4, horizon: 6, width: 16 };
    let policy = shape.policy(Extras { masked: true, critic: true }).unwrap();
    let mut engine = Cpu::<f32>::new(&policy.graph, &policy.outputs(), 1);
    let mut parameters = initialise(policy.graph.layout(), 4);
    assert!(policy.prime(&mut parameters, 1, 0.9));
    engine.set_parameters(0, &parameters).unwrap();
    engine.set_items(500).unwrap();
    let mut drawn = Drawn::default();
    let busy = |prefix: &[i32], open: &mut [bool]| {
        open.fill(true);
        if let Some(&last) = prefix.last() {
            open[last as usize] = false;
        }
    };
    policy.draw(&mut engine, Draw::Sampled(&uniforms(1, 500, 6)), &busy, &mut drawn).unwrap();
    policy.load(&mut engine, &drawn.actions, &drawn.open).unwrap();
    engine.forward().unwrap();
    assert_eq!(drawn.log_prob, engine.output(0, 0));
    let lanes = || drawn.actions.chunks_exact(6);
    assert!(lanes().all(|lane| lane.windows(2).all(|pair| pair[0] != pair[1])));
    // Primed to about 0.9: the untrained head moves it a little, and 500 draws have a standard error of 0.013.
    let first = lanes().filter(|lane| lane[0] == 1).count() as f64 / 500.0;
    assert!((0.8..0.97).contains(&first), "{first}");
    // Greedy lanes are all alike.
    policy.draw(&mut engine, Draw::Greedy, &busy, &mut drawn).unwrap();
    assert!(drawn.actions.chunks_exact(6).all(|lane| lane == &drawn.actions[..6]));
    let causal = CausalShape { vocab: 4, horizon: 6, width: 8, heads: 1, blocks: 1, hidden: 8 };
    assert!(!causal.policy(Extras::default()).unwrap().prime(&mut [], 1, 0.9), "it has no bias to prime");
}
