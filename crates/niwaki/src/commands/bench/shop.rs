//! `niwaki bench shop`: methods against best-known values over a folder of instances.

use crate::commands::method::{Method, duration};
use crate::commands::solve::has_ending;
use crate::{output, terminal};
use anyhow::{Context, bail};
use niwaki_page::{Axis, BarChart, Bars, Cell, Column, Figure, Format, Made, Page, Section, Table};
use niwaki_shop::formats::{KnownBounds, load};
use niwaki_shop::{Instance, Limits};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Measures methods against best-known values.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of instances, searched with its subfolders.
    folder: PathBuf,
    /// Table of best-known values: `name,jobs,machines,lb,ub,source`; bounds.csv in the folder if absent.
    #[arg(long)]
    bounds: Option<PathBuf>,
    /// Methods as `solve` names them, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "rule:spt,rule:mwkr")]
    methods: Vec<String>,
    /// Only instances whose name starts with this, e.g. ta.
    #[arg(long, default_value = "")]
    prefix: String,
    /// How long exact and ig may search on each instance.
    #[arg(long, default_value = "1s", value_parser = duration)]
    time: Duration,
    /// Seed of whatever the methods draw.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Where to write every makespan as CSV.
    #[arg(long)]
    csv: Option<PathBuf>,
    /// Where to write the report as a page.
    #[arg(long)]
    page: Option<PathBuf>,
}

/// One instance and what each method made of it.
struct Row {
    name: String,
    jobs: usize,
    machines: usize,
    known: u32,
    /// Makespan, whether it was proven optimal, and seconds: `[method]`.
    results: Vec<(u32, bool, f64)>,
}

impl Row {
    /// How far a method's makespan is above the best known.
    fn gap(&self, method: usize) -> f64 {
        f64::from(self.results[method].0) / f64::from(self.known.max(1)) - 1.0
    }
}

