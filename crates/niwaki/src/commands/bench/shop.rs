//! `niwaki bench shop`: methods against best-known values over a folder of instances.

use crate::commands::policy::{self, DecodeArgs};
use crate::commands::solve::duration;
use crate::output::{self, Out, Piece};
use crate::terminal;
use anyhow::Context;
use niwaki_page::{Axis, BarChart, Bars, Callout, Cell, Column, Figure, Format, Page, Section, Table};
use niwaki_shop::planning::Method;
use niwaki_shop::planning::contest::{
    Contest, Entrant, Found, Progress, Reference, Row, Scheduled, Standing, mean_gap,
};
use niwaki_shop::{Instance, Limits};
use std::cell::RefCell;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Instances that the page names at most.
const MOST_SHOWN: usize = 10;

/// Measures methods against best-known values.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder of instances, searched with its subfolders.
    pub(super) folder: PathBuf,
    /// Search every instance exactly for --time, and compare both bounds with this table of best-known ones, by family and
    /// engine. CSV with the columns instance, best_lb and best_ub; family, NAME_lb and NAME_ub are optional.
    #[arg(long, value_name = "TABLE", conflicts_with_all = ["bounds", "optima", "methods", "policies", "out"])]
    pub(super) against: Option<PathBuf>,
    /// Where finished rows are kept (.csv), so that the same command goes on where it ended.
    #[arg(long, value_name = "FILE", requires = "against")]
    pub(super) rows: Option<PathBuf>,
    /// Only every nth instance of the table, by name.
    #[arg(long, value_name = "N", requires = "against", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) every: u32,
    /// Threads that search an instance; 1 if absent.
    #[arg(long, requires = "against", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(super) threads: u16,
    /// Table of best-known values: `name,jobs,machines,lb,ub,source`; bounds.csv in the folder if absent.
    #[arg(long)]
    bounds: Option<PathBuf>,
    /// Search for every optimum this long, e.g. 10s, instead of reading a table of best-known values.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "bounds")]
    optima: Option<Duration>,
    /// Methods as `solve` names them, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "rule:spt,rule:mwkr")]
    methods: Vec<String>,
    /// Folder written by `niwaki train`, or builtin:flexible or builtin:jobs, whose policy is measured too; may be given several times.
    #[arg(long = "policy", value_name = "RUN")]
    policies: Vec<PathBuf>,
    #[command(flatten)]
    decode: DecodeArgs,
    /// Only instances whose name starts with this, e.g. ta.
    #[arg(long, default_value = "")]
    pub(super) prefix: String,
    /// Time limit of exact and ig on each instance.
    #[arg(long, default_value = "1s", value_parser = duration)]
    pub(super) time: Duration,
    /// Random seed.
    #[arg(long, default_value_t = 0)]
    pub(super) seed: u64,
    /// Where to write a page, and every makespan as CSV: a folder for both, or one file that ends in .html or .csv.
    #[arg(long, value_name = "PLACE")]
    out: Option<PathBuf>,
}

