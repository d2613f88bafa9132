//! The arena: no two buffers that live at once share memory, whatever the program.

use crate::harness::{loaded, param, pull};
use niwaki_nn::{Activation, Engine, Graph, Plan, Value};
use niwaki_stream::Key;

/// A program with random wiring: each op reads values chosen at random among those before it.
fn random_program(seed: u64) -> (Graph, Vec<Value>) {
    let mut stream = Key::new(seed, "wiring").open();
    let mut graph = Graph::new();
    let mut values = vec![crate::harness::leaf(&mut graph, "x", 3, 4)];
    for place in 0..14 {
        let mut any = || values[stream.below(values.len() as u64) as usize];
        let (a, b) = (any(), any());
        let value = match stream.below(6) {
            0 => graph.add(a, b).unwrap(),
            1 => graph.mul(a, b).unwrap(),
            2 => graph.scale(a, 0.5),
            3 => {
                let w = param(&mut graph, &format!("w{place}"), &[4, 4]);
                graph.linear(a, w, None, Activation::Tanh).unwrap()
            }
            4 => {
                let w = param(&mut graph, &format!("w{place}"), &[4, 4]);
                graph.linear_onto(a, b, w, None).unwrap()
            }
            _ => {
                let gain = param(&mut graph, &format!("g{place}"), &[4]);
                let bias = param(&mut graph, &format!("b{place}"), &[4]);
                graph.layer_norm(a, gain, bias).unwrap()
            }
        };
        values.push(value);
    }
    let outputs = vec![values[values.len() - 1], values[values.len() / 2]];
    (graph, outputs)
}

/// With reuse or without, the same bits: a program whose every value is also an output keeps all of them alive.
#[test]
fn reuse_of_memory_changes_nothing() {
    for seed in 0..40 {
        let (graph, outputs) = random_program(seed);
        let all: Vec<Value> = graph.ops().iter().flat_map(|op| op.outputs()).collect();
        let mut tight = loaded::<f64>(&graph, &outputs, &[1], 2);
        let mut loose = loaded::<f64>(&graph, &all, &[1], 2);
        tight.forward().unwrap();
        loose.forward().unwrap();
        let places: Vec<usize> =
            outputs.iter().map(|output| all.iter().position(|other| other == output).unwrap()).collect();
        for (output, &place) in places.iter().enumerate() {
            assert_eq!(tight.output(0, output), loose.output(0, place), "seed {seed}");
        }
        pull(&mut tight, &graph, &outputs, &[1]);
        let surrogate = |_, _: &[&[f64]], cotangents: &mut [&mut [f64]]| {
            cotangents.iter_mut().for_each(|cotangent| cotangent.fill(0.0));
            for (output, &place) in places.iter().enumerate() {
                for (at, cotangent) in cotangents[place].iter_mut().enumerate() {
                    // The two outputs may be one value.
                    *cotangent += crate::harness::weight(output, 1, at);
                }
            }
        };
        loose.pull_back(&surrogate).unwrap();
        let (a, b) = (tight.gradient(0).unwrap(), loose.gradient(0).unwrap());
        let close = a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
        assert!(close, "seed {seed}");
    }
}

#[test]
fn memory_is_reused_and_unneeded_ops_are_dropped() {
    let mut graph = Graph::new();
    let mut x = crate::harness::leaf(&mut graph, "x", 4, 8);
    let early = x;
    for _ in 0..20 {
        x = graph.scale(x, 1.1);
    }
    // A chain of equal values needs two buffers at a time: 2 · 32 scalars.
    let plan = Plan::forward_only(&graph, &[x]);
    assert_eq!(plan.arena(), 64);
    // Only the embedding and the addition lead to the chain's start.
    assert_eq!(Plan::forward_only(&graph, &[early]).forward().len(), 2);
    assert!(plan.backward().is_empty());
}

