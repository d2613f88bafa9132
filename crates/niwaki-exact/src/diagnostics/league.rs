//! The league table.

use super::Summary;
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
                Cell::from(row.surrogate.correction.label()).hint(row.surrogate.correction.summary()),
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
