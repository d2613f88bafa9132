//! What one cell holds and how loudly it speaks; no layout.

use crate::number::{Format, Shape};

/// A table cell; make one with `Cell::from(…)` (text, `f64`, integers, `Option`) or a named constructor.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub(super) value: Value,
    pub(super) weight: Weight,
    pub(super) hint: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Blank,
    Text(String),
    Code(String),
    Number { value: f64, error: Option<f64>, interval: Option<(f64, f64)>, format: Option<Format> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weight {
    Plain,
    Best,
    Strong,
    Muted,
}

/// A cell as strings: what stands left and right of the alignment point.
pub(super) enum Content<'a> {
    Blank,
    Words(&'a str),
    Code(&'a str),
    /// A number without a decimal point to align on: not a number, or infinite.
    Odd(String),
    Number(Shape),
}

impl Cell {
    const fn of(value: Value) -> Self {
        Self { value, weight: Weight::Plain, hint: None }
    }

    /// A cell with nothing in it.
    pub const fn blank() -> Self {
        Self::of(Value::Blank)
    }

    /// A cell of words.
    pub fn text(text: impl Into<String>) -> Self {
        Self::of(Value::Text(text.into()))
    }

    /// A cell of code: a flag, a path, an identifier.
    pub fn code(code: impl Into<String>) -> Self {
        Self::of(Value::Code(code.into()))
    }

    /// A number, written in the column's format.
    pub const fn number(value: f64) -> Self {
        Self::of(Value::Number { value, error: None, interval: None, format: None })
    }

    /// Adds `± error` to a number; other cells are left as they are.
    pub const fn error(mut self, half_width: f64) -> Self {
        if let Value::Number { error, .. } = &mut self.value {
            *error = Some(half_width);
        }
        self
    }

    /// Adds `[low, high]` to a number; other cells are left as they are.
    pub const fn interval(mut self, low: f64, high: f64) -> Self {
        if let Value::Number { interval, .. } = &mut self.value {
            *interval = Some((low, high));
        }
        self
    }

    /// Overrides the column's format for this number; other cells are left as they are.
    pub const fn format(mut self, wanted: Format) -> Self {
        if let Value::Number { format, .. } = &mut self.value {
            *format = Some(wanted);
        }
        self
    }

    /// Marks the best value of its column: bold and tinted on a page, an asterisk in a terminal.
    pub const fn best(mut self) -> Self {
        self.weight = Weight::Best;
        self
    }

    /// Emphasises the cell on a page.
    pub const fn strong(mut self) -> Self {
        self.weight = Weight::Strong;
        self
    }

    /// Plays the cell down on a page.
    pub const fn muted(mut self) -> Self {
        self.weight = Weight::Muted;
        self
    }

    /// Text that a page shows when the pointer rests on the cell.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn content(&self, column: Format) -> Content<'_> {
        match &self.value {
            Value::Blank => Content::Blank,
            Value::Text(text) => Content::Words(text),
            Value::Code(code) => Content::Code(code),
            Value::Number { value, error, interval, format } => {
                let shape = format.unwrap_or(column).shape(*value, *error, *interval);
                if value.is_finite() { Content::Number(shape) } else { Content::Odd(shape.text()) }
            }
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        Self::number(value)
    }
}

macro_rules! whole_numbers {
    ($($kind:ty),*) => {$(
        impl From<$kind> for Cell {
            fn from(value: $kind) -> Self {
                Self::number(value as f64).format(Format::fixed(0))
            }
        }
    )*};
}
whole_numbers!(i32, i64, u32, u64, usize);

impl<T: Into<Self>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::blank(), Into::into)
    }
}
