//! A trained policy over token sequences, taken out of its run's folder to score sequences.

use super::saved::{Saved, Tensor};
use crate::Error;
use crate::player::table_layout;
use crate::policy::{PolicyKind, token_policy};
use crate::run::SPEC;
use crate::spec::Spec;
use niwaki_exact::Process;
use niwaki_nn::{Cpu, Layout, log_softmax};
use niwaki_policies::TokenPolicy;
use niwaki_tasks::Sequence;
use std::sync::Arc;

/// A policy over token sequences as its run's last checkpoint has it.
#[derive(Clone, Debug)]
pub struct TrainedSequences {
    spec: Spec,
    task: Arc<dyn Sequence>,
    layout: Layout,
    weights: Weights,
    iteration: u64,
}

/// What was trained.
#[derive(Clone, Debug)]
enum Weights {
    Network(Box<TokenPolicy>, Vec<f32>),
    /// Logits `[prefixes, vocab]`, and perhaps a critic's values.
    Table(Process, Vec<f64>),
}

impl TrainedSequences {
    pub(super) fn read(saved: Saved) -> Result<Self, Error> {
        if saved.spec.policy.kind == PolicyKind::Decoder {
            let reason = "a pretrained decoder; exported as a Hugging Face folder it goes on elsewhere";
            return Err(saved.refuse(SPEC, reason.to_owned()));
        }
        let recipe = saved.spec.check()?;
        let Some(task) = recipe.tokens() else {
            let reason = format!("task '{}' has no token sequences", saved.spec.task.kind);
            return Err(saved.refuse(SPEC, reason));
        };
        let (layout, weights, iteration) = match token_policy(&recipe, task.as_ref())? {
            Some(policy) => {
                let layout = policy.graph.layout().clone();
                let (parameters, iteration) = saved.parameters(&layout)?;
                (layout, Weights::Network(Box::new(policy), parameters), iteration)
            }
            None => {
                let process =
                    Process::new(task.vocab(), task.horizon()).map_err(niwaki_tasks::Error::from)?;
                let layout = table_layout(process, recipe.critic())?;
                let (parameters, iteration) = saved.parameters(&layout)?;
                (layout, Weights::Table(process, parameters), iteration)
            }
        };
        Ok(Self { spec: saved.spec, task, layout, weights, iteration })
    }

    /// Which policy it is.
    #[must_use]
    pub fn kind(&self) -> PolicyKind {
        self.spec.policy.kind
    }

    /// Tokens to choose from, the most steps of a sequence, and heads of attention.
    #[must_use]
    pub fn sizes(&self) -> (usize, usize, usize) {
        (self.task.vocab(), self.task.horizon(), self.spec.policy.heads)
    }

    /// Iterations of training behind it.
    #[must_use]
    pub const fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The parameters by name.
    #[must_use]
    pub fn tensors(&self) -> Vec<Tensor> {
        match &self.weights {
            Weights::Network(_, parameters) => Tensor::all(&self.layout, parameters),
            Weights::Table(_, parameters) => Tensor::all(&self.layout, parameters),
        }
    }

    /// Which tokens were open at every step of some sequences, `[lane, step, vocab]`; all of them after an end.
    ///
    /// Shapes: `tokens [lane, step]`, negative after the token that ends a sequence
    #[must_use]
    pub fn open_tokens(&self, tokens: &[i32]) -> Vec<u8> {
        let (vocab, horizon) = (self.task.vocab(), self.task.horizon());
        let mut open = vec![1; tokens.len() * vocab];
        if !self.task.masked() {
            return open;
        }
        let mut allowed = vec![true; vocab];
        for (tokens, open) in tokens.chunks(horizon).zip(open.chunks_mut(horizon * vocab)) {
            let mut prefix = Vec::with_capacity(horizon);
            for (&token, open) in tokens.iter().zip(open.chunks_mut(vocab)) {
                self.task.open(&prefix, &mut allowed);
                open.iter_mut().zip(&allowed).for_each(|(to, &from)| *to = u8::from(from));
                let Ok(token) = usize::try_from(token) else { break };
                prefix.push(token);
            }
        }
        open
    }

    /// Log-probabilities of the tokens of some sequences, `[lane, step]`; 0 where a token is negative.
    ///
    /// Shapes: `tokens [lane, step]`, negative after the token that ends a sequence
    ///
    /// # Errors
    /// If there are not whole sequences, or one holds an unknown token or a closed one.
    pub fn score(&self, tokens: &[i32]) -> Result<Vec<f64>, Error> {
        let (vocab, horizon) = (self.task.vocab(), self.task.horizon());
        let open = self.open_tokens(tokens);
        let fault = tokens.iter().zip(open.chunks(vocab)).position(|(&token, open)| {
            usize::try_from(token).is_ok_and(|token| open.get(token).is_none_or(|&open| open == 0))
        });
        if tokens.is_empty() || !tokens.len().is_multiple_of(horizon) || fault.is_some() {
            let came = match fault {
                Some(place) => {
                    format!("token {} at step {} of a sequence", tokens[place], place % horizon)
                }
                None => format!("{} tokens", tokens.len()),
            };
            let expected = format!("sequences of {horizon} open tokens below {vocab}");
            return Err(Error::Unscored { expected, came });
        }
        match &self.weights {
            Weights::Network(policy, parameters) => {
                let mut engine = Cpu::boxed(&policy.graph, &policy.outputs(), 1);
                engine.set_parameters(0, parameters)?;
                engine.set_items(tokens.len() / horizon)?;
                let read = if policy.open.is_some() { &open[..] } else { &[] };
                policy.load_actions(engine.as_mut(), tokens, read)?;
                engine.forward()?;
                Ok(engine.output(0, 0).iter().map(|&value| f64::from(value)).collect())
            }
            Weights::Table(process, parameters) => {
                Ok(scored(*process, &self.layout, parameters, tokens, &open))
            }
        }
    }
}

/// Log-softmax of the rows that sequences visit.
fn scored(process: Process, layout: &Layout, parameters: &[f64], tokens: &[i32], open: &[u8]) -> Vec<f64> {
    let (vocab, horizon) = (process.vocab(), process.horizon());
    let logits = &parameters[layout.slices()[0].range()];
    let mut log_probs = vec![0.0; vocab];
    let mut found = Vec::with_capacity(tokens.len());
    let mut row = 0;
    for (place, (&token, open)) in tokens.iter().zip(open.chunks(vocab)).enumerate() {
        row = if place.is_multiple_of(horizon) { 0 } else { row };
        let Ok(token) = usize::try_from(token) else {
            found.push(0.0);
            continue;
        };
        log_softmax(&logits[row * vocab..(row + 1) * vocab], Some(open), &mut log_probs);
        found.push(log_probs[token]);
        row = vocab * row + 1 + token;
    }
    found
}
