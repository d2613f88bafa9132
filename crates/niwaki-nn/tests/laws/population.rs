//! Laws of the population: nothing crosses members, and nothing depends on how the work was divided.

use crate::harness::{columns, loaded, param, pull};
use niwaki_nn::{Activation, Attention, Engine, Graph, Optimiser, StepRule, Storage, Value, Visible};

/// A small program with products, norms, attention and a choice.
pub(crate) fn program() -> (Graph, Vec<Value>, Value) {
    let mut graph = Graph::new();
    let tokens = graph.indices("tokens", 6, 5);
    let actions = graph.indices("actions", 6, 5);
    let table = param(&mut graph, "table", &[5, 32]);
    let x = graph.embed(table, tokens).unwrap();
    let (gain, bias) = (param(&mut graph, "gain", &[32]), param(&mut graph, "bias", &[32]));
    let normed = graph.layer_norm(x, gain, bias).unwrap();
    let w = param(&mut graph, "mix", &[32, 96]);
    let mixed = graph.linear(normed, w, None, Activation::None).unwrap();
    let attended = graph
        .attention(Attention {
            query: columns(mixed, 0),
            key: columns(mixed, 32),
            value: columns(mixed, 64),
            heads: 2,
            key_heads: 2,
            head_width: 16,
            scale: 0.25,
            visible: Visible::Causal,
        })
        .unwrap();
    let w = param(&mut graph, "out", &[32, 32]);
    let x = graph.linear_onto(x, attended, w, None).unwrap();
    let (w, b) = (param(&mut graph, "up", &[32, 64]), param(&mut graph, "up.bias", &[64]));
    let raised = graph.linear(x, w, Some(b), Activation::Gelu).unwrap();
    let w = param(&mut graph, "head", &[64, 5]);
    let logits = graph.linear(raised, w, None, Activation::None).unwrap();
    let (log_prob, entropy) = graph.pick_log_prob(logits, actions, None).unwrap();
    (graph, vec![log_prob, entropy], logits)
}

const ITEMS: usize = 101;

fn trained(seeds: &[u64], rates: &[f64], optimiser: Optimiser, steps: usize) -> Vec<Vec<f32>> {
    let (graph, outputs, _) = program();
    let mut engine = loaded::<f32>(&graph, &outputs, seeds, ITEMS);
    for _ in 0..steps {
        pull(&mut engine, &graph, &outputs, seeds);
        engine.step(&optimiser, rates).unwrap();
    }
    (0..seeds.len()).map(|member| engine.parameters(member).unwrap()).collect()
}

#[test]
fn permuting_members_permutes_results() {
    let here = trained(&[1, 2, 3], &[0.1, 0.2, 0.3], Optimiser::normalised_sgd(), 3);
    let there = trained(&[3, 1, 2], &[0.3, 0.1, 0.2], Optimiser::normalised_sgd(), 3);
    assert_eq!([&here[2], &here[0], &here[1]], [&there[0], &there[1], &there[2]]);
    assert_ne!(here[0], here[1]);
}

#[test]
fn a_member_alone_has_the_bits_of_the_member_in_a_crowd() {
    for optimiser in [Optimiser::normalised_sgd(), Optimiser::adam(), Optimiser::sgd().clipped(0.5)] {
        let crowd = trained(&[1, 2, 3, 4, 5], &[0.1; 5], optimiser, 3);
        assert!(crowd.iter().flatten().all(|p| p.is_finite()), "{optimiser:?}");
        for (member, seed) in [(0, 1), (3, 4)] {
            let alone = trained(&[seed], &[0.1], optimiser, 3);
            assert!(alone[0] == crowd[member], "{optimiser:?}");
        }
    }
}

#[test]
fn threads_do_not_matter() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| trained(&[1, 2, 3], &[0.1; 3], Optimiser::normalised_sgd(), 2))
    };
    assert_eq!(run(1), run(3));
}

