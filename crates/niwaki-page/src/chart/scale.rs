//! Scales and their ticks: where a value stands between two ends, and which round values to name. No pixels.

use crate::number::{fixed, superscript};

/// Values beyond this magnitude count as infinite, so that spans and steps stay finite.
const FAR: f64 = 1e300;
/// The most ticks an axis ever has.
const MOST_TICKS: usize = 10;
/// How far data may reach beyond the outer ticks, in steps: rounding further out would waste the plot.
const LOOSE: f64 = 0.35;

/// A linear or logarithmic map from a domain to 0 … 1, with round ticks.
#[derive(Debug, Clone, PartialEq)]
pub struct Scale {
    log: bool,
    low: f64,
    high: f64,
    ticks: Vec<Tick>,
    minor: Vec<f64>,
    factor: Option<i32>,
}

/// A named value on a scale.
#[derive(Debug, Clone, PartialEq)]
pub struct Tick {
    /// The value.
    pub value: f64,
    /// Its name on the axis.
    pub label: String,
}

impl Scale {
    /// A linear scale whose domain covers `low … high` and ends at a round tick (steps of 1, 2 or 5 times a power of
    /// ten), or at the data's own end where that is at most a third of a step beyond the last tick.
    ///
    /// A domain without width is widened around its value, and one that is not finite becomes 0 … 1. `most` is held
    /// between 3 and 10.
    pub fn linear(low: f64, high: f64, most: usize) -> Self {
        let (low, high) = sound(low, high, false);
        let step = Step::over(low, high, most.clamp(3, MOST_TICKS));
        let (first, last) = step.enclose(low, high);
        Self::stepped(step.at(first).min(low), step.at(last).max(high), step, first, last)
    }

    /// A linear scale over exactly `low … high`, with the round ticks that fall inside.
    pub fn linear_exact(low: f64, high: f64, most: usize) -> Self {
        let (low, high) = sound(low, high, false);
        let step = Step::over(low, high, most.clamp(3, MOST_TICKS));
        let slack = 1e-9;
        let (first, last) = ((low / step.size() - slack).ceil(), (high / step.size() + slack).floor());
        Self::stepped(low, high, step, first, last)
    }

    fn stepped(low: f64, high: f64, step: Step, first: f64, last: f64) -> Self {
        let count = (last - first).max(0.0) as usize;
        let values: Vec<f64> = (0..=count).map(|i| step.at(first + i as f64)).collect();
        let largest = values.iter().fold(0.0f64, |m, v| m.max(v.abs()));
        // Beyond what reads well in full, the power of ten moves to the axis label.
        let factor = (!(1e-3..1e6).contains(&largest))
            .then(|| largest.log10().floor() as i32)
            .filter(|_| largest > 0.0);
        let decimals = (factor.unwrap_or(0) - step.power).clamp(0, 15) as usize;
        let name = |v: f64| fixed(scaled(v, factor.unwrap_or(0)), decimals).replace('-', "\u{2212}");
        let ticks = values.into_iter().map(|value| Tick { value, label: name(value) }).collect();
        Self { log: false, low, high, ticks, minor: Vec::new(), factor }
    }

    /// A logarithmic scale whose domain is `low … high` widened to 1, 2 or 5 times a power of ten; ticks at decades,
    /// at 1-2-5 values where fewer than two decades fit, and at linear steps where even those are too few.
    ///
    /// Ends at or below zero are replaced by 1 … 10.
    pub fn log(low: f64, high: f64, most: usize) -> Self {
        let (low, high) = sound(low, high, true);
        let (low, high) = (round_down(low), round_up(high));
        Self::log_over(low, high, most)
    }

    /// A logarithmic scale over exactly `low … high`.
    pub fn log_exact(low: f64, high: f64, most: usize) -> Self {
        let (low, high) = sound(low, high, true);
        Self::log_over(low, high, most)
    }

