//! The paper's numbers and statements held against what came out.

use super::analysis::ANALYSES;
use super::claims::{Expected, LeadClaim, OrderClaim, RatioClaim, TrendClaim, ValueClaim};
use super::fisher::shares;
use super::{Board, Endpoint, Estimate, Training};
use crate::Error;
use crate::ahead::LEVEL;
use crate::claim::{
    Judgement, Lead, Ours, Outcome, Printed, PrintedLead, compare, in_range, in_words, no_number,
    printed_range, whole_pair,
};
use niwaki_page::Format;
use niwaki_stats::{Decision, Verdict};
use std::collections::BTreeMap;

/// How far an iteration that was only looked at every five may be off.
const STRIDE: f64 = 5.0;

/// Holds every statement of the study against the results; what no finished run speaks to is left out.
///
/// # Errors
/// Where the file prints a value that is not a number, or a curve holds one.
pub fn judge(board: &Board<'_>) -> Result<Vec<Outcome>, Error> {
    let study = &board.plan.study;
    let mut outcomes = Vec::new();
    for claim in &study.value {
        outcomes.extend(value(board, claim)?);
    }
    for claim in &study.lead {
        outcomes.extend(lead(board, claim)?);
    }
    for claim in &study.order {
        outcomes.extend(order(board, claim)?);
    }
    for claim in &study.trend {
        outcomes.extend(trend(board, claim)?);
    }
    for claim in &study.ratio {
        outcomes.extend(ratio(board, claim)?);
    }
    for analysis in ANALYSES {
        outcomes.extend(analysis.outcomes(board)?);
    }
    Ok(outcomes)
}

/// How many statements of the paper a study makes.
pub(crate) fn statements(study: &Training) -> usize {
    let numbers = study.value.len() + study.lead.len() + study.ratio.len();
    let orders = study.order.len() + study.trend.len();
    numbers + orders + ANALYSES.iter().map(|analysis| analysis.statements(study)).sum::<usize>()
}

/// What stands above statements about a cell.
fn group(board: &Board<'_>, endpoint: Endpoint, cell: usize) -> String {
    match board.plan.place_name(cell) {
        None => endpoint.words(),
        Some(name) => format!("{}, {name}", endpoint.words()),
    }
}

/// How a statement ends that is about one place of several.
fn at(board: &Board<'_>, cell: usize) -> String {
    board.plan.place_name(cell).map_or_else(String::new, |name| format!(" ({name})"))
}

fn value(board: &Board<'_>, claim: &ValueClaim) -> Result<Option<Outcome>, Error> {
    let (arm, cell) = (board.plan.arm(&claim.arm)?, board.plan.cell(claim.cell.as_deref())?);
    let Some(ours) = board.estimate(arm, cell, claim.endpoint)? else { return Ok(None) };
    let mut outcome = Outcome {
        group: group(board, claim.endpoint, cell),
        statement: board.plan.arm_label(arm),
        paper: None,
        paper_sem: None,
        ours: Ours::Number(ours.value, ours.sem),
        sems: None,
        judgement: Judgement::Open,
        remark: claim.remark.clone(),
    };
    if let Some(extreme) = claim.of {
        let printed = Printed::of(&board.plan.study.label, &claim.paper)?;
        let count = board.plan.study.paper_seeds.unwrap_or(ours.seeds.len() as u64);
        let (out, p, judgement) = extreme.beside(&ours.seeds, (printed.value, printed.half_unit), count);
        (outcome.paper, outcome.judgement) = (Some(printed.value), judgement);
        outcome.ours = Ours::Number(extreme.of(&ours.seeds), 0.0);
        outcome.statement = format!(
            "{}: the {} of {count} seeds; {out} of ours lie beyond it, p = {p:.2}",
            outcome.statement,
            extreme.words()
        );
    } else if let Some((hits, of)) = whole_pair(&claim.paper, '/') {
        outcome.paper = Some(hits as f64 / of as f64);
        let (won, tried) = (ours.seeds.iter().sum::<f64>() as u64, ours.seeds.len() as u64);
        let (p, judgement) = shares(won, tried, hits, of);
        outcome.judgement = judgement;
        outcome.statement =
            format!("{}: {won}/{tried} beside {}, Fisher's p = {p:.2}", outcome.statement, claim.paper);
    } else if let Some(range) = printed_range(&claim.paper) {
        let sem = if ours.seeds.len() > 1 { ours.sem } else { f64::NAN };
        outcome.paper = Some(f64::midpoint(range.0, range.1));
        outcome.judgement = in_range(range, ours.value, sem);
        outcome.statement = format!("{}: beside {}", outcome.statement, claim.paper);
    } else if let Some((low, high)) = whole_pair(&claim.paper, '-') {
        outcome.paper = Some((low + high) as f64 / 2.0);
        let inside = (low as f64..=high as f64).contains(&ours.value);
        outcome.judgement = match ours.seeds.len() {
            0 | 1 => Judgement::Open,
            _ => (inside || within(&ours, low as f64, high as f64)).into(),
        };
        outcome.statement = format!(
            "{}: {} to {} over seeds beside {}",
            outcome.statement, ours.range.0, ours.range.1, claim.paper
        );
    } else {
        let printed = Printed::of(&board.plan.study.label, &claim.paper)?;
        outcome.paper_sem = claim
            .sem
            .as_deref()
            .map(|sem| Printed::of(&board.plan.study.label, sem))
            .transpose()?
            .map(|sem| sem.value);
        outcome.paper = Some(printed.value);
        if claim.endpoint.counts() && ours.seeds.len() > 1 {
            outcome.judgement = Judgement::from(
                printed.value >= ours.interval.low - STRIDE && printed.value <= ours.interval.high + STRIDE,
            );
        } else {
            let sem = if ours.seeds.len() > 1 { ours.sem } else { f64::NAN };
            (outcome.sems, outcome.judgement) = compare(printed, outcome.paper_sem, ours.value, sem);
        }
    }
    Ok(Some(outcome))
}

