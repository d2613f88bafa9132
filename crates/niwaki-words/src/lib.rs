//! Near misses: the word that was probably meant.
//!
//! A refusal of a name says which known one it looks like, and says nothing where none does: `foo` is no slip for
//! `seed`.

/// Letters from which on a beginning names the one candidate that has it.
const BEGINNING: usize = 4;

/// The candidate that differs least from a word, if it is near enough to be a slip: at most one letter in three is
/// missing, superfluous, another or swapped. Upper and lower case are one. A word that one candidate alone begins with is
/// that candidate, cut short.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    let word: Vec<char> = word.to_lowercase().chars().collect();
    let far = |candidate: &str| distance(&word, &candidate.to_lowercase());
    let best = candidates.iter().copied().min_by_key(|candidate| far(candidate))?;
    let longer = word.len().max(best.chars().count());
    if far(best) <= longer.div_ceil(3) {
        return Some(best);
    }
    let word: String = word.iter().collect();
    let mut begun = candidates.into_iter().filter(|candidate| candidate.to_lowercase().starts_with(&word));
    begun.next().filter(|_| word.chars().count() >= BEGINNING && begun.next().is_none())
}

/// Letters to insert, delete, change or swap with their neighbour.
fn distance(from: &[char], to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    // The rows of the letter in hand, of the one before it, and of the one before that.
    let (mut last, mut row, mut next) = (vec![0; to.len() + 1], (0..=to.len()).collect::<Vec<_>>(), vec![]);
    for (i, letter) in from.iter().enumerate() {
        next.clear();
        next.push(i + 1);
        for (j, other) in to.iter().enumerate() {
            let mut least = (row[j] + usize::from(letter != other)).min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && *letter == to[j - 1] && from[i - 1] == *other {
                least = least.min(last[j - 1] + 1);
            }
            next.push(least);
        }
        std::mem::swap(&mut last, &mut row);
        std::mem::swap(&mut row, &mut next);
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_by_hand() {
        let distance = |a: &str, b: &str| distance(&a.chars().collect::<Vec<_>>(), b);
        // kitten → sitting: two letters changed, one inserted.
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "seed"), 4);
        // Neighbours swapped: one, not two.
        assert_eq!((distance("pop", "ppo"), distance("casual", "causal")), (1, 1));
        assert_eq!(distance("drift", "drift"), 0);
    }

    #[test]
    fn slips_are_recognised_and_strangers_are_not() {
        let known = ["seed", "iterations", "task", "policy", "rollout", "update"];
        for (word, meant) in
            [("sede", "seed"), ("iteration", "iterations"), ("Update", "update"), ("polciy", "policy")]
        {
            assert_eq!(nearest(word, known), Some(meant), "{word}");
        }
        for stranger in ["foo", "x", "", "learning_rate", "lr"] {
            assert_eq!(nearest(stranger, known), None, "{stranger}");
        }
        assert_eq!(nearest("seed", []), None);
        let labels = ["tab:diag-summary", "tab:h-detail", "tab:h-detail+long"];
        assert_eq!(nearest("TAB:diag", labels), Some("tab:diag-summary"));
        // Two begin with this, and three letters say too little.
        assert_eq!((nearest("tab:", labels), nearest("see", ["seedling-of-much"])), (None, None));
    }
}
