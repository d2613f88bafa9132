//! What the page's script draws: every statistic, decided here and only shown there.
//!
//! Lists stand for records, so that a thousand runs stay below two megabytes; `board.js` names their places.

use super::bands::{Band, Bands};
use super::best::Best;
use crate::Error;
use crate::ahead::Difference;
use crate::runs::{Comparison, Group, Part, Row};
use niwaki_stats::{
    Bootstrap, Profile, Scores, paired_probability_of_improvement, paired_probability_of_improvement_interval,
};
use niwaki_train::reading::{Endpoint, Standing};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Numbers that curves and bands may take together.
const NUMBERS: usize = 120_000;
/// Arms up to which each may be made the baseline; of more, the one that was asked for alone.
const BASELINES: usize = 24;
/// Runs up to which each is listed with its curve, and groups up to which each has a band.
const LISTED: usize = 5_000;
const BANDED: usize = 500;
/// Thresholds of a performance profile.
const THRESHOLDS: usize = 33;
/// Resamples behind intervals of profiles and probabilities.
const RESAMPLES: usize = 300;

/// Everything that the page shows, as JSON.
///
/// # Errors
/// As [`Comparison::difference`].
pub fn board_data(found: &Comparison) -> Result<Value, Error> {
    let endpoints = found.endpoints();
    let over = found.over().count();
    let runs = over + found.unfinished().count();
    let points = (NUMBERS / (runs.min(LISTED) + 9 * found.groups.len().min(BANDED)).max(1)).clamp(8, 100);
    let banded = found.groups.len() <= BANDED;
    let baselines: Vec<usize> =
        if found.arms.len() <= BASELINES { (0..found.arms.len()).collect() } else { vec![found.baseline] };
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    let mut groups = Vec::new();
    for (at, group) in found.groups.iter().enumerate() {
        let bands = if banded { Bands::of(group) } else { Bands::default() };
        let grid = grid(group, points);
        groups.push(said_group(found, at, &bands, &grid)?);
        for row in group.runs.iter().chain(&group.unfinished).filter(|_| runs <= LISTED) {
            rows.push(said_row(found, row, at));
            let known: BTreeMap<usize, f64> =
                row.curve.iter().map(|point| (point.iteration, point.value)).collect();
            let values: Vec<Value> =
                grid.iter().map(|at| known.get(at).map_or(Value::Null, |value| number(*value, 4))).collect();
            let kept = values.iter().rposition(|value| !value.is_null()).map_or(0, |last| last + 1);
            curves.push(values.into_iter().take(kept).collect::<Vec<_>>());
        }
    }
    let (mut differences, mut bests, mut best_differences, mut profiles, mut improvements) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for endpoint in endpoints {
        let best = Best::of(found, endpoint);
        profiles.push(profile(found, endpoint));
        let (mut each, mut of_best, mut improved) = (json!({}), json!({}), json!({}));
        for &baseline in &baselines {
            let said = |at| Ok::<_, Error>(found.difference(at, endpoint, baseline)?.map(|one| said(&one)));
            let all: Vec<Option<Value>> = (0..found.groups.len()).map(said).collect::<Result<_, _>>()?;
            each[baseline.to_string()] = json!(all);
            of_best[baseline.to_string()] = json!(against_best(&best, baseline, endpoint)?);
            let arms = 0..found.arms.len();
            improved[baseline.to_string()] =
                json!(arms.map(|arm| improvement(found, endpoint, arm, baseline)).collect::<Vec<_>>());
        }
        bests.push(best.iter().map(|best| best.as_ref().map(said_best)).collect::<Vec<_>>());
        differences.push(each);
        best_differences.push(of_best);
        improvements.push(improved);
    }
    let count = |standing: Standing| {
        found.over().chain(found.unfinished()).filter(|row| row.standing == standing).count()
    };
    let folder = |row: &Arc<Row>| row.folder.display().to_string();
    let part = |part: &Part| json!({ "n": part.name, "s": part.settings });
    Ok(json!({
        "judged": found.judged.words(),
        "endpoints": endpoints.map(|endpoint| json!({
            "name": endpoint.to_string(), "words": endpoint.words(), "says": endpoint.definition(), "falls": endpoint.falls(),
        })),
        "keys": found.keys,
        "arms": found.arms.iter().map(part).collect::<Vec<_>>(),
        "settings": found.settings.iter().map(part).collect::<Vec<_>>(),
        "baseline": found.baseline,
        "baselines": baselines,
        "seeds": found.seeds().len(),
        "groups": groups,
        "runs": rows,
        "curves": curves,
        "all": runs,
        "differences": differences,
        "best": bests,
        "bestDifferences": best_differences,
        "profiles": profiles,
        "improvements": improvements,
        "counts": [count(Standing::Finished), count(Standing::Running), count(Standing::Diverged), found.damaged.len()],
        "damaged": found.damaged.iter().map(|one| json!([one.folder.display().to_string(), one.reason])).collect::<Vec<_>>(),
        "odd": found.odd.iter().map(folder).collect::<Vec<_>>(),
        "twice": found.twice.iter().map(folder).collect::<Vec<_>>(),
        "rule": crate::ahead::RULE,
    }))
}

