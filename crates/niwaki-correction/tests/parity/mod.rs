//! Why the parity of K matters: steps of one length and the clip's gate swing with period two. `docs/parity.md` tells it.

use niwaki_correction::{Batch, Rows, Surrogate, Workspace};

/// Four steps, whose log-ratios are linear in two parameters; all were good. Three of them want the first parameter to
/// grow, the fourth wants it to shrink, and a little of the second.
const WANTS: [[f64; 2]; 4] = [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [-0.96, 0.28]];

/// How an update goes about its epochs.
#[derive(Clone, Copy)]
struct Update {
    /// The length of a step.
    rate: f64,
    /// Whether it falls in a straight line to nothing within the update.
    falling: bool,
    /// Whether the mean of the last two iterates is taken.
    averaged: bool,
    /// Whether the objective is clipped.
    clipped: bool,
}

fn log_ratios(parameters: [f64; 2]) -> [f64; 4] {
    WANTS.map(|[first, second]| first * parameters[0] + second * parameters[1])
}

/// The parameters after `epochs` steps of one length along the gradient of the clipped objective.
fn updated(update: Update, epochs: usize) -> [f64; 2] {
    let surrogate: Surrogate = "ppo".parse().unwrap();
    let surrogate = Surrogate { clip: surrogate.clip.filter(|_| update.clipped), ..surrogate };
    let (rollout, advantage, mut workspace) = ([0.0; 4], [1.0; 4], Workspace::default());
    let (mut before, mut now) = ([0.0; 2], [0.0; 2]);
    for epoch in 0..epochs {
        let log_prob = log_ratios(now);
        let batch = Batch::new(Rows::uniform(1), &log_prob, &rollout, &advantage);
        let cotangent = surrogate.cotangent(&batch, &mut workspace).unwrap();
        let pull = |axis: usize| WANTS.iter().zip(cotangent).map(|(wants, pull)| wants[axis] * pull).sum();
        let gradient: [f64; 2] = [pull(0), pull(1)];
        let norm = gradient[0].hypot(gradient[1]);
        let left = if update.falling { 1.0 - epoch as f64 / epochs as f64 } else { 1.0 };
        before = now;
        if norm > 1e-12 {
            let step = |axis: usize| now[axis] + update.rate * left * gradient[axis] / norm;
            now = [step(0), step(1)];
        }
    }
    if update.averaged { [f64::midpoint(before[0], now[0]), f64::midpoint(before[1], now[1])] } else { now }
}

/// The mean squared log-ratio after 10, 11, 12 and 13 steps.
fn drifts(update: Update) -> [f64; 4] {
    [10, 11, 12, 13].map(|epochs| {
        log_ratios(updated(update, epochs)).iter().map(|ratio| ratio * ratio).sum::<f64>() / 4.0
    })
}

const PLAIN: Update = Update { rate: 0.5, falling: false, averaged: false, clipped: true };

fn assert_near(came: [f64; 4], expected: [f64; 4]) {
    for (came, expected) in came.iter().zip(expected) {
        assert!((came - expected).abs() < 5e-4, "{came} {expected}");
    }
}

#[test]
fn steps_of_one_length_swing_across_the_gate() {
    // The first step goes along (3 − 0.96, 0.28) / 4, normalised: out to (0.495, 0.068). There the three are past 1.2 and
    // gated; only the fourth pulls, along its own direction, for as long a step: back to (0.015, 0.208).
    let [first, second] = [1, 2].map(|epochs| updated(PLAIN, epochs));
    assert!((first[0] - 0.495).abs() < 5e-4 && (first[1] - 0.068).abs() < 5e-4, "{first:?}");
    assert!((second[0] - 0.015).abs() < 5e-4 && (second[1] - 0.208).abs() < 5e-4, "{second:?}");
    assert_near(drifts(PLAIN), [0.017, 0.261, 0.022, 0.276]);
    // A tenth of the length swings about the gate's edge instead: the other way round, and by less.
    assert_near(drifts(Update { rate: 0.05, ..PLAIN }), [0.039, 0.022, 0.039, 0.022]);
}

#[test]
fn a_falling_rate_or_a_mean_of_two_takes_the_swing_away() {
    let spread = |drifts: [f64; 4]| {
        let (even, odd) = (drifts[0] + drifts[2], drifts[1] + drifts[3]);
        odd.max(even) / odd.min(even)
    };
    assert!(spread(drifts(PLAIN)) > 10.0);
    let falling = drifts(Update { falling: true, ..PLAIN });
    assert_near(falling, [0.027, 0.039, 0.035, 0.021]);
    let averaged = drifts(Update { averaged: true, ..PLAIN });
    assert_near(averaged, [0.073, 0.078, 0.083, 0.088]);
    assert!(spread(falling) < 1.1 && spread(averaged) < 1.1);
}

#[test]
fn without_a_gate_nothing_swings() {
    // Nobody is held back, so every step goes on outward.
    let drifts = drifts(Update { clipped: false, ..PLAIN });
    assert!(drifts.windows(2).all(|pair| pair[1] > pair[0]), "{drifts:?}");
}
