//! Draws that several distributions share.

use crate::Alternative;
use niwaki_stream::Stream;

/// A uniform whole number from `least` to `most`, both included.
pub(super) fn between(stream: &mut Stream, least: u32, most: u32) -> u32 {
    least + stream.below(u64::from(most - least) + 1) as u32
}

/// A random order of `0..count`.
pub(super) fn order(stream: &mut Stream, count: usize) -> Vec<u32> {
    let mut order: Vec<u32> = (0..count as u32).collect();
    stream.shuffle(&mut order);
    order
}

/// One operation's alternatives: a uniform number of machines, at random, in rising order.
pub(super) fn alternatives(
    stream: &mut Stream,
    machines: usize,
    mut time: impl FnMut(&mut Stream) -> u32,
) -> Vec<Alternative> {
    let mut chosen = order(stream, machines);
    chosen.truncate(between(stream, 1, machines as u32) as usize);
    chosen.sort_unstable();
    chosen.into_iter().map(|machine| Alternative { machine, time: time(stream) }).collect()
}
