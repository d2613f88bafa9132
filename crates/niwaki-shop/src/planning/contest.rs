//! Who schedules a folder of instances best: methods and policies against the best makespans known.

use super::{Method, solve};
use crate::formats::{KnownBounds, load};
use crate::optimum;
use crate::{Bounds, Error, Instance, Limits, Result};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Endings of files that are read as instances.
const ENDINGS: [&str; 3] = ["txt", "fjs", "json"];

/// What schedules are held against.
#[derive(Clone, Debug)]
pub enum Reference {
    /// A table of best-known values, which also says which files count.
    Table(PathBuf),
    /// The best makespan that the exact search finds of every file within these limits.
    Optima(Limits),
}

/// A folder of instances and what they are held against.
#[derive(Clone, Debug)]
pub struct Contest {
    /// The folder, searched with its subfolders.
    pub folder: PathBuf,
    /// What schedules are held against.
    pub reference: Reference,
    /// Only instances whose name starts with this.
    pub prefix: String,
}

/// One file of a contest.
#[derive(Clone, Debug)]
struct Entry {
    path: PathBuf,
    name: String,
    best: Best,
}

/// The makespan that a file's schedules are held against.
#[derive(Clone, Copy, Debug)]
enum Best {
    Known(u32),
    /// What the exact search finds within these limits.
    Within(Limits),
}

impl Best {
    fn of(self, instance: &Instance) -> u32 {
        match self {
            Self::Known(makespan) => makespan,
            Self::Within(limits) => optimum::solve(instance, limits, &mut |_| {}).upper,
        }
    }
}

/// How far a contest is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// So many schedules will be made.
    Begins(usize),
    /// One of them is.
    Scheduled,
}

/// A schedule that was found.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    /// Its makespan, and a bound below it.
    pub makespan: Bounds,
    /// How many schedules were tried for it, where that is counted.
    pub tried: Option<usize>,
}

/// How an instance that a file holds is scheduled.
type Scheduling<'a, E> = dyn Fn(&Path, &Instance) -> std::result::Result<Found, E> + 'a;

/// Who schedules: a name, and how an instance of a file is scheduled.
pub struct Entrant<'a, E> {
    /// The name.
    pub name: String,
    schedule: Box<Scheduling<'a, E>>,
}

impl<'a, E: From<Error>> Entrant<'a, E> {
    /// What can schedule an instance that a file holds.
    pub fn new(
        name: impl Into<String>,
        schedule: impl Fn(&Path, &Instance) -> std::result::Result<Found, E> + 'a,
    ) -> Self {
        Self { name: name.into(), schedule: Box::new(schedule) }
    }

    /// One of the methods.
    pub fn method(name: impl Into<String>, method: Method, limits: Limits) -> Self {
        Self::new(name, move |path, instance| {
            let solved = solve(instance, method, limits, &mut |_| {});
            let solved = solved
                .map_err(|error| Error::File { path: path.display().to_string(), what: error.to_string() })?;
            Ok(Found { makespan: solved.makespan, tried: None })
        })
    }
}

/// What an entrant made of one instance.
#[derive(Clone, Copy, Debug)]
pub struct Scheduled {
    /// The makespan.
    pub makespan: u32,
    /// Whether none is shorter.
    pub proven: bool,
    /// How long it took.
    pub seconds: f64,
    /// How many schedules were tried for it, where that is counted.
    pub tried: Option<usize>,
}

/// One instance and what each entrant made of it.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// Its jobs.
    pub jobs: usize,
    /// Its machines.
    pub machines: usize,
    /// The best known makespan.
    pub known: u32,
    /// One per entrant.
    pub scheduled: Vec<Scheduled>,
}

impl Row {
    /// How far an entrant's makespan is above the best known.
    #[must_use]
    pub fn gap(&self, entrant: usize) -> f64 {
        f64::from(self.scheduled[entrant].makespan) / f64::from(self.known.max(1)) - 1.0
    }
}

/// All instances, and who scheduled them.
#[derive(Clone, Debug)]
pub struct Standing {
    /// The entrants' names.
    pub names: Vec<String>,
    /// The instances.
    pub rows: Vec<Row>,
}

impl Standing {
    /// The rows by jobs and machines.
    #[must_use]
    pub fn by_size(&self) -> BTreeMap<(usize, usize), Vec<&Row>> {
        let mut sizes: BTreeMap<_, Vec<&Row>> = BTreeMap::new();
        for row in &self.rows {
            sizes.entry((row.jobs, row.machines)).or_default().push(row);
        }
        sizes
    }
}

/// The mean gap of an entrant over some instances.
#[must_use]
pub fn mean_gap(rows: &[&Row], entrant: usize) -> f64 {
    rows.iter().map(|row| row.gap(entrant)).sum::<f64>() / rows.len() as f64
}

