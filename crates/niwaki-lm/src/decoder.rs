//! The program of a decoder over a tree of tokens.
//!
//! A row of the program is a token; its parent is the token before it. A chain is plain text; rows that branch off one
//! prompt share its keys and values and, in the backward pass, its gradient.

use crate::config::{EMBEDDING, GATE_AND_UP, HEAD, NORM, QUERY_KEY_VALUE};
use crate::{Config, Error, Result};
use niwaki_nn::{Activation, Columns, Graph, Index, Init, Param, TreeAttention, Value};

/// Which tokens a program has rows for in its tables.
///
/// Tokens that never occur receive no gradient, so leaving their rows out changes nothing but the memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vocabulary {
    /// In order; empty for all tokens.
    kept: Vec<u32>,
    entries: usize,
}

impl Vocabulary {
    /// All tokens of a decoder.
    #[must_use]
    pub fn whole(config: &Config) -> Self {
        Self { kept: Vec::new(), entries: config.vocab }
    }

    /// The tokens that occur in some text.
    #[must_use]
    pub fn of(tokens: impl IntoIterator<Item = u32>) -> Self {
        let mut kept: Vec<u32> = tokens.into_iter().collect();
        kept.sort_unstable();
        kept.dedup();
        Self { entries: kept.len(), kept }
    }

    /// Rows of the tables.
    #[must_use]
    pub fn entries(&self) -> usize {
        self.entries
    }

    /// The row of a token.
    ///
    /// # Errors
    /// If the program has none.
    pub fn row(&self, token: u32) -> Result<i32> {
        let found = if self.kept.is_empty() {
            Some(token as usize).filter(|&row| row < self.entries)
        } else {
            self.kept.binary_search(&token).ok()
        };
        found.map(|row| row as i32).ok_or(Error::Token { token, entries: self.entries })
    }

    /// The token of each row.
    pub fn tokens(&self) -> impl Iterator<Item = u32> + '_ {
        let whole = if self.kept.is_empty() { 0..self.entries as u32 } else { 0..0 };
        self.kept.iter().copied().chain(whole)
    }
}

/// The rows of a program: each one's token comes as input or is fixed, its place in the tree is fixed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// The row before each row; −1 for a root.
    pub parents: Vec<i32>,
    /// The position of each row: the number of rows before it on its way from the root.
    pub positions: Vec<i32>,
}

impl Tree {
    /// Text of so many tokens.
    #[must_use]
    pub fn chain(rows: usize) -> Self {
        let mut tree = Self::default();
        tree.grow(None, rows);
        tree
    }

    /// Adds `count` rows, one after the other, below a row or as a root; returns the last of them, or the row itself.
    pub fn grow(&mut self, below: Option<usize>, count: usize) -> Option<usize> {
        let mut last = below;
        for _ in 0..count {
            self.positions.push(last.map_or(0, |row| self.positions[row] + 1));
            self.parents.push(last.map_or(-1, |row| row as i32));
            last = Some(self.parents.len() - 1);
        }
        last
    }

    /// How many rows there are.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.parents.len()
    }
}

/// What a program is told of its rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    /// Rows of the tables.
    pub tokens: Index,
    /// The row before each row; a negative one for a root.
    pub parents: Index,
    /// The number of rows before each on its way from the root.
    pub positions: Index,
}

/// A decoder's blocks in a program, with the tables that begin and end it.
#[derive(Clone, Copy, Debug)]
pub struct Decoder {
    /// `[rows, width]`: what the last block leaves, before the last norm.
    pub stream: Value,
    table: Param,
    head: Param,
    norm: Param,
    epsilon: f64,
}

