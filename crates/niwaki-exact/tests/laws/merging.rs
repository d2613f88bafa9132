//! Histories that merge: unbiased given the state, and what the path weight costs.

use crate::support::noise;
use niwaki_exact::{Merging, Payoff, Process, StateGraph, StatePair, Weights};

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

/// Tokens whose order is forgotten, as a graph; a row of logits per multiset.
fn multisets(vocab: usize, horizon: usize, pay: impl Fn(&[usize]) -> f64) -> StateGraph {
    let next = |counts: &Vec<usize>, token: usize| {
        let mut after = counts.clone();
        after[token] += 1;
        vec![(after, 1.0)]
    };
    StateGraph::new(
        vec![0; vocab],
        horizon,
        |_| (0..vocab).collect(),
        next,
        Clone::clone,
        |counts| pay(counts),
    )
    .unwrap()
}

#[test]
fn recursions_over_states_agree_with_all_paths_listed() {
    for (vocab, horizon) in [(2, 6), (3, 5), (4, 4)] {
        let process = Process::new(vocab, horizon).unwrap();
        let merging = Merging::multiset(process).unwrap();
        let graph = multisets(vocab, horizon, |counts| f64::from(counts[0] == 2));
        assert_eq!((graph.states(), graph.logits()), (merging.states(), merging.states() * vocab));
        let payoff = Payoff::from_fn(process, |tokens| {
            f64::from(tokens.iter().filter(|&&token| token == 0).count() == 2)
        });
        let (old, new) = (noise(graph.logits(), 1, 0.2), noise(graph.logits(), 2, 0.7));
        let cost = merging.cost(&old, &new, &payoff.unwrap()).unwrap();
        let pair = StatePair::new(&graph, &old, &new);
        let near = |ours: f64, theirs: f64| assert!((ours - theirs).abs() < 1e-12, "{ours} {theirs}");
        near(pair.improvement, cost.improvement);
        near(pair.premium().0, cost.gap_at.iter().sum());
        let (path, state) = (pair.worth(Weights::Path, 1.0, 64.0), pair.worth(Weights::State, 1.0, 64.0));
        near(path.bias, 0.0);
        near(state.bias, 0.0);
        near(path.variance, cost.path_variance);
        near(state.variance, cost.ratio_variance);
    }
}

#[test]
fn a_routed_path_weight_is_exact_and_on_a_tree_all_weights_are_one() {
    let graph = multisets(3, 5, |counts| f64::from(counts[0] == 2) + 0.1 * counts[1] as f64);
    let (old, new) = (noise(graph.logits(), 3, 0.2), noise(graph.logits(), 4, 0.8));
    let routed = StatePair::new(&graph, &old, &new).worth(Weights::Routed, 1.0, 64.0);
    assert!(routed.bias.abs() < 1e-13 && routed.cosine > 1.0 - 1e-12, "{routed:?}");
    assert!(routed.alignment < routed.cosine);
    // PPO is the strength of 0, whatever is weighed.
    let pair = StatePair::new(&graph, &old, &new);
    let ppo = pair.worth(Weights::Path, 0.0, 64.0);
    assert_eq!(ppo, pair.worth(Weights::Routed, 0.0, 64.0));
    assert!((ppo.alignment - pair.worth(Weights::State, 0.0, 64.0).alignment).abs() < 1e-12);

    let next = |tokens: &Vec<usize>, token: usize| vec![([&tokens[..], &[token]].concat(), 1.0)];
    let pay = |tokens: &Vec<usize>| tokens.iter().sum::<usize>() as f64;
    let tree = StateGraph::new(vec![], 4, |_| vec![0, 1], next, Clone::clone, pay).unwrap();
    let (old, new) = (noise(tree.logits(), 5, 0.2), noise(tree.logits(), 6, 0.8));
    let pair = StatePair::new(&tree, &old, &new);
    assert!(pair.premium().0.abs() < 1e-12 && pair.premium().1 > 0.1);
    for alpha in [0.25, 1.0] {
        let [path, state, seen] =
            [Weights::Path, Weights::State, Weights::Seen].map(|weights| pair.worth(weights, alpha, 64.0));
        for other in [state, seen] {
            assert!((path.variance - other.variance).abs() < 1e-12 && (path.bias - other.bias).abs() < 1e-13);
            assert!((path.alignment - other.alignment).abs() < 1e-12);
        }
    }
}

#[test]
fn what_the_policy_does_not_see_biases_weights_of_observations_alone() {
    // A coin falls before the second choice, which the policy does not see; the choice should follow it. The first choice
    // decides how likely heads are.
    let next = |state: &Vec<usize>, choice: usize| {
        let coin = if state.is_empty() { [0.9, 0.2][choice] } else { 1.0 };
        let with = |face: usize| [&state[..], &[choice, face]].concat();
        if state.is_empty() { vec![(with(0), coin), (with(1), 1.0 - coin)] } else { vec![(with(0), 1.0)] }
    };
    let pay = |state: &Vec<usize>| f64::from(state[1] == state[2]);
    // Neither the first choice nor the coin is seen.
    let graph = StateGraph::new(vec![], 2, |_| vec![0, 1], next, Vec::len, pay).unwrap();
    assert_eq!((graph.states(), graph.logits()), (5, 4));
    let (old, new) = ([0.0, 0.0, 0.3, -0.3], [1.0, -1.0, -0.5, 0.5]);
    let pair = StatePair::new(&graph, &old, &new);
    let worth = |weights| pair.worth(weights, 1.0, 64.0);
    assert!(worth(Weights::Path).bias.abs() < 1e-15 && worth(Weights::State).bias.abs() < 1e-15);
    assert!(worth(Weights::Routed).cosine > 1.0 - 1e-12);
    // Every trajectory comes by the one observation, whose ratio is 1: the estimate is PPO's.
    let (seen, ppo) = (worth(Weights::Seen), pair.worth(Weights::Path, 0.0, 64.0));
    assert!((seen.bias - ppo.bias).abs() < 1e-15 && seen.bias.abs() > 0.01, "{seen:?}");
}

#[test]
fn a_graph_that_is_none_is_refused() {
    let next = |state: &usize, choice: usize| vec![(state + choice, 1.0)];
    let closed = |state: &usize| if *state > 0 { vec![] } else { vec![1] };
    let refused = StateGraph::new(0, 2, closed, next, |state| *state, |_| 0.0).unwrap_err().to_string();
    assert!(refused.contains("step 1 has no choice"), "{refused}");
    let open = |state: &usize| if *state == 1 { vec![0] } else { vec![0, 1] };
    let refused = StateGraph::new(0, 2, open, next, |_| (), |_| 0.0).unwrap_err().to_string();
    assert!(refused.contains("look alike"), "{refused}");
}