fn lead(board: &Board<'_>, claim: &LeadClaim) -> Result<Option<Outcome>, Error> {
    let (arm, over) = (board.plan.arm(&claim.arm)?, board.plan.arm(&claim.over)?);
    let cell = board.plan.cell(claim.cell.as_deref())?;
    let Some(found) = board.compare(arm, over, cell, claim.endpoint)? else { return Ok(None) };
    let (decision, signs) = (found.decision, found.signs);
    let printed = claim.paper.as_deref().and_then(|text| PrintedLead::read(text, claim.seeds.as_deref()));
    let size = printed.map(|printed| printed.size(&decision));
    let says = |favour: Verdict, against: Verdict| match decision.verdict {
        verdict if verdict == favour => Judgement::Agrees,
        verdict if verdict == against => Judgement::Disagrees,
        _ => Judgement::Open,
    };
    let (sign, expected) = match claim.expect {
        Expected::Ahead | Expected::Positive => (says(Verdict::Ahead, Verdict::Behind), "is ahead of"),
        Expected::Negative => (says(Verdict::Behind, Verdict::Ahead), "is behind"),
        Expected::NotAhead => (says(Verdict::Behind, Verdict::Ahead), "is not ahead of"),
        Expected::Within => {
            let text = claim.paper.as_deref().unwrap_or_default();
            let sign = match printed {
                None => return Err(no_number(&board.plan.study.label, text)),
                Some(print) if print.low > 0.0 => says(Verdict::Ahead, Verdict::Behind),
                Some(print) if print.high < 0.0 => says(Verdict::Behind, Verdict::Ahead),
                Some(_) => Judgement::Open,
            };
            (sign, "lies where the paper has it beside")
        }
    };
    let judgement = match claim.expect {
        Expected::Within => size.unwrap_or(Judgement::Open),
        _ => sign,
    };
    let remark = match decision.verdict {
        Verdict::TooFew => format!("{}{}", few(decision.pairs), claim.remark),
        _ => claim.remark.clone(),
    };
    let printed = claim.paper.as_deref().and_then(Printed::read);
    let sems = printed.and_then(|printed| compare(printed, None, found.decision.mean, found.sem).0);
    Ok(Some(Outcome {
        group: String::new(),
        statement: format!(
            "{} {expected} {} in {}{}",
            board.plan.arm_label(arm),
            board.plan.arm_label(over),
            claim.endpoint.words(),
            at(board, cell)
        ),
        paper: None,
        paper_sem: None,
        ours: Ours::Lead(Lead {
            paper: claim.paper.clone().unwrap_or_default(),
            paper_seeds: claim.seeds.clone().unwrap_or_default(),
            paper_p: claim.p.clone().unwrap_or_default(),
            mean: decision.mean,
            interval: decision.interval,
            sign,
            size,
            p: decision.p,
            wins: signs.wins,
            untied: signs.untied(),
            sign_p: signs.greater(),
        }),
        sems,
        judgement,
        remark,
    }))
}

