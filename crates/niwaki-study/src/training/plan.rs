//! The runs of a study: an arm, a cell, a seed, and where their results live.

use super::settle::fix_strength;
use super::spec::{Arm, Cell};
use super::{Strength, Training};
use crate::{Error, Report};
use niwaki_correction::Correction;
use niwaki_files::folder_name;
use niwaki_train::run::Identity;
use niwaki_train::spec::{MEMORY, bytes_in_words, set};
use niwaki_train::{Recipe, Spec};
use niwaki_words::nearest;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What one planned run takes of memory, in bytes: its spec, its recipe, its place.
const PER_RUN: u128 = 4096;

/// A study with every run it names.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The study.
    pub study: Training,
    /// Names of its cells.
    pub cells: Vec<String>,
    /// Cells that are also counted together: a name and their places. Behind the cells they have places of their own.
    pub pools: Vec<(String, Vec<usize>)>,
    /// Its runs: arm by arm, cell by cell, seed by seed.
    pub runs: Vec<Planned>,
    /// Strengths that were measured for them.
    pub strengths: Vec<Strength>,
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

impl Planned {
    /// What names it in its files.
    #[must_use]
    pub fn identity(&self) -> Identity {
        Identity { spec: self.hash.clone(), seed: self.recipe.spec.seed, turns: Vec::new() }
    }
}

/// Where a cell's settings come from and its results go.
struct Source {
    name: String,
    /// The study that owns the results, and the cell's name there.
    home: (String, String),
    base: toml::Table,
    seeds: Option<u64>,
    strength: Option<f64>,
}

/// Files that a study's folder holds beside the folders of its arms.
const FILES: [&str; 5] =
    [Report::PAGE, "endpoints.csv", "speed.json", super::STRENGTHS, super::pilot::CALIBRATION];

impl Training {
    /// The folder of this study, below the folder of all studies.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        // A label that cannot be a folder's name is refused where the study is planned.
        PathBuf::from(folder_name(&self.label).unwrap_or_else(|_| "study".to_owned()))
    }

    /// The folder's name of an arm, which lies beside the study's own files.
    fn arm_folder(&self, name: &str) -> Result<String, Error> {
        let folder = self.folder_of("arm", name)?;
        // Some systems hold names alike that differ in their case alone.
        match FILES.into_iter().find(|file| file.eq_ignore_ascii_case(&folder)) {
            Some(file) => {
                let mend =
                    format!("its arm '{name}' has the name of a file of the study, {file}; choose another");
                Err(Error::Senseless { label: self.label.clone(), mend })
            }
            None => Ok(folder),
        }
    }

    /// The folder's name of its label, an arm or a cell.
    fn folder_of(&self, what: &str, name: &str) -> Result<String, Error> {
        folder_name(name).map_err(|reason| Error::Senseless {
            // The label may be what is wrong.
            label: self.label.escape_debug().to_string(),
            mend: format!("its {what} '{}' {reason}, so it cannot name a folder", name.escape_debug()),
        })
    }
}

