//! From checked recipes to a trainer on a device.

use crate::Error;
use crate::player::{Begin, Neural, Tables};
use crate::record::Record;
use crate::spec::{PolicyKind, Recipe};
use crate::trainer::{LastBatch, Trainer};
use niwaki_nn::{Cpu, Engine};
use niwaki_policies::{BagShape, CausalShape, Extras, TokenPolicy};
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
    let (spec, task, critic) = (&first.spec, first.task.clone(), first.critic());
    let seeds: Vec<u64> = recipes.iter().map(|recipe| recipe.spec.seed).collect();
    let prime = spec.policy.prime.as_ref().map(|prime| (prime.token, prime.mass));
    let reference = spec.update.reference_kl > 0.0;
    let Some(policy) = token_policy(first)? else {
        let begin = Begin { scale: spec.policy.scale, prime, critic, reference };
        let player = Tables::new(task, &seeds, begin)?;
        return Ok(Box::new(Trainer::new(player, recipes)?));
    };
    match device {
        Device::Cpu => {
            let engine = || Ok(Cpu::<f32>::new(&policy.graph, &policy.outputs(), seeds.len()));
            neural(&policy, engine, seeds.clone(), prime, recipes)
        }
        #[cfg(feature = "cuda")]
        Device::Cuda(options) => {
            use niwaki_nn::cuda::Cuda;
            let engine = || Cuda::new(&policy.graph, &policy.outputs(), seeds.len(), options);
            neural(&policy, engine, seeds.clone(), prime, recipes)
        }
    }
}

fn neural<E: Engine<Scalar = f32> + 'static>(
    policy: &TokenPolicy,
    engine: impl Fn() -> niwaki_nn::Result<E>,
    seeds: Vec<u64>,
    prime: Option<(usize, f64)>,
    recipes: Vec<Recipe>,
) -> Result<Box<dyn Cohort>, Error> {
    let first = &recipes[0];
    let reference = if first.spec.update.reference_kl > 0.0 { Some(engine()?) } else { None };
    let player = Neural::new(policy.clone(), first.task.clone(), seeds, prime, engine()?, reference)?;
    Ok(Box::new(Trainer::new(player, recipes)?))
}

/// The network that a recipe names; none for a table.
fn token_policy(recipe: &Recipe) -> Result<Option<TokenPolicy>, Error> {
    let (spec, task) = (&recipe.spec.policy, &recipe.task);
    let extras = Extras { masked: task.masked(), critic: recipe.critic() };
    let (vocab, horizon) = (task.vocab(), task.horizon());
    Ok(match spec.kind {
        PolicyKind::Tabular => None,
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
