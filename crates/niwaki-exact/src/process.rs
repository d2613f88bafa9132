//! The enumerable process: tokens, prefixes and the numbering of its tree.
//!
//! Owns the index arithmetic; knows nothing of policies or rewards.
//!
//! Prefixes are numbered breadth first with the first token most significant, so that the children of node `p`
//! are the nodes `V·p + 1 … V·p + V`: the edge `e = V·p + a` ends in node `e + 1`. Every array over edges is
//! therefore a table `[prefixes, vocab]`, and levels are contiguous.

use crate::Error;
use std::fmt;
use std::ops::Range;

/// A process in which one of `vocab` tokens is chosen at each of `horizon` steps and the state is the prefix.
///
/// Paper: `sec:setting` (history-injective: the state is the prefix), `sec:setup`, `app:testbed-protocol`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    vocab: usize,
    horizon: usize,
    prefixes: usize,
}

impl Process {
    /// What a pair of policies may take unless told otherwise: 8 GiB.
    pub const MEMORY: u64 = 8 << 30;

    /// Arrays over edges that a pair and a measurement hold at once, with some room.
    const ARRAYS: u128 = 24;

    /// A process that fits [`Process::MEMORY`].
    ///
    /// # Errors
    /// Where the vocabulary or horizon is too small, or the arrays would not fit; nothing is allocated.
    pub fn new(vocab: usize, horizon: usize) -> Result<Self, Error> {
        Self::within(vocab, horizon, Self::MEMORY)
    }

    /// A process that fits `limit` bytes.
    ///
    /// # Errors
    /// As [`Process::new`].
    pub fn within(vocab: usize, horizon: usize, limit: u64) -> Result<Self, Error> {
        if vocab < 2 || horizon == 0 {
            return Err(Error::Empty { vocab, horizon });
        }
        let fits = |horizon| bytes(vocab, horizon) <= u128::from(limit);
        if !fits(horizon) {
            let mend = match (1..horizon).take_while(|&shorter| fits(shorter)).last() {
                Some(longest) => format!("the longest horizon that fits is {longest}"),
                None => "even horizon 1 does not fit: choose a smaller vocabulary".to_owned(),
            };
            return Err(Error::TooLarge { vocab, horizon, needed: bytes(vocab, horizon), limit, mend });
        }
        Ok(Self { vocab, horizon, prefixes: start(vocab, horizon) })
    }

    /// The horizon of a table with so many rows, one per prefix; nothing where no process has as many.
    #[must_use]
    pub fn horizon_of(prefixes: usize, vocab: usize) -> Option<usize> {
        let (mut rows, mut level, mut horizon) = (0_usize, 1_usize, 0);
        // A vocabulary of nothing has one prefix, the empty one.
        while rows < prefixes && level > 0 {
            rows = rows.checked_add(level)?;
            level = level.checked_mul(vocab)?;
            horizon += 1;
        }
        (rows == prefixes && horizon > 0).then_some(horizon)
    }

    /// Number of tokens.
    #[must_use]
    pub const fn vocab(&self) -> usize {
        self.vocab
    }

    /// Number of steps.
    #[must_use]
    pub const fn horizon(&self) -> usize {
        self.horizon
    }

    /// Number of states in which a token is chosen, the rows of a table: `(V^T − 1) / (V − 1)`.
    #[must_use]
    pub const fn prefixes(&self) -> usize {
        self.prefixes
    }

    /// Number of (state, token) pairs, the values of a table.
    #[must_use]
    pub const fn edges(&self) -> usize {
        self.prefixes * self.vocab
    }

    /// Number of complete sequences, `V^T`.
    #[must_use]
    pub const fn sequences(&self) -> usize {
        self.edges() + 1 - self.prefixes
    }

    /// Whether waking other threads is worth it: below this, all twelve losses of the testbed take about a millisecond.
    pub(crate) const fn is_worth_threads(&self) -> bool {
        self.edges() >= 1 << 14
    }

    /// About how many bytes one pair with a measurement takes.
    #[must_use]
    pub fn bytes(&self) -> u128 {
        bytes(self.vocab, self.horizon)
    }

    /// The states of step `level`, as rows of a table.
    #[must_use]
    pub fn level(&self, level: usize) -> Range<usize> {
        start(self.vocab, level)..start(self.vocab, level + 1)
    }

    /// The states of the last step.
    pub(crate) fn last_rows(&self) -> Range<usize> {
        self.prefixes / self.vocab..self.prefixes
    }

