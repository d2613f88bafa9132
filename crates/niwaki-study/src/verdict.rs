//! The paper's statements beside ours, as tables and in one sentence: what every kind of study shares.

use crate::claim::{Judgement, Ours, Outcome};
use niwaki_page::{Callout, Cell, Column, Format, Table};

/// How many statements that differ a verdict names.
const NAMED: usize = 5;

/// What all statements of a study come to.
#[must_use]
pub fn verdict(outcomes: &[Outcome], agreeing: usize) -> Callout {
    let differing: Vec<&Outcome> =
        outcomes.iter().filter(|outcome| outcome.judgement == Judgement::Differs).collect();
    let undecided = outcomes.len() - agreeing - differing.len();
    let counted = match undecided {
        0 => format!("{agreeing} of {} statements agree", outcomes.len()),
        _ => format!("{agreeing} of {} statements agree, {undecided} need more seeds", outcomes.len()),
    };
    // Orders and leads first: they are what a paper claims, and a long list of cells tells nobody anything.
    let mut named = differing.clone();
    named.sort_by_key(|outcome| is_number(outcome));
    let mut shown: Vec<String> = named
        .iter()
        .take(NAMED)
        .map(|outcome| match outcome.group.as_str() {
            "" => outcome.statement.clone(),
            group => format!("{group}: {}", outcome.statement),
        })
        .collect();
    if named.len() > NAMED {
        shown.push(format!("and {} more, marked in the tables", named.len() - NAMED));
    }
    let shown = shown.join("; ");
    match differing.as_slice() {
        [] if undecided > 0 => Callout::neutral("Undecided", format!("{counted}.")),
        [] => Callout::good("Reproduced", format!("{counted}.")),
        _ if 4 * differing.len() <= outcomes.len() => {
            Callout::neutral("Reproduced, with exceptions", format!("{counted}. Those that do not: {shown}."))
        }
        _ => Callout::bad("Not reproduced", format!("{counted}. Those that do not: {shown}.")),
    }
}

/// The paper's numbers beside ours, grouped by what they measure.
#[must_use]
pub fn numbers_table(caption: &str, outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(caption).columns([
        Column::text("verdict"),
        Column::text("of"),
        Column::number("paper").format(Format::significant(3)),
        Column::number("here").format(Format::significant(3)),
        Column::number("SEMs apart").format(Format::fixed(1).signed()),
    ]);
    let mut groups: Vec<&str> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| is_number(outcome)) {
        if !groups.contains(&outcome.group.as_str()) {
            groups.push(&outcome.group);
        }
    }
    for group in groups {
        if !group.is_empty() {
            table.push_heading(group);
        }
        for outcome in outcomes.iter().filter(|outcome| is_number(outcome) && outcome.group == group) {
            let paper = outcome.paper.map_or(Cell::blank(), Cell::from);
            let here = match outcome.ours {
                Ours::Number(value, sem) if sem > 0.0 => Cell::from(value).error(sem),
                Ours::Number(value, _) => Cell::from(value),
                Ours::Lead(_) | Ours::Words(_) => Cell::blank(),
            };
            table.push([
                word(outcome.judgement),
                Cell::from(statement(outcome)),
                outcome.paper_sem.map_or(paper.clone(), |sem| paper.error(sem)),
                here,
                outcome.sems.map_or(Cell::blank(), Cell::from),
            ]);
        }
    }
    table
}

/// The paper's leads beside ours, seeds and sign tests with them; nothing where there are none.
#[must_use]
pub fn leads_table(caption: &str, outcomes: &[Outcome]) -> Option<Table> {
    let mut table = Table::new(caption).columns([
        Column::text("verdict"),
        Column::text("statement"),
        Column::text("paper"),
        Column::number("here").format(Format::significant(2).signed()),
        Column::number("SEMs apart").format(Format::fixed(1).signed()),
        Column::text("seeds, paper"),
        Column::text("here"),
        Column::text("p, paper"),
        Column::number("here").format(Format::significant(2)),
    ]);
    let mut any = false;
    for outcome in outcomes {
        if let Ours::Lead(lead) = &outcome.ours {
            any = true;
            table.push([
                word(outcome.judgement),
                Cell::from(statement(outcome)),
                Cell::from(lead.paper.as_str()),
                lead.interval.iter().fold(Cell::from(lead.mean), |cell, at| cell.interval(at.low, at.high)),
                outcome.sems.map_or(Cell::blank(), Cell::from),
                Cell::from(lead.paper_seeds.as_str()),
                Cell::from(format!("{}/{}", lead.wins, lead.untied)),
                Cell::from(lead.paper_p.as_str()),
                Cell::from(lead.p),
            ]);
        }
    }
    any.then_some(table)
}

/// Orders, trends and other statements without a number of their own; nothing where there are none.
#[must_use]
pub fn statements_table(caption: &str, outcomes: &[Outcome]) -> Option<Table> {
    let mut table = Table::new(caption).columns([
        Column::text("verdict"),
        Column::text("statement"),
        Column::text("here"),
    ]);
    let mut any = false;
    for outcome in outcomes {
        if let Ours::Words(words) = &outcome.ours {
            any = true;
            table.push([word(outcome.judgement), Cell::from(statement(outcome)), Cell::from(words.as_str())]);
        }
    }
    any.then_some(table)
}

fn is_number(outcome: &Outcome) -> bool {
    matches!(outcome.ours, Ours::Number(..))
}

fn statement(outcome: &Outcome) -> String {
    if outcome.remark.is_empty() {
        outcome.statement.clone()
    } else {
        format!("{}. {}", outcome.statement, outcome.remark)
    }
}

fn word(judgement: Judgement) -> Cell {
    match judgement {
        Judgement::Agrees | Judgement::TooFewSeeds => Cell::from(judgement.to_string()),
        Judgement::Differs => Cell::from(judgement.to_string()).strong(),
    }
}
