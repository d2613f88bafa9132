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
        let ones = word.count_ones();
        if n < ones {
            let mut word = word;
            for _ in 0..n {
                word &= word - 1;
            }
            return Some(64 * index as u32 + word.trailing_zeros());
        }
        n -= ones;
    }
    None
}

/// A uniformly drawn allowed action from 64 uniform bits (biased by less than 2⁻⁵⁰); `None` if none is allowed.
#[must_use]
#[inline]
pub fn pick(mask: &[u64], bits: u64) -> Option<u32> {
    let total = count(mask);
    nth(mask, ((u128::from(bits) * u128::from(total)) >> 64) as u32)
}

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
}
