//! verl's metrics are those of a direct NumPy transcription of their definitions.

use niwaki_advise::verl::{Rejection, Settings, Tally, Threshold};

fn numbers(value: &serde_json::Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn metrics_are_the_transcriptions() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("../fixtures/verl.json")).unwrap();
    for case in cases.as_array().unwrap() {
        let level = case["level"].as_str().unwrap();
        let threshold = Threshold { lower: None, upper: case["threshold"].as_f64().unwrap() };
        let settings = Settings { level: level.parse().unwrap(), threshold, ..Settings::default() };
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

/// The same against verl's own code: bands of weights, batch normalisation and every way to reject.
#[test]
fn metrics_are_verls_own() {
    let cases: serde_json::Value = serde_json::from_str(include_str!("../fixtures/verl_real.json")).unwrap();
    for case in cases["cases"].as_array().unwrap() {
        let text = |name: &str| case[name].as_str().unwrap();
        let rejection = match text("rollout_rs") {
            "" => Rejection::default(),
            options => Rejection::parse(options, text("rollout_rs_threshold")).unwrap(),
        };
        let settings = Settings {
            level: text("rollout_is").parse().unwrap(),
            threshold: text("rollout_is_threshold").parse().unwrap(),
            batch_normalised: case["batch_normalised"].as_bool().unwrap(),
            rejection,
        };
        let mut tally = Tally::new(settings);
        for row in 0..cases["mask"].as_array().unwrap().len() {
            let kept = |what: &str| -> Vec<f64> {
                let (values, mask) = (numbers(&cases[what][row]), numbers(&cases["mask"][row]));
                values.into_iter().zip(mask).filter(|(_, kept)| *kept > 0.0).map(|(value, _)| value).collect()
            };
            tally.add(&kept("training"), &kept("rollout"));
        }
        let came = tally.metrics();
        for (name, expected) in case["metrics"].as_object().unwrap() {
            let (_, value) = came.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("no {name}"));
            let expected = expected.as_f64().unwrap();
            assert!(
                (value - expected).abs() <= 1e-7 * expected.abs().max(1.0),
                "{name}: {value} for {expected}"
            );
        }
    }
}
