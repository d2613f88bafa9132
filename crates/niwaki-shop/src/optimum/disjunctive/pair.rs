//! What every model of the learning engine is made of: an operation's variables, and the order of two that may meet.

use crate::optimum::learning::{Difference, Engine, Fact, Var};

/// An operation's variables.
pub(crate) struct Node {
    pub(crate) start: Var,
    /// The variable from which successors are measured, and the least that must be added to it.
    pub(crate) end: (Var, i32),
    /// For each alternative: the fact that chooses it.
    pub(crate) chosen: Vec<Fact>,
}

/// How two operations are ordered if they meet.
pub(crate) struct Pair {
    pub(crate) first: u32,
    pub(crate) second: u32,
    /// Holds when `first` runs before `second`.
    forward: Fact,
    backward: Fact,
}

impl Pair {
    /// Orders two operations wherever both facts of one of `meeting` hold; `setups` lie between them, there and back.
    pub(crate) fn new(
        engine: &mut Engine,
        nodes: &[Node],
        (first, second): (usize, usize),
        setups: (u32, u32),
        meeting: &[(Fact, Fact)],
    ) -> Self {
        let forward = Fact::is(engine.switch(0.0));
        let always = meeting.iter().any(|&(one, other)| one == Fact::ALWAYS && other == Fact::ALWAYS);
        let backward = if always {
            forward.negated()
        } else {
            let backward = Fact::is(engine.switch(0.0));
            engine.clause(&[forward.negated(), backward.negated()]);
            for &(one, other) in meeting {
                engine.clause(&[one.negated(), other.negated(), forward, backward]);
            }
            backward
        };
        let ways = [(forward, first, second, setups.0), (backward, second, first, setups.1)];
        for (when, one, other, setup) in ways {
            let (from, offset) = nodes[one].end;
            let weight = offset + setup as i32;
            engine.difference(Difference { when, from, to: nodes[other].start, weight });
        }
        Self { first: first as u32, second: second as u32, forward, backward }
    }

    /// Tells the search which order to look at first, if they `meet` at all.
    pub(crate) fn prefer(&self, engine: &mut Engine, meet: bool, forward: bool) {
        engine.prefer(self.forward.var(), meet && forward);
        if self.backward.var() != self.forward.var() {
            engine.prefer(self.backward.var(), meet && !forward);
        }
    }
}