    /// Number of edges that lead to another choice: those of all steps but the last.
    pub(crate) const fn inner_edges(&self) -> usize {
        self.prefixes / self.vocab * self.vocab
    }

    /// The edges that leave the states of step `level`.
    #[must_use]
    pub fn level_edges(&self, level: usize) -> Range<usize> {
        let rows = self.level(level);
        rows.start * self.vocab..rows.end * self.vocab
    }

    /// The row of a prefix, or `prefixes()` plus the sequence's index for a complete sequence.
    #[must_use]
    pub fn row(&self, tokens: &[usize]) -> usize {
        tokens.iter().fold(0, |node, &token| self.vocab * node + 1 + token)
    }

    /// The edges of the path that ends in `edge`. Shapes: `path [horizon]`
    pub(crate) fn walk(&self, edge: usize, path: &mut [usize]) {
        let mut edge = edge;
        for place in path.iter_mut().rev() {
            *place = edge;
            // A row but the first is the child of the edge before it.
            edge = (edge / self.vocab).saturating_sub(1);
        }
    }

    /// Calls `visit(index, tokens)` for every complete sequence in order, the first token most significant.
    pub fn each_sequence(&self, mut visit: impl FnMut(usize, &[usize])) {
        let mut tokens = vec![0; self.horizon];
        for index in 0..self.sequences() {
            visit(index, &tokens);
            // Counts on, the last token fastest.
            for token in tokens.iter_mut().rev() {
                *token += 1;
                if *token < self.vocab {
                    break;
                }
                *token = 0;
            }
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "vocab {}, horizon {}", self.vocab, self.horizon)
    }
}

/// The first node of a level, `(V^t − 1) / (V − 1)`.
fn start(vocab: usize, level: usize) -> usize {
    (0..level).fold(0, |start, _| vocab * start + 1)
}

/// The memory estimate; saturates, so that no horizon is too long to be refused.
fn bytes(vocab: usize, horizon: usize) -> u128 {
    let vocab = vocab as u128;
    let mut edges = 0_u128;
    for _ in 0..horizon {
        edges = edges.saturating_add(1).saturating_mul(vocab);
        if edges == u128::MAX {
            break;
        }
    }
    edges.saturating_mul(8 * Process::ARRAYS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizons_from_rows() {
        assert_eq!(Process::horizon_of(1365, 4), Some(6));
        assert_eq!(Process::horizon_of(1, 4), Some(1));
        assert_eq!(Process::horizon_of(1364, 4), None);
        assert_eq!(Process::horizon_of(0, 4), None);
        assert_eq!(Process::horizon_of(1 << 40, 0), None);
    }

    #[test]
    fn numbering_by_hand() {
        // V = 4, T = 6: 1 + 4 + 16 + 64 + 256 + 1024 = 1365 rows. Prefix (2, 1): level 2 starts at 1 + 4 = 5,
        // plus 2·4 + 1 = 9, so row 14.
        let process = Process::new(4, 6).unwrap();
        assert_eq!((process.prefixes(), process.edges(), process.sequences()), (1365, 5460, 4096));
        assert_eq!(process.row(&[2, 1]), 14);
        assert_eq!((process.level(0), process.level(2), process.level(5)), (0..1, 5..21, 341..1365));
        assert_eq!((process.last_rows(), process.inner_edges()), (341..1365, 4 * 341));
        assert_eq!(process.row(&[0, 0, 0, 0, 0, 3]), 1365 + 3);
        let mut last = vec![];
        process.each_sequence(|index, tokens| {
            assert_eq!(process.row(tokens), 1365 + index);
            last = tokens.to_vec();
        });
        assert_eq!(last, [3; 6]);
    }

    #[test]
    fn refusals() {
        assert_eq!(Process::new(1, 3), Err(Error::Empty { vocab: 1, horizon: 3 }));
        let refuse = |vocab, horizon| Process::new(vocab, horizon).unwrap_err().to_string();
        // 4 + 16 + … + 4^14 = 357 913 940 edges, times 192 bytes.
        assert_eq!(
            refuse(4, 14),
            "vocab 4, horizon 14 needs about 64 GiB of memory and the limit is 8 GiB; \
             the longest horizon that fits is 12"
        );
        assert!(refuse(4, 1_000_000).ends_with("the longest horizon that fits is 12"));
        assert!(refuse(1 << 40, 3).ends_with("even horizon 1 does not fit: choose a smaller vocabulary"));
    }
}
