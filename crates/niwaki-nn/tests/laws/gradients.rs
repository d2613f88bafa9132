//! Every op's backward pass against finite differences in f64.

use crate::harness::{check, columns, leaf, param};
use niwaki_nn::{Activation, Attention, Graph, Point, Pooling, Value, Visible};

#[test]
fn linear_with_every_activation() {
    use Activation::{Gelu, None, Relu, Silu, Tanh};
    for activation in [None, Gelu, Relu, Tanh, Silu] {
        let mut graph = Graph::new();
        let x = leaf(&mut graph, "x", 4, 5);
        let (w, b) = (param(&mut graph, "w", &[5, 3]), param(&mut graph, "b", &[3]));
        let y = graph.linear(x, w, Some(b), activation).unwrap();
        check(&format!("linear {activation:?}"), &graph, &[y]);
    }
}

#[test]
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

#[test]
fn linear_onto_itself() {
    let mut graph = Graph::new();
    let x = leaf(&mut graph, "x", 2, 3);
    let w = param(&mut graph, "w", &[3, 3]);
    let y = graph.linear_onto(x, x, w, None).unwrap();
    check("linear onto its own input", &graph, &[y]);
}

#[test]
fn linear_tied_to_an_embedding() {
    let mut graph = Graph::new();
    let table = param(&mut graph, "table", &[6, 4]);
    let tokens = graph.indices("tokens", 3, 6);
    let x = graph.embed(table, tokens).unwrap();
    let logits = graph.linear_tied(x, table).unwrap();
    check("linear tied", &graph, &[logits]);
}

#[test]
fn norms() {
    let mut graph = Graph::new();
    let x = leaf(&mut graph, "x", 3, 37);
    let (gain, bias) = (param(&mut graph, "gain", &[37]), param(&mut graph, "bias", &[37]));
    let y = graph.layer_norm(x, gain, bias).unwrap();
    let z = graph.add(x, y).unwrap();
    check("layer_norm", &graph, &[z]);

    let mut graph = Graph::new();
    let x = leaf(&mut graph, "x", 3, 21);
    let gain = param(&mut graph, "gain", &[21]);
    let y = graph.rms_norm(x, gain, 1e-6).unwrap();
    let z = graph.mul(x, y).unwrap();
    check("rms_norm", &graph, &[z]);
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

#[test]
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

#[test]
fn attention_within_one_value() {
    let mut graph = Graph::new();
    let mixed = leaf(&mut graph, "mixed", 5, 25);
    let seen = Attention { value: columns(mixed, 17), ..attention(mixed, mixed, 2, 2, Visible::Causal) };
    let seen = Attention { key: columns(mixed, 9), ..seen };
    let y = graph.attention(seen).unwrap();
    check("causal attention", &graph, &[y]);
}

#[test]
fn point() {
    // The last has whole blocks of the kernel's sums and what is left over: 10 + 5 + 1 keys, 16 + 2 columns a head.
    for (rows, keys, width, heads) in [(5, 3, 8, 2), (19, 6, 8, 1), (16, 4, 8, 4), (17, 16, 36, 2)] {
        let mut graph = Graph::new();
        let [query, glimpse, key] = [
            leaf(&mut graph, "query", rows, width),
            leaf(&mut graph, "glimpse", keys, 2 * width),
            leaf(&mut graph, "key", keys, width),
        ];
        let open = graph.mask("open", rows, keys);
        let once = Point { query, glimpse, key, heads, residual: false, bound: 3.0, open };
        let logits = graph.point(once).unwrap();
        // The keys serve twice, so that their cotangents are added to; and the query joins its glimpse.
        let again = graph.point(Point { residual: true, bound: 2.0, ..once }).unwrap();
        check("point", &graph, &[logits, again]);
    }
}

#[test]
fn score() {
    let mut graph = Graph::new();
    let (query, key) = (leaf(&mut graph, "q", 3, 5), leaf(&mut graph, "k", 4, 5));
    let across = graph.score(query, key, 0.3).unwrap();
    let within = graph.score(query, query, 0.7).unwrap();
    let clipped = graph.activate(across, Activation::Tanh);
    check("score", &graph, &[clipped, within]);
}

#[test]
fn rows_are_moved() {
    let mut graph = Graph::new();
    let table = param(&mut graph, "table", &[5, 3]);
    let (tokens, rows) = (graph.indices("tokens", 6, 5), graph.indices("rows", 4, 6));
    let mask = graph.mask("counted", 6, 1);
    let x = graph.embed(table, tokens).unwrap();
    let gathered = graph.gather(x, rows).unwrap();
    let mean = graph.pool(x, 3, Some(mask), Pooling::Mean).unwrap();
    let sum = graph.pool(x, 2, None, Pooling::Sum).unwrap();
    let squares = graph.mul(gathered, gathered).unwrap();
    check("embed, gather, pool", &graph, &[squares, mean, sum]);
}

#[test]
fn elementwise() {
    let mut graph = Graph::new();
    let (x, y) = (leaf(&mut graph, "x", 3, 4), leaf(&mut graph, "y", 3, 2));
    let wide = graph.concat(&[x, y, x]).unwrap();
    let double = graph.add(wide, wide).unwrap();
    let scaled = graph.scale(double, -1.5);
    let mut outputs = vec![graph.mul(scaled, wide).unwrap(), graph.mul(x, x).unwrap()];
    for activation in
        [Activation::Gelu, Activation::Relu, Activation::Tanh, Activation::Silu, Activation::None]
    {
        outputs.push(graph.activate(x, activation));
    }
    check("elementwise", &graph, &outputs);
}

#[test]
fn rope() {
    let mut graph = Graph::new();
    let x = leaf(&mut graph, "x", 3, 11);
    let position = graph.indices("position", 3, 50);
    let y = graph.rope(columns(x, 2), 2, 4, 100.0, position).unwrap();
    let z = graph.mul(y, y).unwrap();
    check("rope", &graph, &[z, y]);
}

#[test]
fn pick_log_prob() {
    let mut graph = Graph::new();
    let logits = leaf(&mut graph, "logits", 7, 5);
    let action = graph.indices("action", 7, 5);
    let (log_prob, entropy) = graph.pick_log_prob(logits, action, None).unwrap();
    check("pick_log_prob", &graph, &[log_prob, entropy]);
    check("pick_log_prob, entropy alone", &graph, &[entropy]);
}

#[test]
fn pick_log_prob_under_a_mask() {
    let mut graph = Graph::new();
    let logits = leaf(&mut graph, "logits", 7, 8);
    let action = graph.indices("action", 7, 8);
    let mask = graph.mask("open", 7, 8);
    let (log_prob, entropy) = graph.pick_log_prob(logits, action, Some(mask)).unwrap();
    check("masked pick_log_prob", &graph, &[log_prob, entropy]);
}