/// The standard error of a ratio follows those of its two sides, as if they were independent.
fn ratio(board: &Board<'_>, claim: &RatioClaim) -> Result<Option<Outcome>, Error> {
    let side = |arm: &str, cell: Option<&str>| {
        board.estimate(board.plan.arm(arm)?, board.plan.cell(cell)?, claim.endpoint)
    };
    let above = side(&claim.arm, claim.cell.as_deref())?;
    let over = claim.over.as_deref().unwrap_or(&claim.arm);
    let below = side(over, claim.over_cell.as_deref().or(claim.cell.as_deref()))?;
    let Some((above, below)) = above.zip(below) else { return Ok(None) };
    let ratio = above.value / below.value;
    let sem = match above.seeds.len().min(below.seeds.len()) {
        0 | 1 => f64::NAN,
        _ => ratio.abs() * (above.sem / above.value).hypot(below.sem / below.value),
    };
    let text = |value: f64| Format::significant(3).text(value);
    let [low, high] = claim.within;
    Ok(Some(Outcome {
        group: String::new(),
        statement: claim.statement.clone(),
        paper: None,
        paper_sem: None,
        ours: Ours::Words(format!(
            "{} / {} = {}; the words allow {} to {}",
            text(above.value),
            text(below.value),
            text(ratio),
            text(low),
            text(high)
        )),
        sems: None,
        judgement: in_words((low, high), ratio, sem),
        remark: claim.remark.clone(),
    }))
}

/// Whether an endpoint, or a lead, rises from cell to cell: its slope over the cells is tested seed by seed, and so is every step.
fn trend(board: &Board<'_>, claim: &TrendClaim) -> Result<Option<Outcome>, Error> {
    let arm = board.plan.arm(&claim.arm)?;
    let over = claim.over.as_deref().map(|over| board.plan.arm(over)).transpose()?;
    let (mut columns, mut shown) = (Vec::new(), Vec::new());
    for name in &claim.cells {
        let cell = board.plan.cell(Some(name))?;
        let found = match over {
            None => board.estimate(arm, cell, claim.endpoint)?.map(|found| found.value),
            Some(over) => board.compare(arm, over, cell, claim.endpoint)?.map(|found| found.decision.mean),
        };
        let Some(value) = found else { return Ok(None) };
        shown.push(format!("{name}: {}", Format::significant(3).signed().text(value)));
        columns.push(by_seed(board, arm, over, cell, claim.endpoint));
    }
    let rows: Vec<Vec<f64>> = columns.first().map_or_else(Vec::new, |first| {
        let row = |seed| columns.iter().map(|column| column.get(seed).copied()).collect::<Option<Vec<f64>>>();
        first.keys().filter_map(row).collect()
    });
    let (judgement, words) = rising(&rows)?;
    Ok(Some(Outcome {
        group: String::new(),
        statement: claim.statement.clone(),
        paper: None,
        paper_sem: None,
        ours: Ours::Words(format!("{}; {words}", shown.join(", "))),
        sems: None,
        judgement,
        remark: claim.remark.clone(),
    }))
}

/// An endpoint of an arm in a cell, or its lead over another arm, seed by seed.
fn by_seed(
    board: &Board<'_>,
    arm: usize,
    over: Option<usize>,
    cell: usize,
    endpoint: Endpoint,
) -> BTreeMap<u64, f64> {
    let of = |arm: usize| -> BTreeMap<u64, f64> {
        board.runs(arm, cell).iter().filter_map(|run| Some((run.seed, run.value(endpoint)?))).collect()
    };
    let (ours, theirs) = (of(arm), over.map(of));
    match theirs {
        None => ours,
        Some(theirs) => {
            ours.iter().filter_map(|(seed, a)| theirs.get(seed).map(|b| (*seed, a - b))).collect()
        }
    }
}

/// Whether values rise from place to place, one row per seed. In favour where their slope is above zero and no step is
/// below it; against where the slope or a step is below.
fn rising(rows: &[Vec<f64>]) -> Result<(Judgement, String), Error> {
    let Some(places) = rows.first().map(Vec::len) else {
        return Ok((Judgement::Open, "no seed is in all of them".to_owned()));
    };
    let middle = (places as f64 - 1.0) / 2.0;
    let decide = |value: &dyn Fn(&[f64]) -> f64| -> Result<Decision, Error> {
        Ok(Decision::of(&rows.iter().map(|row| value(row)).collect::<Vec<_>>(), LEVEL)?)
    };
    let slope = decide(&|row| row.iter().enumerate().map(|(at, value)| (at as f64 - middle) * value).sum())?;
    let mut falls = false;
    for at in 1..places {
        let step = decide(&|row| row[at] - row[at - 1])?;
        falls |= certainly_behind(&step, places - 1);
    }
    let judgement = match slope.verdict {
        Verdict::Behind => Judgement::Disagrees,
        _ if falls => Judgement::Disagrees,
        Verdict::Ahead => Judgement::Agrees,
        _ => Judgement::Open,
    };
    let words = match slope.verdict {
        Verdict::TooFew => few(rows.len()),
        _ => format!("slope over {} seeds: p = {}", rows.len(), Format::significant(2).text(slope.p)),
    };
    Ok((judgement, words))
}