    fn log_over(low: f64, high: f64, most: usize) -> Self {
        let most = most.clamp(3, MOST_TICKS);
        let inside = |v: &f64| *v >= low * (1.0 - 1e-9) && *v <= high * (1.0 + 1e-9);
        let (first, last) = (low.log10().floor() as i32 - 1, high.log10().ceil() as i32 + 1);
        let decades: Vec<i32> = (first..=last).filter(|&e| inside(&power(e))).collect();
        let minor: Vec<f64> = match last - first {
            0..=14 => (first..=last)
                .flat_map(|e| (2..=9).map(move |m| f64::from(m) * power(e)))
                .filter(inside)
                .collect(),
            _ => Vec::new(),
        };
        if decades.len() >= 2 {
            let stride = decades.len().div_ceil(most) as i32;
            let named: Vec<i32> = decades.iter().copied().filter(|e| e.rem_euclid(stride) == 0).collect();
            let plain = named.iter().all(|e| (-2..=3).contains(e));
            let name = |e: i32| match plain {
                true => fixed(power(e), (-e).max(0) as usize),
                false => format!("10{}", superscript(e)),
            };
            let ticks = named.into_iter().map(|e| Tick { value: power(e), label: name(e) }).collect();
            return Self { log: true, low, high, ticks, minor, factor: None };
        }
        let steps: Vec<(i32, i32)> = (first..=last)
            .flat_map(|e| [1, 2, 5].map(|m| (m, e)))
            .filter(|&(m, e)| inside(&(f64::from(m) * power(e))))
            .collect();
        if steps.len() >= 2 {
            let plain = steps.iter().all(|(_, e)| (-3..=4).contains(e));
            let name = |m: i32, e: i32| match (plain, m) {
                (true, _) => fixed(f64::from(m) * power(e), (-e).max(0) as usize),
                (false, 1) => format!("10{}", superscript(e)),
                (false, _) => format!("{m}×10{}", superscript(e)),
            };
            let ticks =
                steps.into_iter().map(|(m, e)| Tick { value: f64::from(m) * power(e), label: name(m, e) });
            return Self { log: true, low, high, ticks: ticks.collect(), minor, factor: None };
        }
        let mut scale = Self::linear_exact(low, high, most);
        (scale.log, scale.minor) = (true, minor);
        scale
    }

    /// One unit-wide slot per name, centred on 0, 1, 2, ….
    pub fn slots<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        let ticks: Vec<Tick> = names
            .into_iter()
            .enumerate()
            .map(|(i, name)| Tick { value: i as f64, label: name.to_string() })
            .collect();
        let high = ticks.len().max(1) as f64 - 0.5;
        Self { log: false, low: -0.5, high, ticks, minor: Vec::new(), factor: None }
    }

    /// Where `value` stands: 0 at the domain's low end, 1 at its high end, `None` where it has no place (NaN,
    /// infinite, or not positive on a log scale).
    pub fn unit(&self, value: f64) -> Option<f64> {
        // A domain that ends near the limit is rounded a little beyond it, and its ends still have a place.
        let within = if value > 1.0 || !self.log { value.abs() <= FAR * 100.0 } else { value >= 0.01 / FAR };
        if !within {
            return None;
        }
        let at = |v: f64| if self.log { v.ln() } else { v };
        Some((at(value) - at(self.low)) / (at(self.high) - at(self.low)))
    }

    /// The domain.
    pub fn domain(&self) -> (f64, f64) {
        (self.low, self.high)
    }

    /// The named values, ascending, at most ten (or one per slot).
    pub fn ticks(&self) -> &[Tick] {
        &self.ticks
    }

    /// The unnamed values between decades of a log scale.
    pub fn minor(&self) -> &[f64] {
        &self.minor
    }

    /// The power of ten that was taken out of the labels, to be named beside the axis.
    pub fn factor(&self) -> Option<i32> {
        self.factor
    }

    pub(crate) fn is_log(&self) -> bool {
        self.log
    }

    /// Drops ticks between whole numbers, unless none would be left.
    pub(crate) fn keep_whole(&mut self) {
        let whole = |tick: &Tick| tick.value.fract() == 0.0;
        if self.factor.is_none() && self.ticks.iter().any(whole) {
            self.ticks.retain(whole);
            self.rename(|v| fixed(v, 0).replace('-', "\u{2212}"));
        }
    }

    pub(crate) fn rename(&mut self, name: impl Fn(f64) -> String) {
        for tick in &mut self.ticks {
            tick.label = name(tick.value);
        }
        self.factor = None;
    }
}

/// Whether `value` can stand on an axis at all.
pub(crate) fn drawable(value: f64, log: bool) -> bool {
    value.abs() <= FAR && (!log || value >= 1.0 / FAR)
}

/// A finite domain with width: what was asked for where possible.
fn sound(low: f64, high: f64, log: bool) -> (f64, f64) {
    if !drawable(low, log) || !drawable(high, log) {
        return if log { (1.0, 10.0) } else { (0.0, 1.0) };
    }
    let (low, high) = if low <= high { (low, high) } else { (high, low) };
    let size = low.abs().max(high.abs());
    if high - low > size * 1e-12 && high - low > 1e-300 {
        (low, high)
    } else if log {
        (low / 2.0, high * 2.0)
    } else if size < 1e-290 {
        (-1.0, 1.0)
    } else {
        (low - size * 0.05, high + size * 0.05)
    }
}

/// A step of 1, 2 or 5 times a power of ten, kept in parts so that multiples are as exact as decimals allow.
#[derive(Debug, Clone, Copy)]
struct Step {
    lead: f64,
    power: i32,
}

