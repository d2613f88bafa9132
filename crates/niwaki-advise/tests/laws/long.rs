//! Nothing is recommended that makes gradients more than twice as long, however long completions are.

use crate::support::number;
use niwaki_advise::measure::{AMPLIFIED, Measure, Measured, Settings};
use niwaki_advise::schema::Field;
use niwaki_advise::text::summary;
use niwaki_advise::trajectory::{Came, Chunk, Record};
use niwaki_advise::verdict::{Action, Verdict};
use niwaki_stream::Key;

/// Completions with one advantage each, whose log-probs have moved the way that they paid: the dropped ratio biases their
/// estimate by about the same share of its noise at every length.
fn completions(steps: usize) -> Measured {
    let mut noise = Key::new(5, "long").open();
    let mut measure = Measure::new(Settings { batch: Some(64.0), ..Settings::default() });
    let (mut chunk, mut record) = (Chunk::default(), Record::default());
    for lane in 0..512 {
        let paid = if lane % 2 == 0 { 1.0 } else { -1.0 };
        let moved = 0.8 * paid / steps as f64;
        record.clear();
        record.fill(Field::OldLogProb, Came::Many).resize(steps, -2.0);
        let spread = 0.2 / (steps as f64).sqrt();
        let new = (0..steps).map(|_| -2.0 + moved + spread * noise.normal());
        record.fill(Field::NewLogProb, Came::Many).extend(new);
        record.fill(Field::Advantage, Came::One).push(paid);
        chunk.push(&record, None).unwrap();
    }
    measure.add(&chunk);
    measure.finish()
}

#[test]
fn what_is_recommended_makes_no_gradient_twice_as_long_and_the_head_says_why() {
    // Short ones are corrected as before.
    let short = completions(5);
    let verdict = Verdict::new(&short);
    assert_eq!(verdict.says, "short warmup at α ≈ 0.10, then plain PPO");
    let Action::ShortWarmup { amplification, .. } = verdict.action else { panic!("{verdict:?}") };
    assert!(amplification < AMPLIFIED, "{amplification}");
    assert!(verdict.because.iter().any(|why| why.contains("times as long as PPO's there")), "{verdict:?}");

    // At 64 tokens α = 0.1 would be about 4.5 times as long.
    let middling = completions(64);
    let verdict = Verdict::new(&middling);
    let Action::ShortWarmup { alpha, amplification } = verdict.action else { panic!("{verdict:?}") };
    assert!(alpha > 0.02 && alpha < 0.04 && amplification <= AMPLIFIED, "{alpha} {amplification}");
    assert!(verdict.says.contains("more would make gradients over twice as long"), "{}", verdict.says);
    assert!((number(&middling, "amplification") - 4.5).abs() < 0.5);

    // At 512 tokens what is left of the correction restores nothing.
    let long = completions(512);
    let verdict = Verdict::new(&long);
    assert_eq!(verdict.action, Action::ReduceReuse, "{verdict:?}");
    let first = summary(&long, &verdict, 100).lines().next().unwrap_or_default().to_owned();
    assert!(first.contains("a correction of α = 0.10 would make gradients"), "{first}");
    assert!((number(&long, "amplification") / 30.0 - 1.0).abs() < 0.2, "{first}");
}
