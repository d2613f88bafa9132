//! The causal transformer over token sequences: the testbed's neural policy.
//!
//! Pre-norm blocks: `x += attention(norm(x)) · W_out`, `x += gelu(norm(x) · W_up + b) · W_down + b`; token embedding
//! with a row for the beginning, learned positions, a final norm and an untied head with bias. Attention's
//! projections have no bias, and queries, keys and values come from one product.
//! It must not know rewards or advantages.

use crate::token::{Extras, Prefix, TokenPolicy};
use niwaki_nn::{Activation, Attention, Columns, Graph, Init, Param, Result, Value, Visible};

/// The sizes of a causal transformer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CausalShape {
    /// Tokens to choose from.
    pub vocab: usize,
    /// Steps of a trajectory.
    pub horizon: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Heads of attention; divides the width.
    pub heads: usize,
    /// Blocks.
    pub blocks: usize,
    /// Width inside a block's perceptron.
    pub hidden: usize,
}

impl CausalShape {
    /// The paper's sizes for a vocabulary and a horizon; 793,476 parameters at 4 and 8.
    ///
    /// Paper: app:testbed-protocol
    #[must_use]
    pub const fn testbed(vocab: usize, horizon: usize) -> Self {
        Self { vocab, horizon, width: 128, heads: 4, blocks: 4, hidden: 512 }
    }

    /// The program of the causal transformer.
    ///
    /// # Errors
    /// If the sizes do not fit together.
    pub fn policy(self, extras: Extras) -> Result<TokenPolicy> {
        let Self { vocab, horizon, width, heads, blocks, hidden } = self;
        let mut graph = Graph::new();
        let tokens = graph.indices("tokens", horizon, vocab + 1);
        let actions = graph.indices("actions", horizon, vocab);
        let open = extras.masked.then(|| graph.mask("open", horizon, vocab));
        let positions: Vec<i32> = (0..horizon as i32).collect();
        let positions = graph.constant(&positions);

        let unit = Init::Normal { deviation: 1.0 };
        let token_table = graph.param("tokens.weight", &[vocab + 1, width], unit)?;
        let position_table = graph.param("positions.weight", &[horizon, width], unit)?;
        let token = graph.embed(token_table, tokens)?;
        let position = graph.embed(position_table, positions)?;
        let mut stream = graph.add(token, position)?;
        for block in 0..blocks {
            let shape = BlockShape { width, heads, hidden, visible: Visible::Causal };
            stream = add_block(&mut graph, &format!("blocks.{block}"), stream, shape)?;
        }
        let normed = add_norm(&mut graph, "norm", stream, width)?;
        let head = add_matrix(&mut graph, "head.weight", width, vocab)?;
        let head_bias = graph.param("head.bias", &[vocab], Init::Linear { fan_in: width })?;
        let logits = graph.linear(normed, head, Some(head_bias), Activation::None)?;
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, open)?;
        let value = if extras.critic { Some(add_value_head(&mut graph, normed, width)?) } else { None };
        let prefix = Prefix::Tokens(tokens);
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

/// One number per row from the last hidden layer, the critic's estimate.
pub(crate) fn add_value_head(graph: &mut Graph, hidden: Value, width: usize) -> Result<Value> {
    let head = add_matrix(graph, "value.weight", width, 1)?;
    let bias = graph.param("value.bias", &[1], Init::Zeros)?;
    graph.linear(hidden, head, Some(bias), Activation::None)
}

/// The sizes of a pre-norm block, and what its attention sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockShape {
    pub(crate) width: usize,
    pub(crate) heads: usize,
    pub(crate) hidden: usize,
    pub(crate) visible: Visible,
}

pub(crate) fn add_block(graph: &mut Graph, name: &str, stream: Value, shape: BlockShape) -> Result<Value> {
    let BlockShape { width, heads, hidden, visible } = shape;
    let head_width = width / heads.max(1);
    let normed = add_norm(graph, &format!("{name}.norm1"), stream, width)?;
    let weight = add_matrix(graph, &format!("{name}.attention.in.weight"), width, 3 * width)?;
    let mixed = graph.linear(normed, weight, None, Activation::None)?;
    let attended = graph.attention(Attention {
        query: Columns { value: mixed, start: 0 },
        key: Columns { value: mixed, start: width },
        value: Columns { value: mixed, start: 2 * width },
        heads,
        key_heads: heads,
        head_width,
        scale: 1.0 / (head_width as f64).sqrt(),
        visible,
    })?;
    let weight = add_matrix(graph, &format!("{name}.attention.out.weight"), width, width)?;
    let stream = graph.linear_onto(stream, attended, weight, None)?;

    let normed = add_norm(graph, &format!("{name}.norm2"), stream, width)?;
    let up = add_matrix(graph, &format!("{name}.up.weight"), width, hidden)?;
    let up_bias = graph.param(&format!("{name}.up.bias"), &[hidden], Init::Linear { fan_in: width })?;
    let raised = graph.linear(normed, up, Some(up_bias), Activation::Gelu)?;
    let down = add_matrix(graph, &format!("{name}.down.weight"), hidden, width)?;
    let down_bias = graph.param(&format!("{name}.down.bias"), &[width], Init::Linear { fan_in: hidden })?;
    graph.linear_onto(stream, raised, down, Some(down_bias))
}

pub(crate) fn add_norm(graph: &mut Graph, name: &str, input: Value, width: usize) -> Result<Value> {
    let gain = graph.param(&format!("{name}.gain"), &[width], Init::Ones)?;
    let bias = graph.param(&format!("{name}.bias"), &[width], Init::Zeros)?;
    graph.layer_norm(input, gain, bias)
}

pub(crate) fn add_matrix(graph: &mut Graph, name: &str, from: usize, to: usize) -> Result<Param> {
    graph.param(name, &[from, to], Init::Linear { fan_in: from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_testbed_has_the_papers_number_of_parameters() {
        // Embeddings 5·128 + 8·128 = 1,664; a block 4·128 (norms) + 4·128² + 2·128·512 + 512 + 128 = 197,760, four of
        // them 791,040; final norm 256; head 128·4 + 4 = 516: in all 793,476.
        let policy = CausalShape::testbed(4, 8).policy(Extras::default()).unwrap();
        assert_eq!(policy.graph.layout().parameters(), 793_476);
    }
}