/// A number with so many digits: more would only take room. What is not finite is nothing.
fn number(value: f64, digits: usize) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let short: f64 = format!("{value:.*e}", digits.saturating_sub(1)).parse().unwrap_or(value);
    // Whole numbers are shorter without a point.
    if short.fract() == 0.0 && short.abs() < 1e15 { json!(short as i64) } else { json!(short) }
}

fn maybe(value: Option<f64>) -> Value {
    value.map_or(Value::Null, |value| number(value, 6))
}

/// The iterations at which a group's curves are shown.
fn grid(group: &Group, points: usize) -> Vec<usize> {
    let mut all: Vec<usize> = Vec::new();
    for row in group.runs.iter().chain(&group.unfinished) {
        all.extend(row.curve.iter().map(|point| point.iteration));
        all.sort_unstable();
        all.dedup();
    }
    thinned(all.len(), points).into_iter().map(|place| all[place]).collect()
}

/// Places of so many, the first and the last among them.
fn thinned(all: usize, points: usize) -> Vec<usize> {
    let step = all.div_ceil(points).max(1);
    (0..all).filter(|place| place % step == 0 || place + 1 == all).collect()
}

/// A group: its place, its lanes, its means, and its curve.
fn said_group(found: &Comparison, at: usize, bands: &Bands, grid: &[usize]) -> Result<Value, Error> {
    let group = &found.groups[at];
    let row = group.runs.iter().chain(&group.unfinished).next();
    let mean = |endpoint: Endpoint| -> Result<Value, Error> {
        let values: Vec<f64> = found.values(at, endpoint).into_values().collect();
        let Ok(scores) = Scores::new(&values, values.len(), 1) else { return Ok(Value::Null) };
        let (sem, median) = (niwaki_stats::sem(&values).ok(), niwaki_stats::median(&values)?);
        let mean = niwaki_stats::mean(&values)?;
        Ok(json!([number(mean, 6), maybe(sem), number(scores.iqm(), 6), number(median, 6)]))
    };
    let drifts: Vec<f64> = group.runs.iter().filter_map(|row| row.drift).collect();
    let kept: Vec<usize> = (0..bands.iterations.len())
        .filter(|place| grid.binary_search(&bands.iterations[*place]).is_ok())
        .collect();
    let flat = |band: &[Band]| -> Vec<Value> {
        kept.iter().flat_map(|place| band[*place]).map(|value| number(value, 4)).collect()
    };
    let seconds: BTreeMap<usize, f64> =
        bands.iterations.iter().copied().zip(bands.seconds.iter().copied()).collect();
    let time = |at: &usize| seconds.get(at).map_or(Value::Null, |value| number(*value, 4));
    Ok(json!({
        "n": group.name,
        "a": group.arm,
        "s": group.setting,
        "w": row.map_or(0, |row| row.spec.rollout.lanes),
        "k": group.runs.len(),
        "u": group.unfinished.len(),
        "v": found.endpoints().map(mean).into_iter().collect::<Result<Vec<_>, _>>()?,
        "d": maybe(niwaki_stats::mean(&drifts).ok()),
        "x": grid,
        "t": grid.iter().map(time).collect::<Vec<_>>(),
        "p": kept.iter().map(|place| bands.iterations[*place]).collect::<Vec<_>>(),
        "b": [flat(&bands.bands[0]), flat(&bands.bands[1]), flat(&bands.bands[2])],
    }))
}