/// Two arms with one seed agree to the bit until the first step at which their surrogates differ.
#[test]
fn paired_members_agree_until_their_surrogates_differ() {
    let (graph, outputs, _) = program();
    let mut engine = loaded::<f32>(&graph, &outputs, &[7, 7], ITEMS);
    for step in 0..4 {
        let surrogate = |span: niwaki_nn::Span, seen: &[&[f32]], cotangents: &mut [&mut [f32]]| {
            let corrected = step == 3 && span.member == 1;
            for (cotangent, &log_prob) in cotangents[0].iter_mut().zip(seen[0]) {
                *cotangent = if corrected { log_prob.exp() } else { 1.0 };
            }
            cotangents[1].fill(0.0);
        };
        engine.pull_back(&surrogate).unwrap();
        engine.step(&Optimiser::normalised_sgd(), &[0.1, 0.1]).unwrap();
        let (a, b) = (engine.parameters(0).unwrap(), engine.parameters(1).unwrap());
        assert_eq!(a == b, step < 3, "step {step}");
    }
}

#[test]
fn rows_one_by_one_have_the_bits_of_all_at_once() {
    let (graph, outputs, logits) = program();
    let outputs = [outputs[0], logits];
    for items in [1, 2, 40] {
        let mut engine = loaded::<f32>(&graph, &outputs, &[1, 2], items);
        engine.forward().unwrap();
        let whole: Vec<Vec<f32>> = (0..4).map(|at| engine.output(at / 2, at % 2).to_vec()).collect();
        for row in 0..6 {
            engine.forward_row(row).unwrap();
        }
        for at in 0..4 {
            assert_eq!(engine.output(at / 2, at % 2), whole[at], "{items} items");
        }
    }
}

/// Where items are decisions and runs of them trajectories, a surrogate sees whole runs, each once, whatever their lengths.
#[test]
fn runs_of_items_are_never_split() {
    let (graph, outputs, _) = program();
    // A block has room for 42 items of 6 rows: runs that fit together, one that is longer than a block, and single items.
    let lengths = [[5, 40, 1, 50, 4, 1], [1, 99, 1, 0, 0, 0], [20, 20, 20, 20, 20, 1]];
    let ends: Vec<Vec<usize>> = lengths
        .map(|lengths| {
            let mut end = 0;
            lengths.into_iter().filter(|&length| length > 0).map(|length| (end += length, end).1).collect()
        })
        .into();
    let mut engine = loaded::<f64>(&graph, &outputs, &[1, 2, 3], ITEMS);
    pull(&mut engine, &graph, &outputs, &[1, 2, 3]);
    let alone: Vec<Vec<f64>> = (0..3).map(|member| engine.gradient(member).unwrap()).collect();
    engine.set_runs(&ends).unwrap();
    let seen = std::sync::Mutex::new(vec![Vec::new(); 3]);
    let surrogate = |span: niwaki_nn::Span, _: &[&[f64]], cotangents: &mut [&mut [f64]]| {
        cotangents.iter_mut().for_each(|cotangent| cotangent.fill(0.0));
        seen.lock().unwrap()[span.member].push((span.items.start, span.items.end));
    };
    engine.pull_back(&surrogate).unwrap();
    for (mut spans, ends) in seen.into_inner().unwrap().into_iter().zip(&ends) {
        spans.sort_unstable();
        let mut at = 0;
        for (start, end) in spans {
            assert_eq!(start, at);
            assert!(ends.contains(&end), "{end} is within a run");
            at = end;
        }
        assert_eq!(at, ITEMS);
    }
    // The gradient is that of the same items cut otherwise, up to the order of sums.
    pull(&mut engine, &graph, &outputs, &[1, 2, 3]);
    for (member, alone) in alone.iter().enumerate() {
        let largest = alone.iter().fold(0.0_f64, |most, g| most.max(g.abs()));
        let cut = engine.gradient(member).unwrap();
        assert!(cut.iter().zip(alone).all(|(a, b)| (a - b).abs() < 1e-12 * largest), "member {member}");
    }
    let wrong = [vec![2, 2, 101], vec![101], vec![101]];
    assert!(engine.set_runs(&wrong).is_err());
    assert!(engine.set_runs(&[vec![101], vec![100], vec![101]]).is_err());
    assert!(engine.set_runs(&[vec![101]]).is_err());
}

