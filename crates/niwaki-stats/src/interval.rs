//! An interval with its level: what every uncertainty statement of the crate returns.

/// The two ends of a confidence interval and the level it was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// Nominal coverage, strictly between 0 and 1.
    pub level: f64,
}

impl Interval {
    /// `x -> bool`. Whether `x` lies inside or on an end.
    #[must_use]
    pub fn contains(&self, x: f64) -> bool {
        self.low <= x && x <= self.high
    }

    /// `-> scalar`. Half the distance between the ends: the "±" of a symmetric interval.
    #[must_use]
    pub fn half_width(&self) -> f64 {
        0.5 * (self.high - self.low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_belong_to_the_interval() {
        let interval = Interval { low: -1.0, high: 3.0, level: 0.95 };
        assert!(interval.contains(-1.0) && interval.contains(3.0) && !interval.contains(3.1));
        assert!(!interval.contains(f64::NAN));
        // (3 − (−1)) / 2 = 2.
        assert_eq!(interval.half_width(), 2.0);
    }
}
