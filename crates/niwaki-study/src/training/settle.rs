//! Strengths by the rule: one for each arm and cell, measured before anything is trained, and written down.
//!
//! A probe is one whole update without correction from a seed's initial policy. The median drift of all probes of an arm
//! in a cell licenses min(1, 1/σ²T), and every run of that arm and cell trains with it, as if the file had said so.

use super::runner::{alike, pool_of};
use super::{Plan, Planned, Runner, Strength, store};
use crate::Error;
use niwaki_train::spec::MEASURED;
use niwaki_train::trainer::strength_of;
use niwaki_train::{Recipe, Spec, gather};
use std::collections::BTreeMap;
use std::path::Path;

/// Most runs that are probed as one program.
const MEMBERS: usize = 96;

/// Puts a strength in the place of the rule, as if the file had said so.
pub(super) fn fix_strength(spec: &mut Spec, alpha: f64) {
    for named in [Some(&mut spec.update.correction), spec.warmup.correction.as_mut()].into_iter().flatten() {
        if named == MEASURED {
            *named = format!("tempered:{alpha}");
        }
    }
}

impl Plan {
    /// Where each arm and cell whose strength is measured has its runs.
    fn measured(&self) -> BTreeMap<(usize, usize), Vec<usize>> {
        let mut settings: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        for (place, run) in self.runs.iter().enumerate() {
            if run.recipe.measured.contains(&true) {
                settings.entry((run.arm, run.cell)).or_default().push(place);
            }
        }
        settings
    }

    /// Whether some run leaves its strength to the rule.
    #[must_use]
    pub fn measures(&self) -> bool {
        self.runs.iter().any(|run| run.recipe.measured.contains(&true))
    }

    /// The plan with strengths in the place of the rule.
    ///
    /// # Errors
    /// Where an arm and cell that asks for the rule has no strength.
    pub fn settled(mut self, strengths: &[Strength]) -> Result<Self, Error> {
        for ((arm, cell), runs) in self.measured() {
            let (arm, cell) = (&self.study.arm[arm].name, &self.cells[cell]);
            let found = strengths.iter().find(|known| known.arm == *arm && known.cell == *cell);
            let Some(found) = found else {
                let mend = format!("arm {arm}, cell {cell}: its strength was not measured; train it first");
                return Err(Error::Senseless { label: self.study.label, mend });
            };
            for run in runs {
                let mut spec = self.runs[run].recipe.spec.clone();
                fix_strength(&mut spec, found.alpha);
                let recipe = spec.check()?;
                (self.runs[run].hash, self.runs[run].recipe) = (recipe.spec.hash()?, recipe);
            }
        }
        self.strengths = strengths.to_vec();
        Ok(self)
    }
}

impl Runner<'_> {
    /// The strengths that a plan leaves to the rule, measured where its folder does not have them, and kept there.
    ///
    /// # Errors
    /// If the disk or the device fails, or no probe of an arm and cell has a signal.
    pub fn strengths(&self, plan: &Plan) -> Result<Vec<Strength>, Error> {
        let folder = self.out.join(plan.folder());
        let known = Strength::read(&folder)?;
        let settings: Vec<Setting<'_>> =
            plan.measured().into_iter().map(|at| Setting::new(plan, at)).collect();
        let missing = settings.iter().filter(|setting| !known.iter().any(|kept| setting.is(kept)));
        let drifts = self.probe(missing.flat_map(|setting| setting.runs.clone()).collect())?;
        let mut strengths = Vec::new();
        for setting in &settings {
            strengths.push(match known.iter().find(|kept| setting.is(kept)) {
                Some(kept) => kept.clone(),
                None => setting.strength(&plan.study.label, &drifts)?,
            });
        }
        if !drifts.is_empty() {
            store::write_whole(&folder.join(super::STRENGTHS), &strengths)?;
        }
        Ok(strengths)
    }

    /// The drift of every run's first update, by the folder of its results.
    fn probe<'p>(&self, runs: Vec<&'p Planned>) -> Result<BTreeMap<&'p Path, Option<f64>>, Error> {
        let (bounds, mut drifts) = (self.seek(&runs, &runs)?, BTreeMap::new());
        for cohort in alike(runs)? {
            for members in cohort.chunks(self.members.unwrap_or(MEMBERS).max(1)) {
                let mut recipes: Vec<Recipe> = members.iter().map(|run| run.recipe.clone()).collect();
                // A cohort plays the pool of its first member.
                let known = bounds.get(&pool_of(&recipes[0].spec)?).cloned();
                recipes[0].prepare(known, &|_, _| {})?;
                let found = gather(recipes, &self.device)?.probe()?;
                drifts.extend(members.iter().map(|run| run.home.as_path()).zip(found));
            }
        }
        Ok(drifts)
    }
}

/// An arm in a cell whose strength is measured.
struct Setting<'p> {
    arm: &'p str,
    cell: &'p str,
    runs: Vec<&'p Planned>,
}

impl<'p> Setting<'p> {
    fn new(plan: &'p Plan, ((arm, cell), runs): ((usize, usize), Vec<usize>)) -> Self {
        let runs = runs.into_iter().map(|run| &plan.runs[run]).collect();
        Self { arm: &plan.study.arm[arm].name, cell: &plan.cells[cell], runs }
    }

    /// Whether a strength is that of this very setting and its seeds.
    fn is(&self, kept: &Strength) -> bool {
        let seeds = self.runs.iter().map(|run| run.recipe.spec.seed);
        let spec = self.runs.first().is_some_and(|run| run.hash == kept.spec);
        spec && kept.arm == self.arm && kept.cell == self.cell && seeds.eq(kept.drifts.keys().copied())
    }

    fn strength(&self, label: &str, probed: &BTreeMap<&Path, Option<f64>>) -> Result<Strength, Error> {
        let drift =
            |run: &&Planned| (run.recipe.spec.seed, probed.get(run.home.as_path()).copied().flatten());
        let drifts: BTreeMap<u64, Option<f64>> = self.runs.iter().map(drift).collect();
        let Self { arm, cell, .. } = *self;
        let all: Vec<Option<f64>> = drifts.values().copied().collect();
        let alpha = strength_of(&all).map_err(|error| Error::Senseless {
            label: label.to_owned(),
            mend: format!("arm {arm}, cell {cell}: {error}"),
        })?;
        let spec = self.runs.first().map(|run| run.hash.clone()).unwrap_or_default();
        Ok(Strength { arm: arm.to_owned(), cell: cell.to_owned(), spec, drifts, alpha })
    }
}
