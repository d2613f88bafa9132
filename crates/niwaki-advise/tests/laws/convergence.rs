//! Following the advice to gather more data ends with a decision.
//!
//! A dump of a regime is judged; where the verdict asks for more trajectories, that many more are drawn, and so on.

use crate::regime::{Regime, Way};
use crate::support::number;
use niwaki_advise::measure::{Measure, Settings};
use niwaki_advise::verdict::{Action, REALISTIC, Verdict};
use niwaki_stream::Key;

const BATCH: f64 = 256.0;

/// Times that more data is brought.
const ROUNDS: usize = 4;

/// What following the advice ends with, and after how many rounds.
fn follow(regime: &Regime, lanes: usize, seed: u64) -> (Action, usize) {
    let mut measure = Measure::new(Settings { batch: Some(BATCH), ..Settings::default() });
    let mut noise = Key::new(seed, "trajectories").open();
    let (mut all, mut more) = (0, lanes);
    for round in 0..=ROUNDS {
        regime.add(more, &mut noise, &mut measure).unwrap();
        all += more;
        let measured = measure.finish();
        let action = Verdict::new(&measured).action;
        let Action::NotEnoughData { more: asked } = action else { return (action, round) };
        more = asked as usize;
        assert!((all + more) as f64 <= REALISTIC + 1.0, "asked for {more} beside {all}");
        assert!(number(&measured, "ess_forecast") > 0.0);
    }
    (Action::NotEnoughData { more: more as u64 }, ROUNDS)
}

#[test]
fn following_the_advice_ends_in_a_decision() {
    let (mut runs, mut decided, mut at_once) = (0, 0, 0);
    let mut lost = String::new();
    for horizon in [4, 24] {
        for drift in [0.02, 0.2, 0.8, 2.0, 4.0, 7.0, 12.0] {
            for way in [Way::Noise, Way::Reward] {
                for seed in 0..3 {
                    let regime = Regime::new(horizon, drift, way, seed);
                    let (action, rounds) = follow(&regime, 256, 100 + seed);
                    runs += 1;
                    at_once += usize::from(rounds <= 2);
                    if matches!(action, Action::NotEnoughData { .. }) {
                        lost += &format!("T {horizon}, drift {drift}, {way:?}, seed {seed}\n");
                    } else {
                        decided += 1;
                    }
                    // Weights of which a full correction would keep a few percent are no matter of more data. (Of four steps
                    // the first has no prefix: less is lost there.)
                    if drift >= 7.0 && horizon > 4 {
                        assert_eq!(
                            action,
                            Action::ReduceReuse,
                            "T {horizon}, drift {drift}, {way:?}, seed {seed}"
                        );
                        assert_eq!(rounds, 0, "T {horizon}, drift {drift}, {way:?}, seed {seed}");
                    }
                }
            }
        }
    }
    assert!(20 * decided >= 19 * runs, "{decided} of {runs} decided; not:\n{lost}");
    assert!(10 * at_once >= 8 * runs, "{at_once} of {runs} within two rounds");
}
