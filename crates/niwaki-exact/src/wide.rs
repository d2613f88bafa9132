//! Loops compiled once more for the wide vectors of a processor, with the same bits.

use niwaki_correction::Real;

/// What loops are compiled for.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Vectors {
    /// What every processor has.
    Baseline,
    /// AVX2 and FMA.
    Avx2,
    /// AVX-512 besides.
    Avx512,
}

/// The widest that this processor has.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(crate) fn widest() -> Vectors {
    let fuses = is_x86_feature_detected!("fma") && is_x86_feature_detected!("avx2");
    let wide = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    let found = match (fuses, wide) {
        (true, true) => Vectors::Avx512,
        (true, false) => Vectors::Avx2,
        (false, _) => Vectors::Baseline,
    };
    #[cfg(test)]
    let found = found.min(tests::MOST.get());
    found
}

/// Defines a function whose body is compiled for AVX-512, for AVX2 and for every processor, and calls the widest that
/// the processor has.
///
/// What the body calls must be `#[inline(always)]` to be compiled with it. Nothing is fused by itself, so the three
/// agree to the bit; a function that is written `<FUSED>` is told by that constant whether `mul_add` is one operation,
/// and has to use it so that they still agree.
macro_rules! wide {
    ($(#[$about:meta])* $seen:vis fn $name:ident<FUSED> $($rest:tt)*) => {
        wide! { @define [$(#[$about])*] [$seen] $name [<const FUSED: bool>] [::<true>] [::<false>] $($rest)* }
    };
    ($(#[$about:meta])* $seen:vis fn $name:ident $($rest:tt)*) => {
        wide! { @define [$(#[$about])*] [$seen] $name [] [] [] $($rest)* }
    };
    (
        @define [$($about:tt)*] [$seen:vis] $name:ident [$($generic:tt)*] [$($fused:tt)*] [$($unfused:tt)*]
        ($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    ) => {
        $($about)*
        $seen fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn body$($generic)*($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl,fma")]
                fn avx512($($argument: $type),*) $(-> $result)? {
                    body$($fused)*($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    body$($fused)*($($argument),*)
                }
                match $crate::wide::widest() {
                    // SAFETY: the processor has the features that the function is compiled for.
                    $crate::wide::Vectors::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    $crate::wide::Vectors::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::wide::Vectors::Baseline => {}
                }
            }
            body$($unfused)*($($argument),*)
        }
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
        pub(super) static MOST: Cell<Vectors> = const { Cell::new(Vectors::Avx512) };
    }

    /// Losses with and without a clip, by every way of reading, on a process that stays on one thread.
    fn measured(most: Vectors, vocab: usize) -> (Vec<f64>, Vec<Measurement>) {
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
        MOST.set(Vectors::Avx512);
        (pair.eta_gradient().to_vec(), found)
    }

    #[test]
    fn wide_loops_have_the_bits_of_plain_ones() {
        for vocab in [2, 3, 4, 5] {
            let plain = measured(Vectors::Baseline, vocab);
            assert_eq!(measured(Vectors::Avx2, vocab), plain);
            assert_eq!(measured(Vectors::Avx512, vocab), plain);
        }
    }
}
