//! A weighted sum of machine choices against a multiple of the makespan.
//!
//! Each operation chooses one machine; the choice has a weight. The sum of all weights stays within
//! `slope × makespan − offset`. With weight = time on one machine and 0 elsewhere this is that machine's load; with
//! the multipliers of the assignment relaxation it is that relaxation's own bound, sharpened with each choice.

use crate::optimum::learning::{Conflict, Fact, Global, Trail, Var};

/// One operation's choices.
pub(crate) struct Group {
    /// The fact that makes the choice, and its weight; sorted by weight.
    pub(crate) choices: Vec<(Fact, i64)>,
}

/// The constraint.
pub(crate) struct Budget {
    groups: Vec<Group>,
    makespan: Var,
    slope: i64,
    offset: i64,
    /// The cheapest choice left in each group.
    cheapest: Vec<usize>,
}

impl Budget {
    pub(crate) fn new(mut groups: Vec<Group>, makespan: Var, slope: i64, offset: i64) -> Self {
        groups.iter_mut().for_each(|group| group.choices.sort_by_key(|&(_, weight)| weight));
        let cheapest = vec![0; groups.len()];
        Self { groups, makespan, slope, offset, cheapest }
    }

    /// Why the sum is at least `total − slack`, apart from one group; groups that the slack can pay for are left out.
    fn reasons(&self, trail: &Trail, apart: usize, mut slack: i64) -> Vec<Fact> {
        let mut facts = Vec::new();
        for (number, (group, &cheapest)) in self.groups.iter().zip(&self.cheapest).enumerate() {
            let excess = group.choices[cheapest].1 - group.choices[0].1;
            if number == apart || excess == 0 {
                continue;
            }
            if excess <= slack {
                slack -= excess;
                continue;
            }
            if trail.holds(group.choices[cheapest].0) {
                facts.push(group.choices[cheapest].0);
            } else {
                let cheaper = group.choices[..cheapest].iter().filter(|&&(fact, _)| trail.fails(fact));
                facts.extend(cheaper.map(|(fact, _)| fact.negated()));
            }
        }
        facts
    }
}

impl Global for Budget {
    fn propagate(&mut self, trail: &mut Trail) -> Result<(), Conflict> {
        let mut total = 0;
        for (group, cheapest) in self.groups.iter().zip(&mut self.cheapest) {
            // A chosen one fixes the group; otherwise the cheapest that is not ruled out.
            let chosen = group.choices.iter().position(|&(fact, _)| trail.holds(fact));
            let left = || group.choices.iter().position(|&(fact, _)| !trail.fails(fact));
            let Some(index) = chosen.or_else(left) else { return Ok(()) };
            *cheapest = index;
            total += group.choices[index].1;
        }
        // slope · makespan ≥ total + offset.
        let least = (total + self.offset + self.slope - 1).div_euclid(self.slope);
        if least > i64::from(trail.low(self.makespan)) {
            // Beyond the makespan's range the least contradiction explains best.
            let least = least.min(i64::from(trail.high(self.makespan)) + 1);
            let slack = total + self.offset - (self.slope * (least - 1) + 1);
            let reasons = self.reasons(trail, usize::MAX, slack);
            trail.infer(Fact::at_least(self.makespan, least as i32), reasons)?;
        }
        let high = trail.high(self.makespan);
        let cap = self.slope * i64::from(high) - self.offset;
        for number in 0..self.groups.len() {
            let base = self.groups[number].choices[self.cheapest[number]].1;
            if trail.holds(self.groups[number].choices[self.cheapest[number]].0) {
                continue;
            }
            for index in (self.cheapest[number] + 1..self.groups[number].choices.len()).rev() {
                let (fact, weight) = self.groups[number].choices[index];
                if total - base + weight <= cap {
                    break;
                }
                if !trail.fails(fact) {
                    let slack = total - base + weight - cap - 1;
                    let mut reasons = self.reasons(trail, number, slack);
                    reasons.push(Fact::at_most(self.makespan, high));
                    trail.infer(fact.negated(), reasons)?;
                }
            }
        }
        Ok(())
    }
}
