//! One source, several instruction sets: a kernel's loops are compiled for AVX-512, for AVX2 and for the baseline,
//! and the machine's best is chosen at run time. The loops are plain Rust that the compiler vectorises.

/// The instruction sets that kernels are compiled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// AVX-512 with F, BW, DQ, VL.
    #[cfg(target_arch = "x86_64")]
    Wide,
    /// AVX2 with FMA.
    #[cfg(target_arch = "x86_64")]
    Middle,
    /// Whatever the target guarantees.
    Base,
}

/// The best level of this machine; the standard library caches the detection.
#[inline]
pub(crate) fn level() -> Level {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("fma")
        {
            return Level::Wide;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Level::Middle;
        }
    }
    Level::Base
}

/// Compiles a function over a [`super::Real`] for every [`Level`] and calls the machine's.
macro_rules! vectorised {
    ($($(#[$meta:meta])* $vis:vis fn $name:ident<$f:ident: Real>($($arg:ident: $ty:ty),* $(,)?) $(-> $ret:ty)? $body:block)*) => {$(
        $(#[$meta])*
        $vis fn $name<$f: Real>($($arg: $ty),*) $(-> $ret)? {
            #[inline(always)]
            fn base<$f: Real>($($arg: $ty),*) $(-> $ret)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
            fn wide<$f: Real>($($arg: $ty),*) $(-> $ret)? {
                base($($arg),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2,fma")]
            fn middle<$f: Real>($($arg: $ty),*) $(-> $ret)? {
                base($($arg),*)
            }

            match $crate::cpu::simd::level() {
                // SAFETY: the level says that the machine has these features.
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::simd::Level::Wide => unsafe { wide($($arg),*) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                $crate::cpu::simd::Level::Middle => unsafe { middle($($arg),*) },
                $crate::cpu::simd::Level::Base => base($($arg),*),
            }
        }
    )*};
}

pub(crate) use vectorised;
