//! How the one neural player plays a pointer: an item is an instance with its trajectories.

use super::program::{PointerPolicy, PointerShape};
use super::sampler::{Observed, Sampler};
use crate::policy::{DrawRequest, Heads, Item, MakeEngine, Policy};
use crate::{Error, Rollout};
use niwaki_nn::{DynEngine, Graph};
use niwaki_tasks::Construction;

/// What drawing keeps from one rollout to the next.
#[derive(Debug, Default)]
pub struct PointerScratch {
    /// Made where the device leaves drawing to its caller.
    sampler: Option<Sampler>,
    observed: Observed,
}

impl Policy for PointerPolicy {
    type View = dyn Construction;
    type Scratch = PointerScratch;

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn heads(&self) -> Heads {
        Heads { log_prob: self.log_prob, entropy: self.entropy, logits: None, value: None }
    }

    fn item(&self) -> Item {
        Item::Trajectories(self.shape.group)
    }

    fn horizon(&self) -> usize {
        self.shape.horizon
    }

    fn single(&self) -> Result<Self, Error> {
        Ok(PointerShape { group: 1, ..self.shape }.policy()?)
    }

    fn draw(
        &self,
        engine: &mut DynEngine,
        scratch: &mut PointerScratch,
        make: &MakeEngine,
        task: &dyn Construction,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> Result<(), Error> {
        let DrawRequest { instances, how, .. } = request;
        if !self.construct(engine, task, instances, how, rollout)? {
            let PointerScratch { sampler, observed } = scratch;
            let sampler = match sampler {
                Some(sampler) => sampler,
                None => sampler.insert(Sampler::new(self, self.shape.group, make)?),
            };
            sampler.draw(engine, task, instances, how, rollout, observed)?;
            self.load_observed(engine, &rollout.actions, observed)?;
        }
        rollout.instances.clear();
        rollout.instances.extend_from_slice(instances);
        Ok(())
    }

    fn load(&self, engine: &mut DynEngine, task: &dyn Construction, rollout: &Rollout) -> Result<(), Error> {
        let (observed, _) = Observed::replay(task, &rollout.instances, self.shape.group, &rollout.actions)?;
        Ok(self.load_observed(engine, &rollout.actions, &observed)?)
    }
}
