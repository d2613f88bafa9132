//! The ways to schedule a shop, by the names under which users know them.

use crate::heuristics::{IteratedGreedy, jackson, johnson, johnson_with_lags, neh};
use crate::optimum::{self, Watch};
use crate::rules::{DispatchRule, Dispatcher};
use crate::{Bounds, Error, Instance, Limits, Optimum, Result, Schedule};
use niwaki_stream::Key;
use std::str::FromStr;
use std::time::Instant;

/// A way to schedule a shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// The exact solver of the problem.
    Exact,
    /// A dispatching rule.
    Rule(Dispatcher),
    /// NEH.
    Neh,
    /// Iterated greedy.
    IteratedGreedy,
    /// Johnson's rule.
    Johnson,
    /// Jackson's rule.
    Jackson,
}

impl FromStr for Method {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Ok(match text {
            "exact" => Self::Exact,
            "neh" => Self::Neh,
            "ig" => Self::IteratedGreedy,
            "johnson" => Self::Johnson,
            "jackson" => Self::Jackson,
            _ => match text.strip_prefix("rule:") {
                Some(rule) => Self::Rule(Dispatcher::parse(rule)?),
                None => {
                    let rules: Vec<_> = DispatchRule::ALL.iter().map(|rule| rule.name()).collect();
                    return Err(Error::Choice(format!(
                        "expected exact, neh, ig, johnson, jackson or rule:[active-]NAME[*SAMPLES] with NAME one of {}, \
                         got {text}",
                        rules.join(", ")
                    )));
                }
            },
        })
    }
}

impl Method {
    /// Whether the method takes the whole time that it is given.
    #[must_use]
    pub const fn is_timed(self) -> bool {
        matches!(self, Self::Exact | Self::IteratedGreedy)
    }

    /// Schedules the instance.
    ///
    /// For a method that proves nothing, the bound is the one that the exact solver finds at once.
    ///
    /// # Errors
    /// If the method does not know the problem.
    pub fn run(self, instance: &Instance, limits: Limits, watch: Watch<'_>) -> Result<Optimum> {
        if self == Self::Exact {
            return Ok(optimum::solve(instance, limits, watch));
        }
        let lower = optimum::solve(instance, limits.at_once(), &mut |_| {}).lower;
        Ok(Optimum::new(lower, self.schedule(instance, limits, lower, watch)?))
    }

    fn schedule(self, instance: &Instance, limits: Limits, lower: u32, watch: Watch<'_>) -> Result<Schedule> {
        let other = |what: &str, instead: &str| {
            Err(Error::Choice(format!("{what}; this is a {}: use {instead}", instance.kind())))
        };
        Ok(match (self, instance) {
            (Self::Rule(dispatcher), _) => dispatcher.run(instance, limits.seed)?,
            (Self::Neh, Instance::Flow(shop)) => Schedule::of_order(shop, &neh(shop)),
            (Self::IteratedGreedy, Instance::Flow(shop)) => {
                let began = Instant::now();
                let mut search =
                    IteratedGreedy::new(shop, &neh(shop), Key::new(limits.seed, "greedy").open());
                watch(Bounds { lower, upper: search.best().1 });
                while search.best().1 > lower && began.elapsed() < limits.time && !limits.is_stopped() {
                    if search.step() {
                        watch(Bounds { lower, upper: search.best().1 });
                    }
                }
                Schedule::of_order(shop, search.best().0)
            }
            (Self::Johnson, Instance::Flow(shop)) => Schedule::of_order(shop, &johnson(shop)?),
            (Self::Johnson, Instance::Lags(shop)) => {
                Schedule::of_lagged_order(shop, &johnson_with_lags(shop))
            }
            (Self::Jackson, Instance::Single(shop)) => Schedule::of_single_order(shop, &jackson(shop)),
            (Self::Neh | Self::IteratedGreedy, _) => {
                return other("neh and ig order the jobs of a flow shop", "exact or rule:NAME");
            }
            (Self::Johnson, _) => return other("johnson orders a two-machine flow shop", "exact"),
            (Self::Jackson, _) => return other("jackson orders a single machine", "exact"),
            (Self::Exact, _) => optimum::solve(instance, limits, watch).schedule,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_by_name() {
        assert_eq!("exact".parse::<Method>().unwrap(), Method::Exact);
        let rule = Dispatcher { rule: DispatchRule::Mwkr, active: true, samples: 20 };
        assert_eq!("rule:active-mwkr*20".parse::<Method>().unwrap(), Method::Rule(rule));
        let line = "fast".parse::<Method>().unwrap_err().to_string();
        assert!(line.starts_with("expected exact, neh, ig") && line.ends_with("got fast"), "{line}");
    }
}
