//! The paper's statements beside ours, as tables and in one sentence: what every kind of study shares.

use crate::claim::{Judgement, Ours, Outcome};
use niwaki_page::{Callout, Cell, Column, Format, Table, Tile};
use std::fmt;

/// How many statements that are decided against a verdict names.
const NAMED: usize = 5;

/// How many statements are decided in favour, against, and not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Count {
    /// Decided in favour.
    pub favour: usize,
    /// Decided against.
    pub against: usize,
    /// Open.
    pub open: usize,
}

impl Count {
    /// Counts outcomes.
    #[must_use]
    pub fn of(outcomes: &[Outcome]) -> Self {
        let count = |what: Judgement| outcomes.iter().filter(|outcome| outcome.judgement == what).count();
        Self {
            favour: count(Judgement::Agrees),
            against: count(Judgement::Disagrees),
            open: count(Judgement::Open),
        }
    }

    /// As a tile of the page.
    #[must_use]
    pub fn tile(self) -> Tile {
        Tile::new("statements in favour", format!("{} of {}", self.favour, self.all()))
            .note(format!("{} against, {} open", self.against, self.open))
    }

    const fn all(self) -> usize {
        self.favour + self.against + self.open
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { favour, against, open } = self;
        write!(
            f,
            "{favour} of {} statements are decided in favour, {against} against, {open} are open",
            self.all()
        )
    }
}

/// What all statements of a study come to.
#[must_use]
pub fn verdict(outcomes: &[Outcome]) -> Callout {
    let count = Count::of(outcomes);
    // Orders and leads first: they are what a paper claims, and a long list of cells tells nobody anything.
    let mut named: Vec<&Outcome> =
        outcomes.iter().filter(|outcome| outcome.judgement == Judgement::Disagrees).collect();
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
    let against = format!("{count}. Against: {}.", shown.join("; "));
    match count {
        Count { against: 0, open: 0, .. } => Callout::good("Reproduced", format!("{count}.")),
        Count { favour: 0, against: 0, .. } => Callout::neutral("Open", format!("{count}.")),
        Count { against: 0, .. } => Callout::neutral("Reproduced as far as decided", format!("{count}.")),
        Count { favour, against: not, .. } if 3 * not <= favour => {
            Callout::neutral("Reproduced, with exceptions", against)
        }
        _ => Callout::bad("Not reproduced", against),
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
        Column::number("difference (SE)").format(Format::fixed(1).signed()),
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
        Column::text("sign"),
        Column::text("size"),
        Column::text("statement"),
        Column::text("paper"),
        Column::number("here").format(Format::significant(2).signed()),
        Column::number("p").format(Format::significant(2)),
        Column::text("seeds, paper"),
        Column::text("here"),
        Column::text("sign test, paper"),
        Column::number("here").format(Format::significant(2)),
    ]);
    let mut any = false;
    for outcome in outcomes {
        if let Ours::Lead(lead) = &outcome.ours {
            any = true;
            table.push([
                word(lead.sign),
                lead.size.map_or(Cell::blank(), word),
                Cell::from(statement(outcome)),
                Cell::from(lead.paper.as_str()),
                lead.interval.iter().fold(Cell::from(lead.mean), |cell, at| cell.interval(at.low, at.high)),
                Cell::from(lead.p),
                Cell::from(lead.paper_seeds.as_str()),
                Cell::from(format!("{}/{}", lead.wins, lead.untied)),
                Cell::from(lead.paper_p.as_str()),
                Cell::from(lead.sign_p),
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
        Judgement::Agrees | Judgement::Open => Cell::from(judgement.to_string()),
        Judgement::Disagrees => Cell::from(judgement.to_string()).strong(),
    }
}
