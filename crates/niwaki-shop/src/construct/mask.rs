//! Masks of legal actions: bits, 64 to a word, action 0 in the lowest bit of the first.

/// How many actions a mask allows.
#[must_use]
pub fn count(mask: &[u64]) -> u32 {
    mask.iter().map(|word| word.count_ones()).sum()
}

/// The `n`-th allowed action, from 0; `None` if fewer are allowed.
#[must_use]
#[inline]
pub fn nth(mask: &[u64], mut n: u32) -> Option<u32> {
    for (index, &word) in mask.iter().enumerate() {
        let counts = cumulative(word);
        let ones = (counts >> 56) as u32;
        if n < ones {
            return Some(64 * index as u32 + select(word, counts, n));
        }
        n -= ones;
    }
    None
}

/// A uniformly drawn allowed action from 64 uniform bits (biased by less than 2⁻⁵⁰); `None` if none is allowed.
#[must_use]
#[inline]
pub fn pick(mask: &[u64], bits: u64) -> Option<u32> {
    let scale = |total: u32| ((u128::from(bits) * u128::from(total)) >> 64) as u32;
    if let &[word] = mask {
        // The usual case, without a second count.
        let counts = cumulative(word);
        let total = (counts >> 56) as u32;
        return (total > 0).then(|| select(word, counts, scale(total)));
    }
    nth(mask, scale(count(mask)))
}

/// One bit in each byte.
const ONES: u64 = 0x0101_0101_0101_0101;

/// In byte i, how many bits of bytes 0 to i are set.
#[inline]
const fn cumulative(word: u64) -> u64 {
    let pairs = word - ((word >> 1) & 0x5555_5555_5555_5555);
    let nibbles = (pairs & 0x3333_3333_3333_3333) + ((pairs >> 2) & 0x3333_3333_3333_3333);
    let bytes = (nibbles + (nibbles >> 4)) & 0x0f0f_0f0f_0f0f_0f0f;
    bytes.wrapping_mul(ONES)
}

/// The place of the `n`-th set bit, which must exist: the byte by comparing all cumulative counts at once, the bit by
/// a table. Without branches, because where a random pick ends cannot be predicted.
#[inline]
fn select(word: u64, counts: u64, n: u32) -> u32 {
    // A byte's top bit stays set where its count is at most n; counts are at most 64 and n at most 63.
    let passed = (((u64::from(n) * ONES) | (ONES << 7)) - counts) & (ONES << 7);
    let byte = ((passed >> 7).wrapping_mul(ONES) >> 56) as u32;
    let before = (counts << 8) >> (8 * byte) & 0xff;
    let here = (word >> (8 * byte)) as u8;
    8 * byte + u32::from(BIT[here as usize][(u64::from(n) - before) as usize & 7])
}

/// The place of each set bit of each byte.
const BIT: [[u8; 8]; 256] = {
    let mut table = [[0; 8]; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut bit, mut seen) = (0, 0);
        while bit < 8 {
            if byte >> bit & 1 == 1 {
                table[byte][seen] = bit as u8;
                seen += 1;
            }
            bit += 1;
        }
        byte += 1;
    }
    table
};

/// Whether a mask allows an action.
#[inline]
pub(super) fn allows(mask: &[u64], action: u32) -> bool {
    mask.get(action as usize / 64).is_some_and(|word| word >> (action % 64) & 1 == 1)
}

/// Sets the lowest `bits` bits.
pub(super) fn fill(mask: &mut [u64], bits: usize) {
    for (index, word) in mask.iter_mut().enumerate() {
        *word = match bits.saturating_sub(64 * index) {
            0 => 0,
            left if left >= 64 => u64::MAX,
            left => (1 << left) - 1,
        };
    }
}

/// Forbids an action.
#[inline]
pub(super) fn forbid(mask: &mut [u64], action: usize) {
    mask[action / 64] &= !(1 << (action % 64));
}

/// Allows an action.
#[inline]
pub(super) fn allow(mask: &mut [u64], action: usize) {
    mask[action / 64] |= 1 << (action % 64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_across_words() {
        let mut mask = [0; 2];
        fill(&mut mask, 70);
        assert_eq!(count(&mask), 70);
        forbid(&mut mask, 0);
        forbid(&mut mask, 65);
        assert_eq!(
            (nth(&mask, 0), nth(&mask, 63), nth(&mask, 64), nth(&mask, 68)),
            (Some(1), Some(64), Some(66), None)
        );
        assert!(allows(&mask, 69) && !allows(&mask, 65) && !allows(&mask, 700));
        assert_eq!((pick(&mask, 0), pick(&mask, u64::MAX), pick(&[0], 7)), (Some(1), Some(69), None));
    }

    #[test]
    fn selecting_equals_clearing_bits_one_by_one() {
        let mut stream = niwaki_stream::Key::new(1, "law").open();
        for round in 0..2000 {
            // Full, sparse and dense words.
            let word = match round % 4 {
                0 => stream.bits(),
                1 => stream.bits() & stream.bits() & stream.bits(),
                2 => stream.bits() | stream.bits() | stream.bits(),
                _ => u64::MAX >> (round / 4 % 64),
            };
            let mut rest = word;
            for n in 0..word.count_ones() {
                assert_eq!(nth(&[word], n), Some(rest.trailing_zeros()), "{word:#x} at {n}");
                rest &= rest - 1;
            }
            assert_eq!(nth(&[word], word.count_ones()), None);
        }
    }
}
