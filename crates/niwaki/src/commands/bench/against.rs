//! `niwaki bench shop --against`: the exact search against best-known bounds, and beside other engines.

use super::shop::Args;
use crate::output::has_ending;
use crate::terminal;
use anyhow::bail;
use niwaki_page::{Cell, Column, Format, Table};
use niwaki_shop::Limits;
use niwaki_shop::planning::against::{Against, Report, Step, Summary};
use std::path::Path;
use std::process::ExitCode;

/// Searches what is not finished, and prints how far bounds are from the best known.
pub(super) fn run(args: &Args, table: &Path) -> anyhow::Result<ExitCode> {
    if let Some(rows) = args.rows.as_deref().filter(|rows| !has_ending(rows, "csv")) {
        bail!("--rows {}: expected a name that ends in .csv", rows.display());
    }
    let against = Against {
        folder: args.folder.clone(),
        table: table.to_owned(),
        rows: args.rows.clone(),
        prefix: args.prefix.clone(),
        every: args.every as usize,
        limits: Limits::new(args.time, args.seed).on(args.threads.into()),
    };
    let bar = terminal::Bar::default();
    let report = against.run(|step| match step {
        Step::Begins(all, before) => {
            bar.begin(terminal::progress(all as u64, "searching"));
            bar.inc(before as u64);
        }
        Step::Finished(_) => bar.inc(1),
    });
    bar.end();
    let report = report?;
    let searched = format!(
        "{} instances, {:?} each on {} thread{}, seed {}",
        report.done.len(),
        args.time,
        args.threads,
        if args.threads == 1 { "" } else { "s" },
        args.seed
    );
    terminal::say(&format!("{searched}\n\n{}", summary(&report).to_text(terminal::width()).trim_end()));
    Ok(ExitCode::SUCCESS)
}

/// A row for every family and each engine, and for all together.
fn summary(report: &Report) -> Table {
    let mut table = Table::new("Geometric means of bounds over the best known")
        .column(Column::text("family"))
        .column(Column::text("engine"))
        .column(Column::number("instances").format(Format::fixed(0)))
        .column(Column::number("upper").format(Format::fixed(4)))
        .column(Column::number("lower").format(Format::fixed(4)));
    for count in ["better", "equal", "worse", "proven"] {
        table = table.column(Column::number(count).format(Format::fixed(0)));
    }
    table = table.column(Column::text("mean time"));
    let families = report.families();
    let all = (families.len() != 1).then_some(None);
    for family in families.into_iter().map(Some).chain(all) {
        let (ours, seconds) = report.ours(family);
        table.push(row(family, "niwaki", ours, &format!("{seconds:.1} s")));
        for (engine, name) in report.table.engines.iter().enumerate() {
            table.push(row(family, name, report.engine(family, engine), "–"));
        }
    }
    table
}

fn row(family: Option<&str>, name: &str, of: Summary, time: &str) -> Vec<Cell> {
    let mut cells = vec![
        Cell::text(family.unwrap_or("all")),
        Cell::text(name),
        Cell::number(of.instances as f64),
        Cell::number(of.upper),
        Cell::number(of.lower),
    ];
    cells.extend([of.better, of.equal, of.worse, of.proven].map(|count| Cell::number(count as f64)));
    cells.push(Cell::text(time));
    cells
}
