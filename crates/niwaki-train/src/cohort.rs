//! From checked recipes to a trainer on a device.

use crate::Error;
use crate::player::{
    Environment, GraphEnvironment, Neural, Player, ShopEnvironment, TableInit, Tables, TextEnvironment,
    TokenEnvironment,
};
use crate::policy::{graph_policy, pointer_shape, record_policy, token_policy, writer_policy};
use crate::record::{LastBatch, Record};
use crate::spec::{OptimiserKind, Played, PolicyKind, Recipe, ShopView, available_memory, fits};
use crate::trained::TrainedGraph;
use crate::trainer::Trainer;
use niwaki_nn::cpu::Use;
use niwaki_nn::{Cpu, DynEngine, Graph, Value};
use niwaki_policies::{Item, Policy};
use std::path::Path;

/// Where a cohort runs.
#[derive(Clone, Debug, Default)]
pub enum Device {
    /// The processor's cores.
    #[default]
    Cpu,
    /// A GPU.
    #[cfg(feature = "cuda")]
    Cuda(niwaki_nn::cuda::Options),
}

impl Device {
    /// An engine for a program and its outputs, with so many members.
    ///
    /// # Errors
    /// If the device is not there or has no room.
    pub fn engine(
        &self,
        graph: &Graph,
        outputs: &[Value],
        members: usize,
    ) -> niwaki_nn::Result<Box<DynEngine>> {
        match self {
            Self::Cpu => Ok(Cpu::boxed(graph, outputs, members)),
            #[cfg(feature = "cuda")]
            Self::Cuda(options) => {
                Ok(Box::new(niwaki_nn::cuda::Cuda::new(graph, outputs, members, options)?))
            }
        }
    }

    /// The same device for `count` cohorts that train on it at the same time.
    #[must_use]
    #[cfg_attr(not(feature = "cuda"), expect(unused_variables, reason = "cores are shared out as they come"))]
    pub fn shared_by(&self, count: usize) -> Self {
        match self {
            Self::Cpu => Self::Cpu,
            #[cfg(feature = "cuda")]
            Self::Cuda(options) => {
                Self::Cuda(niwaki_nn::cuda::Options { beside: count.saturating_sub(1), ..options.clone() })
            }
        }
    }
}

