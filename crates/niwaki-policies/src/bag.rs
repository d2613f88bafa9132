//! A perceptron on the bag of earlier tokens: it is told how often each was chosen and which step it is, not which
//! came first, so what the first choice means for the last has to be learned.
//!
//! `hidden = tanh(counts · E + position)`, `logits = hidden · W + b + bias[position]`. The bias per position starts at
//! zero; a primed policy starts with one entry of it raised.

use crate::causal::{add_matrix, add_value_head};
use crate::token::{Extras, Prefix, TokenPolicy};
use niwaki_nn::{Activation, Graph, Init, Result, Slice};

/// The name of the bias per position and token, `[horizon, vocab]`.
const STEP_BIAS: &str = "steps.bias";

/// The sizes of a bag-of-prefix policy.
///
/// Paper: `app:sched-controls`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BagShape {
    /// Tokens to choose from.
    pub vocab: usize,
    /// Steps of a trajectory.
    pub horizon: usize,
    /// Width of the hidden layer.
    pub width: usize,
}

impl BagShape {
    /// The program.
    ///
    /// # Errors
    /// If the sizes do not fit together.
    pub fn policy(self, extras: Extras) -> Result<TokenPolicy> {
        let Self { vocab, horizon, width } = self;
        let mut graph = Graph::new();
        let counts = graph.scalars("counts", horizon, vocab);
        let actions = graph.indices("actions", horizon, vocab);
        let open = extras.masked.then(|| graph.mask("open", horizon, vocab));
        let positions: Vec<i32> = (0..horizon as i32).collect();
        let positions = graph.constant(&positions);

        let embedding = graph.param("tokens.weight", &[vocab, width], Init::Normal { deviation: 1.0 })?;
        let position = graph.param("positions.weight", &[horizon, width], Init::Normal { deviation: 0.5 })?;
        let bag = graph.linear(counts, embedding, None, Activation::None)?;
        let place = graph.embed(position, positions)?;
        let mixed = graph.add(bag, place)?;
        let hidden = graph.activate(mixed, Activation::Tanh);
        let head = add_matrix(&mut graph, "head.weight", width, vocab)?;
        let head_bias = graph.param("head.bias", &[vocab], Init::Linear { fan_in: width })?;
        let raw = graph.linear(hidden, head, Some(head_bias), Activation::None)?;
        let step_bias = graph.param(STEP_BIAS, &[horizon, vocab], Init::Zeros)?;
        let bias = graph.embed(step_bias, positions)?;
        let logits = graph.add(raw, bias)?;
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, open)?;
        let value = if extras.critic { Some(add_value_head(&mut graph, hidden, width)?) } else { None };
        let prefix = Prefix::Counts(counts);
        graph.show(logits);
        let prime = None;
        Ok(TokenPolicy {
            vocab,
            horizon,
            graph,
            prefix,
            actions,
            open,
            logits,
            log_prob,
            entropy,
            value,
            prime,
        })
    }
}

impl TokenPolicy {
    /// The slice of the bias per position and token, where the policy has one.
    fn step_bias(&self) -> Option<&Slice> {
        self.graph.layout().slices().iter().find(|slice| slice.name == STEP_BIAS)
    }

    /// The same policy, whose members start by choosing `token` first with probability `mass`; `None` where it has no
    /// bias to raise.
    ///
    /// Paper: `app:sched-controls` (priming toward a dead branch)
    #[must_use]
    pub fn primed(self, token: usize, mass: f64) -> Option<Self> {
        self.step_bias().is_some().then_some(Self { prime: Some((token, mass)), ..self })
    }

    /// Raises the first step's logit of `token` so that a policy that was indifferent there chooses it with
    /// probability `mass`.
    pub(crate) fn raise(&self, parameters: &mut [f32], token: usize, mass: f64) {
        if let Some(slice) = self.step_bias() {
            // mass = e^b / (e^b + vocab − 1)
            let bias = (mass * (self.vocab - 1) as f64 / (1.0 - mass)).ln();
            parameters[slice.range()][token] = bias as f32;
        }
    }
}
