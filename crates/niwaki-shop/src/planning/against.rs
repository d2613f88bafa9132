//! The exact search over a folder of instances against a table of best-known bounds, instance by instance: what is finished is kept,
//! so that the same call goes on where it ended.

use super::contest::files;
use crate::formats::{EngineTable, Reached, load};
use crate::{Error, Limits, Result, optimum, verify};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// A folder, a table, and how instances are searched.
#[derive(Clone, Debug)]
pub struct Against {
    /// The folder, searched with its subfolders.
    pub folder: PathBuf,
    /// The table of bounds.
    pub table: PathBuf,
    /// Where finished rows are, if they are kept.
    pub rows: Option<PathBuf>,
    /// Only instances whose name starts with this.
    pub prefix: String,
    /// Only every nth of these, by name.
    pub every: usize,
    /// How each is searched.
    pub limits: Limits,
}

/// What the search made of an instance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Done {
    /// No schedule is shorter.
    pub lower: u32,
    /// The makespan of a schedule that the checker accepts.
    pub upper: u32,
    /// How long it took.
    pub seconds: f64,
}

/// All instances that are finished.
#[derive(Clone, Debug)]
pub struct Report {
    /// The table.
    pub table: EngineTable,
    /// Instances by name.
    pub done: BTreeMap<String, Done>,
}

/// How far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// So many instances, of which so many were finished before.
    Begins(usize, usize),
    /// An instance is finished.
    Finished(&'a str),
}

/// What was reached over some instances.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Summary {
    /// Instances with an upper bound.
    pub instances: usize,
    /// The geometric mean of upper bounds over the best known.
    pub upper: f64,
    /// The geometric mean of lower bounds over the best known.
    pub lower: f64,
    /// Upper bounds below the best known, equal to it, above it.
    pub better: usize,
    /// See there.
    pub equal: usize,
    /// See there.
    pub worse: usize,
    /// Instances whose two bounds meet.
    pub proven: usize,
}

impl Report {
    /// What the search reached in a family, or in all; with the mean of its seconds.
    #[must_use]
    pub fn ours(&self, family: Option<&str>) -> (Summary, f64) {
        let of = |name: &str| {
            let done = self.done[name];
            Reached { lower: Some(done.lower), upper: Some(done.upper) }
        };
        let summary = self.summary(family, of);
        let seconds = self.names(family).map(|name| self.done[name].seconds).sum::<f64>();
        (summary, seconds / self.names(family).count().max(1) as f64)
    }

    /// What an engine of the table reached on the same instances.
    #[must_use]
    pub fn engine(&self, family: Option<&str>, engine: usize) -> Summary {
        self.summary(family, |name| self.table.rows[name].engines[engine])
    }

    /// All families of finished instances.
    #[must_use]
    pub fn families(&self) -> BTreeSet<&str> {
        self.done.keys().map(|name| self.table.rows[name].family.as_str()).collect()
    }

    fn names<'a>(&'a self, family: Option<&'a str>) -> impl Iterator<Item = &'a str> {
        let of = move |name: &&String| family.is_none_or(|family| self.table.rows[*name].family == family);
        self.done.keys().filter(of).map(String::as_str)
    }

    fn summary(&self, family: Option<&str>, of: impl Fn(&str) -> Reached) -> Summary {
        let mut all = Summary::default();
        let (mut uppers, mut lowers, mut bounded) = (0.0, 0.0, 0);
        for name in self.names(family) {
            let (best, reached) = (&self.table.rows[name], of(name));
            if let Some(lower) = reached.lower.filter(|_| best.lower > 0) {
                // A bound of 0 says nothing; as a ratio it would be the only one that counts.
                lowers += (f64::from(lower.max(1)) / f64::from(best.lower)).ln();
                bounded += 1;
            }
            let Some(upper) = reached.upper else { continue };
            all.instances += 1;
            uppers += (f64::from(upper.max(1)) / f64::from(best.upper.max(1))).ln();
            match upper.cmp(&best.upper) {
                std::cmp::Ordering::Less => all.better += 1,
                std::cmp::Ordering::Equal => all.equal += 1,
                std::cmp::Ordering::Greater => all.worse += 1,
            }
            all.proven += usize::from(reached.lower == reached.upper);
        }
        all.upper = (uppers / all.instances.max(1) as f64).exp();
        all.lower = (lowers / f64::from(bounded.max(1))).exp();
        all
    }
}

