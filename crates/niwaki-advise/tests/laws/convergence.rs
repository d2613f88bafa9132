//! Whoever follows the advice to gather more data ends with a decision.
//!
//! Proper pairs of policies over independent steps: tokens have their own log-probs at each step, the policy drifts along
//! noise or towards what pays, by a drift σ²T that is set exactly. A dump is judged; where it asks for more trajectories,
//! that many more are drawn, and so on.

use crate::support::number;
use niwaki_advise::measure::{Measure, Settings};
use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::{Came, Chunk, Record};
use niwaki_advise::verdict::{Action, REALISTIC, Verdict};
use niwaki_stream::{Key, Stream};

const VOCAB: usize = 8;
const BATCH: f64 = 256.0;

/// Times that more data is brought.
const ROUNDS: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Noise,
    Reward,
}

/// A rollout policy, one that has drifted from it by so much, and what tokens are worth.
struct Regime {
    /// `[horizon, VOCAB]` each.
    old: Vec<[f64; VOCAB]>,
    new: Vec<[f64; VOCAB]>,
    worth: Vec<[f64; VOCAB]>,
    mean: f64,
}

impl Regime {
    fn new(horizon: usize, drift: f64, way: Way, seed: u64) -> Self {
        let mut noise = Key::new(seed, "regime").open();
        let mut table = |scale: f64| -> Vec<[f64; VOCAB]> {
            (0..horizon).map(|_| std::array::from_fn(|_| scale * noise.normal())).collect()
        };
        let (logits, worth, random) = (table(0.7), table(1.0), table(1.0));
        let along = if way == Way::Noise { &random } else { &worth };
        let policy = |size: f64| -> Vec<[f64; VOCAB]> {
            let moved = logits.iter().zip(along);
            moved
                .map(|(logits, along)| normal(std::array::from_fn(|a| logits[a] + size * along[a])))
                .collect()
        };
        let old = policy(0.0);
        // The drift of a step grows with its size, until it is far beyond the largest of the grid.
        let (mut low, mut high) = (0.0, 30.0);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if drift_between(&old, &policy(middle)) < drift { low = middle } else { high = middle }
        }
        let mut regime = Self { new: policy(low), old, worth, mean: 0.0 };
        // What pays: worth above a bar that about a fifth of the trajectories reach.
        let mut draws = Key::new(seed, "mean").open();
        regime.mean = (0..4096).map(|_| regime.draw(&mut draws).1).sum::<f64>() / 4096.0;
        regime
    }

    fn draw(&self, noise: &mut Stream) -> (Vec<usize>, f64) {
        let mut worth = 0.0;
        let mut tokens = Vec::with_capacity(self.old.len());
        for (old, pays) in self.old.iter().zip(&self.worth) {
            let mut left = noise.uniform();
            let token = old.iter().position(|log_prob| {
                left -= log_prob.exp();
                left < 0.0
            });
            tokens.push(token.unwrap_or(VOCAB - 1));
            worth += pays[tokens[tokens.len() - 1]];
        }
        (tokens, f64::from(u8::from(worth > 0.8 * (self.old.len() as f64).sqrt())))
    }

    fn add(&self, count: usize, noise: &mut Stream, measure: &mut Measure) {
        let (mut chunk, mut record) = (Chunk::default(), Record::default());
        for _ in 0..count {
            let (tokens, reward) = self.draw(noise);
            record.clear();
            let picked = |of: &[[f64; VOCAB]]| -> Vec<f64> {
                of.iter().zip(&tokens).map(|(row, &a)| row[a]).collect()
            };
            record.fill(Field::OldLogProb, Came::Many).extend(picked(&self.old));
            record.fill(Field::NewLogProb, Came::Many).extend(picked(&self.new));
            record.fill(Field::Advantage, Came::One).push(reward - self.mean);
            chunk.push(&record, None).unwrap();
        }
        measure.add(&chunk);
    }
}

fn normal(logits: [f64; VOCAB]) -> [f64; VOCAB] {
    let total = logits.iter().map(|logit| logit.exp()).sum::<f64>().ln();
    logits.map(|logit| logit - total)
}

fn drift_between(old: &[[f64; VOCAB]], new: &[[f64; VOCAB]]) -> f64 {
    let step = |(old, new): (&[f64; VOCAB], &[f64; VOCAB])| {
        let moment =
            |power: i32| (0..VOCAB).map(|a| old[a].exp() * (new[a] - old[a]).powi(power)).sum::<f64>();
        moment(2) - moment(1).powi(2)
    };
    old.iter().zip(new).map(step).sum()
}

/// What whoever follows the advice ends with, and after how many rounds.
fn follow(regime: &Regime, lanes: usize, seed: u64) -> (Action, usize) {
    let mut measure = Measure::new(Settings { batch: Some(BATCH), ..Settings::default() });
    let mut noise = Key::new(seed, "trajectories").open();
    let (mut all, mut more) = (0, lanes);
    for round in 0..=ROUNDS {
        regime.add(more, &mut noise, &mut measure);
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
