//! Loops compiled once more for the wide vectors of a processor, with the same bits.

use niwaki_correction::Real;
#[cfg(target_arch = "x86_64")]
use niwaki_simd::Level;

/// The widest vectors that this processor has; a test may ask for narrower ones.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn widest() -> Level {
    let found = niwaki_simd::level();
    #[cfg(test)]
    let found = found.min(tests::MOST.get());
    found
}

/// [`niwaki_simd::vectorised`] by [`widest`].
macro_rules! wide {
    ($($functions:tt)*) => {
        niwaki_simd::vectorised! { by $crate::wide::widest; $($functions)* }
    };
}
pub(crate) use wide;

wide! {
    /// eˣ of every value.
    pub(crate) fn exp_all(values: &mut [f64]) {
        values.iter_mut().for_each(|value| *value = Real::exp(*value));
    }
}

#[cfg(test)]
#[cfg(target_arch = "x86_64")]
mod tests {
    use super::*;
    use crate::{Measurement, Pair, Process, Reward, Table, Workspace};
    use niwaki_correction::Surrogate;
    use std::cell::Cell;

    thread_local! {
        /// What this thread's loops may use.
        pub(super) static MOST: Cell<Level> = const { Cell::new(Level::Avx512) };
    }

    /// Losses with and without a clip, by every way of reading, on a process that stays on one thread.
    fn measured(most: Level, vocab: usize) -> (Vec<f64>, Vec<Measurement>) {
        MOST.set(most);
        let process = Process::new(vocab, 4).unwrap();
        let logits = |by: f64| (0..process.edges()).map(|j| (by * j as f64).sin()).collect::<Vec<_>>();
        let tables = [1.0, 1.7].map(|by| Table::new(process, &logits(by)).unwrap());
        let pair = Pair::new(&tables[0], &tables[1], &Reward::SparseMatch.payoff(process).unwrap()).unwrap();
        let mut work = Workspace::default();
        let losses = [
            "ppo",
            "tempered:0.25",
            "truncated:2",
            "clipped:0.25,1",
            "minpro",
            "gspo",
            "self-normalised:0.5",
        ];
        let losses = losses.map(|name| name.parse::<Surrogate>().unwrap());
        let all = losses.into_iter().flat_map(|loss| [loss, loss.without_clip()]);
        let found = all.map(|loss| pair.measure(&loss, &mut work).unwrap()).collect();
        MOST.set(Level::Avx512);
        (pair.eta_gradient().to_vec(), found)
    }

    #[test]
    fn wide_loops_have_the_bits_of_plain_ones() {
        for vocab in [2, 3, 4, 5] {
            let plain = measured(Level::Base, vocab);
            assert_eq!(measured(Level::Avx2, vocab), plain);
            assert_eq!(measured(Level::Avx512, vocab), plain);
        }
    }
}