impl Step {
    /// The smallest round step that covers `low … high` in at most `most` ticks.
    fn over(low: f64, high: f64, most: usize) -> Self {
        let raw = (high - low) / most as f64;
        let start = raw.log10().floor() as i32;
        let candidates =
            (start..start + 4).flat_map(|power| [1.0, 2.0, 5.0].map(|lead| Self { lead, power }));
        let fits = |step: &Self| {
            let (first, last) = step.enclose(low, high);
            last - first < most as f64
        };
        candidates.clone().find(fits).unwrap_or(Self { lead: 1.0, power: start + 4 })
    }

    fn size(self) -> f64 {
        self.at(1.0)
    }

    fn at(self, index: f64) -> f64 {
        match self.power {
            // Dividing by an exact power of ten gives 0.3 where multiplying by 0.1 gives 0.30000000000000004.
            p @ -22..0 => index * self.lead / 10f64.powi(-p),
            p => index * self.lead * power(p),
        }
    }

    /// The first and last multiple for data from `low` to `high`: an end lies beyond its tick by at most [`LOOSE`] of
    /// a step, otherwise the next tick is taken in.
    fn enclose(self, low: f64, high: f64) -> (f64, f64) {
        let size = self.size();
        let (mut first, mut last) = ((low / size + LOOSE).floor(), (high / size - LOOSE).ceil());
        // Division rounds; the law is on the products.
        while self.at(first) - low > LOOSE * size {
            first -= 1.0;
        }
        while high - self.at(last) > LOOSE * size {
            last += 1.0;
        }
        (first, last)
    }
}

fn power(exponent: i32) -> f64 {
    10f64.powi(exponent)
}

/// `value / 10^exponent` without overflow on the way.
fn scaled(value: f64, exponent: i32) -> f64 {
    if exponent < 0 { value * power(-exponent) } else { value / power(exponent) }
}

fn round_down(value: f64) -> f64 {
    let base = value.log10().floor() as i32;
    let choices = (base - 1..=base + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * power(e)));
    choices.filter(|&v| v <= value && v > 0.0).fold(f64::NEG_INFINITY, f64::max).max(1e-307)
}

fn round_up(value: f64) -> f64 {
    let base = value.log10().floor() as i32;
    let choices = (base - 1..=base + 1).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * power(e)));
    choices.filter(|&v| v >= value).fold(f64::INFINITY, f64::min).min(1e301)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(scale: &Scale) -> Vec<&str> {
        scale.ticks().iter().map(|tick| tick.label.as_str()).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        // Span 0.97 over at most 7 ticks: 0.2 is the smallest round step, 0 … 1 in six ticks.
        assert_eq!(labels(&Scale::linear(0.03, 1.0, 7)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        // −3 is a hair beyond 0, so the axis ends at the data; 12,000 is 0.4 steps beyond 10,000, so 15,000 comes in.
        let wide = Scale::linear(-3.0, 12_000.0, 5);
        assert_eq!((labels(&wide), wide.domain()), (vec!["0", "5000", "10,000", "15,000"], (-3.0, 15_000.0)));
        let tiny = Scale::linear(0.0, 3e-7, 5);
        assert_eq!((labels(&tiny), tiny.factor()), (vec!["0", "1", "2", "3"], Some(-7)));
    }

    #[test]
    fn counts_have_whole_ticks() {
        let mut scale = Scale::linear(0.0, 3.0, 10);
        assert_eq!(labels(&scale), ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5", "3.0"]);
        scale.keep_whole();
        assert_eq!(labels(&scale), ["0", "1", "2", "3"]);
    }

    #[test]
    fn log_ticks_are_decades_then_steps() {
        assert_eq!(labels(&Scale::log(2e-4, 3.0, 8)), ["10⁻³", "10⁻²", "10⁻¹", "10⁰"]);
        assert_eq!(labels(&Scale::log(0.2, 30.0, 8)), ["1", "10"]);
        assert_eq!(labels(&Scale::log(2.0, 9.0, 8)), ["2", "5", "10"]);
        assert_eq!(Scale::log(1e-3, 1.0, 8).minor().len(), 24);
        // 1e-30 … 1 is 31 decades: every fourth is named.
        assert_eq!(labels(&Scale::log(1e-30, 1.0, 8)).len(), 8);
    }

    #[test]
    fn degenerate_domains_still_have_a_scale() {
        assert_eq!(Scale::linear(5.0, 5.0, 6).unit(5.0), Some(0.5));
        assert_eq!(Scale::linear(f64::NAN, 1.0, 6).domain(), (0.0, 1.0));
        assert_eq!(Scale::log(0.0, 1.0, 6).domain(), (1.0, 10.0));
        assert_eq!(Scale::log(1.0, 2.0, 6).unit(-1.0), None);
        // Rounding carries the top of this domain a hair above the limit of 1e300.
        let vast = Scale::linear(0.0, 1e300, 6);
        assert_eq!(vast.unit(vast.domain().1), Some(1.0));
        assert_eq!(Scale::linear(0.0, 1.0, 6).unit(f64::NAN), None);
    }
}
