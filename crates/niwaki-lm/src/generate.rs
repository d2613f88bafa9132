//! Text that a model writes, token by token, with the keys and values of earlier tokens kept.

use crate::{Decoder, Model, Result, Tree, Vocabulary};
use niwaki_nn::{Cpu, Graph, log_softmax};
use niwaki_stream::{Key, by_log_chance, likeliest};

/// How tokens are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Generation {
    /// Tokens to write at most.
    pub tokens: usize,
    /// What logits are divided by; 0 takes the likeliest token.
    pub temperature: f64,
    /// The seed of the draws.
    pub seed: u64,
}

/// Writes on from a prompt, on the CPU.
///
/// # Errors
/// If the prompt has no token, the text would be longer than the model's positions, or the engine refuses.
pub fn generate(model: &Model, prompt: &str, how: Generation) -> Result<String> {
    let mut tokens = model.text().encode(prompt)?;
    let (first, rows) = (tokens.len(), tokens.len().saturating_add(how.tokens));
    if first == 0 {
        return Err(crate::Error::Text("the prompt has no token".to_owned()));
    }
    let most = model.config().positions;
    if rows > most {
        let reason =
            format!("{first} tokens of the prompt and {} more; the model has {most} positions", how.tokens);
        return Err(crate::Error::Text(reason));
    }
    let vocabulary = Vocabulary::whole(model.config());
    let mut graph = Graph::new();
    let index = graph.indices("tokens", rows, vocabulary.entries());
    let decoder = Decoder::new(&mut graph, model.config(), &vocabulary, index, &Tree::chain(rows))?;
    let logits = decoder.logits(&mut graph)?;
    let mut engine = Cpu::boxed(&graph, &[logits], 1);
    engine.set_items(1)?;
    engine.set_parameters(0, &model.parameters(graph.layout(), &vocabulary)?)?;
    let mut stream = Key::new(how.seed, "generated text").open();
    let mut log_probs = vec![0.0; vocabulary.entries()];
    for row in 0..rows.saturating_sub(1) {
        let mut padded: Vec<i32> = tokens.iter().map(|&token| token as i32).collect();
        padded.resize(rows, -1);
        engine.load_indices(index, &padded)?;
        engine.forward_row(row)?;
        if row + 1 < first {
            continue;
        }
        let cooled: Vec<f32> = engine.output(0, 0)[row * log_probs.len()..][..log_probs.len()]
            .iter()
            .map(|&logit| if how.temperature > 0.0 { logit / how.temperature as f32 } else { logit })
            .collect();
        log_softmax(&cooled, None, &mut log_probs);
        let chosen = if how.temperature > 0.0 {
            by_log_chance(&log_probs, stream.uniform())
        } else {
            likeliest(&log_probs)
        };
        if model.config().ends.contains(&(chosen as u32)) {
            break;
        }
        tokens.push(chosen as u32);
    }
    model.text().decode(&tokens[first..])
}
