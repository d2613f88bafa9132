//! Where resamples get their indices: SplitMix64 read as a counter-based generator.
//!
//! The crate names no dependency, so it cannot open the workspace's random streams. The output at counter `i` of
//! stream `k` is `mix(start_k + (i + 1)·γ)`, a pure function of (seed, replicate, i): replicates may be drawn in any
//! order, or by any number of threads, with the same result. Resampling and sign flips use it; nothing that trains does.

/// γ, the odd integer nearest to 2⁶⁴ divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's finaliser (Steele, Lea and Flood 2014, with Stafford's variant 13 constants).
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The index stream of one bootstrap replicate.
pub(crate) struct Draws {
    state: u64,
}

impl Draws {
    /// Opens the stream of one replicate. Mixing twice places the streams of neighbouring seeds and replicates at
    /// unrelated points of the generator's cycle.
    pub(crate) fn open(seed: u64, replicate: usize) -> Self {
        let of_seed = mix(seed.wrapping_add(GAMMA));
        Self { state: mix(of_seed ^ (replicate as u64).wrapping_mul(GAMMA)) }
    }

    /// 64 even bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A uniform index in `0..n`, by Lemire's multiply-and-reject, without bias.
    pub(crate) fn index(&mut self, n: usize) -> usize {
        let n = n as u64;
        loop {
            let product = u128::from(self.bits()) * u128::from(n);
            let low = product as u64;
            // 2⁶⁴ mod n low words are one too many for an even split; the remainder is below n, so that the slow
            // division is rarely reached.
            if low >= n || low >= n.wrapping_neg() % n {
                return (product >> 64) as usize;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_published_sequence() {
        // The first five outputs of SplitMix64 from state 1234567, as listed for the reference implementation.
        let mut draws = Draws { state: 1_234_567 };
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(expected.map(|_| draws.bits()), expected);
    }

    #[test]
    fn indices_are_even_and_streams_differ() {
        let n = 7;
        let mut counts = [0_u32; 7];
        for replicate in 0..1_000 {
            let mut draws = Draws::open(5, replicate);
            for _ in 0..70 {
                counts[draws.index(n)] += 1;
            }
        }
        // Expected 10 000 each; the statistic has 6 degrees of freedom, and 22.5 is exceeded once in a thousand.
        let chi2: f64 = counts.iter().map(|&c| (f64::from(c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi2 < 22.5, "{chi2}");
        let first = |seed, replicate| Draws::open(seed, replicate).bits();
        assert_eq!(first(1, 0), first(1, 0));
        assert_ne!(first(1, 0), first(1, 1));
        assert_ne!(first(1, 0), first(2, 0));
    }
}
