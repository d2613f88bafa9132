//! One unit of work, from the plan to finished runs in the store.
//!
//! Knows nothing of leases: two workers may have the same unit at the same time, and the results are the same.

use super::depot::{Depot, records};
use super::split::{Split, home, identity};
use super::unit::{Stage, Unit};
use crate::Error;
use crate::training::{Plan, Planned, Runner, STRENGTHS, Strength, pool_of};
use niwaki_files::Digest;
use niwaki_shop::Bounds;
use niwaki_store::Store;
use niwaki_train::Device;
use niwaki_train::spec::Played;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Works on units of a plan.
pub struct Worker<'a> {
    split: &'a Split,
    depot: Depot,
    /// Stages that were planned before, with the place of every run.
    planned: Mutex<BTreeMap<(usize, Stage), Arc<Stretch>>>,
}

/// A stage of a study, planned.
struct Stretch {
    /// As far as it was known when the plan was made: by this a unit is named.
    provisional: Plan,
    /// What is trained, where that differs.
    settled: Option<Plan>,
    places: BTreeMap<String, usize>,
    settled_places: BTreeMap<String, usize>,
}

/// What came of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Worked {
    /// Runs that were trained by this call.
    pub trained: usize,
    /// Runs that were finished before.
    pub finished: usize,
}

impl<'a> Worker<'a> {
    /// A worker on a plan, with the store of its results. Where that is not a folder, runs train in `scratch`.
    #[must_use]
    pub fn new(split: &'a Split, store: Arc<dyn Store>, scratch: &Path) -> Self {
        Self { split, depot: Depot::new(store, &split.id, scratch), planned: Mutex::default() }
    }

    /// Refuses a unit whose predecessors are not done, or which this program cannot make.
    ///
    /// # Errors
    /// As said; and if results cannot be read.
    pub fn check(&self, number: usize) -> Result<(), Error> {
        let unit = self.split.unit(number)?;
        self.device(number, unit)?;
        self.stretch(number, unit).map(drop)
    }

    /// Trains what is missing of a unit and puts it in place. `step` is called with the run-iterations just done.
    ///
    /// # Errors
    /// Where the unit cannot be worked on yet, disk, device or training fail, or a run stands there with other bytes.
    /// Runs that are in place stay there.
    pub fn work(&self, number: usize, attempt: u32, step: &(dyn Fn(u64) + Sync)) -> Result<Worked, Error> {
        let unit = self.split.unit(number)?;
        let (device, stretch) = (self.device(number, unit)?, self.stretch(number, unit)?);
        if unit.stage == Stage::Strengths {
            return self.measure(&stretch, device);
        }
        let plan = stretch.trained();
        let mut missing = Vec::new();
        let mut finished = 0;
        for run in unit.runs.iter().filter_map(|home| stretch.run(home)) {
            if self.depot.is_finished(run)? {
                finished += 1;
                step(run.recipe.spec.iterations as u64);
            } else {
                missing.push(run.clone());
            }
        }
        let part = Plan {
            study: plan.study.clone(),
            cells: plan.cells.clone(),
            pools: Vec::new(),
            strengths: Vec::new(),
            runs: missing,
        };
        if !part.runs.is_empty()
            && let Err(error) = self.train(&part, plan, device, number, attempt, step)
        {
            // The attempt that overtook this one may have finished everything and cleared its folder away.
            for run in &part.runs {
                if matches!(error, Error::Differs { .. }) || !self.depot.is_finished(run)? {
                    return Err(error);
                }
            }
        }
        self.depot.clear(number, attempt);
        Ok(Worked { trained: part.runs.len(), finished })
    }

    fn train(
        &self,
        part: &Plan,
        plan: &Plan,
        device: Device,
        number: usize,
        attempt: u32,
        step: &(dyn Fn(u64) + Sync),
    ) -> Result<(), Error> {
        let folder = self.depot.attempt(number, attempt);
        let mut goes_on = false;
        for run in &part.runs {
            goes_on |= self.depot.take_over(run, number, attempt)?;
        }
        let known = self.optima(&part.runs, plan)?;
        let runner = Runner { shared: false, known, tick: step, ..Runner::new(&folder, device) };
        match runner.run(part) {
            // What was taken over may have been torn by a power failure: a run can always start again.
            Err(Error::Train(niwaki_train::Error::Damaged { .. } | niwaki_train::Error::OtherRun { .. }))
                if goes_on =>
            {
                self.depot.begin_anew(number, attempt)?;
                runner.run(part)?
            }
            ended => ended?,
        };
        part.runs.iter().try_for_each(|run| self.depot.publish(run, &folder))
    }

    /// Measures the strengths of a study and leaves them in its folder.
    fn measure(&self, stretch: &Stretch, device: Device) -> Result<Worked, Error> {
        let plan = stretch.trained();
        let probed: Vec<Planned> =
            plan.runs.iter().filter(|run| run.recipe.measured.contains(&true)).cloned().collect();
        let known = self.optima(&probed, plan)?;
        let (out, file) = (self.depot.holding([])?, plan.folder().join(STRENGTHS));
        self.depot.bring(&file)?;
        let strengths = Runner { known, ..Runner::new(out, device) }.strengths(plan)?;
        self.depot.leave(&file)?;
        Ok(Worked { trained: strengths.len(), finished: 0 })
    }

    fn device(&self, number: usize, unit: &Unit) -> Result<Device, Error> {
        Device::named(&unit.device).ok_or_else(|| Error::Unit {
            unit: self.split.words(number),
            mend: format!("it trains on '{}', which this program was built without", unit.device),
        })
    }

