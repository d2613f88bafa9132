//! How a shop is scheduled, as users name it; shared by `solve` and `bench shop`.

use anyhow::{Context, bail};
use niwaki_shop::heuristics::{IteratedGreedy, jackson, johnson, johnson_with_lags, neh};
use niwaki_shop::optimum::{self, Watch};
use niwaki_shop::rules::{Dispatcher, Rule};
use niwaki_shop::{Bounds, Instance, Limits, Optimum, Schedule, verify};
use niwaki_stream::Key;
use std::str::FromStr;
use std::time::{Duration, Instant};

/// A way to schedule a shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Exact,
    Rule(Dispatcher),
    Neh,
    IteratedGreedy,
    Johnson,
    Jackson,
}

impl FromStr for Method {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        Ok(match text {
            "exact" => Self::Exact,
            "neh" => Self::Neh,
            "ig" => Self::IteratedGreedy,
            "johnson" => Self::Johnson,
            "jackson" => Self::Jackson,
            _ => match text.strip_prefix("rule:") {
                Some(rule) => Self::Rule(Dispatcher::parse(rule)?),
                None => {
                    let rules: Vec<_> = Rule::ALL.iter().map(|rule| rule.name()).collect();
                    bail!(
                        "expected exact, neh, ig, johnson, jackson or rule:[active-]NAME[*SAMPLES] with NAME one of {}, \
                         got {text}",
                        rules.join(", ")
                    );
                }
            },
        })
    }
}

impl Method {
    /// Whether the method takes the whole time that it is given.
    pub(crate) const fn is_timed(self) -> bool {
        matches!(self, Self::Exact | Self::IteratedGreedy)
    }

    /// Schedules the instance; the result has passed the checker.
    ///
    /// For a method that proves nothing, the bound is the one that the exact solver finds at once.
    pub(crate) fn run(
        self,
        instance: &Instance,
        limits: Limits,
        watch: Watch<'_>,
    ) -> anyhow::Result<Optimum> {
        let found = match self {
            Self::Exact => optimum::solve(instance, limits, watch),
            _ => {
                let at_once = Limits { time: Duration::ZERO, ..limits };
                let lower = optimum::solve(instance, at_once, &mut |_| {}).lower;
                Optimum::new(lower, self.schedule(instance, limits, lower, watch)?)
            }
        };
        verify(instance, &found.schedule).context("the checker refused the schedule that was found")?;
        Ok(found)
    }

    fn schedule(
        self,
        instance: &Instance,
        limits: Limits,
        lower: u32,
        watch: Watch<'_>,
    ) -> anyhow::Result<Schedule> {
        Ok(match (self, instance) {
            (Self::Rule(dispatcher), _) => dispatcher.run(instance, limits.seed)?,
            (Self::Neh, Instance::Flow(shop)) => Schedule::of_order(shop, &neh(shop)),
            (Self::IteratedGreedy, Instance::Flow(shop)) => {
                let stop = Instant::now() + limits.time;
                let mut search =
                    IteratedGreedy::new(shop, &neh(shop), Key::new(limits.seed, "greedy").open());
                watch(Bounds { lower, upper: search.best().1 });
                while search.best().1 > lower && Instant::now() < stop {
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
            (Self::Neh | Self::IteratedGreedy, _) => bail!(
                "neh and ig order the jobs of a flow shop; this is a {}: use exact or rule:NAME",
                instance.kind()
            ),
            (Self::Johnson, _) => {
                bail!("johnson orders a two-machine flow shop; this is a {}: use exact", instance.kind())
            }
            (Self::Jackson, _) => {
                bail!("jackson orders a single machine; this is a {}: use exact", instance.kind())
            }
            (Self::Exact, _) => optimum::solve(instance, limits, watch).schedule,
        })
    }
}

/// A duration such as `500ms`, `10s`, `2m` or `1h`; a bare number counts seconds.
pub(crate) fn duration(text: &str) -> anyhow::Result<Duration> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let scale = match unit {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => bail!("expected a time such as 500ms, 10s or 2m, got {text}"),
    };
    let number: f64 = number
        .parse()
        .map_err(|_| anyhow::anyhow!("expected a time such as 500ms, 10s or 2m, got {text}"))?;
    Duration::try_from_secs_f64(number * scale)
        .map_err(|_| anyhow::anyhow!("expected a shorter time, got {text}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("500ms").unwrap(), Duration::from_millis(500));
        assert_eq!(duration("1.5").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("2m").unwrap(), Duration::from_secs(120));
        assert!(duration("x").is_err() && duration("3 days").is_err() && duration("").is_err());
    }

    #[test]
    fn methods() {
        assert_eq!("exact".parse::<Method>().unwrap(), Method::Exact);
        let rule = Dispatcher { rule: Rule::Mwkr, active: true, samples: 20 };
        assert_eq!("rule:active-mwkr*20".parse::<Method>().unwrap(), Method::Rule(rule));
        let line = "fast".parse::<Method>().unwrap_err().to_string();
        assert!(line.starts_with("expected exact, neh, ig") && line.ends_with("got fast"), "{line}");
    }
}