impl Against {
    /// Searches what is not finished yet, and keeps every row as soon as it is there.
    ///
    /// # Errors
    /// Where folder, table or rows cannot be read, an instance of one is not in the other, rows were made otherwise, or bounds
    /// contradict the table's.
    pub fn run(&self, mut watch: impl FnMut(Step<'_>)) -> Result<Report> {
        let table = EngineTable::load(&self.table)?;
        let paths = self.instances(&table)?;
        let kept = self.rows.as_deref().filter(|path| path.exists());
        let mut rows = kept.map_or_else(|| Ok(BTreeMap::new()), |path| self.read_rows(path, &table))?;
        let before = paths.keys().filter(|name| rows.contains_key(*name)).count();
        watch(Step::Begins(paths.len(), before));
        for (name, path) in &paths {
            if rows.contains_key(name) {
                continue;
            }
            let instance = load(path)?;
            let began = Instant::now();
            let found = optimum::solve(&instance, self.limits, &mut |_| {});
            let seconds = began.elapsed().as_secs_f64();
            let refuse = |what: String| Error::File { path: path.display().to_string(), what };
            let makespan =
                verify(&instance, &found.schedule).map_err(|fault| refuse(fault.to_string()))?.makespan;
            let best = &table.rows[name];
            if makespan < best.lower || found.lower > best.upper {
                return Err(refuse(format!(
                    "found bounds {} to {makespan}, but {} says {} to {}: this is another instance",
                    found.lower,
                    self.table.display(),
                    best.lower,
                    best.upper
                )));
            }
            // What was cut short by hand is not what the row says it is.
            if self.limits.is_stopped() && found.lower < found.upper {
                break;
            }
            rows.insert(name.clone(), Done { lower: found.lower, upper: makespan, seconds });
            self.write_rows(&rows)?;
            watch(Step::Finished(name));
        }
        rows.retain(|name, _| paths.contains_key(name));
        Ok(Report { table, done: rows })
    }

    /// The files that count, by the table's names.
    fn instances(&self, table: &EngineTable) -> Result<BTreeMap<String, PathBuf>> {
        let refuse = |path: &Path, what: String| Error::File { path: path.display().to_string(), what };
        let mut paths: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut unknown = Vec::new();
        for path in files(&self.folder)? {
            let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            match table.name_of(&path) {
                Some(name) => {
                    let name = name.to_owned();
                    if let Some(other) = paths.insert(name.clone(), path.clone()) {
                        let what = format!("is {name} of the table, and so is {}; keep one", other.display());
                        return Err(refuse(&path, what));
                    }
                }
                None if stem.starts_with(&self.prefix) => unknown.push(path),
                None => {}
            }
        }
        let table_path = self.table.display();
        if let Some(first) = unknown.first() {
            return Err(refuse(
                first,
                format!(
                    "is not in {table_path}{}; add its row, take it away, or choose with --prefix",
                    and_more(unknown.len())
                ),
            ));
        }
        let named = table.rows.keys().filter(|name| name.starts_with(&self.prefix));
        let chosen: Vec<&String> = named.step_by(self.every.max(1)).collect();
        if chosen.is_empty() {
            return Err(refuse(
                &self.table,
                format!("has no instance whose name starts with {}", self.prefix),
            ));
        }
        let missing: Vec<&&String> = chosen.iter().filter(|name| !paths.contains_key(**name)).collect();
        if let Some(first) = missing.first() {
            return Err(refuse(
                &self.folder,
                format!(
                    "has no file of {first}{}, which {table_path} names; add it, or choose with --prefix and --every",
                    and_more(missing.len())
                ),
            ));
        }
        let chosen: BTreeSet<&String> = chosen.into_iter().collect();
        paths.retain(|name, _| chosen.contains(name));
        Ok(paths)
    }

    /// How rows are made, as their columns say it.
    fn settings(&self) -> String {
        let Limits { time, threads, seed, .. } = self.limits;
        format!("{},{threads},{seed}", time.as_secs_f64())
    }

    fn read_rows(&self, path: &Path, table: &EngineTable) -> Result<BTreeMap<String, Done>> {
        let refuse = |line: usize, what: String| Error::File {
            path: path.display().to_string(),
            what: format!("line {line}: {what}"),
        };
        let text = niwaki_files::read_text(path)
            .map_err(|error| Error::File { path: path.display().to_string(), what: error.to_string() })?;
        let mut rows = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            if index == 0 {
                if line.trim() != HEADER {
                    return Err(refuse(1, format!("expected `{HEADER}`; name another file")));
                }
                continue;
            }
            let row =
                parse(line).ok_or_else(|| refuse(index + 1, format!("expected `{HEADER}`, got `{line}`")))?;
            let (name, done, settings) = row;
            if settings != self.settings() {
                return Err(refuse(
                    index + 1,
                    format!(
                        "was made with seconds, threads and seed {settings}, not {}; name another file",
                        self.settings()
                    ),
                ));
            }
            if !table.rows.contains_key(name) {
                return Err(refuse(index + 1, format!("{name} is not in the table; name another file")));
            }
            rows.insert(name.to_owned(), done);
        }
        Ok(rows)
    }

    fn write_rows(&self, rows: &BTreeMap<String, Done>) -> Result<()> {
        let Some(path) = &self.rows else { return Ok(()) };
        let mut text = format!("{HEADER}\n");
        for (name, Done { lower, upper, seconds }) in rows {
            text += &format!("{name},{lower},{upper},{seconds:.3},{}\n", self.settings());
        }
        niwaki_files::write_atomically(path, text.as_bytes())
            .map_err(|error| Error::File { path: path.display().to_string(), what: error.to_string() })
    }
}

/// The columns of finished rows.
const HEADER: &str = "instance,lower,upper,seconds,time,threads,seed";

/// A row's name, what was reached, and how it was made.
fn parse(line: &str) -> Option<(&str, Done, &str)> {
    let mut cells = line.splitn(5, ',');
    let name = cells.next()?;
    let lower = cells.next()?.parse().ok()?;
    let upper = cells.next()?.parse().ok().filter(|&upper| lower <= upper)?;
    let seconds = cells.next()?.parse().ok().filter(|&seconds: &f64| seconds >= 0.0)?;
    Some((name, Done { lower, upper, seconds }, cells.next()?))
}

/// What else is like the first one.
fn and_more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    }
}
