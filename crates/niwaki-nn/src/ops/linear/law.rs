//! `linear` against finite differences.

use super::Linear;
use crate::graph::Graph;
use crate::ops::Activation;
use crate::ops::law::{check, leaf, param};

impl crate::ops::Law for Linear {
    fn check() {
        linear_with_every_activation();
        linear_onto_a_residual_that_is_used_again();
        linear_onto_itself();
        linear_tied_to_an_embedding();
    }
}

fn linear_with_every_activation() {
    use Activation::{Elu, Gelu, None, Relu, Sigmoid, Silu, Tanh};
    for activation in [None, Gelu, Relu, Tanh, Silu, Elu, Sigmoid] {
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 4, 5);
        let (w, b) = (param(&mut graph, "w", &[5, 3]), param(&mut graph, "b", &[3]));
        let y = graph.linear(x, w, Some(b), activation).unwrap();
        check(&format!("linear {activation:?}"), &graph, &[y]);
    }
}

fn linear_onto_a_residual_that_is_used_again() {
    let mut graph = Graph::new();
    let stream = leaf(&mut graph, "stream", 4, 3);
    let (up, down) = (param(&mut graph, "up", &[3, 6]), param(&mut graph, "down", &[6, 3]));
    let raised = graph.linear(stream, up, None, Activation::Gelu).unwrap();
    let first = graph.linear_onto(stream, raised, down, None).unwrap();
    let again = graph.linear_onto(first, raised, down, None).unwrap();
    let product = graph.mul(first, stream).unwrap();
    check("residual", &graph, &[again, product, first]);
}

fn linear_onto_itself() {
    let mut graph = Graph::new();
    let x = leaf(&mut graph, "x", 2, 3);
    let w = param(&mut graph, "w", &[3, 3]);
    let y = graph.linear_onto(x, x, w, None).unwrap();
    check("linear onto its own input", &graph, &[y]);
}

fn linear_tied_to_an_embedding() {
    let mut graph = Graph::new();
    let table = param(&mut graph, "table", &[6, 4]);
    let tokens = graph.indices("tokens", 3, 6);
    let x = graph.embed(table, tokens).unwrap();
    let logits = graph.linear_tied(x, table).unwrap();
    check("linear tied", &graph, &[logits]);
}