/// Behind at the level that Bonferroni's correction leaves for each of several tests.
fn certainly_behind(found: &Decision, tests: usize) -> bool {
    found.verdict == Verdict::Behind && found.p * tests as f64 <= 1.0 - LEVEL
}

fn order(board: &Board<'_>, claim: &OrderClaim) -> Result<Option<Outcome>, Error> {
    let cell = board.plan.cell(claim.cell.as_deref())?;
    let mut groups: Vec<Vec<(String, f64)>> = Vec::new();
    for group in &claim.groups {
        let mut values = Vec::new();
        for name in group {
            let arm = board.plan.arm(name)?;
            let Some(found) = board.estimate(arm, cell, claim.endpoint)? else { return Ok(None) };
            values.push((board.plan.arm_label(arm), found.value));
        }
        groups.push(values);
    }
    let mut decisions = Vec::new();
    for pair in claim.groups.windows(2) {
        for (arm, over) in pair[0].iter().flat_map(|arm| pair[1].iter().map(move |over| (arm, over))) {
            let found = board.compare(board.plan.arm(arm)?, board.plan.arm(over)?, cell, claim.endpoint)?;
            let Some(found) = found else { return Ok(None) };
            decisions.push(found.decision);
        }
    }
    let judgement = if decisions.iter().all(|found| found.verdict == Verdict::Ahead) {
        Judgement::Agrees
    } else if decisions.iter().any(|found| certainly_behind(found, decisions.len())) {
        Judgement::Disagrees
    } else {
        Judgement::Open
    };
    let shown = groups.iter().map(|group| {
        let parts: Vec<String> = group
            .iter()
            .map(|(name, value)| format!("{name} {}", Format::significant(3).text(*value)))
            .collect();
        parts.join(", ")
    });
    Ok(Some(Outcome {
        group: String::new(),
        statement: format!("{}{}", claim.statement, at(board, cell)),
        paper: None,
        paper_sem: None,
        ours: Ours::Words(format!("{}: {}", claim.endpoint.words(), shown.collect::<Vec<_>>().join(" | "))),
        sems: None,
        judgement,
        remark: claim.remark.clone(),
    }))
}

/// What is said of too few pairs.
fn few(pairs: usize) -> String {
    let seeds = if pairs == 1 { "1 seed is".to_owned() } else { format!("{pairs} seeds are") };
    format!("{seeds} too few to decide. ")
}

/// Both ends of a printed range lie within ours, give or take a stride.
fn within(ours: &Estimate, low: f64, high: f64) -> bool {
    low >= ours.range.0 - STRIDE && high <= ours.range.1 + STRIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trend_is_tested() {
        let rows = |steps: [f64; 2], seeds: usize| -> Vec<Vec<f64>> {
            (0..seeds)
                .map(|seed| {
                    // Each seed has a level of its own, and steps that differ a little.
                    let (level, noise) = (seed as f64, 0.01 * (seed % 3) as f64);
                    vec![level, level + steps[0] + noise, level + steps[0] + steps[1] - noise]
                })
                .collect()
        };
        let judged = |steps, seeds| rising(&rows(steps, seeds)).unwrap().0;
        assert_eq!(judged([0.1, 0.2], 8), Judgement::Agrees);
        assert_eq!(judged([0.1, 0.2], 5), Judgement::Open, "five seeds decide nothing");
        assert_eq!(judged([-0.1, -0.2], 8), Judgement::Disagrees);
        // It rises over all, but the second step falls on every seed.
        assert_eq!(judged([0.9, -0.2], 8), Judgement::Disagrees);
        let noisy: Vec<Vec<f64>> = (0..8).map(|seed| vec![0.0, [1.0, -0.9][seed % 2]]).collect();
        assert_eq!(rising(&noisy).unwrap().0, Judgement::Open, "its mean rises by 0.05");
        assert_eq!(rising(&[]).unwrap().0, Judgement::Open);
    }
}
