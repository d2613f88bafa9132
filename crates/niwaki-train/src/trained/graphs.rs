//! A trained graph network, taken out of its run's folder to schedule instances.
//!
//! Its parameters know no sizes: it schedules flexible and ordinary job shops of any number of jobs and machines, in the order of
//! its training, on any device.

use super::saved::{Saved, TrainedPolicy, checked};
use crate::Error;
use crate::cohort::Device;
use crate::policy::graph_policy;
use crate::spec::{AdvantageKind, PolicyKind, Spec};
use niwaki_files::Digest;
use niwaki_nn::{Graph, Value};
use niwaki_policies::{Decoded, Decoding, Dispatcher, GraphPolicy, Policy};
use niwaki_shop::construct::JobOrder;
use niwaki_shop::generate::Task;
use niwaki_shop::{Bounds, FlexibleShop, Instance, Optimum};
use niwaki_tasks::graph::OPERATION;
use niwaki_tasks::{GraphSizes, GraphTask, Shop};
use std::path::Path;

/// The most arcs, operations times machines, of a shop that is scheduled: its states would not fit.
const MOST_ARCS: usize = 1 << 18;

/// Operations by which room grows on a GPU, where an engine takes longer to make than a shop to schedule: shops of about the same size
/// have the same room.
const ROOM: usize = 64;

/// A graph network as its run's last checkpoint has it.
#[derive(Clone, Debug)]
pub struct TrainedGraph {
    spec: Spec,
    order: JobOrder,
    /// Numbers that describe an operation to it.
    features: usize,
    parameters: Vec<f32>,
    iteration: u64,
    temperature: f64,
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
        let temperature = saved.temperature();
        Ok(Self { spec: saved.spec, order, features, parameters, iteration, temperature })
    }

    /// The graph network of a folder, or one that comes with the program.
    pub(crate) fn open(folder: &Path) -> Result<Self, Error> {
        match TrainedPolicy::open(folder)? {
            TrainedPolicy::Graphs(trained) => Ok(*trained),
            _ => Err(Error::OtherRun {
                path: folder.to_owned(),
                reason: "its policy reads no graphs; expected one of kind 'hgnn' or 'dual'".to_owned(),
            }),
        }
    }

    /// Numbers that describe an operation to it.
    pub(crate) const fn features(&self) -> usize {
        self.features
    }

    /// What its weights are, in 16 digits.
    pub(crate) fn digest(&self) -> String {
        Digest::of(self.parameters.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>())
            .to_string()
    }

    /// A policy of the same kind and widths that starts from these weights; a critic that these do without is drawn.
    ///
    /// # Errors
    /// If a tensor is missing here or has another shape.
    pub(crate) fn start(&self, policy: GraphPolicy) -> Result<GraphPolicy, Error> {
        let any = GraphSizes { jobs: 1, machines: 1, operations: 1, features: self.features };
        let own = graph_policy(&self.spec, any, critic(&self.spec))?;
        let mut known = Vec::new();
        for wanted in policy.graph().layout().slices() {
            let here = own.graph().layout().slices().iter().find(|slice| slice.name == wanted.name);
            match here {
                Some(here) if here.shape == wanted.shape => {
                    known.push((wanted.range(), self.parameters[here.range()].to_vec()));
                }
                None if wanted.name.starts_with("critic.") => {}
                _ => {
                    let came = here.map_or("none".to_owned(), |here| format!("{:?}", here.shape));
                    let reason = format!(
                        "'{}' is {:?} in this policy and {came} in what it starts from; give both the same kind, width, hidden and bounds",
                        wanted.name, wanted.shape
                    );
                    return Err(Error::Senseless { key: "policy.start", reason });
                }
            }
        }
        Ok(policy.starting_from(known))
    }

    /// Iterations of training behind it.
    #[must_use]
    pub const fn iteration(&self) -> u64 {
        self.iteration
    }

    /// The temperature at which its samples are best, as far as anybody has measured: 1 unless it comes with the program.
    #[must_use]
    pub const fn temperature(&self) -> f64 {
        self.temperature
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

    /// Steps that [`GraphScheduler::schedule`] tells of at most.
    #[must_use]
    pub fn steps(&self, instance: &Instance, how: Decoding) -> usize {
        let starts = if how.multistart { instance.jobs().saturating_mul(instance.machines()) } else { 0 };
        (1 + starts + how.samples + how.beam) * instance.operations()
    }

    /// Goes to work on a device.
    #[must_use]
    pub fn on(self, device: Device) -> GraphScheduler {
        GraphScheduler { trained: self, device, kept: None }
    }
}

/// A graph network at work on a device. What it makes ready for a shop is kept for the next one of that size.
pub struct GraphScheduler {
    /// The network.
    pub trained: TrainedGraph,
    device: Device,
    /// What is ready on the device.
    kept: Option<Dispatcher>,
}

impl GraphScheduler {
    /// The best schedule of an instance that was accepted, with the checker's word for it and the bound that the exact search finds at
    /// once; `tick` is told of steps as they are taken.
    ///
    /// # Errors
    /// If the instance was not accepted, the weights are broken, or the checker does not find what the construction did.
    pub fn schedule(
        &mut self,
        instance: &Instance,
        how: Decoding,
        tick: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(Optimum, Decoded), Error> {
        // The policy never sees the bounds.
        let bounds = vec![Bounds { lower: 0, upper: 0 }];
        let task = GraphTask::new(vec![instance.clone()], bounds, 1, self.trained.order)?;
        let decoded = self.dispatcher(task.sizes(), how)?.dispatch(&task, how, tick)?;
        Ok((checked(instance, &decoded, how.seed)?, decoded))
    }

    /// What schedules a shop: what is kept where that takes it, or a new one with room for some operations more.
    fn dispatcher(&mut self, shop: GraphSizes, how: Decoding) -> Result<&mut Dispatcher, Error> {
        let Self { trained, device, kept } = self;
        let step = if matches!(device, Device::Cpu) { 1 } else { ROOM };
        let sizes = GraphSizes { operations: shop.operations.next_multiple_of(step), ..shop };
        // What was kept goes when its successor is there, so that the device stays open.
        let made = match kept.take() {
            Some(kept) if kept.sizes() == sizes => kept,
            _before => {
                let policy = graph_policy(&trained.spec, sizes, critic(&trained.spec))?;
                let device = device.clone();
                let make = move |graph: &Graph, outputs: &[Value]| device.engine(graph, outputs, 1);
                Dispatcher::new(policy, &trained.parameters, 1 + how.samples, &make)?
            }
        };
        Ok(kept.insert(made))
    }
}

fn critic(spec: &Spec) -> bool {
    spec.advantage.kind == AdvantageKind::Critic
}
