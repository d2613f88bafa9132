//! From checked recipes to a trainer on a device.

use crate::Error;
use crate::player::{Begin, Neural, Pointer, Tables};
use crate::record::Record;
use crate::spec::{GlimpseKind, Played, PolicyKind, Recipe, Spec};
use crate::trainer::{LastBatch, Trainer};
use niwaki_nn::{Cpu, Engine, Graph, Value};
use niwaki_policies::{BagShape, CausalShape, Extras, PointerShape, TokenPolicy};
use niwaki_tasks::{Construction, Sequence};
use std::path::Path;
use std::sync::Arc;

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
    /// How far one whole update takes each member, on copies; see [`Trainer::probe`].
    ///
    /// # Errors
    /// If the device fails, or training diverges.
    fn probe(&mut self) -> Result<Vec<Option<f64>>, Error>;
    /// Seconds spent so far in each part of an iteration.
    fn times(&self) -> [(&'static str, f64); 4];
    /// The batch that the last iteration learned from, as one member saw it.
    fn last_batch(&self, member: usize) -> LastBatch;
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

impl<P: crate::player::Player> Cohort for Trainer<P> {
    fn done(&self) -> usize {
        self.done()
    }

    fn recipes(&self) -> &[Recipe] {
        self.recipes()
    }

    fn advance(&mut self) -> Result<Vec<Record>, Error> {
        self.advance()
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
    let (spec, critic) = (&first.spec, first.critic());
    let seeds: Vec<u64> = recipes.iter().map(|recipe| recipe.spec.seed).collect();
    let prime = spec.policy.prime.as_ref().map(|prime| (prime.token, prime.mass));
    let reference = spec.update.reference_kl > 0.0;
    let task = match &first.task {
        Played::Shops(first) => return shops(first.construction()?, seeds, recipes, device),
        Played::Tokens(task) => task.clone(),
    };
    let Some(policy) = token_policy(first, task.as_ref())? else {
        let begin = Begin { scale: spec.policy.scale, prime, critic, reference };
        let player = Tables::new(task, &seeds, begin)?;
        return Ok(Box::new(Trainer::new(player, recipes)?));
    };
    match device {
        Device::Cpu => {
            let engine = || Ok(Cpu::<f32>::new(&policy.graph, &policy.outputs(), seeds.len()));
            neural(&policy, task, engine, seeds.clone(), prime, recipes)
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(options) => {
            use niwaki_nn::cuda::Cuda;
            let engine = || Cuda::new(&policy.graph, &policy.outputs(), seeds.len(), options);
            neural(&policy, task, engine, seeds.clone(), prime, recipes)
        }
    }
}

/// The cohort of pointer policies on a pool of shops.
fn shops(
    task: Arc<dyn Construction>,
    seeds: Vec<u64>,
    recipes: Vec<Recipe>,
    device: &Device,
) -> Result<Box<dyn Cohort>, Error> {
    let spec = &recipes[0].spec;
    let (members, reference) = (seeds.len(), spec.update.reference_kl > 0.0);
    let payment = |recipe: &Recipe| match &recipe.task {
        Played::Shops(shops) => Ok(shops.payment),
        Played::Tokens(_) => Err(Error::Mixed),
    };
    let payments = recipes.iter().map(payment).collect::<Result<Vec<_>, _>>()?;
    let policy = pointer_shape(spec, task.as_ref(), spec.rollout.group).policy()?;
    match device {
        Device::Cpu => {
            let make = move |graph: &Graph, outputs: &[Value]| Ok(Cpu::<f32>::new(graph, outputs, members));
            let player = Pointer::new(policy, task, seeds, payments, reference, Box::new(make))?;
            Ok(Box::new(Trainer::new(player, recipes)?))
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(options) => {
            use niwaki_nn::cuda::Cuda;
            let options = options.clone();
            let make = move |graph: &Graph, outputs: &[Value]| Cuda::new(graph, outputs, members, &options);
            let player = Pointer::new(policy, task, seeds, payments, reference, Box::new(make))?;
            Ok(Box::new(Trainer::new(player, recipes)?))
        }
    }
}

/// The sizes of a spec's pointer on a task, for so many trajectories per instance.
pub(crate) fn pointer_shape(spec: &Spec, task: &dyn Construction, group: usize) -> PointerShape {
    let width = spec.policy.width.unwrap_or(64);
    PointerShape {
        candidates: task.candidates(),
        horizon: task.horizon(),
        features: task.features(),
        context: task.context(),
        group,
        width,
        heads: spec.policy.heads,
        blocks: spec.policy.blocks,
        hidden: spec.policy.hidden.unwrap_or(2 * width),
        residual: spec.policy.glimpse == Some(GlimpseKind::Residual),
    }
}

fn neural<E: Engine<Scalar = f32> + 'static>(
    policy: &TokenPolicy,
    task: Arc<dyn Sequence>,
    engine: impl Fn() -> niwaki_nn::Result<E>,
    seeds: Vec<u64>,
    prime: Option<(usize, f64)>,
    recipes: Vec<Recipe>,
) -> Result<Box<dyn Cohort>, Error> {
    let first = &recipes[0];
    let reference = if first.spec.update.reference_kl > 0.0 { Some(engine()?) } else { None };
    let player = Neural::new(policy.clone(), task, seeds, prime, engine()?, reference)?;
    Ok(Box::new(Trainer::new(player, recipes)?))
}

/// The network that a recipe names; none for a table.
fn token_policy(recipe: &Recipe, task: &dyn Sequence) -> Result<Option<TokenPolicy>, Error> {
    let spec = &recipe.spec.policy;
    let extras = Extras { masked: task.masked(), critic: recipe.critic() };
    let (vocab, horizon) = (task.vocab(), task.horizon());
    Ok(match spec.kind {
        // A checked recipe has a pointer play shops only.
        PolicyKind::Tabular | PolicyKind::Pointer => None,
        PolicyKind::Bag => {
            let shape = BagShape { vocab, horizon, width: spec.width.unwrap_or(32) };
            Some(shape.policy(extras)?)
        }
        PolicyKind::Causal => {
            let width = spec.width.unwrap_or(128);
            let hidden = spec.hidden.unwrap_or(4 * width);
            let shape = CausalShape { vocab, horizon, width, heads: spec.heads, blocks: spec.blocks, hidden };
            Some(shape.policy(extras)?)
        }
    })
}
