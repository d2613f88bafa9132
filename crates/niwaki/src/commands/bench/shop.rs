//! `niwaki bench shop`: methods against best-known values over a folder of instances.

use crate::commands::policy::{self, DecodeArgs};
use crate::commands::solve::{duration, has_ending};
use crate::{output, terminal};
use anyhow::{Context, bail};
use niwaki_page::{Axis, BarChart, Bars, Cell, Column, Figure, Format, Made, Page, Section, Table};
use niwaki_shop::formats::{KnownBounds, load};
use niwaki_shop::optimum::solve;
use niwaki_shop::planning::{self, Method};
use niwaki_shop::{Instance, Limits};
use niwaki_train::Trained;
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
    /// Seek every optimum for so long, e.g. 10s, instead of reading a table of best-known values.
    #[arg(long, value_name = "TIME", value_parser = duration, conflicts_with = "bounds")]
    optima: Option<Duration>,
    /// Methods as `solve` names them, separated by commas.
    #[arg(long, value_delimiter = ',', default_value = "rule:spt,rule:mwkr")]
    methods: Vec<String>,
    /// Folder that `niwaki train` has written, whose policy is measured too; may be given several times.
    #[arg(long = "policy", value_name = "RUN")]
    policies: Vec<PathBuf>,
    #[command(flatten)]
    decode: DecodeArgs,
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

/// Who schedules.
enum Entrant {
    Method(Method),
    Policy(Box<Trained>),
}

/// What came of one instance.
struct Result {
    makespan: u32,
    proven: bool,
    seconds: f64,
    /// Schedules that a policy tried.
    tried: Option<usize>,
}

/// One instance and what each method made of it.
struct Row {
    name: String,
    jobs: usize,
    machines: usize,
    known: u32,
    /// `[method]`
    results: Vec<Result>,
}

impl Row {
    /// How far a method's makespan is above the best known.
    fn gap(&self, method: usize) -> f64 {
        f64::from(self.results[method].makespan) / f64::from(self.known.max(1)) - 1.0
    }
}

/// All instances, and who scheduled them.
struct Measured {
    names: Vec<String>,
    rows: Vec<Row>,
}

impl Measured {
    /// Mean gaps by size; the best method of each row is marked.
    fn summary(&self) -> Table {
        let mut table = Table::new("Mean gap to the best-known makespan")
            .column(Column::text("size"))
            .column(Column::number("instances").format(Format::fixed(0)));
        for name in &self.names {
            table = table.column(Column::number(name).format(Format::percent(2)));
        }
        let groups = groups(&self.rows);
        for ((jobs, machines), members) in &groups {
            table.push(self.mean_row(format!("{jobs} × {machines}"), members));
        }
        if groups.len() > 1 {
            table.push(self.mean_row("all".into(), &self.rows.iter().collect::<Vec<_>>()));
        }
        table
    }

    fn mean_row(&self, label: String, members: &[&Row]) -> Vec<Cell> {
        let means: Vec<f64> = (0..self.names.len()).map(|method| mean_gap(members, method)).collect();
        let least = means.iter().copied().fold(f64::INFINITY, f64::min);
        let cell = |&mean: &f64| {
            let cell = Cell::number(mean);
            if mean <= least && means.len() > 1 { cell.best() } else { cell }
        };
        let head = [Cell::text(label), Cell::number(members.len() as f64)];
        head.into_iter().chain(means.iter().map(cell)).collect()
    }

