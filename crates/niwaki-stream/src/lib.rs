//! Random streams keyed by (seed, purpose, iteration, lane), never by arm.
//!
//! A run is a pure function of its specification and its seed. Whatever needs noise opens a stream by naming
//! what the noise is for; two arms with the same seed then see the same instances, the same initial weights and
//! the same uniforms, whatever the thread count, the cohort or the place where a run was resumed.
//!
//! The generator is ChaCha8, a counter-based cipher: the key is (seed, purpose), the nonce is the iteration and
//! the counter starts afresh for each lane. Normal deviates use `libm`, so they have the same bits on every
//! machine.

mod choose;
mod stream;

pub use choose::{by_chance, by_log_chance, likeliest};
pub use stream::{Key, Stream};