/// A device may make a pointer's queries in the pointer's kernels, one item at a time: what they are made of is then read while
/// other items' results are written, so none of these may share memory.
#[test]
fn what_queries_are_made_of_lives_as_long_as_their_pointer() {
    use crate::harness::leaf;
    for (rows, keys, context, asked) in
        [(200, 20, 14, false), (45, 7, 5, true), (3, 20, 4, false), (3, 20, 4, true)]
    {
        let mut graph = Graph::new();
        let known = leaf(&mut graph, "known", keys + 1, 12);
        let (glimpse, key) = (leaf(&mut graph, "glimpse", keys, 24), leaf(&mut graph, "key", keys, 12));
        let (last, open) = (graph.indices("last", rows, keys + 1), graph.mask("open", rows, keys));
        let state = graph.scalars("state", rows, context);
        let (weight, bias) = (param(&mut graph, "weight", &[context, 12]), param(&mut graph, "bias", &[12]));
        let gathered = graph.gather(known, last).unwrap();
        let query = graph.linear_onto(gathered, state, weight, Some(bias)).unwrap();
        let point = niwaki_nn::Point { query, glimpse, key, heads: 4, residual: false, bound: 10.0, open };
        let logits = graph.point(point).unwrap();
        let outputs = if asked { vec![logits, known] } else { vec![logits] };
        let plan = Plan::training(&graph, &outputs);
        let apart = |one: niwaki_nn::Region, other: niwaki_nn::Region| {
            one.offset + one.size <= other.offset || other.offset + other.size <= one.offset
        };
        let (value, cotangent) = (plan.value(known).unwrap(), plan.cotangent(known).unwrap());
        assert!(apart(value, cotangent));
        for other in [glimpse, key, logits] {
            for region in [plan.value(other).unwrap(), plan.cotangent(other).unwrap()] {
                assert!(apart(value, region) && apart(cotangent, region), "{rows} rows, {keys} keys");
            }
        }
    }
}

/// A device may pick from a pointer's logits in the pointer's kernels, one item at a time: what is picked is then written while
/// other items' operands are read, and its cotangents are read while theirs are written.
#[test]
fn what_is_picked_from_a_pointer_lives_as_long_as_the_pointer() {
    use crate::harness::leaf;
    let apart = |one: niwaki_nn::Region, other: niwaki_nn::Region| {
        one.offset + one.size <= other.offset || other.offset + other.size <= one.offset
    };
    for (rows, keys) in [(200, 20), (45, 7), (3, 20)] {
        let mut graph = Graph::new();
        let query = leaf(&mut graph, "query", rows, 12);
        let (glimpse, key) = (leaf(&mut graph, "glimpse", keys, 24), leaf(&mut graph, "key", keys, 12));
        let (open, action) = (graph.mask("open", rows, keys), graph.indices("action", rows, keys));
        let point = niwaki_nn::Point { query, glimpse, key, heads: 4, residual: true, bound: 10.0, open };
        let logits = graph.point(point).unwrap();
        let pointed = graph.ops().len() - 1;
        let (log_prob, entropy) = graph.pick_log_prob(logits, action, Some(open)).unwrap();
        let outputs = [log_prob, entropy];
        for plan in [Plan::forward_only(&graph, &outputs), Plan::training(&graph, &outputs)] {
            for picked in outputs {
                for read in [query, glimpse, key, logits] {
                    assert!(apart(plan.value(picked).unwrap(), plan.value(read).unwrap()), "{rows} rows");
                }
            }
        }
        let plan = Plan::training(&graph, &outputs);
        let saved = plan.saved(pointed + 1).unwrap();
        for written in [query, glimpse, key] {
            let written = plan.cotangent(written).unwrap();
            assert!(apart(saved, written), "{rows} rows, {keys} keys");
            for picked in outputs {
                assert!(apart(plan.cotangent(picked).unwrap(), written), "{rows} rows, {keys} keys");
            }
        }
    }
}
