//! verl's metrics are those of a direct NumPy transcription of their definitions.

use niwaki_advise::verl::{Settings, Tally};

fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn metrics_are_the_transcriptions() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("../fixtures/verl.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let level = case["level"].as_str().unwrap();
        let settings =
            Settings { level: level.parse().unwrap(), threshold: case["threshold"].as_f64().unwrap() };
        let rows = case["training"].as_array().unwrap().len();
        let kept = |what: &str, row: usize| -> Vec<f64> {
            let (values, mask) = (numbers(&case[what][row]), numbers(&case["mask"][row]));
            values.into_iter().zip(mask).filter(|(_, kept)| *kept > 0.0).map(|(value, _)| value).collect()
        };
        // Added in two parts and merged, as batches of a run are.
        let (mut one, mut other) = (Tally::new(settings), Tally::new(settings));
        for row in 0..rows {
            let tally = if row % 2 == 0 { &mut one } else { &mut other };
            tally.add(&kept("training", row), &kept("rollout", row));
        }
        one.merge(&other);
        let came = one.metrics();
        assert_eq!(came.len(), case["metrics"].as_object().unwrap().len());
        for (name, value) in came {
            let expected = case["metrics"][&name].as_f64().unwrap();
            assert!(
                (value - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                "{level} {name}: {value} for {expected}"
            );
        }
    }
}
