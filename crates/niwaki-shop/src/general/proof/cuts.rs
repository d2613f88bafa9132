//! Loads that machines share, as constraints: sums of machine choices against the makespan.

use crate::general::list::Flat;
use crate::optimum::Node;
use crate::optimum::disjunctive::{Budget, Cut, Group};
use crate::optimum::learning::{Engine, Var};

/// Adds every cut of a job shop whose operations are all still to come.
pub(super) fn add(engine: &mut Engine, nodes: &[Node], flat: &Flat<'_>, cuts: &[Cut], makespan: Var) {
    for cut in cuts {
        let mut groups = Vec::new();
        let mut offset = cut.offset;
        for (modes, node) in flat.modes.iter().zip(nodes) {
            let weights: Vec<i64> =
                modes.iter().map(|&(machine, time)| cut.weight(machine) * i64::from(time)).collect();
            // What no choice changes is no choice.
            if weights.iter().all(|&weight| weight == weights[0]) {
                offset += weights[0];
            } else {
                groups.push(Group { choices: node.chosen.iter().copied().zip(weights).collect() });
            }
        }
        let mut sides: Vec<u32> = vec![2 * makespan + 1];
        for (fact, _) in groups.iter().flat_map(|group| &group.choices) {
            sides.extend([fact.side, fact.side ^ 1]);
        }
        engine.global(Box::new(Budget::new(groups, makespan, cut.slope(), offset)), sides);
    }
}
