//! The runs of a study: an arm, a cell, a seed, and where their results live.

use super::Training;
use crate::Error;
use niwaki_correction::Correction;
use niwaki_train::spec::{nearest, set};
use niwaki_train::{Recipe, Spec};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A study with every run it names.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The study.
    pub study: Training,
    /// Names of its cells.
    pub cells: Vec<String>,
    /// Its runs: arm by arm, cell by cell, seed by seed.
    pub runs: Vec<Planned>,
}

/// One run of a plan.
#[derive(Clone, Debug)]
pub struct Planned {
    /// The arm's place in the study.
    pub arm: usize,
    /// The cell's place in the plan.
    pub cell: usize,
    /// The folder of its results, below the folder of all studies.
    pub home: PathBuf,
    /// What it trains.
    pub recipe: Recipe,
    /// The hash of its spec.
    pub hash: String,
}

/// The folder's name of a label, an arm or a cell.
fn folder_name(name: &str) -> String {
    name.replace([':', '/', '\\'], "-")
}

/// Where a cell's settings come from and its results go.
struct Source {
    name: String,
    /// The study that owns the results, and the cell's name there.
    home: (String, String),
    base: toml::Table,
}

impl Plan {
    /// Expands a study, with `seeds` in place of its own numbers where given.
    ///
    /// # Errors
    /// Where a key or value of the base, an arm or a cell is refused, a name is used twice, or a claim names an arm or
    /// cell that the study does not have.
    pub fn new(study: Training, seeds: Option<u64>) -> Result<Self, Error> {
        let sources = sources(&study)?;
        let senseless = |mend: String| Error::Senseless { label: study.label.clone(), mend };
        for (what, names) in [
            ("arms", study.arm.iter().map(|arm| folder_name(&arm.name)).collect::<Vec<_>>()),
            ("cells", sources.iter().map(|source| folder_name(&source.name)).collect()),
        ] {
            let once: BTreeSet<&String> = names.iter().collect();
            if once.len() < names.len() || names.is_empty() {
                return Err(senseless(format!("its {what} need names, each of its own")));
            }
        }
        let mut runs = Vec::new();
        for (arm, method) in study.arm.iter().enumerate() {
            for (cell, source) in sources.iter().enumerate() {
                let at = format!("arm {}, cell {}", method.name, source.name);
                let mut table = source.base.clone();
                match &method.set {
                    None => set(&mut table, "update.correction", method.name.clone().into())?,
                    Some(settings) => apply(&mut table, settings)?,
                }
                let spec = Spec::read(&at, &table.to_string(), &[]).map_err(without_line)?;
                let home = PathBuf::from(folder_name(&source.home.0))
                    .join(folder_name(&method.name))
                    .join(folder_name(&source.home.1));
                for seed in 0..seeds.or(method.seeds).unwrap_or(study.seeds) {
                    let spec = Spec { seed, ..spec.clone() };
                    let recipe = spec.check().map_err(|error| senseless(format!("{at}: {error}")))?;
                    let home = home.join(seed.to_string());
                    runs.push(Planned { arm, cell, home, hash: spec.hash()?, recipe });
                }
            }
        }
        let plan = Self { cells: sources.into_iter().map(|source| source.name).collect(), runs, study };
        plan.check_claims()?;
        Ok(plan)
    }

    /// Iterations of all runs together.
    #[must_use]
    pub fn run_iterations(&self) -> u64 {
        self.runs.iter().map(|run| run.recipe.spec.iterations as u64).sum()
    }

    /// The folder of this study, below the folder of all studies.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        PathBuf::from(folder_name(&self.study.label))
    }

    /// How an arm is called in tables: the correction's own words where the name is one.
    #[must_use]
    pub fn arm_label(&self, arm: usize) -> String {
        let name = &self.study.arm[arm].name;
        name.parse::<Correction>().map_or_else(|_| name.clone(), |correction| correction.label())
    }

    /// The place of an arm.
    ///
    /// # Errors
    /// Where the study has none of that name.
    pub fn arm(&self, name: &str) -> Result<usize, Error> {
        let names = || self.study.arm.iter().map(|arm| arm.name.as_str());
        names().position(|known| known == name).ok_or_else(|| self.unknown("arm", name, names()))
    }

    /// The place of a cell; of the only one where no name is given.
    ///
    /// # Errors
    /// Where the study has none of that name, or several and none is named.
    pub fn cell(&self, name: Option<&str>) -> Result<usize, Error> {
        let names = || self.cells.iter().map(String::as_str);
        match name {
            None if self.cells.len() == 1 => Ok(0),
            None => Err(self.unknown("cell", "", names())),
            Some(name) => {
                names().position(|known| known == name).ok_or_else(|| self.unknown("cell", name, names()))
            }
        }
    }

    fn unknown<'a>(&self, what: &str, came: &str, known: impl Iterator<Item = &'a str>) -> Error {
        let nearest = nearest(came, known).unwrap_or_default();
        let mend = format!("it has no {what} '{came}'; the nearest one is '{nearest}'");
        Error::Senseless { label: self.study.label.clone(), mend }
    }

    /// Every arm and cell that a claim names must exist.
    fn check_claims(&self) -> Result<(), Error> {
        let study = &self.study;
        for claim in &study.value {
            self.arm(&claim.arm)?;
            self.cell(claim.cell.as_deref())?;
        }
        for claim in &study.order {
            self.cell(claim.cell.as_deref())?;
            claim.groups.iter().flatten().try_for_each(|arm| self.arm(arm).map(drop))?;
        }
        for claim in &study.lead {
            self.cell(claim.cell.as_deref())?;
            self.arm(&claim.arm)?;
            self.arm(&claim.over)?;
        }
        if let Some(compare) = &study.compare {
            self.arm(&compare.against)?;
        }
        Ok(())
    }
}

