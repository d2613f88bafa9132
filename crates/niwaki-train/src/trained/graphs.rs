//! A trained graph network, taken out of its run's folder to schedule instances.
//!
//! Its parameters know no sizes: it schedules flexible and ordinary job shops of any number of jobs and machines, in the order of
//! its training, on any device.

use super::saved::{Saved, checked};
use crate::Error;
use crate::cohort::Device;
use crate::policy::graph_policy;
use crate::spec::{AdvantageKind, PolicyKind, Spec};
use niwaki_nn::{Cpu, Graph, Value};
use niwaki_policies::{Decoded, Decoding, Policy, dispatch};
use niwaki_shop::construct::JobOrder;
use niwaki_shop::generate::Task;
use niwaki_shop::{Bounds, FlexibleShop, Instance, Optimum};
use niwaki_tasks::graph::OPERATION;
use niwaki_tasks::{GraphSizes, GraphTask, Shop};

/// The most arcs, operations times machines, of a shop that is scheduled: its states would not fit.
const MOST_ARCS: usize = 1 << 18;

/// A graph network as its run's last checkpoint has it.
#[derive(Clone, Debug)]
pub struct TrainedGraph {
    spec: Spec,
    order: JobOrder,
    /// Numbers that describe an operation to it.
    features: usize,
    parameters: Vec<f32>,
    iteration: u64,
}

impl TrainedGraph {
    pub(super) fn read(saved: Saved) -> Result<Self, Error> {
        saved.vouch()?;
        let spec = &saved.spec;
        let read = |features: usize| {
            // Parameters are the same for all sizes.
            let any = GraphSizes { jobs: 1, machines: 1, operations: 1, features };
            let policy = graph_policy(spec, any, critic(spec))?;
            let (parameters, iteration) = saved.parameters::<f32>(policy.graph().layout())?;
            Ok::<_, Error>((features, parameters, iteration))
        };
        // Only the weights say whether the shops of its training had windows.
        let [plain, windows] = OPERATION;
        let (features, parameters, iteration) = read(plain).or_else(|error| match spec.policy.kind {
            PolicyKind::Hgnn => read(windows).map_err(|_| error),
            _ => Err(error),
        })?;
        let order = spec.reading()?.order;
        Ok(Self { spec: saved.spec, order, features, parameters, iteration })
    }

    /// Iterations of training behind it.
    #[must_use]
    pub const fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The instance as a flexible shop.
    ///
    /// # Errors
    /// If it is of another kind, is too large, or has resting windows that the network does not know, or none where it knows them.
    pub fn accept(&self, instance: Instance) -> Result<Instance, Error> {
        let instance = Shop::Flexible { draw: Task::Sd1 }.accept(instance)?;
        let arcs = instance.operations().saturating_mul(instance.machines());
        if arcs > MOST_ARCS {
            return Err(Error::Misfit {
                expected: format!("shops of at most {MOST_ARCS} pairs of operation and machine"),
                came: format!("{} operations and {} machines", instance.operations(), instance.machines()),
            });
        }
        let has_windows = matches!(&instance, Instance::Flexible(shop) if FlexibleShop::has_windows(shop));
        let words = |has: bool| if has { "resting windows" } else { "no resting windows" };
        if self.spec.policy.kind == PolicyKind::Hgnn && self.features != OPERATION[usize::from(has_windows)] {
            let expected = format!("shops with {}", words(!has_windows));
            return Err(Error::Misfit { expected, came: words(has_windows).to_owned() });
        }
        Ok(instance)
    }

    /// Steps that [`TrainedGraph::schedule`] tells of at most.
    #[must_use]
    pub fn steps(&self, instance: &Instance, how: Decoding) -> usize {
        let starts = if how.multistart { instance.jobs().saturating_mul(instance.machines()) } else { 0 };
        (1 + starts + how.samples + how.beam) * instance.operations()
    }

    /// The best schedule of an instance that was accepted, with the checker's word for it and the bound that the exact search finds at
    /// once; `tick` is told of steps as they are taken.
    ///
    /// # Errors
    /// If the instance was not accepted, the weights are broken, or the checker does not find what the construction did.
    pub fn schedule(
        &self,
        instance: &Instance,
        how: Decoding,
        device: &Device,
        tick: &mut dyn FnMut(usize),
    ) -> Result<(Optimum, Decoded), Error> {
        // The policy never sees the bounds.
        let bounds = vec![Bounds { lower: 0, upper: 0 }];
        let task = GraphTask::new(vec![instance.clone()], bounds, 1, self.order)?;
        let policy = graph_policy(&self.spec, task.sizes(), critic(&self.spec))?;
        let decoded = match device {
            Device::Cpu => {
                let make = |graph: &Graph, outputs: &[Value]| Ok(Cpu::<f32>::new(graph, outputs, 1));
                dispatch(&policy, &self.parameters, &make, &task, how, tick)?
            }
            #[cfg(feature = "cuda")]
            Device::Cuda(options) => {
                let options = options.clone();
                let make = move |graph: &Graph, outputs: &[Value]| {
                    niwaki_nn::cuda::Cuda::new(graph, outputs, 1, &options)
                };
                dispatch(&policy, &self.parameters, &make, &task, how, tick)?
            }
        };
        Ok((checked(instance, &decoded, how.seed)?, decoded))
    }
}

fn critic(spec: &Spec) -> bool {
    spec.advantage.kind == AdvantageKind::Critic
}
