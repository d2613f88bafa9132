//! One source, several instruction sets: a function's loops are compiled for AVX-512, for AVX2 and for every processor,
//! and the widest that the machine has is chosen at run time. The loops are plain Rust that the compiler vectorises.
//!
//! ```
//! niwaki_simd::vectorised! {
//!     /// Adds a number to all values.
//!     pub fn shift(values: &mut [f64], by: f64) {
//!         values.iter_mut().for_each(|value| *value += by);
//!     }
//! }
//! let mut values = [1.0, 2.0];
//! shift(&mut values, 0.5);
//! assert_eq!(values, [1.5, 2.5]);
//! ```

/// The instruction sets that loops are compiled for, narrowest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whatever the target guarantees.
    Base,
    /// AVX2 with FMA.
    Avx2,
    /// AVX-512 with F, BW, DQ and VL, and FMA.
    Avx512,
}

/// The widest level of this machine; the standard library keeps what it has detected.
#[must_use]
#[inline]
pub fn level() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("fma")
        {
            return Level::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Level::Avx2;
        }
    }
    Level::Base
}

/// Defines functions whose bodies are compiled for every [`Level`], and call that of the machine.
///
/// What a body calls must be `#[inline(always)]` to be compiled with it. Functions have no type parameter, or one with one
/// bound. Nothing is fused by itself, so the levels agree to the bit; functions written `<FUSED>` are told by that
/// constant whether `mul_add` is one operation, and have to use it so that they still agree.
///
/// After `by PATH;` the function at that path chooses the level in the place of [`level`]; it must never name a wider one.
#[macro_export]
macro_rules! vectorised {
    (by $level:path; $(
        $(#[$about:meta])* $seen:vis fn $name:ident<FUSED>($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    )*) => {$(
        $crate::vectorised! {
            @define $level; [$(#[$about])*] [$seen] $name [] [<const FUSED: bool>] [::<true>] [::<false>]
            ($($argument: $type),*) [$(-> $result)?] $body
        }
    )*};
    (by $level:path; $(
        $(#[$about:meta])* $seen:vis fn $name:ident<$scalar:ident: $bound:ident>($($argument:ident: $type:ty),* $(,)?)
        $(-> $result:ty)? $body:block
    )*) => {$(
        $crate::vectorised! {
            @define $level; [$(#[$about])*] [$seen] $name [<$scalar: $bound>] [<$scalar: $bound>] [] []
            ($($argument: $type),*) [$(-> $result)?] $body
        }
    )*};
    (by $level:path; $(
        $(#[$about:meta])* $seen:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block
    )*) => {$(
        $crate::vectorised! {
            @define $level; [$(#[$about])*] [$seen] $name [] [] [] []
            ($($argument: $type),*) [$(-> $result)?] $body
        }
    )*};
    (
        @define $level:path; [$($about:tt)*] [$seen:vis] $name:ident
        [$($outer:tt)*] [$($inner:tt)*] [$($fused:tt)*] [$($plain:tt)*]
        ($($argument:ident: $type:ty),*) [$($result:tt)*] $body:block
    ) => {
        $($about)*
        $seen fn $name $($outer)*($($argument: $type),*) $($result)* {
            #[inline(always)]
            fn body $($inner)*($($argument: $type),*) $($result)* $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
                fn avx512 $($outer)*($($argument: $type),*) $($result)* {
                    body$($fused)*($($argument),*)
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2 $($outer)*($($argument: $type),*) $($result)* {
                    body$($fused)*($($argument),*)
                }
                match $level() {
                    // SAFETY: the level says that the processor has the features that the function is compiled for.
                    $crate::Level::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    $crate::Level::Avx2 => return unsafe { avx2($($argument),*) },
                    $crate::Level::Base => {}
                }
            }
            body$($plain)*($($argument),*)
        }
    };
    ($($functions:tt)*) => {
        $crate::vectorised! { by $crate::level; $($functions)* }
    };
}

#[cfg(test)]
mod tests {
    use super::{Level, level};
    use std::cell::Cell;

    thread_local! {
        static MOST: Cell<Level> = const { Cell::new(Level::Avx512) };
    }

    fn chosen() -> Level {
        level().min(MOST.get())
    }

    vectorised! {
        by chosen;
        /// Σ aᵢ·bᵢ in order, each step rounded once where the processor can.
        fn dot<FUSED>(a: &[f64], b: &[f64]) -> (f64, bool) {
            let step = |sum: f64, (a, b): (&f64, &f64)| if FUSED { a.mul_add(*b, sum) } else { sum + a * b };
            (a.iter().zip(b).fold(0.0, step), FUSED)
        }
    }

    vectorised! {
        by chosen;
        fn doubled<F: Copy>(values: &[F], twice: fn(F) -> F) -> Vec<F> {
            values.iter().copied().map(twice).collect()
        }
        fn first<F: Copy>(values: &[F]) -> F {
            values[0]
        }
    }

    #[test]
    fn every_level_runs_the_body_and_knows_whether_it_fuses() {
        // (1 + 2⁻³⁰)² = 1 + 2⁻²⁹ + 2⁻⁶⁰: less 1 + 2⁻²⁹ it is 2⁻⁶⁰ where nothing is rounded on the way, else 0.
        let x = 1.0 + 2.0_f64.powi(-30);
        let (a, b) = ([-1.0, x], [1.0 + 2.0_f64.powi(-29), x]);
        for most in [Level::Base, Level::Avx2, Level::Avx512] {
            MOST.set(most);
            let (sum, fused) = dot(&a, &b);
            // A build for processors that fuse does so everywhere.
            assert_eq!(fused, chosen() > Level::Base || cfg!(target_feature = "fma"));
            assert_eq!(sum, if fused { 2.0_f64.powi(-60) } else { 0.0 });
            assert_eq!((doubled(&[1, 2], |x| 2 * x), first(&[7])), (vec![2, 4], 7));
        }
        assert!(chosen() == level());
    }
}
