//! The league table, and ours beside the paper's.

use super::Summary;
use crate::claim::{Judgement, Ours, Outcome};
use niwaki_page::{Cell, Column, Format, Table};

/// One row per loss, grouped by reward and drift; the lowest MSE and the best direction of each group are marked.
#[must_use]
pub fn league_table(caption: &str, summaries: &[Summary]) -> Table {
    let mut table = Table::new(caption).columns([
        Column::text("loss"),
        Column::number("mean |bias|").format(Format::scientific(1)),
        Column::number("|mean bias|").format(Format::scientific(1)),
        Column::number("MSE").format(Format::significant(3)),
        Column::number("cosine").format(Format::fixed(3)),
        Column::number("ESS").format(Format::fixed(3)),
    ]);
    let several = summaries.iter().any(|row| !same_cell(row, &summaries[0]));
    let mut rest = summaries;
    while let [first, ..] = rest {
        let length = rest.iter().take_while(|row| same_cell(row, first)).count();
        let (group, later) = rest.split_at(length);
        if several {
            let kl = Format::significant(2).text(first.mean_kl.mean);
            table.push_heading(format!("{}, δ = {}, mean KL {kl}", first.reward, first.drift));
        }
        let lowest = group.iter().map(|row| row.mse.mean).fold(f64::INFINITY, f64::min);
        for row in group {
            let mse = Cell::from(row.mse.mean);
            let mse = if row.seeds > 1 { mse.error(row.mse.sem) } else { mse };
            table.push([
                Cell::from(row.surrogate.correction.label()).hint(row.surrogate.correction.member().summary),
                Cell::from(row.absolute_bias.mean),
                Cell::from(row.bias.mean.abs()),
                if row.mse.mean == lowest { mse.best() } else { mse },
                Cell::from(row.cosine.mean),
                Cell::from(row.ess.mean),
            ]);
        }
        rest = later;
    }
    table
}

fn same_cell(a: &Summary, b: &Summary) -> bool {
    a.reward == b.reward && a.drift == b.drift
}

/// The paper's numbers beside ours, grouped by what they measure.
#[must_use]
pub fn numbers_table(caption: &str, outcomes: &[Outcome]) -> Table {
    let mut table = Table::new(caption).columns([
        Column::text("of"),
        Column::number("paper").format(Format::significant(3)),
        Column::number("here").format(Format::significant(3)),
        Column::number("SEMs apart").format(Format::fixed(1).signed()),
        Column::text("verdict"),
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
                Ours::Words(_) => Cell::blank(),
            };
            table.push([
                Cell::from(statement(outcome)),
                outcome.paper_sem.map_or(paper.clone(), |sem| paper.error(sem)),
                here,
                outcome.sems.map_or(Cell::blank(), Cell::from),
                verdict(outcome.judgement),
            ]);
        }
    }
    table
}

/// Orders, places and other statements without a number of their own; nothing where there are none.
#[must_use]
pub fn statements_table(caption: &str, outcomes: &[Outcome]) -> Option<Table> {
    let mut table = Table::new(caption).columns([
        Column::text("statement"),
        Column::text("here"),
        Column::text("verdict"),
    ]);
    let mut any = false;
    for outcome in outcomes {
        if let Ours::Words(words) = &outcome.ours {
            any = true;
            table.push([
                Cell::from(statement(outcome)),
                Cell::from(words.as_str()),
                verdict(outcome.judgement),
            ]);
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

fn verdict(judgement: Judgement) -> Cell {
    match judgement {
        Judgement::Agrees => Cell::from("agrees"),
        Judgement::Differs => Cell::from("differs").strong(),
    }
}
