//! Special problems as general shops, and back.

use super::{Job, Machine, Measure, Mode, Objective, Operation, Parts, Precedence, Setups, Shop};
use crate::{Alternative, Error, FlexibleShop, Instance, JobShop, Result, Window};

/// What becomes of longest rests, which are soft in a flexible job shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Maxima {
    /// They are left out.
    Soft,
    /// They are longest waits.
    Hard,
}

impl Shop {
    /// A special problem as a general shop, with numbers for names.
    ///
    /// # Errors
    /// If the problem asks for one common order of all machines, or has soft longest rests: neither has a place here.
    pub fn from_instance(instance: &Instance, objective: Objective) -> Result<Self> {
        Self::from_special(instance, objective, None)
    }

    /// A special problem as a general shop whose makespan alone counts.
    ///
    /// # Errors
    /// If the problem asks for one common order of all machines.
    pub(crate) fn for_makespan(instance: &Instance, maxima: Maxima) -> Result<Self> {
        Self::from_special(instance, Objective::only(Measure::Makespan), Some(maxima))
    }

    fn from_special(instance: &Instance, objective: Objective, maxima: Option<Maxima>) -> Result<Self> {
        let (shop, due) = match instance {
            Instance::Job(shop) => (FlexibleShop::from_job_shop(shop)?, None),
            Instance::Flexible(shop) => (shop.clone(), None),
            Instance::Single(shop) => {
                let job = |&time: &u32| vec![vec![Alternative { machine: 0, time }]];
                let jobs: Vec<_> = shop.times().iter().map(job).collect();
                (FlexibleShop::new(1, &jobs)?, Some(shop.due()))
            }
            Instance::Flow(_) | Instance::Lags(_) => {
                return Err(Error::Choice(format!(
                    "a {} asks for one common order of jobs on all machines, which a general shop cannot say",
                    instance.kind()
                )));
            }
        };
        let mut jobs = Vec::with_capacity(shop.jobs());
        let mut precedences = Vec::new();
        for job in 0..shop.jobs() {
            let mut operations = Vec::new();
            for (index, number) in shop.job(job).enumerate() {
                let mode = |one: &Alternative| Mode { machine: one.machine, time: one.time };
                let modes = shop.alternatives(number).iter().map(mode).collect();
                operations.push(Operation::new(index.to_string(), modes));
                let window = shop.window(number);
                if maxima.is_none() && window.max.is_some() {
                    return Err(Error::Choice(
                        "longest rests are soft in a flexible job shop and hard in a general shop".into(),
                    ));
                }
                if index > 0 {
                    let (before, after) = (number as u32 - 1, number as u32);
                    let max = window.max.filter(|_| maxima == Some(Maxima::Hard));
                    precedences.push(Precedence { before, after, min: window.min, max });
                }
            }
            let mut made = Job::new(job.to_string(), operations);
            made.due = due.map(|due| due[job]);
            jobs.push(made);
        }
        let machines = (0..shop.machines()).map(|machine| Machine::new(machine.to_string())).collect();
        let horizon = crate::instance::HORIZON;
        Self::new(Parts { jobs, machines, precedences, setups: Setups::default(), objective, horizon })
    }

    /// The job shop or flexible job shop that this is, where nothing but the makespan counts and nothing else binds.
    #[must_use]
    pub fn as_instance(&self) -> Option<Instance> {
        let free_machine = |machine: &Machine| machine.available == 0 && machine.calendar.is_always_open();
        let free_job = |job: &Job| {
            let free = |one: &Operation| one.earliest == 0 && one.latest.is_none();
            job.release == 0 && job.deadline.is_none() && job.operations.iter().all(free)
        };
        let plain = self.objective.is_makespan()
            && self.setups.is_empty()
            && self.machines.iter().all(free_machine)
            && self.jobs.iter().all(free_job);
        if !plain {
            return None;
        }
        let chains = Parts::chains(&self.jobs);
        let mut links = self.precedences.clone();
        links.sort_by_key(|link| (link.before, link.after));
        let is_chain = links.len() == chains.len()
            && links.iter().zip(&chains).all(|(link, chain)| {
                (link.before, link.after, link.max) == (chain.before, chain.after, None)
            });
        if !is_chain {
            return None;
        }
        let choice = |mode: &Mode| Alternative { machine: mode.machine, time: mode.time };
        let jobs: Vec<Vec<Vec<Alternative>>> = self
            .jobs
            .iter()
            .map(|job| job.operations.iter().map(|one| one.modes.iter().map(choice).collect()).collect())
            .collect();
        if links.iter().all(|link| link.min == 0) && jobs.iter().flatten().all(|choices| choices.len() == 1) {
            let step = |choices: &Vec<Alternative>| crate::Operation {
                machine: choices[0].machine,
                time: choices[0].time,
            };
            let routes: Vec<Vec<_>> = jobs.iter().map(|job| job.iter().map(step).collect()).collect();
            return JobShop::new(self.machines.len(), &routes).ok().map(Instance::Job);
        }
        let mut next = links.iter();
        let windows: Vec<Vec<Window>> = self
            .jobs
            .iter()
            .map(|job| {
                let rests = (1..job.operations.len()).map(|_| next.next().map_or(0, |link| link.min));
                std::iter::once(0).chain(rests).map(|min| Window { min, max: None }).collect()
            })
            .collect();
        let shop = FlexibleShop::new(self.machines.len(), &jobs).ok()?;
        let resting = links.iter().any(|link| link.min > 0);
        let shop = if resting { shop.with_windows(&windows).ok()? } else { shop };
        Some(Instance::Flexible(shop))
    }
}
