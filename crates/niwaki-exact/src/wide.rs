//! Loops compiled once more for the wide vectors of a processor, with the same bits.

use niwaki_correction::Real;

/// Defines a function whose body is compiled for AVX-512, for AVX2 and for every processor, and calls the widest that
/// the processor has. Nothing in it is fused, so the three agree to the bit; what the body calls must be
/// `#[inline(always)]` to be compiled with it.
macro_rules! wide {
    ($(#[$about:meta])* $seen:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) $(-> $result:ty)? $body:block) => {
        $(#[$about])*
        $seen fn $name($($argument: $type),*) $(-> $result)? {
            #[inline(always)]
            fn plain($($argument: $type),*) $(-> $result)? $body

            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512dq,avx512vl")]
                fn avx512($($argument: $type),*) $(-> $result)? {
                    plain($($argument),*)
                }
                #[target_feature(enable = "avx2")]
                fn avx2($($argument: $type),*) $(-> $result)? {
                    plain($($argument),*)
                }
                if is_x86_feature_detected!("avx512f")
                    && is_x86_feature_detected!("avx512dq")
                    && is_x86_feature_detected!("avx512vl")
                {
                    // SAFETY: the processor has the features that the function is compiled for.
                    return unsafe { avx512($($argument),*) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: as above.
                    return unsafe { avx2($($argument),*) };
                }
            }
            plain($($argument),*)
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