/// Items that are asked for nothing may be named: the gradient keeps its bits, and blocks of such items are not run.
#[test]
fn silent_items_are_left_out() {
    let (graph, outputs, _) = program();
    let seeds = [1, 2];
    // A block has room for 42 items: the first member's second and third are silent, the other member's none whole.
    let silent: [Vec<bool>; 2] =
        [(0..ITEMS).map(|item| item >= 40).collect(), (0..ITEMS).map(|item| item % 3 == 0).collect()];
    let asked = std::sync::Mutex::new(0);
    let surrogate = |span: niwaki_nn::Span, _: &[&[f32]], cotangents: &mut [&mut [f32]]| {
        *asked.lock().unwrap() += span.items.len();
        for cotangent in cotangents {
            let size = cotangent.len() / span.items.len();
            for (item, cotangent) in span.items.clone().zip(cotangent.chunks_exact_mut(size)) {
                let weight = if silent[span.member][item] { 0.0 } else { 0.1 + item as f32 };
                cotangent.fill(weight);
            }
        }
    };
    let gradients = |left_out: &[Vec<bool>]| {
        let mut engine = loaded::<f32>(&graph, &outputs, &seeds, ITEMS);
        if !left_out.is_empty() {
            engine.leave_out(left_out).unwrap();
        }
        *asked.lock().unwrap() = 0;
        engine.pull_back(&surrogate).unwrap();
        let called = *asked.lock().unwrap();
        (called, [0, 1].map(|member| engine.gradient(member).unwrap()))
    };
    let (all, whole) = gradients(&[]);
    let (some, part) = gradients(&silent);
    assert_eq!((all, some), (2 * ITEMS, 42 + ITEMS));
    assert!(whole == part && whole[0].iter().any(|&g| g != 0.0));
    let mut engine = loaded::<f32>(&graph, &outputs, &seeds, ITEMS);
    assert!(engine.leave_out(&silent[..1]).is_err());
    assert!(engine.leave_out(&[silent[0].clone(), vec![true]]).is_err());
    // Inputs that are loaded anew speak for all items.
    engine.leave_out(&silent).unwrap();
    let tokens = vec![1; 2 * ITEMS * 6];
    let index = graph.ops().iter().find_map(|op| op.index()).unwrap();
    engine.load_indices(index, &tokens).unwrap();
    *asked.lock().unwrap() = 0;
    engine.pull_back(&surrogate).unwrap();
    assert_eq!(*asked.lock().unwrap(), 2 * ITEMS);
}

#[test]
fn the_optimisers_state_can_be_put_back() {
    let (graph, outputs, _) = program();
    let seeds = [5];
    let mut whole = loaded::<f32>(&graph, &outputs, &seeds, 4);
    let adam = Optimiser {
        rule: StepRule::Adam { first: 0.9, second: 0.99, epsilon: 1e-8, decay: 0.1, storage: Storage::Whole },
        clip: None,
    };
    let mut resumed = loaded::<f32>(&graph, &outputs, &seeds, 4);
    for step in 0..6 {
        pull(&mut whole, &graph, &outputs, &seeds);
        whole.step(&adam, &[0.01]).unwrap();
        if step == 2 {
            let (steps, moments) = whole.state(0).unwrap();
            assert_eq!((steps, moments.len()), (3, 2));
            resumed.set_parameters(0, &whole.parameters(0).unwrap()).unwrap();
            resumed.set_state(0, steps, &moments).unwrap();
        } else if step > 2 {
            pull(&mut resumed, &graph, &outputs, &seeds);
            resumed.step(&adam, &[0.01]).unwrap();
        }
    }
    assert_eq!(whole.parameters(0).unwrap(), resumed.parameters(0).unwrap());
}

#[test]
fn mistakes_are_named() {
    let (graph, outputs, _) = program();
    let mut engine = loaded::<f32>(&graph, &outputs, &[1], 2);
    let tokens = graph.ops()[0].index().unwrap();
    let short = engine.load_indices(tokens, &[0; 5]).unwrap_err().to_string();
    assert_eq!(short, "input tokens: expected 12 elements [member, item, rows, width], got 5");
    let high = engine.load_indices(tokens, &[5; 12]).unwrap_err().to_string();
    assert_eq!(high, "input tokens: index 5 at position 0 is not below 5");
    engine.set_items(3).unwrap();
    let stale = engine.forward().unwrap_err().to_string();
    assert_eq!(stale, "input tokens: expected 18 elements [member, item, rows, width], got 12");
    let rates = engine.step(&Optimiser::sgd(), &[]).unwrap_err().to_string();
    assert_eq!(rates, "learning rates: expected one for each of 1 members, got 0");
}