impl Plan {
    /// Expands a study, with `seeds` in place of its own numbers where given.
    ///
    /// # Errors
    /// Where a key or value of the base, an arm or a cell is refused, a name is used twice, a claim names an arm or
    /// cell that the study does not have, or its pilot has not chosen yet.
    pub fn new(study: Training, seeds: Option<u64>) -> Result<Self, Error> {
        let sources = sources(&study)?;
        let senseless = |mend: String| Error::Senseless { label: study.label.clone(), mend };
        if study.pilot.is_some() && study.chosen.is_none() {
            return Err(senseless("its pilot has to choose before it can be planned".to_owned()));
        }
        study.folder_of("label", &study.label)?;
        let places =
            sources.iter().map(|source| &source.name).chain(study.pool.iter().map(|pool| &pool.name));
        for (what, names) in [
            ("arms", study.arm.iter().map(|arm| study.arm_folder(&arm.name)).collect::<Result<Vec<_>, _>>()?),
            ("cells", places.map(|name| study.folder_of("cell", name)).collect::<Result<Vec<_>, _>>()?),
        ] {
            let once: BTreeSet<&String> = names.iter().collect();
            if once.len() < names.len() || names.is_empty() {
                return Err(senseless(format!("its {what} need distinct names")));
            }
        }
        let count_of =
            |source: &Source, method: &Arm| seeds.or(source.seeds).or(method.seeds).unwrap_or(study.seeds);
        let pairs = study.arm.iter().flat_map(|method| sources.iter().map(move |source| (method, source)));
        let planned =
            pairs.map(|(method, source)| u128::from(count_of(source, method))).fold(0, u128::saturating_add);
        let taken = planned.saturating_mul(PER_RUN);
        if taken > MEMORY || study.first_seed.checked_add(planned as u64).is_none() {
            let (taken, limit) = (bytes_in_words(taken), bytes_in_words(MEMORY));
            return Err(senseless(format!(
                "its {planned} runs need about {taken} of memory and the limit is {limit}; give fewer seeds"
            )));
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
                let mut spec = Spec::read(&at, &table.to_string(), &[]).map_err(without_line)?;
                source.strength.into_iter().for_each(|alpha| fix_strength(&mut spec, alpha));
                let home = PathBuf::from(study.folder_of("label", &source.home.0)?)
                    .join(study.folder_of("arm", &method.name)?)
                    .join(study.folder_of("cell", &source.home.1)?);
                let count = count_of(source, method);
                for seed in study.first_seed..study.first_seed + count {
                    let spec = Spec { seed, ..spec.clone() };
                    let recipe = spec.check().map_err(|error| senseless(format!("{at}: {error}")))?;
                    let home = home.join(seed.to_string());
                    runs.push(Planned { arm, cell, home, hash: recipe.spec.hash()?, recipe });
                }
            }
        }
        let cells = sources.into_iter().map(|source| source.name).collect();
        let mut plan = Self { cells, pools: Vec::new(), runs, strengths: Vec::new(), study };
        let mut pools = Vec::new();
        for pool in plan.study.pool.clone() {
            let cells = pool.cells.iter().map(|cell| plan.cell(Some(cell))).collect::<Result<_, _>>()?;
            pools.push((pool.name, cells));
        }
        plan.pools = pools;
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
        self.study.folder()
    }

    /// How an arm is called in tables: the correction's own words where the name is one, written out. A bare name may
    /// stand for other parameters than the member's usual ones.
    #[must_use]
    pub fn arm_label(&self, arm: usize) -> String {
        let name = &self.study.arm[arm].name;
        let written_out = |correction: &Correction| correction.to_string() == *name;
        let correction = name.parse().ok().filter(written_out);
        correction.map_or_else(|| name.clone(), |correction| correction.label())
    }

    /// The place of an arm.
    ///
    /// # Errors
    /// Where the study has none of that name.
    pub fn arm(&self, name: &str) -> Result<usize, Error> {
        let names = || self.study.arm.iter().map(|arm| arm.name.as_str());
        names().position(|known| known == name).ok_or_else(|| self.unknown("arm", name, names()))
    }

    /// The cell that the study's file describes at this place; nothing for one of a grid, or a pool.
    #[must_use]
    pub fn described(&self, cell: usize) -> Option<&Cell> {
        self.study.cell.iter().find(|known| self.cells.get(cell) == Some(&known.name))
    }

    /// Whether a run of some cell counts at a place.
    #[must_use]
    pub fn covers(&self, place: usize, cell: usize) -> bool {
        match place.checked_sub(self.cells.len()) {
            None => place == cell,
            Some(pool) => self.pools.get(pool).is_some_and(|(_, cells)| cells.contains(&cell)),
        }
    }

    /// Names of all cells, then of all pools.
    pub fn places(&self) -> impl Iterator<Item = &str> {
        self.cells.iter().chain(self.pools.iter().map(|(name, _)| name)).map(String::as_str)
    }

    /// The name of a place, where the study has more than one.
    #[must_use]
    pub fn place_name(&self, place: usize) -> Option<&str> {
        self.places().nth(place).filter(|_| self.cells.len() > 1)
    }

    /// The place of a cell or pool; of the only cell where no name is given.
    ///
    /// # Errors
    /// Where the study has none of that name, or several and none is named.
    pub fn cell(&self, name: Option<&str>) -> Result<usize, Error> {
        let names = || self.places();
        match name {
            None if self.cells.len() == 1 => Ok(0),
            None => Err(self.unknown("cell", "", names())),
            Some(name) => {
                names().position(|known| known == name).ok_or_else(|| self.unknown("cell", name, names()))
            }
        }
    }

    fn unknown<'a>(&self, what: &str, came: &str, known: impl Iterator<Item = &'a str>) -> Error {
        let known: Vec<&str> = known.collect();
        let mend = match nearest(came, known.iter().copied()) {
            Some(near) => format!("it has no {what} '{came}'; the nearest one is '{near}'"),
            None => format!("it has no {what} '{came}'; it has {}", known.join(", ")),
        };
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
        for claim in &study.trend {
            self.arm(&claim.arm)?;
            claim.over.iter().try_for_each(|arm| self.arm(arm).map(drop))?;
            claim.cells.iter().try_for_each(|cell| self.cell(Some(cell)).map(drop))?;
        }
        for claim in &study.ratio {
            self.arm(claim.over.as_deref().unwrap_or(&claim.arm))?;
            self.arm(&claim.arm)?;
            self.cell(claim.cell.as_deref())?;
            self.cell(claim.over_cell.as_deref().or(claim.cell.as_deref()))?;
        }
        for claim in study.correlation.iter().filter(|claim| claim.cell.is_some()) {
            self.cell(claim.cell.as_deref())?;
        }
        if !study.correlation.is_empty() && study.dose.is_none() {
            let mend = "it claims correlations, so its [dose] has to say of what".to_owned();
            return Err(Error::Senseless { label: study.label.clone(), mend });
        }
        let charted = study.chart.iter().flat_map(|chart| chart.arms.iter().flatten().chain(&chart.over));
        let dosed = study.dose.iter().flat_map(|dose| [&dose.arm, &dose.over, &dose.of]);
        let against = study.compare.iter().flat_map(|compare| &compare.against);
        let mut early = study.early.iter().flat_map(|early| &early.cells);
        early.try_for_each(|cell| self.cell(Some(cell)).map(drop))?;
        charted.chain(dosed).chain(against).try_for_each(|arm| self.arm(arm).map(drop))
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
    let plain = study.base.beyond_defaults()?;
    let mut sources = Vec::new();
    for cell in &study.cell {
        study.folder_of("cell", &cell.name)?;
        let mut source = match &cell.borrow {
            None => Source {
                name: cell.name.clone(),
                home: (study.label.clone(), cell.name.clone()),
                base: plain.clone(),
                seeds: cell.seeds,
                strength: cell.strength,
            },
            Some(borrow) => {
                if !cell.set.is_empty() || !study.grid.is_empty() {
                    let mend = format!("cell {} is borrowed, so it can set nothing of its own", cell.name);
                    return Err(senseless(mend));
                }
                let other = Training::shipped(&borrow.study)?;
                let found = self::sources(&other)?.into_iter().find(|source| source.name == borrow.cell);
                let found = found.ok_or_else(|| {
                    senseless(format!("study {} has no cell '{}'", borrow.study, borrow.cell))
                })?;
                let (seeds, strength) = (cell.seeds.or(found.seeds), cell.strength.or(found.strength));
                Source { name: cell.name.clone(), seeds, strength, ..found }
            }
        };
        apply(&mut source.base, &cell.set)?;
        sources.push(source);
    }
    if sources.is_empty() {
        let home = (study.label.clone(), String::new());
        sources.push(Source { name: String::new(), home, base: plain, seeds: None, strength: None });
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
                let home = (study.label.clone(), all.clone());
                let Source { seeds, strength, .. } = *source;
                product.push(Source { home, name: all, base, seeds, strength });
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
    fn a_bare_name_promises_no_parameters() {
        let text = "[[arm]]\nname = \"adaptive\"\nset = { \"update.correction\" = \"adaptive:0.5\" }\n\
                    [[arm]]\nname = \"tempered:0.1\"\n";
        let plan = plan(text).unwrap();
        assert_eq!([0, 1].map(|arm| plan.arm_label(arm)), ["adaptive", "Tempered α = 0.1"]);
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
    fn cells_have_seeds_of_their_own_and_pools_count_them_together() {
        let text = "first_seed = 1000\n[[arm]]\nname = \"ppo\"\nseeds = 5\n[[arm]]\nname = \"full\"\n\
                    [[cell]]\nname = \"a\"\nseeds = 3\n[[cell]]\nname = \"b\"\n\
                    [[pool]]\nname = \"both\"\ncells = [\"a\", \"b\"]\n";
        let plan = plan(text).unwrap();
        let seeds = |arm: usize, place: usize| -> Vec<u64> {
            let runs = plan.runs.iter().filter(|run| run.arm == arm && plan.covers(place, run.cell));
            runs.map(|run| run.recipe.spec.seed).collect()
        };
        // The cell's number goes before the arm's, that before the study's (2).
        assert_eq!(seeds(0, 0), [1000, 1001, 1002]);
        assert_eq!((seeds(0, 1).len(), seeds(1, 1).len()), (5, 2));
        let both = plan.cell(Some("both")).unwrap();
        assert_eq!((both, seeds(1, both)), (2, vec![1000, 1001, 1002, 1000, 1001]));
        assert_eq!(plan.places().collect::<Vec<_>>(), ["a", "b", "both"]);
    }

    #[test]
    fn an_arm_that_is_called_like_our_files_is_refused() {
        let refusal = |text: &str| plan(text).unwrap_err().to_string();
        // Everything would be trained, and then the page could not be written.
        for file in
            ["index.html", "Index.HTML", "endpoints.csv", "speed.json", "strengths.json", "calibration.json"]
        {
            let said = refusal(&format!(
                "[[arm]]\nname = \"{file}\"\nset = {{ \"update.correction\" = \"ppo\" }}\n"
            ));
            assert!(said.contains("has the name of a file of the study, "), "{said}");
        }
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
        assert_eq!(refusal(&format!("{arm}{arm}")), "study tab:x: its arms need distinct names");
        let claim = "[[value]]\narm = \"pop\"\nendpoint = \"final\"\npaper = \"1\"\n";
        assert_eq!(
            refusal(&format!("{arm}{claim}")),
            "study tab:x: it has no arm 'pop'; the nearest one is 'ppo'"
        );
        assert!(refusal("[[arm]]\nname = \"tempred:1\"\n").contains("did you mean 'tempered'"));
        for (name, said) in
            [("..", "begins with a dot"), ("", "is empty"), ("a\\u001b[2J", "holds a control character")]
        {
            let set = "set = { seed = 1 }";
            let arm_said = refusal(&format!("[[arm]]\nname = \"{name}\"\n{set}\n"));
            assert!(arm_said.starts_with("study tab:x: its arm '") && arm_said.contains(said), "{arm_said}");
            let cell_said = refusal(&format!("{arm}[[cell]]\nname = \"{name}\"\n"));
            assert!(
                cell_said.starts_with("study tab:x: its cell '") && cell_said.contains(said),
                "{cell_said}"
            );
            assert!(!arm_said.contains('\u{1b}'), "{arm_said}");
        }
        let many = refusal(&format!("{arm}seeds = 9223372036854775807\n"));
        assert!(
            many.contains("runs need about") && many.contains("the limit is 64 GiB; give fewer seeds"),
            "{many}"
        );
    }
}
