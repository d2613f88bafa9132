//! Logits and gradients against `transformers` and PyTorch, as `tests/fixtures/make.py` wrote them down.

use crate::support::{MODELS, distance, folder, model, run, tensors, text_program, weight};
use niwaki_lm::{Generation, Vocabulary, generate};
use niwaki_nn::Cpu;
use std::process::Command;

#[test]
fn logits_and_gradients_are_those_of_pytorch() {
    for name in MODELS {
        let (model, expected) = (model(name), tensors(&folder(name).join("expected.safetensors")));
        let tokens: Vec<i32> = expected["tokens"].1.iter().map(|&token| token as i32).collect();
        let (graph, logits) = text_program(&model, &tokens);
        let vocabulary = Vocabulary::whole(model.config());
        let (outputs, gradient) = run::<f32>(&model, &graph, logits, &vocabulary, weight);
        let error = distance(&outputs, &expected["logits"].1);
        assert!(error < 1e-5, "{name}: logits differ by {error:e}");
        for tensor in model.config().tensors() {
            let (shape, theirs) = &expected[&format!("gradient.{}", tensor.name)];
            assert_eq!(shape, &tensor.shape, "{}", tensor.name);
            let own = tensor.taken(graph.layout(), &gradient).unwrap();
            let error = distance(&own, theirs);
            assert!(error < 1e-5, "{name}: the gradient of {} differs by {error:e}", tensor.name);
        }
    }
}

#[test]
fn written_text_is_the_likeliest_of_all_rows_at_once() {
    let model = model("tiny-qwen2");
    let prompt = "{\"status\":\"";
    let how = Generation { tokens: 6, temperature: 0.0, seed: 1 };
    let written = generate(&model, prompt, how).unwrap();
    // The slow twin: all rows anew for every token.
    let mut tokens: Vec<u32> = model.text().encode(prompt).unwrap();
    let first = tokens.len();
    for _ in 0..6 {
        let chain: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
        let (graph, logits) = text_program(&model, &chain);
        let mut engine = Cpu::boxed(&graph, &[logits], 1);
        engine.set_items(1).unwrap();
        let vocabulary = Vocabulary::whole(model.config());
        engine.set_parameters(0, &model.parameters(graph.layout(), &vocabulary).unwrap()).unwrap();
        engine.forward().unwrap();
        let last = &engine.output(0, 0)[(chain.len() - 1) * model.config().vocab..];
        let best = (0..last.len()).fold(0, |best, next| if last[next] > last[best] { next } else { best });
        tokens.push(best as u32);
    }
    assert_eq!(written, model.text().decode(&tokens[first..]).unwrap());
    let drawn = Generation { temperature: 1.0, ..how };
    assert_eq!(generate(&model, prompt, drawn).unwrap(), generate(&model, prompt, drawn).unwrap());
}

/// A saved folder, loaded by `transformers`, has the logits that it had here.
#[test]
#[ignore = "needs Python with torch and transformers: NIWAKI_PYTHON=… cargo test -p niwaki-lm -- --ignored transformers"]
fn transformers_reads_what_is_saved() {
    let python = std::env::var("NIWAKI_PYTHON").expect("NIWAKI_PYTHON names a Python");
    for name in MODELS {
        let model = model(name);
        let path = folder(name).join("expected.safetensors");
        let expected = tensors(&path);
        let tokens: Vec<i32> = expected["tokens"].1.iter().map(|&token| token as i32).collect();
        let (graph, logits) = text_program(&model, &tokens);
        let vocabulary = Vocabulary::whole(model.config());
        // Other weights than those it came with.
        let mut flat = model.parameters(graph.layout(), &vocabulary).unwrap();
        flat.iter_mut().enumerate().for_each(|(at, x)| *x *= 1.0 + 0.1 * (at as f32).sin());
        let mut engine = Cpu::boxed(&graph, &[logits], 1);
        engine.set_items(1).unwrap();
        engine.set_parameters(0, &flat).unwrap();
        engine.forward().unwrap();
        let saved = tempfile::tempdir().unwrap();
        model.save(saved.path(), graph.layout(), &vocabulary, &flat).unwrap();
        std::fs::copy(&path, saved.path().join("expected.safetensors")).unwrap();
        let output =
            Command::new(&python).arg(folder("make.py")).arg("check").arg(saved.path()).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let theirs: Vec<f32> = serde_json::from_str(printed.trim())
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let error = distance(engine.output(0, 0), &theirs);
        assert!(error < 1e-5, "{name}: logits differ by {error:e}");
    }
}
