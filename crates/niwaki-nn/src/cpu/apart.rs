//! Which rows of a value need work of their own.
//!
//! Of what is not there a graph has rows of zeros, and what an op that takes rows apart makes of them is alike. One of them is worked on,
//! and the others are copies of it.

use super::Real;
use super::rows::copy;
use niwaki_simd::vectorised;
use std::ops::Range;

/// The rows of a value that are worked on.
#[derive(Clone, Debug, Default)]
pub(crate) struct Apart {
    /// Rising.
    rows: Vec<u32>,
    /// The one of them that all others, which stand behind it, are like; `None` where there are no others.
    like: Option<u32>,
    /// Rows in all; none until they were looked at.
    total: usize,
}

impl Apart {
    /// Forgets which rows are alike.
    pub(super) fn forget(&mut self) {
        self.total = 0;
    }

    /// Whether the rows were looked at.
    pub(crate) fn is_known(&self) -> bool {
        self.total > 0
    }

    /// Looks at so many rows, of which some are all alike.
    pub(crate) fn look(&mut self, total: usize, alike: impl Fn(usize) -> bool) {
        self.rows.clear();
        (self.like, self.total) = (None, total);
        for row in 0..total {
            if alike(row) {
                if self.like.is_some() {
                    continue;
                }
                self.like = Some(row as u32);
            }
            self.rows.push(row as u32);
        }
    }

    /// Becomes as another is.
    pub(crate) fn become_like(&mut self, other: &Self) {
        self.rows.clone_from(&other.rows);
        (self.like, self.total) = (other.like, other.total);
    }

    /// Whether some rows can be left out.
    pub(crate) fn leaves_out(&self) -> bool {
        self.rows.len() < self.total
    }

    /// The rows that are worked on.
    pub(crate) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Fills the rows that were left out, once the others are there.
    pub(crate) fn fill<F: Real>(&self, values: &mut [F]) {
        if let Some(like) = self.like {
            fill(&self.rows, like as usize, values.len() / self.total, values);
        }
    }
}

vectorised! {
    /// Makes all rows that are not listed like one that is, which is the first that is like them.
    fn fill<F: Real>(listed: &[u32], like: usize, width: usize, values: &mut [F]) {
        let (before, behind) = values.split_at_mut((like + 1) * width);
        let like_row = &before[like * width..];
        let mut listed = listed[listed.partition_point(|&row| row as usize <= like)..].iter().map(|&row| row as usize);
        let mut next = listed.next();
        for (row, to) in (like + 1..).zip(behind.chunks_exact_mut(width)) {
            if next == Some(row) {
                next = listed.next();
            } else {
                copy(like_row, to);
            }
        }
    }
}

/// Listed rows that stand one after the other, run by run.
pub(crate) fn runs(rows: &[u32]) -> impl Iterator<Item = Range<usize>> + '_ {
    let together = rows.chunk_by(|one, next| one + 1 == *next);
    together.map(|run| run[0] as usize..run[0] as usize + run.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_row_stands_for_all_that_are_like_it() {
        let mut apart = Apart::default();
        assert!(!apart.is_known());
        let mut values = [1.0, 1.5, 0.0, 0.5, 9.0, 9.0, 3.0, 3.5, 9.0, 9.0];
        apart.look(5, |row| [1, 2, 4].contains(&row));
        assert_eq!((apart.rows(), apart.leaves_out()), (&[0, 1, 3][..], true));
        assert!(runs(apart.rows()).eq([0..2, 3..4]));
        apart.fill(&mut values);
        assert_eq!(values, [1.0, 1.5, 0.0, 0.5, 0.0, 0.5, 3.0, 3.5, 0.0, 0.5]);
        apart.look(5, |row| row == 2);
        assert!(apart.is_known() && !apart.leaves_out() && apart.rows().len() == 5);
    }
}
