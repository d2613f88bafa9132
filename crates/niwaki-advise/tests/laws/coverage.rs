//! Intervals cover as often as they claim, and narrow as they should.

use crate::support::{measure, sampled, tables};
use niwaki_advise::measure::{Measured, Settings};
use niwaki_exact::{Pair, Process, Reward};
use niwaki_stream::Key;

/// Batches per setting, and trajectories in each.
const BATCHES: usize = 400;
const LANES: usize = 400;

#[test]
fn intervals_of_the_witness_cover_ninety_five_in_a_hundred() {
    let process = Process::new(3, 4).unwrap();
    let payoff = Reward::TwoBranch.payoff(process).unwrap();
    // Counted over settings, batches and the three positions that have a prefix: 2 · 400 · 3 = 2400 intervals, those
    // of one batch correlated. Were they independent, the share would have a standard error of 0.45 points; the
    // margin of three points (92 to 98) is the one that is claimed.
    let (mut inside, mut total, mut inside_sum) = (0, 0, 0);
    for (drift, seed) in [(0.3, 11), (0.6, 12)] {
        let (old, new) = tables(process, drift, seed);
        let pair = Pair::new(&old, &new, &payoff).unwrap();
        let exact = pair.conditions().bias_witness;
        let sum: f64 = exact.iter().sum();
        for batch in 0..BATCHES {
            let mut noise = Key::new(seed, "coverage").iteration(batch as u64).open();
            let chunk = sampled(&old, &new, pair.old_values(), LANES, &mut noise);
            let came = measure(&chunk, Settings::default());
            for t in 1..process.horizon() {
                let row = came.positions[t];
                inside += usize::from((row.bias_witness - exact[t]).abs() <= row.bias_witness_error.unwrap());
                total += 1;
            }
            let (low, high) = interval(&came, "bias_total");
            inside_sum += usize::from(low <= sum && sum <= high);
        }
    }
    let share = inside as f64 / total as f64;
    assert!((0.92..=0.98).contains(&share), "{share} of {total} intervals of b_t cover");
    let share = inside_sum as f64 / (2 * BATCHES) as f64;
    assert!((0.92..=0.98).contains(&share), "{share} of the intervals of the sum cover");
}

fn interval(came: &Measured, name: &str) -> (f64, f64) {
    let number = came.numbers.iter().find(|number| number.name == name).unwrap();
    (number.low.unwrap(), number.high.unwrap())
}

#[test]
fn intervals_narrow_with_the_root_of_the_data() {
    let process = Process::new(3, 4).unwrap();
    let payoff = Reward::TwoBranch.payoff(process).unwrap();
    let (old, new) = tables(process, 0.4, 21);
    let pair = Pair::new(&old, &new, &payoff).unwrap();
    let width = |lanes: usize| {
        let widths = (0..20).map(|batch| {
            let mut noise = Key::new(lanes as u64, "narrow").iteration(batch).open();
            let came =
                measure(&sampled(&old, &new, pair.old_values(), lanes, &mut noise), Settings::default());
            let (low, high) = interval(&came, "bias_total");
            high - low
        });
        widths.sum::<f64>() / 20.0
    };
    // Sixteen times the data: a quarter of the width. A jackknife of 20 folds scatters by about 16%, the mean of 20
    // such widths by 4%; the margin is five of those for the ratio of two.
    let ratio = width(400) / width(6400);
    assert!((3.0..5.2).contains(&ratio), "{ratio}");
}

#[test]
fn groups_widen_the_interval_where_their_members_agree() {
    // Every trajectory four times over, as groups of four: the data is that of a quarter as many.
    let process = Process::new(3, 4).unwrap();
    let payoff = Reward::TwoBranch.payoff(process).unwrap();
    let (old, new) = tables(process, 0.4, 22);
    let pair = Pair::new(&old, &new, &payoff).unwrap();
    let mut noise = Key::new(1, "groups").open();
    let single = sampled(&old, &new, pair.old_values(), 400, &mut noise);
    let mut copied = single.clone();
    for copy in 1..4 {
        let steps = copy * single.steps();
        copied.old.extend(&single.old);
        copied.new.extend(&single.new);
        copied.advantage.extend(&single.advantage);
        copied.offsets.extend(single.offsets[1..].iter().map(|offset| offset + steps));
        copied.lanes.extend(&single.lanes);
    }
    for (at, lane) in copied.lanes.iter_mut().enumerate() {
        lane.group = Some((at % 400) as u64);
    }
    let (alone, together) = (measure(&single, Settings::default()), measure(&copied, Settings::default()));
    for (a, b) in alone.positions.iter().zip(&together.positions).skip(1) {
        let ratio = b.bias_witness_error.unwrap() / a.bias_witness_error.unwrap();
        assert!((ratio - 1.0).abs() < 1e-9, "{ratio}");
    }
}
