//! The task: a lock of six dials with three faces each, turned one after the other.

/// Steps of a trajectory.
pub(crate) const DIALS: usize = 6;
/// Choices of a step.
pub(crate) const FACES: usize = 3;

/// What a trajectory earns: the share of dials that show what the dial before them asks for. The first asks for nothing, and
/// every other one for the next face, so that an early choice decides what later ones are worth.
pub(crate) fn reward(lane: &[usize]) -> f64 {
    let fits = lane.windows(2).filter(|pair| pair[1] == (pair[0] + 1) % FACES).count();
    fits as f64 / (DIALS - 1) as f64
}

/// Random numbers between 0 and 1, the same for the same seed (SplitMix64).
pub(crate) struct Draws(u64);

impl Draws {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
