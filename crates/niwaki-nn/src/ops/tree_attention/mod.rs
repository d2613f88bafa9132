//! Softmax attention along a tree of rows.

#[cfg(feature = "cuda")]
mod cases;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
#[cfg(test)]
mod law;
#[cfg(feature = "cuda")]
mod packed;

#[cfg(feature = "cuda")]
pub(crate) use packed::Pulled;

use super::attention::shared_evenly;
use super::{Operation, Reads, Rows};
use crate::Result;
use crate::graph::{Columns, Graph, Index, Value, expect};

/// The operands of [`AttendTree`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeAttention {
    /// Queries: `heads · head_width` columns.
    pub query: Columns,
    /// Keys: `key_heads · head_width` columns.
    pub key: Columns,
    /// Values: `key_heads · head_width` columns.
    pub value: Columns,
    /// Heads of the queries.
    pub heads: usize,
    /// Heads of keys and values; divides `heads`. Query head `h` reads key head `h / (heads / key_heads)`.
    pub key_heads: usize,
    /// Columns per head.
    pub head_width: usize,
    /// Factor on the scores, as a rule `1/√head_width`.
    pub scale: f64,
    /// The row before each row. One that is negative, or no earlier row, is none: the row is a root.
    pub parent: Index,
}

/// Softmax attention in which a row sees itself and its ancestors.
///
/// Rows of an item form trees: `parent[r]` is the row before row `r`. A chain of parents is causal attention; many rows
/// that branch off one prompt share its keys and values, which are then computed once, with their gradient; all
/// continuations of a prefix branch off it. For head `h` with key head `k`, over the rows `s` on the way from `r` to its
/// root: `score[s] = scale · query_h[r] · key_k[s]`, `lse_r = log Σ_s e^{score[s]}`, `p[s] = e^{score[s] − lse_r}`,
/// `output_h[r] = Σ_s p[s] value_k[s]`. Backward: `dp[s] = d output_h[r] · value_k[s]`, `dscore = p (dp − Σ_s p dp)`,
/// `d query_h[r] += scale Σ_s dscore[s] key_k[s]`, and over all rows `r` below `s`: `d key_k[s] += scale Σ dscore query_h[r]`,
/// `d value_k[s] += Σ p d output_h[r]`, where `Σ_s p dp = d output · output`. Saved: `lse`, `[heads, rows]`; the weights are computed again, so that memory
/// grows with the rows and not with their square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AttendTree {
    /// The operands.
    pub attention: TreeAttention,
    /// The result, `[rows, heads · head_width]`.
    pub output: Value,
}

impl Graph {
    /// Adds [`AttendTree`].
    ///
    /// # Errors
    /// If columns, heads, rows or parents do not fit.
    pub fn tree_attention(&mut self, attention: TreeAttention) -> Result<Value> {
        let op = "tree_attention";
        let TreeAttention { query, key, value, heads, key_heads, head_width, parent, .. } = attention;
        shared_evenly(op, heads, key_heads)?;
        let rows = self.shape(query.value).rows;
        self.fits(op, "query columns", query, heads * head_width)?;
        self.fits(op, "key columns", key, key_heads * head_width)?;
        self.fits(op, "value columns", value, key_heads * head_width)?;
        expect(op, "key rows", rows, self.shape(key.value).rows)?;
        expect(op, "value rows", rows, self.shape(value.value).rows)?;
        expect(op, "parents", rows, self.index_rows(parent))?;
        let output = self.value(rows, heads * head_width);
        self.push(AttendTree { attention, output });
        Ok(output)
    }
}

impl TreeAttention {
    /// Queries, keys and values.
    fn columns(&self) -> [Columns; 3] {
        [self.query, self.key, self.value]
    }
}

impl Operation for AttendTree {
    fn name(&self) -> &'static str {
        "tree_attention"
    }

    fn reads(&self) -> Reads {
        let values = self.attention.columns().map(|columns| columns.value);
        Reads { index: Some(self.attention.parent), ..Reads::values(values) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        self.attention.columns().map(|columns| columns.value).into_iter().chain([self.output]).collect()
    }

    fn saved(&self, graph: &Graph) -> usize {
        self.attention.heads * graph.shape(self.output).rows
    }

    fn rows(&self) -> Rows {
        Rows::UpTo(vec![self.attention.key.value, self.attention.value.value])
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}
