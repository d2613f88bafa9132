//! A weighted sum of variables, as a constraint of the learning engine.

use crate::optimum::learning::{Conflict, Fact, Global, Trail, Var};

/// `total` is at least a sum of variables with positive factors, and a constant.
pub(super) struct Linear {
    pub(super) terms: Vec<(i64, Var)>,
    pub(super) constant: i64,
    pub(super) total: Var,
}

impl Linear {
    /// The weakest lower bounds of the terms but `except` that still add up to no less than `slack` below what they do now.
    fn reasons(&self, trail: &Trail, except: usize, mut slack: i64) -> Vec<Fact> {
        let mut reasons = Vec::with_capacity(self.terms.len() + 1);
        for (number, &(factor, var)) in self.terms.iter().enumerate() {
            let low = i64::from(trail.low(var));
            if number == except || low <= 0 {
                continue;
            }
            let spare = (slack / factor).min(low);
            slack -= spare * factor;
            if spare < low {
                reasons.push(Fact::at_least(var, (low - spare) as i32));
            }
        }
        reasons
    }
}

impl Global for Linear {
    fn propagate(&mut self, trail: &mut Trail) -> Result<(), Conflict> {
        let low = |trail: &Trail, var| i64::from(trail.low(var));
        let least =
            self.constant + self.terms.iter().map(|&(factor, var)| factor * low(trail, var)).sum::<i64>();
        if least > low(trail, self.total) {
            // Beyond its range the least contradiction explains best.
            let value = least.min(i64::from(trail.high(self.total)) + 1);
            let reasons = self.reasons(trail, usize::MAX, least - value);
            trail.infer(Fact::at_least(self.total, value as i32), reasons)?;
        }
        let high = i64::from(trail.high(self.total));
        for number in 0..self.terms.len() {
            let (factor, var) = self.terms[number];
            let room = (high - least) / factor;
            if low(trail, var) + room < i64::from(trail.high(var)) {
                let value = low(trail, var) + room;
                let slack = least + factor * (room + 1) - high - 1;
                let mut reasons = self.reasons(trail, number, slack);
                reasons.push(Fact::at_most(self.total, high as i32));
                trail.infer(Fact::at_most(var, value as i32), reasons)?;
            }
        }
        Ok(())
    }
}
