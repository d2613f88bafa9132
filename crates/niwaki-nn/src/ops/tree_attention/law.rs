//! Tree attention against finite differences, against causal attention, and a shared prompt against a copied one.

use super::{AttendTree, TreeAttention};
use crate::graph::{Graph, Value};
use crate::harness::{loaded, pull};
use crate::ops::law::{check, columns, leaf};
use crate::{Attention, Engine, Index, Visible};

impl crate::ops::Law for AttendTree {
    fn check() {
        let mut graph = Graph::new();
        let query = leaf(&mut graph, "q", 7, 19);
        let both = leaf(&mut graph, "k", 7, 18);
        // Rows 3 and 5 branch off row 1, row 6 is a root of its own.
        let fixed = graph.constant(&[-1, 0, 1, 1, 3, 1, 6]);
        // Any integers: those that name no earlier row are none.
        let drawn = graph.indices("parent", 7, 7);
        let a = graph.tree_attention(tree(query, both, (4, 2), fixed)).unwrap();
        let b = graph.tree_attention(tree(query, both, (2, 2), drawn)).unwrap();
        check("tree attention", &graph, &[a, b]);

        let mut graph = Graph::new();
        let mixed = leaf(&mut graph, "mixed", 5, 26);
        let parent = graph.constant(&[-1, 0, 0, 2, 1]);
        let within = TreeAttention {
            query: columns(mixed, 0),
            key: columns(mixed, 9),
            ..tree(mixed, mixed, (2, 1), parent)
        };
        let y = graph.tree_attention(within).unwrap();
        check("tree attention within one value", &graph, &[y]);
    }
}

fn tree(query: Value, both: Value, (heads, key_heads): (usize, usize), parent: Index) -> TreeAttention {
    let head_width = 4;
    TreeAttention {
        query: columns(query, 1),
        key: columns(both, 1),
        value: columns(both, 1 + key_heads * head_width),
        heads,
        key_heads,
        head_width,
        scale: 0.5,
        parent,
    }
}

/// Outputs and gradient of a program on noise.
fn run(graph: &Graph, outputs: &[Value]) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut engine = loaded::<f64>(graph, outputs, &[5], 2);
    pull(&mut engine, graph, outputs, &[5]);
    let outputs = (0..outputs.len()).map(|output| engine.output(0, output).to_vec()).collect();
    (outputs, engine.gradient(0).unwrap())
}

fn assert_close(a: &[f64], b: &[f64], what: &str) {
    assert_eq!(a.len(), b.len(), "{what}");
    for (place, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{what}[{place}]: {a} against {b}");
    }
}

#[test]
fn a_chain_is_causal_attention() {
    let both_ways = |along: bool| {
        let mut graph = Graph::new();
        let query = leaf(&mut graph, "q", 6, 17);
        let both = leaf(&mut graph, "k", 6, 18);
        let parent = graph.constant(&[-1, 0, 1, 2, 3, 4]);
        let t = tree(query, both, (4, 2), parent);
        let output = if along {
            graph.tree_attention(t).unwrap()
        } else {
            let TreeAttention { query, key, value, heads, key_heads, head_width, scale, .. } = t;
            let visible = Visible::Causal;
            graph
                .attention(Attention { query, key, value, heads, key_heads, head_width, scale, visible })
                .unwrap()
        };
        run(&graph, &[output])
    };
    let ((tree, tree_gradient), (causal, causal_gradient)) = (both_ways(true), both_ways(false));
    assert_close(&tree[0], &causal[0], "output");
    assert_close(&tree_gradient, &causal_gradient, "gradient");
}

/// Two rows that branch off a prompt of three against two items' worth of chains that each have the prompt for themselves.
#[test]
fn a_shared_prompt_has_the_gradient_of_a_copied_one() {
    let with = |order: &[i32], parents: &[i32], asked: &[i32]| {
        let mut graph = Graph::new();
        let table = graph.param("table", &[7, 24], crate::Init::Normal { deviation: 0.8 }).unwrap();
        let order = graph.constant(order);
        let rows = graph.embed(table, order).unwrap();
        let parent = graph.constant(parents);
        let all = TreeAttention {
            query: columns(rows, 0),
            key: columns(rows, 8),
            ..tree(rows, rows, (2, 2), parent)
        };
        let all = TreeAttention { value: columns(rows, 16), ..all };
        let out = graph.tree_attention(all).unwrap();
        let asked = graph.constant(asked);
        let out = graph.gather(out, asked).unwrap();
        run(&graph, &[out])
    };
    // Rows 0, 1, 2 are the prompt, 3, 4 the first continuation and 5, 6 the second.
    let (shared, shared_gradient) = with(&[0, 1, 2, 3, 4, 5, 6], &[-1, 0, 1, 2, 3, 2, 5], &[3, 4, 5, 6]);
    let (copied, copied_gradient) =
        with(&[0, 1, 2, 3, 4, 0, 1, 2, 5, 6], &[-1, 0, 1, 2, 3, -1, 5, 6, 7, 8], &[3, 4, 8, 9]);
    assert_close(&shared[0], &copied[0], "output");
    assert_close(&shared_gradient, &copied_gradient, "gradient");
}

#[test]
fn rows_one_after_the_other_give_the_bits_of_all_at_once() {
    let mut graph = Graph::new();
    let query = leaf(&mut graph, "q", 7, 17);
    let both = leaf(&mut graph, "k", 7, 18);
    let parent = graph.constant(&[-1, 0, 1, 1, 3, 1, 6]);
    let out = graph.tree_attention(tree(query, both, (4, 2), parent)).unwrap();
    let mut engine = loaded::<f32>(&graph, &[out], &[5], 2);
    engine.forward().unwrap();
    let whole = engine.output(0, 0).to_vec();
    for row in 0..7 {
        engine.forward_row(row).unwrap();
    }
    assert_eq!(engine.output(0, 0), whole);
}