impl Args {
    /// Runs every method on every instance and prints the mean gaps by size.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        if let Some(table) = &self.against {
            return super::against::run(&self, table);
        }
        let place = self.out.as_deref().map(|path| Out::new(path, &["html", "csv"])).transpose()?;
        if self.policies.is_empty() {
            self.decode.check_alone()?;
        }
        let entrants = self.entrants()?;
        let bar = terminal::Bar::default();
        let standing = self.contest().run(&entrants, |told| match told {
            Progress::Begins(schedules) => bar.begin(terminal::progress(schedules as u64, "scheduling")),
            Progress::Scheduled => bar.inc(1),
        });
        bar.end();
        let standing = standing?;
        let summary = summary(&standing);
        terminal::say(&format!(
            "{}\n\n{}",
            summary.to_text(100).trim_end(),
            effort(&standing).to_text(100).trim_end()
        ));
        if let Some(out) = place {
            let pieces = [
                Piece::new("makespans.csv", every_row(&standing).to_csv()),
                Piece::new("index.html", self.report(&standing, summary)),
            ];
            output::name_written(&out.write(&pieces)?, false);
        }
        Ok(ExitCode::SUCCESS)
    }

    fn contest(&self) -> Contest {
        let reference = match self.optima {
            Some(time) => Reference::Optima(Limits::new(time, self.seed)),
            None => Reference::Table(self.bounds.clone().unwrap_or_else(|| self.folder.join("bounds.csv"))),
        };
        Contest { folder: self.folder.clone(), reference, prefix: self.prefix.clone() }
    }

    /// Everyone who schedules.
    fn entrants(&self) -> anyhow::Result<Vec<Entrant<'_, anyhow::Error>>> {
        let mut entrants = Vec::new();
        for text in &self.methods {
            let method = text.parse::<Method>().with_context(|| format!("--methods {text}"))?;
            entrants.push(Entrant::method(text, method, Limits::new(self.time, self.seed)));
        }
        for folder in &self.policies {
            let policy = policy::open(folder, self.decode)?;
            let how = self.decode.decoding(self.seed, &policy);
            let policy = RefCell::new(policy);
            let schedule = move |instance: &Instance| -> Result<Found, niwaki_train::Error> {
                let mut policy = policy.borrow_mut();
                let instance = policy.accept(instance.clone())?;
                let (found, decoded) = policy.schedule(&instance, how, &mut |_| {})?;
                Ok(Found { makespan: found.bounds(), tried: Some(decoded.tried) })
            };
            entrants.push(Entrant::new(folder.display().to_string(), move |path, instance| {
                schedule(instance).with_context(|| path.display().to_string())
            }));
        }
        Ok(entrants)
    }

    fn report(&self, standing: &Standing, summary: Table) -> String {
        let Standing { names, rows } = standing;
        let groups = standing.by_size();
        let labels = groups.keys().map(|(jobs, machines)| format!("{jobs} × {machines}"));
        let mut chart = BarChart::new("Mean gap by size", labels)
            .category_label("jobs × machines")
            .values(Axis::linear("mean gap to the best known makespan").percent());
        for (method, name) in names.iter().enumerate() {
            chart = chart.bars(Bars::new(name, groups.values().map(|members| mean_gap(members, method))));
        }
        let folder = self.folder.display();
        let section = best(standing)
            .into_iter()
            .fold(Section::new("Mean gap"), Section::callout)
            .figure(Figure::new(&chart).caption("Lower is better; zero equals the best makespan known."))
            .prose(format!(
                "{} instances of `{folder}`; the gap is makespan ÷ best known − 1, and every schedule has passed the \
                 independent checker.",
                rows.len()
            ))
            .table(summary)
            .table(effort(standing));
        let mut worst: Vec<&Row> = rows.iter().collect();
        let last = names.len() - 1;
        worst.sort_by(|a, b| b.gap(last).total_cmp(&a.gap(last)));
        let title = match rows.len() {
            0..=MOST_SHOWN => {
                format!("Every instance under {}, the farthest from its best first", names[last])
            }
            _ => format!("The {MOST_SHOWN} instances farthest from their best under {}", names[last]),
        };
        let mut hardest = Table::new(title)
            .column(Column::text("instance"))
            .column(Column::text("size"))
            .column(Column::number("best known").format(Format::fixed(0)))
            .column(Column::number("makespan").format(Format::fixed(0)))
            .column(Column::number("gap").format(Format::percent(2)));
        for row in worst.into_iter().take(MOST_SHOWN) {
            hardest.push([
                Cell::text(&row.name),
                Cell::text(format!("{} × {}", row.jobs, row.machines)),
                Cell::number(f64::from(row.known)),
                Cell::number(f64::from(row.scheduled[last].makespan)),
                Cell::number(row.gap(last)),
            ]);
        }
        Page::new("Scheduling methods against best-known makespans")
            .subtitle(format!("{folder}: {} instances, {} methods", rows.len(), names.len()))
            .section(section)
            .section(Section::new("Where it is hardest").table(hardest))
            .made(output::made().fact("time limit", format!("{:?} for each search", self.time)))
            .to_html()
    }
}