fn said_row(found: &Comparison, row: &Row, group: usize) -> Value {
    let standing = match row.standing {
        Standing::Finished => 0,
        Standing::Running => 1,
        Standing::Diverged => 2,
    };
    let [mean, end] = found.endpoints().map(|endpoint| maybe(row.value(found.judged, endpoint)));
    let (score, drift, seconds) =
        (maybe(row.score()), maybe(row.drift), row.seconds.map_or(Value::Null, |s| number(s, 4)));
    let folder = row.folder.display().to_string();
    json!([
        folder,
        group,
        row.spec.seed,
        standing,
        row.done,
        row.spec.iterations,
        mean,
        end,
        score,
        drift,
        seconds
    ])
}

/// A difference: pairs, mean, interval, p, verdict, wins, losses, ties.
fn said(found: &Difference) -> Value {
    let Difference { decision, signs, .. } = found;
    let end = |pick: fn(&niwaki_stats::Interval) -> f64| maybe(decision.interval.as_ref().map(pick));
    json!([
        decision.pairs,
        number(decision.mean, 6),
        end(|interval| interval.low),
        end(|interval| interval.high),
        number(decision.p, 3),
        decision.verdict.words(),
        signs.wins,
        signs.losses,
        signs.ties
    ])
}

/// The best setting of an arm: its place, seeds of the choice, seeds of the report, their mean and its standard error.
fn said_best(best: &Best) -> Value {
    let told: Vec<f64> = best.told.values().copied().collect();
    let (mean, sem) = (niwaki_stats::mean(&told).ok(), niwaki_stats::sem(&told).ok());
    json!([best.setting, best.chosen_on, told.len(), maybe(mean), maybe(sem)])
}

/// Every arm at its best setting against the baseline at its own.
fn against_best(
    best: &[Option<Best>],
    baseline: usize,
    endpoint: Endpoint,
) -> Result<Vec<Option<Value>>, Error> {
    let Some(Some(base)) = best.get(baseline) else { return Ok(vec![None; best.len()]) };
    let one = |(arm, best): (usize, &Option<Best>)| {
        let Some(best) = best.as_ref().filter(|_| arm != baseline) else { return Ok(None) };
        Ok(best.difference(base, endpoint)?.map(|found| said(&found)))
    };
    best.iter().enumerate().map(one).collect()
}

/// The values of an arm, setting by setting on the same seeds where it has them all, else all of them as of one.
fn scores(columns: &[BTreeMap<u64, f64>]) -> (Vec<f64>, usize) {
    let alike = columns.windows(2).all(|pair| pair[0].keys().eq(pair[1].keys()));
    if let (true, Some(first)) = (alike, columns.first()) {
        let row = |seed: &u64| columns.iter().map(|column| column[seed]).collect::<Vec<_>>();
        return (first.keys().flat_map(row).collect(), columns.len());
    }
    (columns.iter().flat_map(BTreeMap::values).copied().collect(), 1)
}

fn columns(found: &Comparison, endpoint: Endpoint, arm: usize) -> Vec<BTreeMap<u64, f64>> {
    let turn = if endpoint.falls() { -1.0 } else { 1.0 };
    let groups = (0..found.settings.len()).filter_map(|setting| found.at(arm, setting));
    let turned =
        |group| found.values(group, endpoint).into_iter().map(|(seed, value)| (seed, turn * value)).collect();
    groups.map(turned).filter(|column: &BTreeMap<u64, f64>| !column.is_empty()).collect()
}

