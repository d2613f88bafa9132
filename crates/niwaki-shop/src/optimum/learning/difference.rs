//! Difference constraints that a fact switches on: if `when` holds, `to ≥ from + weight`.

use super::fact::{Fact, Var};
use super::trail::{Conflict, Reason, Trail};

/// `when` implies `to ≥ from + weight`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Difference {
    pub(crate) when: Fact,
    pub(crate) from: Var,
    pub(crate) to: Var,
    pub(crate) weight: i32,
}

impl Difference {
    /// Why `fact`, a bound of one end, follows: the switch, and the weakest bound of the other end that suffices.
    ///
    /// `to ≥ v` follows from `from ≥ v − weight`; `from ≤ −v` follows from `to ≤ −v + weight`, which as a value of
    /// its side is `v − weight` again.
    pub(super) const fn explain(self, fact: Fact) -> [Fact; 2] {
        let other = if fact.side & 1 == 0 { 2 * self.from } else { 2 * self.to + 1 };
        [self.when, Fact { side: other, value: fact.value - self.weight }]
    }

    /// Draws every conclusion from the current bounds.
    pub(super) fn propagate(self, number: u32, trail: &mut Trail) -> Result<(), Conflict> {
        if trail.holds(self.when) {
            self.carry(number, trail, Fact::at_least(self.to, trail.low(self.from) + self.weight))?;
            self.carry(number, trail, Fact::at_most(self.from, trail.high(self.to) - self.weight))
        } else if !trail.fails(self.when) && trail.low(self.from) + self.weight > trail.high(self.to) {
            let from = trail.low(self.from);
            trail.infer(
                self.when.negated(),
                [Fact::at_least(self.from, from), Fact::at_most(self.to, from + self.weight - 1)],
            )
        } else {
            Ok(())
        }
    }

    fn carry(self, number: u32, trail: &mut Trail, fact: Fact) -> Result<(), Conflict> {
        if trail.holds(fact) {
            return Ok(());
        }
        if trail.fails(fact) {
            // The least value that contradicts the opposite bound explains best.
            let opposite = Fact { side: fact.side ^ 1, value: trail.bound(fact.side ^ 1) };
            let [when, other] = self.explain(opposite.negated());
            return trail.contradict([when, other, opposite]);
        }
        trail.push(fact, Reason::Difference(number));
        Ok(())
    }
}