/// The same refusal without its line, which would be one of the composed table and not of anybody's file.
fn without_line(error: niwaki_train::Error) -> niwaki_train::Error {
    use niwaki_train::Error::Unreadable;
    match error {
        Unreadable { name, reason, .. } => Unreadable { name, line: None, reason },
        other => other,
    }
}

fn apply(table: &mut toml::Table, settings: &toml::Table) -> Result<(), Error> {
    for (key, value) in settings {
        set(table, key, value.clone())?;
    }
    Ok(())
}

/// The cells of a study: the named ones, each times the grid.
fn sources(study: &Training) -> Result<Vec<Source>, Error> {
    let senseless = |mend: String| Error::Senseless { label: study.label.clone(), mend };
    let plain: toml::Table =
        study.base.to_toml()?.parse().map_err(|error: toml::de::Error| senseless(error.to_string()))?;
    let mut sources = Vec::new();
    for cell in &study.cell {
        let mut source = match &cell.borrow {
            None => Source {
                name: cell.name.clone(),
                home: (study.label.clone(), cell.name.clone()),
                base: plain.clone(),
            },
            Some(borrow) => {
                if !cell.set.is_empty() || !study.grid.is_empty() {
                    let mend = format!("cell {} is borrowed, so it can set nothing of its own", cell.name);
                    return Err(senseless(mend));
                }
                let other = crate::find(&borrow.study)?.training()?;
                let found = self::sources(&other)?.into_iter().find(|source| source.name == borrow.cell);
                let found = found.ok_or_else(|| {
                    senseless(format!("study {} has no cell '{}'", borrow.study, borrow.cell))
                })?;
                Source { name: cell.name.clone(), ..found }
            }
        };
        apply(&mut source.base, &cell.set)?;
        sources.push(source);
    }
    if sources.is_empty() {
        sources.push(Source { name: String::new(), home: (study.label.clone(), String::new()), base: plain });
    }
    for axis in &study.grid {
        let name = axis.name.as_deref().or(axis.key.rsplit('.').next()).unwrap_or(&axis.key);
        let mut product = Vec::new();
        for source in &sources {
            for value in &axis.values {
                let shown = value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned);
                let part = format!("{name}={shown}");
                let all = if source.name.is_empty() { part } else { format!("{},{part}", source.name) };
                let mut base = source.base.clone();
                set(&mut base, &axis.key, value.clone())?;
                product.push(Source { home: (study.label.clone(), all.clone()), name: all, base });
            }
        }
        sources = product;
    }
    for source in sources.iter_mut().filter(|source| source.name.is_empty()) {
        source.name = "base".to_owned();
        source.home.1 = "base".to_owned();
    }
    Ok(sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(text: &str) -> Result<Plan, Error> {
        let head = "label = \"tab:x\"\ntitle = \"t\"\nquestion = \"q\"\nseeds = 2\nendpoints = [\"final\"]\n";
        Plan::new(niwaki_train::spec::strictly("x.toml", &format!("{head}{text}"))?, None)
    }

    #[test]
    fn arms_times_cells_times_seeds() {
        let text = "[[arm]]\nname = \"ppo\"\nseeds = 3\n[[arm]]\nname = \"slow\"\nset = { \"optimiser.rate\" = 0.1 }\n\
                    [[cell]]\nname = \"short\"\nset = { \"task.horizon\" = 3 }\n[[cell]]\nname = \"long\"\n\
                    [[grid]]\nkey = \"advantage.kind\"\nname = \"by\"\nvalues = [\"returns\", \"exact\"]\n";
        let plan = plan(text).unwrap();
        assert_eq!(plan.cells, ["short,by=returns", "short,by=exact", "long,by=returns", "long,by=exact"]);
        // (3 + 2 seeds) × 4 cells
        assert_eq!(plan.runs.len(), 20);
        assert_eq!(plan.run_iterations(), 20 * 200);
        let slow = plan.runs.iter().find(|run| run.arm == 1 && run.cell == 1).unwrap();
        assert_eq!(slow.recipe.spec.optimiser.rate, 0.1);
        assert_eq!(slow.recipe.spec.task.horizon, 3);
        assert_eq!(slow.home, PathBuf::from("tab-x/slow/short,by=exact/0"));
        assert_eq!((plan.arm_label(0).as_str(), plan.arm_label(1).as_str()), ("PPO", "slow"));
    }

    #[test]
    fn mistakes_are_named() {
        let refusal = |text: &str| plan(text).unwrap_err().to_string();
        let arm = "[[arm]]\nname = \"ppo\"\n";
        assert_eq!(
            refusal(&format!("{arm}[base.update]\nresue = 3\n")),
            "x.toml, line 9: unknown key 'resue'; the nearest valid one is 'reuse'"
        );
        assert_eq!(
            refusal("[[arm]]\nname = \"a\"\nset = { \"update.resue\" = 3 }\n"),
            "arm a, cell base: unknown key 'resue'; the nearest valid one is 'reuse'"
        );
        assert_eq!(refusal(&format!("{arm}{arm}")), "study tab:x: its arms need names, each of its own");
        let claim = "[[value]]\narm = \"pop\"\nendpoint = \"final\"\npaper = \"1\"\n";
        assert_eq!(
            refusal(&format!("{arm}{claim}")),
            "study tab:x: it has no arm 'pop'; the nearest one is 'ppo'"
        );
        assert!(refusal("[[arm]]\nname = \"tempred:1\"\n").contains("did you mean 'tempered'"));
    }
}
