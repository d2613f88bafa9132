//! The ops in which rows look at other rows.

use super::build::{Graph, expect};
use super::op::{Attention, Op, Point, Visible};
use super::shape::{Shape, Value};
use crate::{Error, Result};

impl Graph {
    /// Adds [`Op::Attention`].
    ///
    /// # Errors
    /// If columns, heads, rows or the mask do not fit.
    pub fn attention(&mut self, attention: Attention) -> Result<Value> {
        let op = "attention";
        let Attention { query, key, value, heads, key_heads, head_width, visible, .. } = attention;
        if key_heads == 0 || heads % key_heads != 0 {
            let reason = format!("{heads} heads cannot share {key_heads} key heads evenly");
            return Err(Error::Unsupported { op, reason });
        }
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
        self.ops.push(Op::Attention { attention, output });
        Ok(output)
    }

    /// Adds [`Op::Score`].
    ///
    /// # Errors
    /// If the widths differ.
    pub fn score(&mut self, query: Value, key: Value, scale: f64) -> Result<Value> {
        expect("score", "key width", self.shape(query).width, self.shape(key).width)?;
        let output = self.value(self.shape(query).rows, self.shape(key).rows);
        self.ops.push(Op::Score { query, key, scale, output });
        Ok(output)
    }

    /// Adds [`Op::Point`].
    ///
    /// # Errors
    /// If widths, heads or the mask do not fit.
    pub fn point(&mut self, point: Point) -> Result<Value> {
        let op = "point";
        let (query, glimpse, key) =
            (self.shape(point.query), self.shape(point.glimpse), self.shape(point.key));
        if point.heads == 0 || !query.width.is_multiple_of(point.heads) {
            let reason = format!("{} columns cannot be shared by {} heads evenly", query.width, point.heads);
            return Err(Error::Unsupported { op, reason });
        }
        expect(op, "glimpse width", 2 * query.width, glimpse.width)?;
        expect(op, "key width", query.width, key.width)?;
        expect(op, "key rows", glimpse.rows, key.rows)?;
        self.masked(op, point.open, Shape { rows: query.rows, width: key.rows })?;
        let output = self.value(query.rows, key.rows);
        self.ops.push(Op::Point { point, output });
        Ok(output)
    }
}
