//! Facts about whole-number variables: the literals of this engine.

/// A variable, by its number.
pub(crate) type Var = u32;

/// "The bound on this side is at least this value."
///
/// Variable `x` has two sides: side `2x` holds its lower bound, and side `2x + 1` holds minus its upper bound, so
/// that both only ever grow and one code serves both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fact {
    pub(crate) side: u32,
    pub(crate) value: i32,
}

impl Fact {
    /// Holds always: variable 0 is the constant 1.
    pub(crate) const ALWAYS: Self = Self { side: 0, value: 1 };

    /// `var ≥ value`.
    pub(crate) const fn at_least(var: Var, value: i32) -> Self {
        Self { side: 2 * var, value }
    }

    /// `var ≤ value`.
    pub(crate) const fn at_most(var: Var, value: i32) -> Self {
        Self { side: 2 * var + 1, value: -value }
    }

    /// A 0–1 variable is 1.
    pub(crate) const fn is(var: Var) -> Self {
        Self::at_least(var, 1)
    }

    /// The fact that holds exactly when this one does not: `x ≥ v` against `x ≤ v − 1`.
    pub(crate) const fn negated(self) -> Self {
        Self { side: self.side ^ 1, value: 1 - self.value }
    }

    /// The variable it speaks of.
    pub(crate) const fn var(self) -> Var {
        self.side / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negation_is_an_involution_over_the_integers() {
        // Not x ≥ 4 is x ≤ 3.
        assert_eq!(Fact::at_least(7, 4).negated(), Fact::at_most(7, 3));
        assert_eq!(Fact::at_most(7, 3).negated(), Fact::at_least(7, 4));
        assert_eq!(Fact::is(2).negated(), Fact::at_most(2, 0));
    }
}
