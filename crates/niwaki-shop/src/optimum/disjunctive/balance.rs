//! Machines for all operations so that the machines share the work evenly and waste little: what a schedule needs that hardly
//! lets a machine rest.

use super::shop::Shop;
use niwaki_stream::Stream;

/// Rounds of annealing, in each of which every operation may change machines once.
const ROUNDS: u32 = 300;

/// Loads count by a power that grows from the first to the last: at first waste decides, at last the largest load.
const POWERS: (f64, f64) = (2.0, 128.0);

/// What a rise of one machine's cost by so much of itself is at first, and at last, for each unit of the power.
const HEATS: (f64, f64) = (1e-3, 1e-5);

/// A chosen alternative of each operation, as indices into [`Shop::choices`].
///
/// Method: annealing of the sum of powers of loads, from every operation where it is quickest.
pub(super) fn balanced(shop: &Shop, stream: &mut Stream) -> Vec<u32> {
    let quickest =
        |one| shop.choices_of(one).min_by_key(|&choice| shop.choices[choice].time).unwrap_or(0) as u32;
    let mut chosen: Vec<u32> = (0..shop.operations()).map(quickest).collect();
    anneal(shop, &mut chosen, 0, stream);
    chosen
}

/// Mends a choice of machines without changing it more than that takes: the last rounds alone.
pub(super) fn rebalance(shop: &Shop, chosen: &mut [u32], stream: &mut Stream) {
    anneal(shop, chosen, ROUNDS / 2, stream);
}

fn anneal(shop: &Shop, chosen: &mut [u32], first: u32, stream: &mut Stream) {
    let mut loads = vec![0.0; shop.machines];
    for &choice in &*chosen {
        let choice = shop.choices[choice as usize];
        loads[choice.machine as usize] += f64::from(choice.time);
    }
    let mean = (loads.iter().sum::<f64>() / shop.machines as f64).max(1.0);
    for round in first..ROUNDS {
        let between =
            |(first, last): (f64, f64)| first * (last / first).powf(f64::from(round) / f64::from(ROUNDS));
        let (power, heat) = (between(POWERS), between(POWERS) * between(HEATS));
        let cost = |load: f64| (load / mean).powf(power);
        for one in 0..shop.operations() {
            let choices = shop.choices_of(one);
            if choices.len() < 2 {
                continue;
            }
            let drawn = choices.start + stream.below(choices.len() as u64) as usize;
            let (old, new) = (shop.choices[chosen[one] as usize], shop.choices[drawn]);
            if old.machine == new.machine {
                continue;
            }
            let (from, to) = (loads[old.machine as usize], loads[new.machine as usize]);
            let (less, more) = (from - f64::from(old.time), to + f64::from(new.time));
            let rise = cost(less) + cost(more) - cost(from) - cost(to);
            if rise <= 0.0 || stream.uniform() < (-rise / heat).exp() {
                (loads[old.machine as usize], loads[new.machine as usize]) = (less, more);
                chosen[one] = drawn as u32;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alternative, FlexibleShop};
    use niwaki_stream::Key;

    #[test]
    fn work_is_shared_where_that_wastes_little() {
        // Eight jobs of 6 on either of two machines, one of 20 on a third or 90 on the first: 24, 24 and 20.
        let either = vec![Alternative { machine: 0, time: 6 }, Alternative { machine: 1, time: 6 }];
        let own = vec![Alternative { machine: 2, time: 20 }, Alternative { machine: 0, time: 90 }];
        let jobs: Vec<_> = (0..8).map(|_| vec![either.clone()]).chain([vec![own]]).collect();
        let shop = Shop::from(&FlexibleShop::new(3, &jobs).unwrap());
        let mut loads = [0; 3];
        for choice in balanced(&shop, &mut Key::new(1, "tests/balance").open()) {
            let choice = shop.choices[choice as usize];
            loads[choice.machine as usize] += choice.time;
        }
        assert_eq!(loads, [24, 24, 20]);
    }
}
