//! Attention against finite differences.

use super::{Attend, Attention, Visible};
use crate::graph::{Graph, Value};
use crate::ops::law::{check, columns, leaf};

impl crate::ops::Law for Attend {
    fn check() {
        attention_across_values();
        attention_within_one_value();
    }
}

fn attention(query: Value, key: Value, heads: usize, key_heads: usize, visible: Visible) -> Attention {
    let width = 4;
    Attention {
        query: columns(query, 1),
        key: columns(key, 0),
        value: columns(key, key_heads * width),
        heads,
        key_heads,
        head_width: width,
        scale: 0.5,
        visible,
    }
}

fn attention_across_values() {
    let mut graph = Graph::new();
    let query = leaf(&mut graph, "q", 3, 9);
    let key = leaf(&mut graph, "k", 5, 16);
    let mask = graph.mask("seen", 3, 5);
    let masked = graph.attention(attention(query, key, 2, 2, Visible::Masked(mask))).unwrap();
    let all = graph.attention(attention(query, key, 2, 2, Visible::All)).unwrap();
    let shared = graph.attention(attention(query, key, 2, 1, Visible::All)).unwrap();
    check("cross attention", &graph, &[masked, all, shared]);
}

fn attention_within_one_value() {
    let mut graph = Graph::new();
    let mixed = leaf(&mut graph, "mixed", 5, 25);
    let seen = Attention { value: columns(mixed, 17), ..attention(mixed, mixed, 2, 2, Visible::Causal) };
    let seen = Attention { key: columns(mixed, 9), ..seen };
    let y = graph.attention(seen).unwrap();
    check("causal attention", &graph, &[y]);
}
