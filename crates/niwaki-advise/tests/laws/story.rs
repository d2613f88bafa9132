//! Verdict, certainty, cost, settings, reasons and tables tell one story, whatever the data.

use crate::regime::{Regime, Way};
use crate::support::number;
use niwaki_advise::measure::{AMPLIFIED, Measure, Measured, Settings};
use niwaki_advise::page::page;
use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::{Came, Chunk, Record};
use niwaki_advise::verdict::{Action, CEILING, INERT, MATERIAL, STRONGEST, Verdict};
use niwaki_page::Made;
use niwaki_stream::Key;
use std::collections::BTreeSet;

/// Holds everything that is said to the action and the numbers; gives the head of the verdict.
fn consistent(what: &str, measured: &Measured) -> String {
    let verdict = Verdict::new(measured);
    let (says, sure) = (verdict.says.as_str(), verdict.sure.as_str());
    let to_noise = number(measured, "bias_to_noise").abs();
    let decides = format!("{what}: {says} ({sure}) {:?}", verdict.because);
    for said in [says, sure, &verdict.idle].into_iter().chain(verdict.because.iter().map(String::as_str)) {
        assert!(!said.contains("NaN") && !said.contains("inf"), "{decides}");
    }
    let settings: Vec<&str> = verdict.set.iter().map(|advised| advised.what.as_str()).collect();
    let all_set = |word: &str| settings.iter().all(|what| what.contains(word));
    let head = match verdict.action {
        Action::ShortWarmup { alpha, amplification } => {
            assert!(amplification <= AMPLIFIED, "{decides}");
            let licensed = number(measured, "alpha_rule").min(number(measured, "alpha_floor")).min(STRONGEST);
            let licensed = licensed.min(number(measured, "alpha_gradient"));
            assert!(alpha > 0.0 && (alpha - licensed).abs() <= 0.1 * licensed, "{decides}");
            let written = says.strip_prefix("short warmup at α ≈ ").and_then(|rest| rest.split(',').next());
            let written = written.unwrap();
            assert_eq!(written.parse::<f64>().unwrap(), alpha, "{decides}");
            assert!(
                verdict.because.iter().any(|why| why.starts_with(&format!("α = {written}:"))),
                "{decides}"
            );
            assert!(all_set(&format!("tempered:{written}\"")), "{settings:?}");
            assert!(to_noise >= MATERIAL, "{decides}");
            let warns = verdict.because.iter().any(|why| why.starts_with("The mean ratio"));
            assert_eq!(sure.contains("fitted to these very trajectories"), warns, "{decides}");
            "short warmup"
        }
        Action::CorrectionWasted if says.contains("does not matter") => {
            assert!(to_noise < MATERIAL, "{decides}");
            "correction wasted: no bias"
        }
        Action::CorrectionWasted if says.contains("ceiling") => {
            assert!(number(measured, "headroom") < CEILING, "{decides}");
            "correction wasted: ceiling"
        }
        Action::CorrectionWasted => {
            assert!(says.ends_with("fresh") && number(measured, "contested_drift") < INERT, "{decides}");
            assert!(all_set("room for a higher"), "{settings:?}");
            "correction wasted: fresh"
        }
        Action::ReduceReuse => {
            assert!(says.starts_with("reduce reuse") && all_set("lower"), "{decides}");
            "reduce reuse"
        }
        Action::NotEnoughData { more } => {
            assert!(says.contains(&format!("about {more} more")), "{decides}");
            assert!(all_set("change nothing yet") && sure.starts_with("open"), "{settings:?}");
            "not enough data"
        }
        Action::NoSignal => {
            assert!(says.starts_with("no signal") && number(measured, "zero_signal") == 1.0, "{decides}");
            "no signal"
        }
    };
    // "Sure" is said of the bias only where its whole interval, as the verdict reads it, lies on one side of what matters.
    let share = |text: &str| -> f64 {
        let percent = sure.split(text).nth(1).and_then(|rest| rest.split(' ').next()).unwrap();
        percent.trim_end_matches('%').parse::<f64>().unwrap() / 100.0
    };
    if sure.contains("at most ") {
        assert_eq!(sure.starts_with("sure"), share("at most ") <= MATERIAL + 0.005, "{decides}");
    }
    if sure.contains("at least ") {
        assert!(share("at least ") < MATERIAL + 0.005, "{decides}");
    }
    // One row of the page's table is marked: the strength nearest to the advice, none (α = 0) where none is advised.
    let html = page("a dump", measured, &verdict, (0.2, 0.2), Made::new("test")).to_html();
    let advised = if let Action::ShortWarmup { alpha, .. } = verdict.action { alpha } else { 0.0 };
    let first_cell = |row: &str| -> Option<f64> {
        let cell = row.split("<td").nth(1)?.split("</td").next()?;
        // What stands between tags.
        let words: String =
            cell.split('>').skip(1).map(|part| part.split('<').next().unwrap_or_default()).collect();
        words.parse().ok()
    };
    let marked: Vec<f64> =
        html.split("<tr").filter(|row| row.contains("best\"")).filter_map(first_cell).collect();
    assert_eq!(marked.len(), 1, "{what}: {marked:?}");
    assert!((marked[0] - advised).abs() <= 0.05, "{what}: {marked:?} where {advised} is advised");
    head.to_owned()
}

