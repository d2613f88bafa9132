//! Where a member's items are cut into blocks, and into two halves that two threads may take.
//!
//! Cuts depend on the items alone, never on threads or on other members, so results do not either.

use std::ops::Range;

/// The cuts of one member's items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Cuts {
    /// Where blocks end, in order; the last is the number of items.
    ends: Vec<usize>,
    /// Items of the largest block.
    largest: usize,
    /// Where the second half begins: at a cut, the first half no shorter.
    middle: usize,
}

impl Cuts {
    /// Blocks of `block` items, the last one what is left.
    pub(super) fn even(items: usize, block: usize) -> Self {
        let block = block.max(1);
        Self::at((0..items.div_ceil(block)).map(|place| ((place + 1) * block).min(items)).collect())
    }

    /// Blocks of whole runs, as many as `block` items have room for and at least one; `runs` are the ends of runs.
    pub(super) fn between(runs: &[usize], block: usize) -> Self {
        let mut ends: Vec<usize> = Vec::new();
        let mut start = 0;
        for (place, &end) in runs.iter().enumerate() {
            if runs.get(place + 1).is_none_or(|&next| next - start > block.max(1)) {
                ends.push(end);
                start = end;
            }
        }
        Self::at(ends)
    }

    fn at(ends: Vec<usize>) -> Self {
        let items = ends.last().copied().unwrap_or(0);
        let middle = ends.iter().copied().find(|end| 2 * end >= items).unwrap_or(0);
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let largest = starts.zip(&ends).map(|(start, end)| end - start).max().unwrap_or(0);
        Self { ends, largest, middle }
    }

    /// Items of the largest block.
    pub(super) fn largest(&self) -> usize {
        self.largest
    }

    /// Where the second half begins.
    pub(super) fn middle(&self) -> usize {
        self.middle
    }

    /// Whether there is a second half.
    pub(super) fn halves(&self) -> bool {
        self.ends.last().is_some_and(|&items| self.middle < items)
    }

    /// The blocks within some items that begin and end at cuts.
    pub(super) fn blocks(&self, items: Range<usize>) -> impl Iterator<Item = Range<usize>> + '_ {
        let first = self.ends.partition_point(|&end| end <= items.start);
        let last = self.ends.partition_point(|&end| end <= items.end);
        let ends = &self.ends[first..last];
        let starts = std::iter::once(items.start).chain(ends.iter().copied());
        starts.zip(ends).map(|(start, &end)| start..end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_blocks_and_their_halves() {
        // 10 items in blocks of 4: 4, 4, 2; the first half ends at the cut at or after 5.
        let cuts = Cuts::even(10, 4);
        assert_eq!(cuts.ends, [4, 8, 10]);
        assert_eq!((cuts.largest(), cuts.middle(), cuts.halves()), (4, 8, true));
        assert!(cuts.blocks(0..8).eq([0..4, 4..8]) && cuts.blocks(8..10).eq(std::iter::once(8..10)));
        assert!(!Cuts::even(4, 4).halves() && !Cuts::even(0, 4).halves());
        assert_eq!(Cuts::even(0, 4).blocks(0..0).count(), 0);
    }

    #[test]
    fn runs_stay_whole() {
        // Runs of 3, 1, 9, 2 and 2 items with room for 4: 3 and 1 fit together, 9 stands alone, then 2 and 2.
        let cuts = Cuts::between(&[3, 4, 13, 15, 17], 4);
        assert_eq!(cuts.ends, [4, 13, 17]);
        assert_eq!((cuts.largest(), cuts.middle()), (9, 13));
    }

    #[test]
    fn runs_of_one_are_even_blocks() {
        for items in 0..40 {
            let runs: Vec<usize> = (1..=items).collect();
            assert_eq!(Cuts::between(&runs, 7), Cuts::even(items, 7), "{items}");
        }
    }
}
