//! A trained pointer policy, taken out of its run's folder to schedule instances.
//!
//! The parameters know the machines (and in job shops the jobs) that they were trained for, not the number of
//! operations; so a policy for flow shops schedules any number of jobs. Decoding runs on the CPU.

use crate::Error;
use crate::policy::pointer_shape;
use crate::run::{CHECKPOINT, SPEC};
use crate::spec::{PolicyKind, Spec, TaskKind};
use niwaki_nn::{Checkpoint, Cpu, Engine, Graph, Value};
use niwaki_policies::{Decoded, Decoding, decode};
use niwaki_shop::generate::Size;
use niwaki_shop::{Bounds, Instance, Limits, Optimum, optimum, verify};
use niwaki_tasks::{Construction, Generator, Reading, Shop, ShopPool, Source, construct};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A pointer policy as its run's last checkpoint has it.
#[derive(Clone, Debug)]
pub struct Trained {
    spec: Spec,
    shop: Shop,
    size: Size,
    parameters: Vec<f32>,
    iteration: u64,
}

impl Trained {
    /// Reads the policy of a run's folder, which may still be training.
    ///
    /// # Errors
    /// If the folder holds no run, one of a policy that schedules no shops, or none that was saved yet.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let refuse = |name: &str, reason: String| Error::OtherRun { path: folder.join(name), reason };
        let text = fs::read_to_string(folder.join(SPEC))
            .map_err(|error| refuse(SPEC, format!("{error}; expected the folder of a run")))?;
        let spec = Spec::read(&folder.join(SPEC).display().to_string(), &text, &[])?;
        let shop = match spec.task_kind()? {
            TaskKind::Shop(shop) if spec.policy.kind == PolicyKind::Pointer => shop,
            _ => {
                let reason =
                    format!("task '{}' is no shop; expected a run of a pointer policy", spec.task.kind);
                return Err(refuse(SPEC, reason));
            }
        };
        let path = folder.join(CHECKPOINT);
        if !path.exists() {
            let reason =
                "the run has saved no policy: let it go on, or train one that does not diverge".to_owned();
            return Err(refuse(CHECKPOINT, reason));
        }
        let size = spec.size(shop);
        let policy = pointer_shape(&spec, example(shop, size)?.as_ref(), 1).policy()?;
        let kept = Checkpoint::<f32>::load(policy.graph.layout(), &path)?;
        if kept.state["spec"].as_str() != Some(spec.hash()?.as_str()) {
            return Err(refuse(CHECKPOINT, format!("it was saved by another run than that of {SPEC}")));
        }
        let iteration = kept.state["iteration"].as_u64().unwrap_or_default();
        Ok(Self { spec, shop, size, parameters: kept.parameters, iteration })
    }

    /// Iterations of training behind it.
    #[must_use]
    pub const fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The instance as one of the kind that the policy schedules.
    ///
    /// # Errors
    /// If it is of another kind, or has not the machines (in a job shop: and jobs) that the policy was trained for.
    pub fn accept(&self, instance: Instance) -> Result<Instance, Error> {
        let Size { jobs, machines } = self.size;
        let instance = self.shop.accept(instance)?;
        let fits = instance.machines() == machines && (self.shop != Shop::Job || instance.jobs() == jobs);
        if fits {
            return Ok(instance);
        }
        let words = |jobs: usize, machines: usize| match self.shop {
            Shop::Job => format!("{jobs} jobs and {machines} machines"),
            _ => format!("{machines} machines"),
        };
        Err(Error::Misfit {
            expected: format!("{}s with {}", instance.kind(), words(jobs, machines)),
            came: words(instance.jobs(), instance.machines()),
        })
    }

    /// Steps that [`Trained::decode`] tells of at most.
    #[must_use]
    pub fn steps(&self, instance: &Instance, how: Decoding) -> usize {
        let horizon = if self.shop == Shop::Job { instance.operations() } else { instance.jobs() };
        // As many starts as jobs, at most.
        let starts = if how.multistart { instance.jobs() } else { 0 };
        (1 + starts + how.samples + how.beam) * horizon
    }

    /// The best schedule of an instance that was accepted; `tick` is told of steps as they are taken.
    ///
    /// # Errors
    /// If the instance was not accepted.
    pub fn decode(
        &self,
        instance: &Instance,
        how: Decoding,
        tick: &mut dyn FnMut(usize),
    ) -> Result<Decoded, Error> {
        // The policy never sees the bounds.
        let task =
            construct(vec![instance.clone()], vec![Bounds { lower: 0, upper: 0 }], 1, self.spec.reading()?)?;
        let policy = pointer_shape(&self.spec, task.as_ref(), 1).policy()?;
        let make = |graph: &Graph, outputs: &[Value]| Ok(Cpu::<f32>::new(graph, outputs, 1));
        let mut engine = make(&policy.graph, &policy.outputs())?;
        engine.set_parameters(0, &self.parameters)?;
        Ok(decode(&policy, &engine, task.as_ref(), 0, how, make, tick)?)
    }

    /// [`Trained::decode`], with the checker's word for what it found, and the bound that the exact search finds at once.
    ///
    /// # Errors
    /// If the instance was not accepted, or the checker does not find what the policy's construction did.
    pub fn schedule(
        &self,
        instance: &Instance,
        how: Decoding,
        tick: &mut dyn FnMut(usize),
    ) -> Result<(Optimum, Decoded), Error> {
        let decoded = self.decode(instance, how, tick)?;
        let refuse = |reason: String| Error::Schedule { reason };
        let checked = verify(instance, &decoded.schedule).map_err(|fault| refuse(fault.to_string()))?;
        let (makespan, late) = (decoded.outcome.makespan, decoded.outcome.late as usize);
        if (checked.makespan, checked.late) != (makespan, late) {
            return Err(refuse(format!(
                "makespan {} and {} late jobs, where the construction had {makespan} and {late}",
                checked.makespan, checked.late
            )));
        }
        let lower = optimum::solve(instance, Limits::new(Duration::ZERO, how.seed), &mut |_| {}).lower;
        Ok((Optimum::new(lower, decoded.schedule.clone()), decoded))
    }
}

/// Any instance of a size, for its widths.
fn example(shop: Shop, size: Size) -> Result<Arc<dyn Construction>, Error> {
    // A folder of lagged shops may have any number of jobs; two orders are always two.
    let size = if matches!(shop, Shop::TwoOrders { .. }) { shop.size() } else { size };
    let drawn = Generator { shop, size, training: 1, validation: 1, seed: 0 };
    // Widths are those of every reading.
    let (source, reading) = (Source::Generated(drawn), Reading::default());
    let pool = ShopPool { source, patience: Duration::ZERO, reading };
    let (instances, training) = pool.instances()?;
    let bounds = vec![Bounds { lower: 0, upper: 0 }; instances.len()];
    Ok(construct(instances, bounds, training, reading)?)
}