    /// Every makespan, for spreadsheets.
    fn every_row(&self) -> Table {
        let names =
            ["name", "jobs", "machines", "best known", "method", "makespan", "gap", "proven", "seconds"];
        let mut table = Table::new("Every makespan").columns(names.map(Column::text));
        for row in &self.rows {
            for (method, result) in row.results.iter().enumerate() {
                table.push([
                    Cell::text(&row.name),
                    Cell::number(row.jobs as f64),
                    Cell::number(row.machines as f64),
                    Cell::number(f64::from(row.known)),
                    Cell::text(&self.names[method]),
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
    fn effort(&self) -> Table {
        let mut table = Table::new("Time per instance")
            .column(Column::text("method"))
            .column(Column::number("mean gap").format(Format::percent(2)))
            .column(Column::number("milliseconds").format(Format::fixed(2)))
            .column(Column::text("schedules tried"));
        let all: Vec<&Row> = self.rows.iter().collect();
        for (method, name) in self.names.iter().enumerate() {
            let mean = |of: &dyn Fn(&Result) -> f64| {
                all.iter().map(|row| of(&row.results[method])).sum::<f64>() / all.len() as f64
            };
            let tried = all.iter().find_map(|row| row.results[method].tried);
            table.push([
                Cell::text(name),
                Cell::number(mean_gap(&all, method)),
                Cell::number(1e3 * mean(&|result| result.seconds)),
                Cell::text(tried.map_or("–".to_owned(), |tried| tried.to_string())),
            ]);
        }
        table
    }
}

impl Args {
    /// Runs every method on every instance and prints the mean gaps by size.
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        let (names, entrants) = self.entrants()?;
        let work = self.work()?;
        let bar = terminal::progress((work.len() * entrants.len()) as u64, "scheduling");
        let mut rows = Vec::with_capacity(work.len());
        for (path, name, known) in work {
            let instance = load(&path)?;
            let at = || path.display().to_string();
            let known = known.unwrap_or_else(|| self.optimum(&instance));
            let mut results = Vec::with_capacity(entrants.len());
            for entrant in &entrants {
                results.push(self.measure(entrant, &instance).with_context(at)?);
                bar.inc(1);
            }
            let (jobs, machines) = (instance.jobs(), instance.machines());
            rows.push(Row { name, jobs, machines, known, results });
        }
        bar.finish_and_clear();
        let measured = Measured { names, rows };
        let summary = measured.summary();
        terminal::say(&format!(
            "{}\n\n{}",
            summary.to_text(100).trim_end(),
            measured.effort().to_text(100).trim_end()
        ));
        if let Some(path) = &self.csv {
            output::write_whole(path, &measured.every_row().to_csv())?;
        }
        if let Some(path) = &self.page {
            output::write_whole(path, &self.report(&measured, summary))?;
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Everyone who schedules, by name.
    fn entrants(&self) -> anyhow::Result<(Vec<String>, Vec<Entrant>)> {
        let (mut names, mut entrants) = (Vec::new(), Vec::new());
        for text in &self.methods {
            let method = text.parse::<Method>().with_context(|| format!("--methods {text}"))?;
            names.push(text.clone());
            entrants.push(Entrant::Method(method));
        }
        for folder in &self.policies {
            names.push(folder.display().to_string());
            entrants.push(Entrant::Policy(Box::new(policy::open(folder)?)));
        }
        Ok((names, entrants))
    }

    /// The instances to schedule: file, name, and the best known makespan unless it is to be sought.
    fn work(&self) -> anyhow::Result<Vec<(PathBuf, String, Option<u32>)>> {
        let mut work = Vec::new();
        let count = if self.optima.is_some() {
            let files = files(&self.folder)?;
            let stem = |path: &PathBuf| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            work.extend(files.iter().map(|path| (path.clone(), stem(path), None)));
            files.len()
        } else {
            let table = self.bounds.clone().unwrap_or_else(|| self.folder.join("bounds.csv"));
            let table = KnownBounds::load(&table)?;
            let files = files(&self.folder)?;
            let named = files.iter().filter_map(|path| table.of_file(path).map(|found| (path, found)));
            work.extend(
                named.map(|(path, (name, known))| (path.clone(), name.to_owned(), Some(known.upper))),
            );
            files.len()
        };
        work.retain(|(_, name, _)| name.starts_with(&self.prefix));
        if work.is_empty() {
            let table = if self.optima.is_some() { "" } else { ", none of them in the table of bounds" };
            let prefix = if self.prefix.is_empty() {
                String::new()
            } else {
                format!(" under names in {}…", self.prefix)
            };
            bail!("{}: found {count} instance files{table}{prefix}", self.folder.display());
        }
        Ok(work)
    }

    /// The least makespan that the exact solver finds in the time that it is given.
    fn optimum(&self, instance: &Instance) -> u32 {
        let limits = Limits::new(self.optima.unwrap_or(self.time), self.seed);
        solve(instance, limits, &mut |_| {}).upper
    }

    fn measure(&self, entrant: &Entrant, instance: &Instance) -> anyhow::Result<Result> {
        let began = Instant::now();
        let (found, tried) = match entrant {
            Entrant::Method(method) => {
                let limits = Limits::new(self.time, self.seed);
                (planning::solve(instance, *method, limits, &mut |_| {})?.makespan, None)
            }
            Entrant::Policy(policy) => {
                let instance = policy.accept(instance.clone())?;
                let how = self.decode.decoding(self.seed);
                let (found, decoded) = policy::schedule(policy, &instance, how, &mut |_| {})?;
                (found.bounds(), Some(decoded.tried))
            }
        };
        let seconds = began.elapsed().as_secs_f64();
        Ok(Result { makespan: found.upper, proven: found.proven(), seconds, tried })
    }

    fn report(&self, measured: &Measured, summary: Table) -> String {
        let Measured { names, rows } = measured;
        let groups = groups(rows);
        let labels = groups.keys().map(|(jobs, machines)| format!("{jobs} × {machines}"));
        let mut chart = BarChart::new("Mean gap by size", labels)
            .category_label("jobs × machines")
            .values(Axis::linear("mean gap to the best known").percent());
        for (method, name) in names.iter().enumerate() {
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
            .table(measured.effort())
            .figure(Figure::new(&chart).caption("Lower is better; zero equals the best makespan known."));
        let mut worst: Vec<&Row> = rows.iter().collect();
        let last = names.len() - 1;
        worst.sort_by(|a, b| b.gap(last).total_cmp(&a.gap(last)));
        let mut hardest =
            Table::new(format!("The ten instances farthest from their best under {}", names[last]))
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
                Cell::number(f64::from(row.results[last].makespan)),
                Cell::number(row.gap(last)),
            ]);
        }
        let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
        let command = words.collect::<Vec<_>>().join(" ");
        Page::new("Scheduling methods against the best known")
            .subtitle(format!("{folder}: {} instances, {} methods", rows.len(), names.len()))
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

/// The instance files below a folder, by name.
fn files(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    walk(folder, &mut files)?;
    files.sort();
    Ok(files)
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
