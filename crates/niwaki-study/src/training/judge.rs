//! The paper's numbers and statements held against what came out.

use super::analysis::ANALYSES;
use super::claims::{Expected, LeadClaim, OrderClaim, RatioClaim, TrendClaim, ValueClaim};
use super::{Board, Endpoint, Estimate, Training, fisher_exact};
use crate::Error;
use crate::claim::{
    Judgement, LEVEL, Lead, Ours, Outcome, Printed, compare, in_range, no_number, printed_range, whole_pair,
};
use niwaki_page::Format;
use niwaki_stats::SignTest;

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
        judgement: Judgement::Differs,
        remark: claim.remark.clone(),
    };
    if let Some((hits, of)) = whole_pair(&claim.paper, '/') {
        outcome.paper = Some(hits as f64 / of as f64);
        let (won, tried) = (ours.seeds.iter().sum::<f64>() as u64, ours.seeds.len() as u64);
        let p = fisher_exact(won, tried, hits, of);
        outcome.judgement = (p > LEVEL).into();
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
        outcome.judgement = (inside || within(&ours, low as f64, high as f64)).into();
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
        if claim.endpoint.counts() {
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
    let signs = found.signs;
    let ahead = found.decision.mean > 0.0 && signs.greater() <= LEVEL;
    let pairs = signs.untied() + signs.ties;
    let tested = |holds: bool| match can_pass(pairs) {
        true => Judgement::from(holds),
        false => Judgement::TooFewSeeds,
    };
    let (judgement, expected) = match claim.expect {
        Expected::Ahead => (tested(ahead), "is ahead of"),
        Expected::NotAhead => (tested(!ahead), "is not ahead of"),
        Expected::Positive => ((found.decision.mean > 0.0).into(), "has more than"),
        Expected::Negative => ((found.decision.mean < 0.0).into(), "has less than"),
        Expected::Within => {
            let text = claim.paper.as_deref().unwrap_or_default();
            let range = printed_range(text).ok_or_else(|| no_number(&board.plan.study.label, text))?;
            let sem = if pairs > 1 { found.sem } else { f64::NAN };
            (in_range(range, found.decision.mean, sem), "lies where the paper has it beside")
        }
    };
    let remark = match judgement {
        Judgement::TooFewSeeds => format!("{}{}", few(pairs), claim.remark),
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
            mean: found.decision.mean,
            interval: found.decision.interval,
            wins: signs.wins,
            untied: signs.untied(),
            p: signs.greater(),
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
        judgement: in_range((low, high), ratio, sem),
        remark: claim.remark.clone(),
    }))
}

fn trend(board: &Board<'_>, claim: &TrendClaim) -> Result<Option<Outcome>, Error> {
    let arm = board.plan.arm(&claim.arm)?;
    let mut values = Vec::new();
    for name in &claim.cells {
        let cell = board.plan.cell(Some(name))?;
        let found = match &claim.over {
            None => board.estimate(arm, cell, claim.endpoint)?.map(|found| found.value),
            Some(over) => board
                .compare(arm, board.plan.arm(over)?, cell, claim.endpoint)?
                .map(|found| found.decision.mean),
        };
        let Some(value) = found else { return Ok(None) };
        values.push((name, value));
    }
    let shown: Vec<String> = values
        .iter()
        .map(|(name, value)| format!("{name}: {}", Format::significant(3).signed().text(*value)))
        .collect();
    Ok(Some(Outcome {
        group: String::new(),
        statement: claim.statement.clone(),
        paper: None,
        paper_sem: None,
        ours: Ours::Words(shown.join(", ")),
        sems: None,
        judgement: values.windows(2).all(|pair| pair[1].1 > pair[0].1).into(),
        remark: claim.remark.clone(),
    }))
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
    let turn = if claim.endpoint.falls() { -1.0 } else { 1.0 };
    let worst = |group: &[(String, f64)]| group.iter().map(|v| turn * v.1).fold(f64::INFINITY, f64::min);
    let best = |group: &[(String, f64)]| group.iter().map(|v| turn * v.1).fold(f64::NEG_INFINITY, f64::max);
    let holds = groups.windows(2).all(|pair| worst(&pair[0]) > best(&pair[1]));
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
        judgement: holds.into(),
        remark: claim.remark.clone(),
    }))
}

/// Whether so many pairs could pass a one-sided sign test if all of them were won.
fn can_pass(pairs: u64) -> bool {
    SignTest { wins: pairs, losses: 0, ties: 0 }.greater() <= LEVEL
}

/// What is said of too few pairs.
fn few(pairs: u64) -> String {
    let seeds = if pairs == 1 { "1 seed".to_owned() } else { format!("{pairs} seeds") };
    format!("{seeds} cannot pass p < {LEVEL}. ")
}

/// Both ends of a printed range lie within ours, give or take a stride.
fn within(ours: &Estimate, low: f64, high: f64) -> bool {
    low >= ours.range.0 - STRIDE && high <= ours.range.1 + STRIDE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_pairs_can_pass_and_four_cannot() {
        // 2⁻⁴ = 0.0625, 2⁻⁵ = 0.03125.
        assert!(!can_pass(0) && !can_pass(4) && can_pass(5));
        assert_eq!(few(3), "3 seeds cannot pass p < 0.05. ");
    }
}
