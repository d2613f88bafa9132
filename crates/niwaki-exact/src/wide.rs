//! Loops compiled once more for the wide vectors of a processor, with the same bits.

use niwaki_correction::Real;

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
                let fuses = is_x86_feature_detected!("fma");
                if fuses
                    && is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the processor has the features that the function is compiled for.
                    return unsafe { avx512($($argument),*) };
                }
                if fuses && is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2($($argument),*) };
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