impl Decoder {
    /// Writes a decoder's blocks over the rows of a tree; `tokens` are rows of the tables, one per row of the tree.
    ///
    /// Parameters carry the names of the checkpoint's tensors. Weights are `[in, out]`, the transpose of the checkpoint's;
    /// tensors that multiply the same rows stand side by side in one parameter (queries, keys and values; gate and up), so that
    /// one product does for all.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn new(
        graph: &mut Graph,
        config: &Config,
        vocabulary: &Vocabulary,
        tokens: Index,
        tree: &Tree,
    ) -> Result<Self> {
        let (parents, positions) = (graph.constant(&tree.parents), graph.constant(&tree.positions));
        Self::over(graph, config, vocabulary, Rows { tokens, parents, positions })
    }

    /// The same over rows whose place in the tree is told when the program runs.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn over(graph: &mut Graph, config: &Config, vocabulary: &Vocabulary, rows: Rows) -> Result<Self> {
        let gain = |graph: &mut Graph, name: &str| graph.param(name, &[config.width], Init::Ones);
        let start = Init::Normal { deviation: 0.02 };
        let table = graph.param(EMBEDDING, &[vocabulary.entries(), config.width], start)?;
        let mut stream = graph.embed(table, rows.tokens)?;
        for layer in 0..config.layers {
            let of = |name: &str| Config::of_layer(layer, name);
            let first = gain(graph, &of("input_layernorm.weight"))?;
            let normed = graph.rms_norm(stream, first, config.epsilon)?;
            let attended = attention(graph, config, layer, normed, rows)?;
            let (queries, hidden) = (config.heads * config.head_width, config.hidden);
            let out = graph.param(&of("self_attn.o_proj.weight"), &[queries, config.width], start)?;
            let bias = match config.out_bias {
                true => Some(graph.param(&of("self_attn.o_proj.bias"), &[config.width], Init::Zeros)?),
                false => None,
            };
            stream = graph.linear_onto(stream, attended, out, bias)?;
            let second = gain(graph, &of("post_attention_layernorm.weight"))?;
            let normed = graph.rms_norm(stream, second, config.epsilon)?;
            let wide = graph.param(&of(GATE_AND_UP), &[config.width, 2 * hidden], start)?;
            let both = graph.linear(normed, wide, None, Activation::None)?;
            let gated = graph.swiglu(both)?;
            let down = graph.param(&of("mlp.down_proj.weight"), &[hidden, config.width], start)?;
            stream = graph.linear_onto(stream, gated, down, None)?;
        }
        let norm = gain(graph, NORM)?;
        let head = if config.tied {
            table
        } else {
            graph.param(HEAD, &[vocabulary.entries(), config.width], start)?
        };
        Ok(Self { stream, table, head, norm, epsilon: config.epsilon })
    }

    /// The table of the embedding.
    #[must_use]
    pub fn table(&self) -> Param {
        self.table
    }

    /// Logits of all the program's tokens at every row, `[rows, entries]`.
    ///
    /// # Errors
    /// If sizes do not fit together.
    pub fn logits(&self, graph: &mut Graph) -> Result<Value> {
        let normed = graph.rms_norm(self.stream, self.norm, self.epsilon)?;
        Ok(graph.linear_tied(normed, self.head)?)
    }

    /// Logits of a few candidates at some rows, `[rows, candidates]`; both are rows of the tables and of the tree. No other
    /// token's logit is computed.
    ///
    /// # Errors
    /// If a row or a candidate does not exist.
    pub fn candidates(&self, graph: &mut Graph, rows: &[i32], candidates: &[i32]) -> Result<Value> {
        let rows = graph.constant(rows);
        self.candidates_at(graph, rows, candidates, 1.0)
    }

    /// The same at rows that are told when the program runs, times a factor.
    ///
    /// # Errors
    /// If a candidate does not exist.
    pub fn candidates_at(
        &self,
        graph: &mut Graph,
        rows: Index,
        candidates: &[i32],
        factor: f64,
    ) -> Result<Value> {
        let candidates = graph.constant(candidates);
        let asked = graph.gather(self.stream, rows)?;
        let normed = graph.rms_norm(asked, self.norm, self.epsilon)?;
        let known = graph.embed(self.head, candidates)?;
        Ok(graph.score(normed, known, factor)?)
    }
}

/// One block's attention up to its last projection.
fn attention(graph: &mut Graph, config: &Config, layer: usize, normed: Value, rows: Rows) -> Result<Value> {
    let Config { heads, key_heads, head_width, rotary, .. } = *config;
    let (queries, keys) = (heads * head_width, key_heads * head_width);
    let of = |what: &str| Config::of_layer(layer, &format!("{QUERY_KEY_VALUE}.{what}"));
    let out = queries + 2 * keys;
    let weight = graph.param(&of("weight"), &[config.width, out], Init::Normal { deviation: 0.02 })?;
    let bias = match config.qkv_bias {
        true => Some(graph.param(&of("bias"), &[out], Init::Zeros)?),
        false => None,
    };
    let projected = graph.linear(normed, weight, bias, Activation::None)?;
    // The heads of queries and keys rotate alike.
    let rotated = graph.rope(projected.into(), heads + key_heads, head_width, rotary, rows.positions)?;
    let scale = 1.0 / (head_width as f64).sqrt();
    let query = Columns { value: rotated, start: 0 };
    let key = Columns { value: rotated, start: queries };
    let value = Columns { value: projected, start: queries + keys };
    Ok(graph.tree_attention(TreeAttention {
        query,
        key,
        value,
        heads,
        key_heads,
        head_width,
        scale,
        parent: rows.parents,
    })?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_branch_off_a_prompt() {
        let mut tree = Tree::default();
        let prompt = tree.grow(None, 3);
        tree.grow(prompt, 2);
        assert_eq!(tree.grow(prompt, 1), Some(5));
        assert_eq!(tree.parents, [-1, 0, 1, 2, 3, 2]);
        assert_eq!(tree.positions, [0, 1, 2, 3, 4, 3]);
        assert_eq!(Tree::chain(3), Tree { parents: vec![-1, 0, 1], positions: vec![0, 1, 2] });
    }

    #[test]
    fn a_cut_vocabulary_numbers_its_tokens_in_order() {
        let cut = Vocabulary::of([9, 4, 9, 7]);
        assert_eq!((cut.entries(), cut.row(7).unwrap(), cut.tokens().collect()), (3, 1, vec![4, 7, 9]));
        assert_eq!(cut.row(5).unwrap_err().to_string(), "token 5 is not one of the program's 3");
    }
}
