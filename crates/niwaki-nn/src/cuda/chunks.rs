//! A member's flat buffers in chunks, and which of them rest.
//!
//! A chunk rests while nothing in it has had a gradient: it holds rows of large tables that no pass has looked up. Its gradient and the
//! optimiser's moments are zero, so that a step without weight decay leaves it as it is, and whatever goes through gradients passes it by.

use super::lower::padded;
use crate::graph::Graph;
use crate::ops::looked_up;
use std::ops::Range;

/// Scalars of a chunk.
pub(crate) const CHUNK: usize = 1 << 14;

/// Chunks of a member's flat buffers.
pub(crate) fn chunks(length: usize) -> usize {
    length.div_ceil(CHUNK)
}

/// The chunks that some scalars lie in.
pub(crate) fn chunks_of(scalars: &Range<usize>) -> Range<usize> {
    scalars.start / CHUNK..chunks(scalars.end)
}

/// For each chunk: whether it rests until a pass looks up one of its rows.
pub(super) fn resting(graph: &Graph) -> Vec<bool> {
    let mut resting = vec![true; chunks(padded(graph))];
    for (slice, looked_up) in graph.layout().slices().iter().zip(looked_up(graph)) {
        if !looked_up {
            resting[chunks_of(&slice.range())].fill(false);
        }
    }
    resting
}

/// For each chunk of a member's flat buffer: whether any of these is not zero in it.
pub(super) fn stirred<'a>(flats: impl Iterator<Item = &'a [f32]>, length: usize) -> Vec<bool> {
    let mut stirred = vec![false; chunks(length)];
    for flat in flats {
        for (stirred, chunk) in stirred.iter_mut().zip(flat.chunks(CHUNK)) {
            *stirred = *stirred || chunk.iter().any(|&entry| entry != 0.0);
        }
    }
    stirred
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Init;
    use crate::ops::Activation;

    #[test]
    fn chunks_of_tables_that_are_only_looked_up_rest() {
        let mut g = Graph::new();
        let tokens = g.indices("tokens", 2, 1000);
        let normal = Init::Normal { deviation: 1.0 };
        let table = g.param("table", &[1000, 64], normal).unwrap();
        let weight = g.param("weight", &[64, 64], Init::Zeros).unwrap();
        let tied = g.param("tied", &[1000, 64], normal).unwrap();
        let (x, y) = (g.embed(table, tokens).unwrap(), g.embed(tied, tokens).unwrap());
        g.linear(x, weight, None, Activation::None).unwrap();
        g.linear_tied(y, tied).unwrap();
        // 64,000 scalars, then 4,096, then 64,000: 3.9, 0.25 and 3.9 chunks. The table that is multiplied by never rests.
        let expected = [true, true, true, false, false, false, false, false, false];
        assert_eq!(resting(&g), expected);
    }

    #[test]
    fn what_is_not_zero_is_stirred() {
        let (mut one, mut other) = (vec![0.0; 2 * CHUNK + 5], vec![0.0; 2 * CHUNK + 5]);
        one[CHUNK - 1] = 1e-40;
        other[2 * CHUNK] = -1.0;
        assert_eq!(stirred([&*one, &*other].into_iter(), 2 * CHUNK + 64), [true, false, true]);
    }
}
