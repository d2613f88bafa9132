//! A trained pointer policy, taken out of its run's folder to schedule instances.
//!
//! The parameters know the machines (and in job shops the jobs) that they were trained for, not the number of
//! operations; so a policy for flow shops schedules any number of jobs. Decoding runs on the CPU.

use super::saved::{Saved, Tensor, checked};
use crate::Error;
use crate::policy::pointer_shape;
use crate::run::SPEC;
use crate::spec::{GlimpseKind, PolicyKind, Spec, TaskKind};
use niwaki_nn::{Cpu, Graph, Layout, Value};
use niwaki_policies::{Decoded, Decoding, Observed, PointerShape, decode};
use niwaki_shop::generate::Size;
use niwaki_shop::{Bounds, Instance, Optimum};
use niwaki_tasks::{Construction, Generator, Outcome, Reading, Shop, ShopPool, Source, construct};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A pointer policy as its run's last checkpoint has it.
#[derive(Clone, Debug)]
pub struct Trained {
    spec: Spec,
    shop: Shop,
    size: Size,
    layout: Layout,
    parameters: Vec<f32>,
    iteration: u64,
}

/// Constructions of one instance as a policy sees and scores them.
#[derive(Clone, Debug)]
pub struct Scored {
    /// The sizes of the network for this instance; `group` counts the constructions.
    pub shape: PointerShape,
    /// What the network reads besides the choices.
    pub observed: Observed,
    /// Log-probabilities of the choices, `[construction, step]`.
    pub log_prob: Vec<f32>,
    /// How the constructions turned out.
    pub outcome: Vec<Outcome>,
}

impl Trained {
    /// Reads the policy of a run's folder, which may still be training.
    ///
    /// # Errors
    /// If the folder holds no run, one of a policy that schedules no shops, or none that was saved yet.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        Self::read(Saved::open(folder)?)
    }

    pub(super) fn read(saved: Saved) -> Result<Self, Error> {
        let spec = &saved.spec;
        let shop = match spec.task_kind()? {
            TaskKind::Shop(shop) if spec.policy.kind == PolicyKind::Pointer => shop,
            _ => {
                let reason = format!(
                    "a run of policy '{}' on task '{}'; expected a run of a pointer on a shop",
                    spec.policy.kind.name(),
                    spec.task.kind
                );
                return Err(saved.refuse(SPEC, reason));
            }
        };
        saved.vouch()?;
        let size = spec.size(shop);
        let policy = pointer_shape(spec, example(shop, size)?.as_ref(), 1).policy()?;
        let layout = policy.graph.layout().clone();
        let (parameters, iteration) = saved.parameters(&layout)?;
        Ok(Self { spec: saved.spec, shop, size, layout, parameters, iteration })
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
        let task = self.task(instance)?;
        let policy = pointer_shape(&self.spec, task.as_ref(), 1).policy()?;
        let make = |graph: &Graph, outputs: &[Value]| Ok(Cpu::boxed(graph, outputs, 1));
        let mut engine = make(&policy.graph, &policy.outputs())?;
        engine.set_parameters(0, &self.parameters)?;
        Ok(decode(&policy, engine.as_ref(), task.as_ref(), 0, how, &make, tick)?)
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
        Ok((checked(instance, &decoded, how.seed)?, decoded))
    }

    /// Log-probabilities of given constructions of an instance that was accepted, and what the network read.
    ///
    /// Shapes: `choices [construction, step]`
    ///
    /// # Errors
    /// If the instance was not accepted, the choices are no whole constructions, or one of them was closed.
    pub fn score(&self, instance: &Instance, choices: &[i32]) -> Result<Scored, Error> {
        let task = self.task(instance)?;
        let shape = pointer_shape(&self.spec, task.as_ref(), choices.len() / task.horizon().max(1));
        let (observed, outcome) = Observed::replay(task.as_ref(), &[0], shape.group, choices)?;
        let policy = shape.policy()?;
        let mut engine = Cpu::boxed(&policy.graph, &policy.outputs(), 1);
        engine.set_parameters(0, &self.parameters)?;
        policy.load_observed(engine.as_mut(), choices, &observed)?;
        engine.forward()?;
        Ok(Scored { shape, observed, log_prob: engine.output(0, 0).to_vec(), outcome })
    }

    /// Heads of attention, whether the decoder adds the query to its glimpse, and the bound on its logits.
    #[must_use]
    pub fn decoder(&self) -> (usize, bool, f64) {
        let policy = &self.spec.policy;
        (policy.heads, policy.glimpse == Some(GlimpseKind::Residual), self.spec.bound())
    }

    /// The parameters by name.
    #[must_use]
    pub fn tensors(&self) -> Vec<Tensor> {
        Tensor::all(&self.layout, &self.parameters)
    }

    fn task(&self, instance: &Instance) -> Result<Arc<dyn Construction>, Error> {
        // The policy never sees the bounds.
        let bounds = vec![Bounds { lower: 0, upper: 0 }];
        Ok(construct(vec![instance.clone()], bounds, 1, self.spec.reading()?)?)
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
