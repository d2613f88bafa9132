//! A histogram of log-ratios in constant memory: bins of equal relative width on either side of zero.

use super::exact::Exact;

/// Bins per doubling.
const FINE: usize = 16;
/// Smallest and largest power of two with bins of their own: 2⁻³⁰ to 2¹⁰.
const LOWEST: i32 = -30;
const DOUBLINGS: usize = 40;
const SIDE: usize = FINE * DOUBLINGS;

/// The bin of what is nearer to zero than all others; those below zero come before it, those above behind.
const ZERO: usize = SIDE;

/// Weighted counts of log-ratios.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LogRatios {
    counts: Vec<Exact<1>>,
}

impl Default for LogRatios {
    fn default() -> Self {
        Self { counts: vec![Exact::default(); 2 * SIDE + 1] }
    }
}

impl LogRatios {
    pub(crate) fn add(&mut self, ell: &[f64], weight: f64) {
        for &ell in ell {
            let size = ell.abs();
            let at = if size < edge(0) {
                ZERO
            } else if ell > 0.0 {
                ZERO + 1 + bin(size)
            } else {
                ZERO - 1 - bin(size)
            };
            self.counts[at].add(&[weight]);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.counts.iter_mut().zip(&other.counts).for_each(|(own, other)| own.merge(other));
    }

    /// The counts, for a file.
    pub(crate) fn counts(&mut self) -> &mut [Exact<1>] {
        &mut self.counts
    }

    /// Shares of the steps in equal bins that hold all but a thousandth on either side: `(from, to, share)`.
    pub(crate) fn bins(&self, count: usize) -> Vec<(f64, f64, f64)> {
        let value = |at: usize| self.counts[at].value(0);
        let side = |sign: usize| -> Vec<f64> {
            (0..SIDE).map(|bin| value(if sign == 1 { ZERO + 1 + bin } else { ZERO - 1 - bin })).collect()
        };
        let sides = [side(0), side(1)];
        let total = sides.iter().flatten().sum::<f64>() + value(ZERO);
        Counted { sides, zero: value(ZERO), total }.bins(count)
    }
}

/// The counts as floats.
struct Counted {
    /// Bins below zero from the smallest size up, then those above zero.
    sides: [Vec<f64>; 2],
    zero: f64,
    total: f64,
}

impl Counted {
    /// The log-ratio below which a share of the steps lies, to the width of a bin.
    fn quantile(&self, share: f64) -> f64 {
        let mut below = 0.0;
        for (at, count) in self.sides[0].iter().enumerate().rev() {
            below += count;
            if below >= share * self.total {
                return -edge(at + 1);
            }
        }
        below += self.zero;
        if below >= share * self.total {
            return 0.0;
        }
        for (at, count) in self.sides[1].iter().enumerate() {
            below += count;
            if below >= share * self.total {
                return edge(at + 1);
            }
        }
        edge(SIDE)
    }

    /// As [`LogRatios::bins`].
    fn bins(&self, count: usize) -> Vec<(f64, f64, f64)> {
        let reach = self.quantile(0.001).abs().max(self.quantile(0.999).abs());
        if self.total == 0.0 || reach == 0.0 {
            return Vec::new();
        }
        let width = 2.0 * reach / count as f64;
        let mut shares = vec![0.0; count];
        let mut pour = |from: f64, to: f64, amount: f64| {
            // A bin is spread evenly over the equal bins that it touches.
            let (first, last) = ((from + reach) / width, (to + reach) / width);
            for at in (first.floor().max(0.0) as usize)..(last.ceil().clamp(0.0, count as f64) as usize) {
                let overlap = (last.min(at as f64 + 1.0) - first.max(at as f64)).max(0.0);
                shares[at] += amount / self.total * overlap / (last - first);
            }
        };
        for at in 0..SIDE {
            pour(-edge(at + 1), -edge(at), self.sides[0][at]);
            pour(edge(at), edge(at + 1), self.sides[1][at]);
        }
        pour(-edge(0), edge(0), self.zero);
        let start = |at: usize| at as f64 * width - reach;
        shares.into_iter().enumerate().map(|(at, share)| (start(at), start(at + 1), share)).collect()
    }
}

/// The lower end of a bin.
fn edge(at: usize) -> f64 {
    let (doubling, part) = (at / FINE, at % FINE);
    2.0_f64.powi(LOWEST + doubling as i32) * (1.0 + part as f64 / FINE as f64)
}

/// The bin of a size that is at least the first edge.
fn bin(size: f64) -> usize {
    let bits = size.to_bits();
    let doubling = (bits >> 52) as i32 - 1023 - LOWEST;
    let part = (bits >> 48) as usize & (FINE - 1);
    (doubling as usize * FINE + part).min(SIDE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_hold_their_own_edges() {
        for at in 0..SIDE {
            assert_eq!(bin(edge(at)), at);
            assert_eq!(bin(edge(at + 1) * (1.0 - 1e-12)), at);
        }
        assert_eq!(bin(1e9), SIDE - 1);
    }

    #[test]
    fn shares_add_up_and_keep_their_side() {
        let mut ratios = LogRatios::default();
        let ell: Vec<f64> = (0..1000).map(|i| 0.2 * (f64::from(i) / 500.0 - 1.0)).collect();
        ratios.add(&ell, 0.5);
        let bins = ratios.bins(10);
        let total: f64 = bins.iter().map(|bin| bin.2).sum();
        assert!((total - 1.0).abs() < 0.01, "{total}");
        // Evenly spread: each of ten bins over ±0.2 (to a bin's width) holds about a tenth.
        assert!(bins[1..9].iter().all(|bin| (bin.2 - 0.1).abs() < 0.02), "{bins:?}");
        assert!((bins[9].1 - 0.2).abs() < 0.03);
        assert!(LogRatios::default().bins(10).is_empty());
    }
}
