//! Softmax attention.

mod cpu;
#[cfg(feature = "cuda")]
pub(crate) mod cuda;
mod kernel;
#[cfg(test)]
mod law;

use super::{Operation, Reads, Rows};
use crate::graph::{Columns, Graph, Mask, Shape, Value, expect};
use crate::{Error, Result};

/// Which keys a query may see.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Visible {
    /// All of them.
    All,
    /// Query row `r` sees key rows `0..=r`. Rows of queries and keys are equal in number.
    Causal,
    /// Query row `r` sees key row `s` where `mask[r, s] = 1`. A query that sees nothing yields zeros.
    Masked(Mask),
}

/// The operands of [`Attend`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attention {
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
    /// Which keys a query may see.
    pub visible: Visible,
}

/// Softmax attention over the rows of one item.
///
/// For head `h` with key head `k`: `score[r, s] = scale · query_h[r] · key_k[s]`; `p[r, ·]` = softmax over the
/// visible `s`, zero elsewhere; `output_h[r] = Σ_s p[r, s] value_k[s]`; `output` is `[query rows, heads ·
/// head_width]`. Backward: `dp[r, s] = d output_h[r] · value_k[s]`, `dscore = p (dp − Σ_s p dp)`, `d query_h[r] +=
/// scale Σ_s dscore[r, s] key_k[s]`, `d key_k[s] += scale Σ_{h, r} dscore query_h[r]`, `d value_k[s] += Σ_{h, r} p
/// d output_h[r]`. Saved: `p`, `[heads, query rows, key rows]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Attend {
    /// The operands.
    pub attention: Attention,
    /// The result.
    pub output: Value,
}

/// Refuses heads that cannot share the key heads evenly.
pub(super) fn shared_evenly(op: &'static str, heads: usize, key_heads: usize) -> Result<()> {
    if key_heads == 0 || !heads.is_multiple_of(key_heads) {
        let reason = format!("{heads} heads cannot share {key_heads} key heads evenly");
        return Err(Error::Unsupported { op, reason });
    }
    Ok(())
}

impl Graph {
    /// Adds [`Attend`].
    ///
    /// # Errors
    /// If columns, heads, rows or the mask do not fit.
    pub fn attention(&mut self, attention: Attention) -> Result<Value> {
        let op = "attention";
        let Attention { query, key, value, heads, key_heads, head_width, visible, .. } = attention;
        shared_evenly(op, heads, key_heads)?;
        let (asked, kept) = (self.shape(query.value), self.shape(key.value));
        self.fits(op, "query columns", query, heads * head_width)?;
        self.fits(op, "key columns", key, key_heads * head_width)?;
        self.fits(op, "value columns", value, key_heads * head_width)?;
        expect(op, "value rows", kept.rows, self.shape(value.value).rows)?;
        match visible {
            Visible::All => {}
            Visible::Causal => expect(op, "key rows", asked.rows, kept.rows)?,
            Visible::Masked(mask) => self.masked(op, mask, Shape { rows: asked.rows, width: kept.rows })?,
        }
        let output = self.value(asked.rows, heads * head_width);
        self.push(Attend { attention, output });
        Ok(output)
    }
}

impl Attention {
    /// Queries, keys and values.
    fn values(&self) -> [Value; 3] {
        [self.query.value, self.key.value, self.value.value]
    }
}

impl Operation for Attend {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn reads(&self) -> Reads {
        let mask = match self.attention.visible {
            Visible::Masked(mask) => Some(mask),
            Visible::All | Visible::Causal => None,
        };
        Reads { mask, ..Reads::values(self.attention.values()) }
    }

    fn writes(&self) -> Vec<Value> {
        vec![self.output]
    }

    fn kept(&self) -> Vec<Value> {
        self.attention.values().into()
    }

    fn saved(&self, graph: &Graph) -> usize {
        let a = &self.attention;
        a.heads * graph.shape(a.query.value).rows * graph.shape(a.key.value).rows
    }

    fn rows(&self) -> Rows {
        match self.attention.visible {
            Visible::Causal => Rows::UpTo(vec![self.attention.key.value, self.attention.value.value]),
            Visible::All | Visible::Masked(_) => Rows::Mixed,
        }
    }

    fn passes_through(&self, _: usize) -> bool {
        false
    }
}
