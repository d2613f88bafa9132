//! The tiny models of `tests/fixtures`, and runs of programs made of them.

use niwaki_lm::{Decoder, Model, Tree, Vocabulary};
use niwaki_nn::{Cpu, Engine, Graph, Real, Span, Value};
use safetensors::SafeTensors;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The fixtures: each architecture once.
pub(crate) const MODELS: [&str; 2] = ["tiny-llama", "tiny-qwen2"];

pub(crate) fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

pub(crate) fn model(name: &str) -> Model {
    Model::open(&folder(name)).unwrap()
}

/// The tensors of a file, all `f32`.
pub(crate) fn tensors(path: &std::path::Path) -> BTreeMap<String, (Vec<usize>, Vec<f32>)> {
    let bytes = std::fs::read(path).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let one = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
        let scalars =
            view.data().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        (name, (view.shape().to_vec(), scalars))
    };
    read.tensors().into_iter().map(one).collect()
}

/// What `make.py` weighs the logits with.
pub(crate) fn weight(row: usize, column: usize) -> f64 {
    (1.0 + 0.37 * row as f64 + 0.11 * column as f64).sin()
}

/// A program with the logits of some text, `[tokens, vocab]`.
pub(crate) fn text_program(model: &Model, tokens: &[i32]) -> (Graph, Value) {
    let mut graph = Graph::new();
    let index = graph.constant(tokens);
    let vocabulary = Vocabulary::whole(model.config());
    let tree = Tree::chain(tokens.len());
    let decoder = Decoder::new(&mut graph, model.config(), &vocabulary, index, &tree).unwrap();
    let logits = decoder.logits(&mut graph).unwrap();
    (graph, logits)
}

/// Runs a program of one item; returns its output and the gradient of the output weighed by `weight`.
pub(crate) fn run<F: Real>(
    model: &Model,
    graph: &Graph,
    output: Value,
    vocabulary: &Vocabulary,
    weight: impl Fn(usize, usize) -> f64 + Sync,
) -> (Vec<F>, Vec<F>) {
    let mut engine = Cpu::<F>::new(graph, &[output], 1);
    engine.set_items(1).unwrap();
    let flat = model.parameters(graph.layout(), vocabulary).unwrap();
    let flat: Vec<F> = flat.iter().map(|&x| F::from_f64(f64::from(x))).collect();
    engine.set_parameters(0, &flat).unwrap();
    let width = graph.shape(output).width;
    engine
        .pull_back(&|_: Span, _: &[&[F]], wanted: &mut [&mut [F]]| {
            for (place, wanted) in wanted[0].iter_mut().enumerate() {
                *wanted = F::from_f64(weight(place / width, place % width));
            }
        })
        .unwrap();
    (engine.output(0, 0).to_vec(), engine.gradient(0).unwrap())
}

/// The largest difference as a share of the largest entry.
pub(crate) fn distance<F: Real>(a: &[F], b: &[F]) -> f64 {
    assert_eq!(a.len(), b.len());
    let largest = b.iter().fold(0.0_f64, |most, b| most.max(b.to_f64().abs()));
    a.iter().zip(b).fold(0.0_f64, |most, (a, b)| most.max((a.to_f64() - b.to_f64()).abs())) / largest
}