/// A cohort of members on a device, whatever their policy.
pub trait Cohort {
    /// Iterations done.
    fn done(&self) -> usize;
    /// The recipes, one per member.
    fn recipes(&self) -> &[Recipe];
    /// One iteration of every member; one record each.
    ///
    /// # Errors
    /// If the device fails, or training diverges.
    fn advance(&mut self) -> Result<Vec<Record>, Error>;
    /// The same, left where `leave` says so; see [`Trainer::advance_unless`].
    ///
    /// # Errors
    /// As [`Cohort::advance`], or [`Error::Left`].
    fn advance_unless(&mut self, leave: &dyn Fn() -> bool) -> Result<Vec<Record>, Error>;
    /// How far one whole update takes each member, on copies; see [`Trainer::probe`].
    ///
    /// # Errors
    /// If the device fails, or training diverges.
    fn probe(&mut self) -> Result<Vec<Option<f64>>, Error>;
    /// Seconds spent so far in each part of an iteration.
    fn times(&self) -> [(&'static str, f64); 4];
    /// The batch that the last iteration learned from, as one member saw it.
    fn last_batch(&self, member: usize) -> LastBatch;
    /// What every member says at all prefixes; see [`Player::tables`].
    ///
    /// # Errors
    /// If the device fails.
    fn tables(&mut self) -> Result<Option<Vec<Vec<f64>>>, Error>;
    /// Writes a member.
    ///
    /// # Errors
    /// If the device or the disk refuses.
    fn save(&self, member: usize, path: &Path) -> Result<(), Error>;
    /// Reads a member back.
    ///
    /// # Errors
    /// If the file is damaged or of another run.
    fn restore(&mut self, member: usize, path: &Path) -> Result<(), Error>;
}

impl<P: Player> Cohort for Trainer<P> {
    fn done(&self) -> usize {
        self.done()
    }

    fn recipes(&self) -> &[Recipe] {
        self.recipes()
    }

    fn advance(&mut self) -> Result<Vec<Record>, Error> {
        self.advance()
    }

    fn advance_unless(&mut self, leave: &dyn Fn() -> bool) -> Result<Vec<Record>, Error> {
        self.advance_unless(leave)
    }

    fn probe(&mut self) -> Result<Vec<Option<f64>>, Error> {
        self.probe()
    }

    fn times(&self) -> [(&'static str, f64); 4] {
        self.times()
    }

    fn last_batch(&self, member: usize) -> LastBatch {
        self.last_batch(member)
    }

    fn tables(&mut self) -> Result<Option<Vec<Vec<f64>>>, Error> {
        self.tables()
    }

    fn save(&self, member: usize, path: &Path) -> Result<(), Error> {
        self.save(member, path)
    }

    fn restore(&mut self, member: usize, path: &Path) -> Result<(), Error> {
        self.restore(member, path)
    }
}

/// Makes the cohort of some recipes at its beginning.
///
/// # Errors
/// Where the recipes do not belong together, or the device has no room.
pub fn gather(recipes: Vec<Recipe>, device: &Device) -> Result<Box<dyn Cohort>, Error> {
    let Some(first) = recipes.first() else { return Err(Error::Mixed) };
    let spec = &first.spec;
    match &first.task {
        Played::Tokens(task) if spec.policy.kind == PolicyKind::Decoder => {
            neural(record_policy(spec)?, TokenEnvironment(task.clone()), recipes, device)
        }
        Played::Tokens(task) => match token_policy(first, task.as_ref())? {
            Some(policy) => neural(policy, TokenEnvironment(task.clone()), recipes, device),
            None => {
                let init = TableInit {
                    scale: spec.policy.scale,
                    prime: spec.policy.prime.as_ref().map(|prime| (prime.token, prime.mass)),
                    critic: first.critic(),
                    reference: spec.update.reference_kl > 0.0,
                };
                let player = Tables::new(task.clone(), &seeds(&recipes), init)?;
                Ok(Box::new(Trainer::new(player, recipes)?))
            }
        },
        Played::Texts(task) => {
            let policy = writer_policy(spec, task)?;
            let choices = policy.choices().clone();
            neural(policy, TextEnvironment { task: task.clone(), choices }, recipes, device)
        }
        Played::Shops(shops) => {
            let payment = |recipe: &Recipe| match &recipe.task {
                Played::Shops(shops) => Ok(shops.payment),
                Played::Tokens(_) | Played::Texts(_) => Err(Error::Mixed),
            };
            let payments = recipes.iter().map(payment).collect::<Result<_, _>>()?;
            let (group, hold) = (spec.rollout.group, spec.rollout.hold);
            match shops.view()? {
                ShopView::Candidates(task) => {
                    let policy = pointer_shape(spec, task.as_ref(), group).policy()?;
                    neural(policy, ShopEnvironment { task, payments, hold }, recipes, device)
                }
                ShopView::Graph(task) => {
                    let policy = graph_policy(spec, task.sizes(), first.critic())?;
                    let policy = match &spec.policy.start {
                        Some(start) => TrainedGraph::open(start)?.start(policy)?,
                        None => policy,
                    };
                    neural(policy, GraphEnvironment { task, payments, group, hold }, recipes, device)
                }
            }
        }
    }
}

/// Refuses a run that would take more memory than is left, by the sum over what its policy will allocate. Nothing is allocated for
/// it, so it can be asked before a folder is made; decoders and shops are asked when their cohort is.
///
/// # Errors
/// With both numbers.
pub(crate) fn check_room(recipe: &Recipe, device: &Device) -> Result<(), Error> {
    let Played::Tokens(task) = &recipe.task else { return Ok(()) };
    match token_policy(recipe, task.as_ref())? {
        Some(policy) => check_policy_fits(&policy, std::slice::from_ref(recipe), device),
        None => Ok(()),
    }
}

/// The same of a cohort whose policy is there.
fn check_policy_fits<P: Policy>(policy: &P, recipes: &[Recipe], device: &Device) -> Result<(), Error> {
    // A GPU says itself what it has no room for.
    if !matches!(device, Device::Cpu) {
        return Ok(());
    }
    fits(policy_bytes(policy, recipes)?, available_memory())
}

/// What a cohort takes on the CPU, in bytes: its engines, and its batches.
fn policy_bytes<P: Policy>(policy: &P, recipes: &[Recipe]) -> Result<u128, Error> {
    let Some(Recipe { spec, .. }) = recipes.first() else { return Err(Error::Mixed) };
    let lanes = spec.rollout.lanes;
    let items = match policy.item() {
        Item::Trajectories(each) => lanes / each.max(1),
        Item::Step => lanes.saturating_mul(policy.horizon()),
    };
    let moments = if spec.optimiser.kind == OptimiserKind::Adam { 2 } else { 0 };
    let outputs = policy.heads().outputs();
    let used = Use { members: recipes.len(), items, moments, steps: policy.steps() };
    let mut bytes = Cpu::<f32>::bytes(policy.graph(), &outputs, used);
    if recipes.iter().any(|recipe| recipe.spec.update.reference_kl > 0.0) {
        let used = Use { moments: 0, steps: false, ..used };
        bytes = bytes.saturating_add(Cpu::<f32>::bytes(policy.graph(), &outputs, used));
    }
    for recipe in recipes {
        bytes = bytes.saturating_add(recipe.batch_bytes()?);
    }
    Ok(bytes)
}

fn seeds(recipes: &[Recipe]) -> Vec<u64> {
    recipes.iter().map(|recipe| recipe.spec.seed).collect()
}

/// The cohort of a neural policy.
fn neural<P: Policy + 'static, T: Environment<View = P::View> + 'static>(
    policy: P,
    environment: T,
    recipes: Vec<Recipe>,
    device: &Device,
) -> Result<Box<dyn Cohort>, Error> {
    check_policy_fits(&policy, &recipes, device)?;
    let (seeds, members) = (seeds(&recipes), recipes.len());
    let reference = recipes.iter().any(|recipe| recipe.spec.update.reference_kl > 0.0);
    let storage = recipes.first().map_or(niwaki_nn::Storage::Whole, |recipe| recipe.optimiser.storage());
    let device = device.clone();
    let make = move |graph: &Graph, outputs: &[Value]| device.engine(graph, outputs, members);
    let player = Neural::new(policy, environment, seeds, reference, storage, Box::new(make))?;
    Ok(Box::new(Trainer::new(player, recipes)?))
}
