//! The causal transformer over token sequences: the testbed's neural policy.
//!
//! Pre-norm blocks: `x += attention(norm(x)) · W_out`, `x += gelu(norm(x) · W_up + b) · W_down + b`; token embedding
//! with a row for the beginning, learned positions, a final norm and an untied head with bias. Attention's
//! projections have no bias, and queries, keys and values come from one product.
//! An item is one lane, its rows are the steps. It must not know rewards or advantages.

use niwaki_nn::engine::check_members;
use niwaki_nn::{
    Activation, Attention, Columns, Engine, Graph, Index, Init, Param, Result, Value, Visible, log_softmax,
};
use niwaki_stream::Stream;

/// The sizes of a [`Causal`] policy.
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
}

/// The program of the causal transformer and its handles.
#[derive(Clone, Debug)]
pub struct Causal {
    /// The sizes.
    pub shape: CausalShape,
    /// The program.
    pub graph: Graph,
    /// Input: `[horizon]` tokens; entry 0 is [`Causal::beginning`], entry `t` the token chosen at `t − 1`.
    pub tokens: Index,
    /// Input: `[horizon]` tokens chosen; negative where the trajectory has ended.
    pub actions: Index,
    /// `[horizon, vocab]`.
    pub logits: Value,
    /// `[horizon, 1]`: log-probabilities of the chosen tokens.
    pub log_prob: Value,
    /// `[horizon, 1]`.
    pub entropy: Value,
}

impl Causal {
    /// Writes the program.
    ///
    /// # Errors
    /// If the sizes do not fit together.
    pub fn new(shape: CausalShape) -> Result<Self> {
        let CausalShape { vocab, horizon, width, heads, blocks, .. } = shape;
        let mut graph = Graph::new();
        let tokens = graph.indices("tokens", horizon, vocab + 1);
        let actions = graph.indices("actions", horizon, vocab);
        let positions: Vec<i32> = (0..horizon as i32).collect();
        let positions = graph.constant(&positions);

        let unit = Init::Normal { deviation: 1.0 };
        let token_table = graph.param("tokens.weight", &[vocab + 1, width], unit)?;
        let position_table = graph.param("positions.weight", &[horizon, width], unit)?;
        let token = graph.embed(token_table, tokens)?;
        let position = graph.embed(position_table, positions)?;
        let mut stream = graph.add(token, position)?;
        for block in 0..blocks {
            stream = add_block(&mut graph, &format!("blocks.{block}"), stream, shape, width / heads.max(1))?;
        }
        let normed = add_norm(&mut graph, "norm", stream, width)?;
        let head = add_matrix(&mut graph, "head.weight", width, vocab)?;
        let head_bias = graph.param("head.bias", &[vocab], Init::Linear { fan_in: width })?;
        let logits = graph.linear(normed, head, Some(head_bias), Activation::None)?;
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, None)?;
        Ok(Self { shape, graph, tokens, actions, logits, log_prob, entropy })
    }

    /// The token that stands before the first choice.
    #[must_use]
    pub fn beginning(&self) -> i32 {
        self.shape.vocab as i32
    }

    /// The outputs that an engine for this policy is made with: log-probabilities, entropies, logits. Sampling reads
    /// the logits; a surrogate leaves their cotangent zero.
    #[must_use]
    pub fn outputs(&self) -> [Value; 3] {
        [self.log_prob, self.entropy, self.logits]
    }

    /// Loads trajectories to be scored: `actions` is `[member, lane, step]`, negative where a trajectory has ended.
    ///
    /// # Errors
    /// If the length is wrong or an action is no token.
    pub fn load<E: Engine>(&self, engine: &mut E, actions: &[i32]) -> Result<()> {
        let before = |place: usize| match place % self.shape.horizon {
            0 => self.beginning(),
            _ => actions[place - 1],
        };
        let tokens: Vec<i32> = (0..actions.len()).map(before).collect();
        engine.load_indices(self.tokens, &tokens)?;
        engine.load_indices(self.actions, actions)
    }

    /// Samples one trajectory for each lane of each member, token by token with cached keys and values.
    ///
    /// `streams` is `[member, lane]`; each step draws one uniform from its lane's stream. The engine was made with
    /// [`Causal::outputs`]. On the CPU the log-probabilities have the bits that scoring the trajectories gives.
    ///
    /// # Errors
    /// If the streams are not one per lane of each member, or the device fails.
    pub fn sample<E: Engine<Scalar = f32>>(&self, engine: &mut E, streams: &mut [Stream]) -> Result<Sampled> {
        let CausalShape { vocab, horizon, .. } = self.shape;
        let (members, lanes) = (engine.members(), engine.items());
        check_members("streams", members * lanes, streams.len())?;
        let count = members * lanes * horizon;
        let mut sampled = Sampled { actions: vec![-1; count], log_probs: vec![0.0; count] };
        let mut tokens = vec![-1; count];
        tokens.iter_mut().step_by(horizon).for_each(|token| *token = self.beginning());
        engine.load_indices(self.actions, &sampled.actions)?;
        let mut log_probs = vec![0.0; vocab];
        for step in 0..horizon {
            engine.load_indices(self.tokens, &tokens)?;
            engine.forward_row(step)?;
            for (lane, stream) in streams.iter_mut().enumerate() {
                let logits =
                    &engine.output(lane / lanes, 2)[(lane % lanes * horizon + step) * vocab..][..vocab];
                log_softmax(logits, None, &mut log_probs);
                let action = choose(&log_probs, stream.uniform());
                let place = lane * horizon + step;
                sampled.actions[place] = action as i32;
                sampled.log_probs[place] = log_probs[action];
                if step + 1 < horizon {
                    tokens[place + 1] = action as i32;
                }
            }
        }
        Ok(sampled)
    }
}