/// Trajectories of two steps with rewards that rise to the top of their range by so much per iteration.
fn rising(iterations: usize, pace: f64, ratio: f64, advantage: f64) -> Measured {
    let (mut chunk, mut record) = (Chunk::default(), Record::default());
    let mut noise = Key::new(7, "story").open();
    for iteration in 0..iterations {
        for _ in 0..64 {
            let paid = f64::from(u8::from(noise.uniform() < 1.0 - 0.8 * (1.0 - pace).powi(iteration as i32)));
            record.clear();
            let moved = ratio * noise.normal();
            record.fill(Field::OldLogProb, Came::Many).extend([-2.0, -3.0, -3.0]);
            record.fill(Field::NewLogProb, Came::Many).extend([
                -2.0 + moved.min(1.9),
                -3.0 + moved.min(1.9),
                -3.0,
            ]);
            record.fill(Field::Advantage, Came::One).push(advantage * (paid - 0.5));
            record.fill(Field::Reward, Came::One).push(paid);
            record.iteration = Some(iteration as i64);
            chunk.push(&record, None).unwrap();
        }
    }
    let mut measure = Measure::new(Settings::default());
    measure.add(&chunk);
    measure.finish()
}

#[test]
fn verdict_reasons_settings_and_table_tell_one_story() {
    let mut heads = BTreeSet::new();
    for horizon in [4, 24] {
        for drift in [0.002, 0.05, 0.3, 1.0, 3.0, 7.0, 20.0] {
            for way in [Way::Noise, Way::Reward] {
                let regime = Regime::new(horizon, drift, way, 3);
                for (lanes, batch, floor) in
                    [(4, 64.0, 0.5), (300, 64.0, 0.5), (3000, 16.0, 0.5), (3000, 1024.0, 0.99999)]
                {
                    let settings = Settings { batch: Some(batch), ess_floor: floor, ..Settings::default() };
                    let mut measure = Measure::new(settings);
                    regime.add(lanes, &mut Key::new(11, "story").open(), &mut measure).unwrap();
                    let what = format!("T {horizon}, drift {drift}, {way:?}, {lanes} of batches of {batch}");
                    heads.insert(consistent(&what, &measure.finish()));
                }
            }
        }
    }
    for (iterations, pace) in [(1, 0.0), (3, 0.5), (12, 0.02), (12, 0.15), (12, 0.6)] {
        for ratio in [0.0, 0.01, 0.3, 1.5] {
            for advantage in [0.0, 1.0] {
                let what = format!(
                    "{iterations} iterations at a pace of {pace}, ratios {ratio}, advantage {advantage}"
                );
                heads.insert(consistent(&what, &rising(iterations, pace, ratio, advantage)));
            }
        }
    }
    // Every answer was met.
    assert_eq!(heads.len(), 7, "{heads:?}");
}