/// Which of several methods comes nearest to the best-known makespans.
fn best(standing: &Standing) -> Option<Callout> {
    let all: Vec<&Row> = standing.rows.iter().collect();
    let mut order: Vec<(f64, &String)> =
        standing.names.iter().enumerate().map(|(method, name)| (mean_gap(&all, method), name)).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let [(least, first), (next, second), ..] = order[..] else { return None };
    let share = |gap: f64| Format::percent(2).text(gap);
    Some(Callout::neutral(
        format!("{first} comes closest to the best-known makespans."),
        format!("Its mean gap is {}; that of {second}, the next, is {}.", share(least), share(next)),
    ))
}

/// Mean gaps by size; the best method of each row is marked.
fn summary(standing: &Standing) -> Table {
    let mut table = Table::new("Mean gap to the best-known makespan")
        .column(Column::text("size"))
        .column(Column::number("instances").format(Format::fixed(0)));
    for name in &standing.names {
        table = table.column(Column::number(name).format(Format::percent(2)));
    }
    let sizes = standing.by_size();
    for ((jobs, machines), members) in &sizes {
        table.push(mean_row(standing, format!("{jobs} × {machines}"), members));
    }
    if sizes.len() > 1 {
        table.push(mean_row(standing, "all".into(), &standing.rows.iter().collect::<Vec<_>>()));
    }
    table
}

fn mean_row(standing: &Standing, label: String, members: &[&Row]) -> Vec<Cell> {
    let means: Vec<f64> = (0..standing.names.len()).map(|method| mean_gap(members, method)).collect();
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let cell = |&mean: &f64| {
        let cell = Cell::number(mean);
        if mean <= least && means.len() > 1 { cell.best() } else { cell }
    };
    let head = [Cell::text(label), Cell::number(members.len() as f64)];
    head.into_iter().chain(means.iter().map(cell)).collect()
}

/// Every makespan, for spreadsheets.
fn every_row(standing: &Standing) -> Table {
    let names = ["name", "jobs", "machines", "best known", "method", "makespan", "gap", "proven", "seconds"];
    let mut table = Table::new("Every makespan").columns(names.map(Column::text));
    for row in &standing.rows {
        for (method, result) in row.scheduled.iter().enumerate() {
            table.push([
                Cell::text(&row.name),
                Cell::number(row.jobs as f64),
                Cell::number(row.machines as f64),
                Cell::number(f64::from(row.known)),
                Cell::text(&standing.names[method]),
                Cell::number(f64::from(result.makespan)),
                Cell::number(row.gap(method)),
                Cell::text(if result.proven { "yes" } else { "no" }),
                Cell::number(result.seconds),
            ]);
        }
    }
    table
}

/// What each method costs: time per instance, and schedules that a policy tried for its answer.
fn effort(standing: &Standing) -> Table {
    let mut table = Table::new("Time per instance")
        .column(Column::text("method"))
        .column(Column::number("mean gap").format(Format::percent(2)))
        .column(Column::number("milliseconds").format(Format::fixed(2)));
    let all: Vec<&Row> = standing.rows.iter().collect();
    // Only policies count what they tried.
    let counted = all.iter().any(|row| row.scheduled.iter().any(|result| result.tried.is_some()));
    if counted {
        table = table.column(Column::text("schedules tried"));
    }
    for (method, name) in standing.names.iter().enumerate() {
        let mean = |of: &dyn Fn(&Scheduled) -> f64| {
            all.iter().map(|row| of(&row.scheduled[method])).sum::<f64>() / all.len() as f64
        };
        let tried = all.iter().find_map(|row| row.scheduled[method].tried);
        let mut cells = vec![
            Cell::text(name),
            Cell::number(mean_gap(&all, method)),
            Cell::number(1e3 * mean(&|result| result.seconds)),
        ];
        if counted {
            cells.push(Cell::text(tried.map_or("–".to_owned(), |tried| tried.to_string())));
        }
        table.push(cells);
    }
    table
}