/// Trajectories that a policy has drawn, `[member, lane, step]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampled {
    /// The tokens chosen.
    pub actions: Vec<i32>,
    /// Their log-probabilities.
    pub log_probs: Vec<f32>,
}

/// The first choice at which the running sum of probabilities exceeds `uniform`; the likeliest if rounding leaves none.
fn choose(log_probs: &[f32], uniform: f64) -> usize {
    let mut total = 0.0;
    let mut likeliest = 0;
    for (choice, &log_prob) in log_probs.iter().enumerate() {
        total += libm::exp(f64::from(log_prob));
        if uniform < total {
            return choice;
        }
        if log_prob > log_probs[likeliest] {
            likeliest = choice;
        }
    }
    likeliest
}

fn add_block(
    graph: &mut Graph,
    name: &str,
    stream: Value,
    shape: CausalShape,
    head_width: usize,
) -> Result<Value> {
    let CausalShape { width, heads, hidden, .. } = shape;
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
        visible: Visible::Causal,
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

fn add_norm(graph: &mut Graph, name: &str, input: Value, width: usize) -> Result<Value> {
    let gain = graph.param(&format!("{name}.gain"), &[width], Init::Ones)?;
    let bias = graph.param(&format!("{name}.bias"), &[width], Init::Zeros)?;
    graph.layer_norm(input, gain, bias)
}

fn add_matrix(graph: &mut Graph, name: &str, from: usize, to: usize) -> Result<Param> {
    graph.param(name, &[from, to], Init::Linear { fan_in: from })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_testbed_has_the_papers_number_of_parameters() {
        // Embeddings 5·128 + 8·128 = 1,664; a block 4·128 (norms) + 4·128² + 2·128·512 + 512 + 128 = 197,760, four of
        // them 791,040; final norm 256; head 128·4 + 4 = 516: in all 793,476.
        let policy = Causal::new(CausalShape::testbed(4, 8)).unwrap();
        assert_eq!(policy.graph.layout().parameters(), 793_476);
    }
}
