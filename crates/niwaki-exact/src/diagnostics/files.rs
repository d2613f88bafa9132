//! Summaries at full precision, as CSV and JSON.

use super::{Row, Summary, summarise};
use crate::Error;
use niwaki_page::csv_text;
use serde_json::{Map, Value};
use std::fmt::Write as _;

/// One line per loss, reward and drift, at full precision.
#[must_use]
pub fn to_csv(summaries: &[Summary]) -> String {
    let mut text = format!(
        "loss,reward,drift,seeds,{},vocab,horizon,clip_low,clip_high,routing,batch\n",
        Summary::COLUMNS.join(",")
    );
    for row in summaries {
        let (loss, reward) = (csv_text(&row.surrogate.correction.to_string()), csv_text(&row.reward));
        let _ = write!(text, "{loss},{reward},{},{}", row.drift, row.seeds);
        for value in row.values() {
            let _ = write!(text, ",{value}");
        }
        let clip = row.surrogate.clip.map_or(",".to_owned(), |clip| format!("{},{}", clip.low, clip.high));
        let (process, routing) = (row.process, row.surrogate.routing);
        let _ = writeln!(text, ",{},{},{clip},{routing},{}", process.vocab(), process.horizon(), row.batch);
    }
    text
}

/// One line per iteration of a run and loss, at full precision.
///
/// # Errors
/// As [`summarise`].
pub fn iterations_to_csv(rows: &[Row]) -> Result<String, Error> {
    let mut text = String::new();
    for row in rows {
        let alone = to_csv(&summarise(std::slice::from_ref(row))?);
        let (head, line) = alone.split_once('\n').unwrap_or_default();
        if text.is_empty() {
            let _ = writeln!(text, "iteration,{head}");
        }
        let _ = write!(text, "{},{line}", row.seed);
    }
    Ok(text)
}

/// The summaries as a JSON array of objects; what is not a number becomes `null`.
#[must_use]
pub fn to_json(summaries: &[Summary]) -> String {
    let object = |row: &Summary| {
        let mut object = Map::new();
        object.insert("loss".into(), row.surrogate.correction.to_string().into());
        object.insert("reward".into(), row.reward.clone().into());
        object.insert("drift".into(), row.drift.into());
        object.insert("seeds".into(), row.seeds.into());
        for (name, value) in Summary::COLUMNS.iter().zip(row.values()) {
            object.insert((*name).into(), value.into());
        }
        object.insert("vocab".into(), row.process.vocab().into());
        object.insert("horizon".into(), row.process.horizon().into());
        object.insert("clip_low".into(), row.surrogate.clip.map(|clip| clip.low).into());
        object.insert("clip_high".into(), row.surrogate.clip.map(|clip| clip.high).into());
        object.insert("routing".into(), row.surrogate.routing.into());
        object.insert("batch".into(), row.batch.into());
        Value::from(object)
    };
    format!("{:#}\n", Value::from_iter(summaries.iter().map(object)))
}