/// Shares of runs above a threshold, arm by arm, each with its band.
fn profile(found: &Comparison, endpoint: Endpoint) -> Value {
    let all: Vec<Vec<BTreeMap<u64, f64>>> =
        (0..found.arms.len().min(BASELINES)).map(|arm| columns(found, endpoint, arm)).collect();
    let values = || all.iter().flatten().flat_map(BTreeMap::values).copied();
    let (low, high) = (values().fold(f64::INFINITY, f64::min), values().fold(f64::NEG_INFINITY, f64::max));
    if low >= high || !(high - low).is_finite() {
        return Value::Null;
    }
    let thresholds: Vec<f64> =
        (0..THRESHOLDS).map(|at| low + (high - low) * at as f64 / (THRESHOLDS - 1) as f64).collect();
    let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::from_seed(0) };
    let arm = |columns: &Vec<BTreeMap<u64, f64>>| -> Option<Vec<Value>> {
        let (values, tasks) = scores(columns);
        let scores = Scores::new(&values, values.len() / tasks.max(1), tasks).ok()?;
        let shares = Profile::RunScores.of(scores, &thresholds).ok()?;
        let band = Profile::RunScores.band(scores, &thresholds, &bootstrap).ok()?;
        let flat = shares.iter().zip(band).flat_map(|(share, band)| [*share, band.low, band.high]);
        Some(flat.map(|value| number(value, 3)).collect())
    };
    let turn = if endpoint.falls() { -1.0 } else { 1.0 };
    json!({ "x": thresholds.iter().map(|x| number(turn * x, 5)).collect::<Vec<_>>(), "a": all.iter().map(arm).collect::<Vec<_>>() })
}

/// The probability that an arm's run beats the baseline's with the same seed at the same setting, its interval, and the pairs.
fn improvement(found: &Comparison, endpoint: Endpoint, arm: usize, baseline: usize) -> Option<Value> {
    if arm == baseline {
        return None;
    }
    let turn = if endpoint.falls() { -1.0 } else { 1.0 };
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for setting in 0..found.settings.len() {
        let (Some(one), Some(other)) = (found.at(arm, setting), found.at(baseline, setting)) else {
            continue;
        };
        let (mut a, mut b) = (BTreeMap::new(), BTreeMap::new());
        let others = found.values(other, endpoint);
        for (seed, value) in found.values(one, endpoint) {
            if let Some(rival) = others.get(&seed) {
                a.insert(seed, turn * value);
                b.insert(seed, turn * rival);
            }
        }
        if !a.is_empty() {
            ours.push(a);
            theirs.push(b);
        }
    }
    let ((ours, tasks), (theirs, _)) = (scores(&ours), scores(&theirs));
    let pairs = ours.len() / tasks.max(1);
    let ours = Scores::new(&ours, pairs, tasks).ok()?;
    let theirs = Scores::new(&theirs, pairs, tasks).ok()?;
    let bootstrap = Bootstrap { resamples: RESAMPLES, ..Bootstrap::from_seed(0) };
    let share = paired_probability_of_improvement(ours, theirs).ok()?;
    let interval = paired_probability_of_improvement_interval(ours, theirs, &bootstrap).ok()?;
    let numbers = [share, interval.low, interval.high].map(|value| number(value, 3));
    Some(json!([numbers[0], numbers[1], numbers[2], pairs * tasks]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_what_is_not_finite_is_nothing() {
        let said = |value, digits| number(value, digits).to_string();
        assert_eq!(
            [said(0.123_456_7, 4), said(2.0, 4), said(-1234.5, 3), said(0.0, 3)],
            ["0.1235", "2", "-1230", "0"]
        );
        assert_eq!(said(f64::NAN, 3), "null");
    }

    #[test]
    fn what_is_thinned_keeps_both_ends() {
        assert_eq!(thinned(5, 10), [0, 1, 2, 3, 4]);
        assert_eq!(thinned(10, 4), [0, 3, 6, 9]);
        assert_eq!(thinned(9, 4), [0, 3, 6, 8]);
    }

    #[test]
    fn scores_are_a_matrix_where_all_seeds_are_there() {
        let column = |pairs: &[(u64, f64)]| pairs.iter().copied().collect::<BTreeMap<_, _>>();
        let (one, two) = (column(&[(0, 1.0), (1, 2.0)]), column(&[(0, 3.0), (1, 4.0)]));
        assert_eq!(scores(&[one.clone(), two]), (vec![1.0, 3.0, 2.0, 4.0], 2));
        assert_eq!(scores(&[one, column(&[(1, 4.0)])]), (vec![1.0, 2.0, 4.0], 1));
    }
}