impl Contest {
    /// Lets every entrant schedule every instance; `watch` is told how far it is.
    ///
    /// # Errors
    /// Where the folder or the table cannot be read, no file counts, or an entrant refuses an instance.
    pub fn run<E: From<Error>>(
        &self,
        entrants: &[Entrant<'_, E>],
        mut watch: impl FnMut(Progress),
    ) -> std::result::Result<Standing, E> {
        let entries = self.entries()?;
        watch(Progress::Begins(entries.len() * entrants.len()));
        let mut rows = Vec::with_capacity(entries.len());
        for Entry { path, name, best } in entries {
            let instance = load(&path)?;
            let known = best.of(&instance);
            let mut scheduled = Vec::with_capacity(entrants.len());
            for entrant in entrants {
                let began = Instant::now();
                let Found { makespan, tried } = (entrant.schedule)(&path, &instance)?;
                let seconds = began.elapsed().as_secs_f64();
                scheduled.push(Scheduled {
                    makespan: makespan.upper,
                    proven: makespan.proven(),
                    seconds,
                    tried,
                });
                watch(Progress::Scheduled);
            }
            let (jobs, machines) = (instance.jobs(), instance.machines());
            rows.push(Row { name, jobs, machines, known, scheduled });
        }
        Ok(Standing { names: entrants.iter().map(|entrant| entrant.name.clone()).collect(), rows })
    }

    /// The files that count, by path.
    fn entries(&self) -> Result<Vec<Entry>> {
        let (mut entries, count, note) = match &self.reference {
            Reference::Optima(limits) => {
                let files = files(&self.folder)?;
                let stem = |path: &Path| path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let count = files.len();
                let all = files.into_iter().map(|path| Entry {
                    name: stem(&path),
                    path,
                    best: Best::Within(*limits),
                });
                (all.collect::<Vec<_>>(), count, "")
            }
            Reference::Table(table) => {
                let table = KnownBounds::load(table)?;
                let files = files(&self.folder)?;
                let count = files.len();
                let named = files.into_iter().filter_map(|path| {
                    let (name, known) = table.of_file(&path)?;
                    Some(Entry { name: name.to_owned(), best: Best::Known(known.upper), path })
                });
                (named.collect(), count, ", none of them in the table of bounds")
            }
        };
        entries.retain(|entry| entry.name.starts_with(&self.prefix));
        if entries.is_empty() {
            let prefix = match self.prefix.as_str() {
                "" => String::new(),
                prefix => format!(" under names in {prefix}…"),
            };
            let what = format!("found {count} instance files{note}{prefix}");
            return Err(Error::File { path: self.folder.display().to_string(), what });
        }
        Ok(entries)
    }
}

/// The instance files below a folder, by name.
pub(super) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    walk(folder, &mut found)?;
    found.sort();
    Ok(found)
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let refuse = |error: std::io::Error| Error::File {
        path: folder.display().to_string(),
        what: format!("cannot be listed: {error}"),
    };
    for entry in fs::read_dir(folder).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        if path.is_dir() {
            walk(&path, found)?;
        } else if path
            .extension()
            .is_some_and(|ending| ENDINGS.iter().any(|e| ending.eq_ignore_ascii_case(e)))
        {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Two flow shops on two machines, in a folder of its own.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("more")).unwrap();
        // Job 0 takes 3 then 2, job 1 takes 1 then 4. In the order 1, 0 the first machine ends at 1 and 4, the second
        // at 5 and 7; in the order 0, 1 the first ends at 3 and 4, the second at 5 and 9. The best is 7.
        let shop = "2 2\n0 3 1 2\n0 1 1 4\n";
        fs::write(folder.path().join("b.txt"), shop).unwrap();
        fs::write(folder.path().join("more/a.txt"), shop).unwrap();
        fs::write(folder.path().join("notes.md"), "no instance").unwrap();
        folder
    }

    fn contest(folder: &Path, reference: Reference, prefix: &str) -> Contest {
        Contest { folder: folder.to_owned(), reference, prefix: prefix.to_owned() }
    }

    #[test]
    fn gaps_are_to_the_best_known_or_sought() {
        let folder = folder();
        let limits = Limits::new(Duration::from_secs(5), 0);
        let entrants = || {
            [
                Entrant::<Error>::method("exact", Method::Exact, limits),
                Entrant::new("slow", |_: &Path, _: &Instance| {
                    Ok(Found { makespan: Bounds { lower: 0, upper: 14 }, tried: Some(3) })
                }),
            ]
        };
        let mut seen = Vec::new();
        let all = contest(folder.path(), Reference::Optima(limits), "");
        let standing = all.run(&entrants(), |told| seen.push(told)).unwrap();
        assert_eq!(seen[0], Progress::Begins(4));
        assert_eq!(seen[1..], [Progress::Scheduled; 4]);
        let names: Vec<&str> = standing.rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!((names, standing.rows[0].known), (vec!["b", "a"], 7));
        let sizes = standing.by_size();
        let gaps = |entrant| mean_gap(&sizes[&(2, 2)], entrant);
        assert_eq!((gaps(0), gaps(1)), (0.0, 1.0));
        let [exact, slow] = [0, 1].map(|entrant| standing.rows[1].scheduled[entrant]);
        assert_eq!((exact.proven, exact.tried, slow.proven, slow.tried), (true, None, false, Some(3)));
        // A table says what is known and which files count.
        let table = folder.path().join("bounds.csv");
        fs::write(&table, "name,jobs,machines,lb,ub,source\na,2,2,7,7,hand\n").unwrap();
        let named = contest(folder.path(), Reference::Table(table.clone()), "");
        assert_eq!(named.run(&entrants(), |_| {}).unwrap().rows.len(), 1);
        let none = contest(folder.path(), Reference::Table(table), "z");
        let line = none.run(&entrants(), |_| {}).unwrap_err().to_string();
        assert!(
            line.ends_with("found 2 instance files, none of them in the table of bounds under names in z…")
        );
    }

    #[test]
    fn a_refusal_names_the_file() {
        let folder = folder();
        let limits = Limits::new(Duration::ZERO, 0);
        let jackson = Entrant::<Error>::method("jackson", Method::Jackson, limits);
        let all = contest(folder.path(), Reference::Optima(limits), "b");
        let line = all.run(&[jackson], |_| {}).unwrap_err().to_string();
        assert!(line.starts_with(&folder.path().join("b.txt").display().to_string()), "{line}");
    }
}
