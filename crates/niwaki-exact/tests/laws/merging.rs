//! Histories that merge: unbiased given the state, and what the path weight costs.

use crate::support::noise;
use niwaki_exact::{Merging, Payoff, Process};

#[test]
fn the_path_weight_is_unbiased_given_the_state_and_costs_variance() {
    for (vocab, horizon) in [(2, 6), (3, 5), (4, 4)] {
        let process = Process::new(vocab, horizon).unwrap();
        let merging = Merging::multiset(process).unwrap();
        let old = noise(merging.states() * vocab, 1, 0.2);
        let new = noise(merging.states() * vocab, 2, 0.7);
        let payoff = Payoff::from_fn(process, |tokens| {
            f64::from(tokens.iter().filter(|&&token| token == 0).count() == 2)
        });
        let cost = merging.cost(&old, &new, &payoff.unwrap()).unwrap();
        assert!(cost.conditional_bias_at.iter().all(|bias| *bias < 1e-13), "{cost:?}");
        // Both weights estimate the same improvement without bias.
        assert!((cost.path_mean - cost.improvement).abs() < 1e-15, "{cost:?}");
        assert!((cost.ratio_mean - cost.improvement).abs() < 1e-15, "{cost:?}");
        // One path per state after at most one token; from the second on, paths merge and the gap grows.
        assert!(cost.gap_at[..2].iter().all(|gap| *gap < 1e-28), "{cost:?}");
        assert!(cost.gap_at[2..].windows(2).all(|gap| 0.0 < gap[0] && gap[0] < gap[1]), "{cost:?}");
        assert!(cost.path_variance > 1.01 * cost.ratio_variance, "{cost:?}");
    }
}

#[test]
fn an_injective_map_has_no_gap() {
    let process = Process::new(3, 4).unwrap();
    let tree = Merging::new(process, <[usize]>::to_vec).unwrap();
    assert_eq!(tree.states(), process.prefixes());
    let payoff = Payoff::from_fn(process, |tokens| tokens.iter().sum::<usize>() as f64).unwrap();
    let (old, new) = (noise(process.edges(), 3, 0.2), noise(process.edges(), 4, 0.8));
    let cost = tree.cost(&old, &new, &payoff).unwrap();
    assert!(cost.gap_at.iter().all(|gap| *gap < 1e-28), "{cost:?}");
    assert!((cost.path_variance / cost.ratio_variance - 1.0).abs() < 1e-13);
}
