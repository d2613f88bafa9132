//! Laws of the policies: against PyTorch, and sampling against scoring.
#![expect(clippy::unwrap_used, reason = "a law that cannot be set up has failed")]

mod decode;
mod dual;
mod hgnn;
mod pointer;

use niwaki_exact::Reward;
use niwaki_nn::{Cpu, Engine, Real, Span, initialise};
use niwaki_policies::{BagShape, CausalShape, Draw, Extras, Policy, Rollout, RolloutShape, TokenPolicy};
use niwaki_stream::{Key, Stream};
use niwaki_tasks::{Choice, Ladder, Sequence, Terminal, complete};
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
    policy.load_actions(&mut engine, &actions, &[]).unwrap();
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

fn sample(policy: &TokenPolicy, engine: &mut Cpu<f32>, members: u64, lanes: usize) -> Rollout {
    // Any task in which all tokens are open will do.
    let task = Ladder::new(Reward::LateOnly, policy.vocab, policy.horizon).unwrap();
    let mut rollout = Rollout::default();
    let uniforms = uniforms(members, lanes, policy.horizon);
    policy.sample(engine, &task, lanes, Draw::Sampled(&uniforms), &mut rollout).unwrap();
    rollout
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
        let sampled = sample(&policy, &mut engine, 2, lanes);
        policy.load_actions(&mut engine, &sampled.actions, &[]).unwrap();
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
    let policy = policy.primed(1, 0.9).unwrap();
    engine.set_parameters(0, &policy.initial_parameters(4)).unwrap();
    // A chosen token is closed at the next step.
    let task = Choice::new(4, 6, Terminal::Chosen, 1).unwrap();
    let mut rollout = Rollout::default();
    let uniforms = uniforms(1, 500, 6);
    policy.sample(&mut engine, &task, 500, Draw::Sampled(&uniforms), &mut rollout).unwrap();
    policy.load(&mut engine, &task, &rollout).unwrap();
    engine.forward().unwrap();
    assert_eq!(rollout.log_prob, engine.output(0, 0));
    let lanes = || rollout.trajectories(0);
    assert!(lanes().all(|lane| lane.windows(2).all(|pair| pair[0] != pair[1])));
    // Primed to about 0.9: the untrained head moves it a little, and 500 draws have a standard error of 0.013.
    let first = lanes().filter(|lane| lane[0] == 1).count() as f64 / 500.0;
    assert!((0.8..0.97).contains(&first), "{first}");
    // Greedy lanes are all alike.
    policy.sample(&mut engine, &task, 500, Draw::Greedy, &mut rollout).unwrap();
    assert!(rollout.trajectories(0).all(|lane| lane == &rollout.actions[..6]));
    let causal = CausalShape { vocab: 4, horizon: 6, width: 8, heads: 1, blocks: 1, hidden: 8 };
    assert!(causal.policy(Extras::default()).unwrap().primed(1, 0.9).is_none(), "it has no bias to prime");
}

/// Sequences that end with token 3, in which no token follows itself.
#[derive(Debug)]
struct Stops;

impl Sequence for Stops {
    fn vocab(&self) -> usize {
        4
    }
    fn horizon(&self) -> usize {
        6
    }
    fn masked(&self) -> bool {
        true
    }
    fn open(&self, prefix: &[usize], open: &mut [bool]) {
        assert!(!prefix.contains(&3), "nobody asks what is open after the end");
        open.fill(true);
        if let Some(&last) = prefix.last() {
            open[last] = false;
        }
    }
    fn end(&self) -> Option<usize> {
        Some(3)
    }
    fn reward(&self, tokens: &[usize]) -> f64 {
        tokens.len() as f64
    }
}

/// Trajectories that end early are the beginnings of those that do not, and are scored as they were sampled.
#[test]
fn a_trajectory_ends_with_its_end_token_and_nothing_else_changes() {
    assert_eq!(complete(&Stops, &[1, 3, 2, 3]), [1, 3]);
    let bag = BagShape { vocab: 4, horizon: 6, width: 16 };
    let causal = CausalShape { vocab: 4, horizon: 6, width: 16, heads: 2, blocks: 1, hidden: 24 };
    let extras = Extras { masked: true, critic: false };
    for policy in [bag.policy(extras).unwrap(), causal.policy(extras).unwrap()] {
        let mut engine = Cpu::<f32>::new(&policy.graph, &policy.outputs(), 2);
        for member in 0..2 {
            engine.set_parameters(member, &initialise(policy.graph.layout(), member as u64)).unwrap();
        }
        let drawn = uniforms(2, 40, 6);
        let (mut ragged, mut whole) = (Rollout::default(), Rollout::default());
        policy.sample(&mut engine, &Stops, 40, Draw::Sampled(&drawn), &mut ragged).unwrap();
        let task = Choice::new(4, 6, Terminal::Chosen, 1).unwrap();
        policy.sample(&mut engine, &task, 40, Draw::Sampled(&drawn), &mut whole).unwrap();
        assert_eq!(whole.shape, RolloutShape::uniform(2, 40, 6));
        assert!(!ragged.shape.is_uniform());
        for member in 0..2 {
            for (short, long) in ragged.trajectories(member).zip(whole.trajectories(member)) {
                let long: Vec<usize> = long.iter().map(|&token| token as usize).collect();
                let short: Vec<usize> = short.iter().map(|&token| token as usize).collect();
                assert_eq!(short, complete(&Stops, &long));
            }
        }
        // Scored anew, the steps have the sampled bits, and rows behind an end say nothing.
        policy.load(&mut engine, &Stops, &ragged).unwrap();
        engine.forward().unwrap();
        for member in 0..2 {
            let scored = engine.output(member, 0);
            let steps = ragged.shape.pack(member, 0..40, scored);
            assert_eq!(steps, ragged.log_prob[ragged.shape.member(member)]);
            assert!(steps.iter().all(|&log_prob| log_prob < 0.0));
            let told = scored.iter().filter(|&&log_prob| log_prob != 0.0).count();
            assert_eq!(told, steps.len());
        }
    }
}