    /// The stage of a unit, which must be what it was when the plan was made.
    fn stretch(&self, number: usize, unit: &Unit) -> Result<Arc<Stretch>, Error> {
        let place = (unit.study, unit.stage);
        let known = self.planned.lock().unwrap_or_else(PoisonError::into_inner).get(&place).cloned();
        let stretch = match known {
            Some(known) => known,
            None => {
                let made = Arc::new(self.plan(number, unit)?);
                self.planned.lock().unwrap_or_else(PoisonError::into_inner).insert(place, made.clone());
                made
            }
        };
        let runs: Option<Vec<&Planned>> =
            unit.runs.iter().map(|home| stretch.provisional_run(home)).collect();
        let label = &stretch.provisional.study.label;
        if runs.is_none_or(|runs| identity(label, unit.stage, &unit.device, &runs) != unit.id) {
            let mend = "this program would make different runs from its study than the program that made the plan; use the same program, \
                        and the same files that the study names, everywhere";
            return Err(Error::Unit { unit: self.split.words(number), mend: mend.to_owned() });
        }
        Ok(stretch)
    }

    /// Plans a stage from what the one before came to.
    fn plan(&self, number: usize, unit: &Unit) -> Result<Stretch, Error> {
        let stages = self.split.stages(unit.study)?;
        let pilot = stages.pilot()?;
        let plan = match (unit.stage, pilot) {
            (Stage::Pilot, Some(pilot)) => return Ok(Stretch::new(pilot, None)),
            (_, None) => stages.arms(None)?,
            (_, Some(pilot)) => {
                self.finished(number, unit, &pilot)?;
                let out = self.depot.holding(&pilot.runs)?;
                stages.arms(Some(stages.calibration(&pilot, out)?))?
            }
        };
        let plan = if unit.stage == Stage::Arms && plan.measures() {
            self.depot.bring(&plan.folder().join(STRENGTHS))?;
            let strengths = Strength::read(&self.depot.holding([])?.join(plan.folder()))?;
            if strengths.is_empty() {
                return Err(self.waits(number, unit, "its measurement of strengths".to_owned()));
            }
            plan.settled(&strengths)?
        } else {
            plan
        };
        Ok(Stretch::new(stages.provisional()?, Some(plan)))
    }

    /// Refuses a unit as long as a run of the pilot is missing.
    fn finished(&self, number: usize, unit: &Unit, pilot: &Plan) -> Result<(), Error> {
        for run in &pilot.runs {
            if !self.depot.is_finished(run)? {
                return Err(self.waits(number, unit, format!("run {}", home(run))));
            }
        }
        Ok(())
    }

    fn waits(&self, number: usize, unit: &Unit, missing: String) -> Error {
        Error::Waits { unit: self.split.words(number), after: unit.before(), missing }
    }

    /// Bounds on the optima of every pool that some runs play, the same for all workers: what could not be proven in time
    /// must not differ between paired runs.
    fn optima(&self, runs: &[Planned], plan: &Plan) -> Result<BTreeMap<String, Vec<Bounds>>, Error> {
        let mut known = BTreeMap::new();
        for run in runs.iter().filter(|run| matches!(run.recipe.task, Played::Shops(_))) {
            let pool = pool_of(&run.recipe.spec)?;
            if known.contains_key(&pool) {
                continue;
            }
            let name = format!("{}/optima/{}", records(&self.split.id), Digest::of(&pool));
            let mut kept = self.depot.store.read(&name)?;
            if kept.is_none() {
                let out = self.depot.holding([])?;
                let all: Vec<&Planned> = plan.runs.iter().collect();
                let sought = Runner::new(out, Device::Cpu).seek(&[run], &all)?;
                let pairs =
                    sought.get(&pool).into_iter().flatten().map(|bounds| (bounds.lower, bounds.upper));
                let text = serde_json::to_vec(&pairs.collect::<Vec<_>>()).unwrap_or_default();
                self.depot.store.create(&name, &text)?;
                // Another worker may have been first, with other bounds.
                kept = self.depot.store.read(&name)?;
            }
            let damaged = || Error::Plan {
                name: name.clone(),
                mend: "it does not hold bounds on optima; remove it and work again".to_owned(),
            };
            let pairs: Vec<(u32, u32)> =
                kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).ok_or_else(damaged)?;
            known.insert(pool, pairs.into_iter().map(|(lower, upper)| Bounds { lower, upper }).collect());
        }
        Ok(known)
    }
}

impl Stretch {
    fn new(provisional: Plan, settled: Option<Plan>) -> Self {
        let places =
            |plan: &Plan| plan.runs.iter().enumerate().map(|(place, run)| (home(run), place)).collect();
        Self {
            places: places(&provisional),
            settled_places: settled.as_ref().map(places).unwrap_or_default(),
            provisional,
            settled,
        }
    }

    /// What is trained.
    fn trained(&self) -> &Plan {
        self.settled.as_ref().unwrap_or(&self.provisional)
    }

    /// A run as it is trained; nothing where the pilot left its cell out.
    fn run(&self, home: &str) -> Option<&Planned> {
        match &self.settled {
            None => self.provisional_run(home),
            Some(plan) => self.settled_places.get(home).map(|place| &plan.runs[*place]),
        }
    }

    fn provisional_run(&self, home: &str) -> Option<&Planned> {
        self.places.get(home).map(|place| &self.provisional.runs[*place])
    }
}