impl Args {
    /// Runs every method on every instance and prints the mean gaps by size.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let methods = self
            .methods
            .iter()
            .map(|text| text.parse::<Method>().with_context(|| format!("--methods {text}")))
            .collect::<anyhow::Result<Vec<_>>>()?;
        let table = self.bounds.clone().unwrap_or_else(|| self.folder.join("bounds.csv"));
        let table = KnownBounds::load(&table)?;
        let mut files = Vec::new();
        walk(&self.folder, &mut files)?;
        files.sort();
        let named =
            files.iter().filter_map(|path| table.of_file(path).map(|(name, known)| (path, name, known)));
        let work: Vec<_> = named.filter(|(_, name, _)| name.starts_with(&self.prefix)).collect();
        if work.is_empty() {
            bail!(
                "{}: found {} instance files, none of them in the table of bounds{}",
                self.folder.display(),
                files.len(),
                if self.prefix.is_empty() {
                    String::new()
                } else {
                    format!(" under names in {}…", self.prefix)
                }
            );
        }
        let bar = terminal::progress((work.len() * methods.len()) as u64, "scheduling");
        let mut rows = Vec::with_capacity(work.len());
        for (path, name, known) in work {
            let instance = load(path)?;
            let mut results = Vec::with_capacity(methods.len());
            for &method in &methods {
                results.push(self.measure(method, &instance).with_context(|| path.display().to_string())?);
                bar.inc(1);
            }
            let (jobs, machines) = (instance.jobs(), instance.machines());
            rows.push(Row { name: name.to_owned(), jobs, machines, known: known.upper, results });
        }
        bar.finish_and_clear();
        let summary = self.summary(&rows);
        terminal::say(summary.to_text(100).trim_end());
        if let Some(path) = &self.csv {
            output::write_whole(path, &self.every_row(&rows).to_csv())?;
        }
        if let Some(path) = &self.page {
            output::write_whole(path, &self.report(&rows, summary))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    fn measure(&self, method: Method, instance: &Instance) -> anyhow::Result<(u32, bool, f64)> {
        let began = Instant::now();
        let limits = Limits { time: self.time, seed: self.seed };
        let found = method.run(instance, limits, &mut |_| {})?;
        Ok((found.upper, found.proven, began.elapsed().as_secs_f64()))
    }

    /// Mean gaps by size; the best method of each row is marked.
    fn summary(&self, rows: &[Row]) -> Table {
        let mut table = Table::new("Mean gap to the best-known makespan")
            .column(Column::text("size"))
            .column(Column::number("instances").format(Format::fixed(0)));
        for name in &self.methods {
            table = table.column(Column::number(name).format(Format::percent(2)));
        }
        let groups = groups(rows);
        for ((jobs, machines), members) in &groups {
            table.push(self.mean_row(format!("{jobs} × {machines}"), members));
        }
        if groups.len() > 1 {
            table.push(self.mean_row("all".into(), &rows.iter().collect::<Vec<_>>()));
        }
        table
    }

    fn mean_row(&self, label: String, members: &[&Row]) -> Vec<Cell> {
        let means: Vec<f64> = (0..self.methods.len()).map(|method| mean_gap(members, method)).collect();
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let cell = |&mean: &f64| {
            let cell = Cell::number(mean);
            if mean <= least && means.len() > 1 { cell.best() } else { cell }
        };
        let head = [Cell::text(label), Cell::number(members.len() as f64)];
        head.into_iter().chain(means.iter().map(cell)).collect()
    }

    /// Every makespan, for spreadsheets.
    fn every_row(&self, rows: &[Row]) -> Table {
        let names =
            ["name", "jobs", "machines", "best known", "method", "makespan", "gap", "proven", "seconds"];
        let mut table = Table::new("Every makespan").columns(names.map(Column::text));
        for row in rows {
            for (method, &(makespan, proven, seconds)) in row.results.iter().enumerate() {
                table.push([
                    Cell::text(&row.name),
                    Cell::number(row.jobs as f64),
                    Cell::number(row.machines as f64),
                    Cell::number(f64::from(row.known)),
                    Cell::text(&self.methods[method]),
                    Cell::number(f64::from(makespan)),
                    Cell::number(row.gap(method)),
                    Cell::text(if proven { "yes" } else { "no" }),
                    Cell::number(seconds),
                ]);
            }
        }
        table
    }

    fn report(&self, rows: &[Row], summary: Table) -> String {
        let groups = groups(rows);
        let labels = groups.keys().map(|(jobs, machines)| format!("{jobs} × {machines}"));
        let mut chart = BarChart::new("Mean gap by size", labels)
            .category_label("jobs × machines")
            .values(Axis::linear("mean gap to the best known").percent());
        for (method, name) in self.methods.iter().enumerate() {
            chart = chart.bars(Bars::new(name, groups.values().map(|members| mean_gap(members, method))));
        }
        let folder = self.folder.display();
        let section = Section::new("Mean gap")
            .prose(format!(
                "{} instances of `{folder}`; the gap is makespan ÷ best known − 1, and every schedule has passed the \
                 independent checker.",
                rows.len()
            ))
            .table(summary)
            .figure(Figure::new(&chart).caption("Lower is better; zero equals the best makespan known."));
        let mut worst: Vec<&Row> = rows.iter().collect();
        let last = self.methods.len() - 1;
        worst.sort_by(|a, b| b.gap(last).total_cmp(&a.gap(last)));
        let mut hardest =
            Table::new(format!("The ten instances farthest from their best under {}", self.methods[last]))
                .column(Column::text("instance"))
                .column(Column::text("size"))
                .column(Column::number("best known").format(Format::fixed(0)))
                .column(Column::number("makespan").format(Format::fixed(0)))
                .column(Column::number("gap").format(Format::percent(2)));
        for row in worst.into_iter().take(10) {
            hardest.push([
                Cell::text(&row.name),
                Cell::text(format!("{} × {}", row.jobs, row.machines)),
                Cell::number(f64::from(row.known)),
                Cell::number(f64::from(row.results[last].0)),
                Cell::number(row.gap(last)),
            ]);
        }
        let command = std::env::args().collect::<Vec<_>>().join(" ");
        Page::new("Scheduling methods against the best known")
            .subtitle(format!("{folder}: {} instances, {} methods", rows.len(), self.methods.len()))
            .section(section)
            .section(Section::new("Where it is hardest").table(hardest))
            .made(Made::new(command).fact("time limit", format!("{:?} for each search", self.time)))
            .to_html()
    }
}

/// Rows by (jobs, machines).
fn groups(rows: &[Row]) -> BTreeMap<(usize, usize), Vec<&Row>> {
    let mut groups: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
    for row in rows {
        groups.entry((row.jobs, row.machines)).or_default().push(row);
    }
    groups
}

fn mean_gap(members: &[&Row], method: usize) -> f64 {
    members.iter().map(|row| row.gap(method)).sum::<f64>() / members.len() as f64
}

/// Collects instance files below a folder.
fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("cannot open {}", folder.display()))?;
    for entry in entries {
        let path = entry.with_context(|| format!("cannot read {}", folder.display()))?.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if ["txt", "fjs", "json"].iter().any(|ending| has_ending(&path, ending)) {
            found.push(path);
        }
    }
    Ok(())
}
