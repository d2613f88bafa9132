//! What a neural policy is: a program with its heads, a way to draw trajectories, and what it loads to score them.
//!
//! One player trains every policy through this trait. A policy knows a view of a task, never a task by name, and
//! nothing of rewards or advantages.

use crate::{Error, Rollout};
use niwaki_nn::{DynEngine, Graph, Value, initialise};

/// Makes an engine for a program and its outputs, for as many members as the population has.
pub type MakeEngine = dyn Fn(&Graph, &[Value]) -> niwaki_nn::Result<Box<DynEngine>>;

/// The outputs of a policy's program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    /// Log-probabilities of the actions, one row per step.
    pub log_prob: Value,
    /// Entropies of the distributions they were taken from.
    pub entropy: Value,
    /// Logits, where sampling reads them; nothing flows back from them.
    pub logits: Option<Value>,
    /// The critic's estimates, where there is a critic.
    pub value: Option<Value>,
}

impl Heads {
    /// The outputs in the order in which an engine for the policy has them.
    #[must_use]
    pub fn outputs(&self) -> Vec<Value> {
        [self.log_prob, self.entropy].into_iter().chain(self.logits).chain(self.value).collect()
    }

    /// Where the critic's estimates stand among the outputs.
    #[must_use]
    pub fn value_output(&self) -> Option<usize> {
        self.value.map(|_| 2 + usize::from(self.logits.is_some()))
    }
}

/// What one item of a policy's program holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// So many whole trajectories, one after the other, each with a row for every step of the horizon.
    Trajectories(usize),
    /// One step. A member's items are the steps of its trajectories, one after the other; a member with fewer steps
    /// than another has idle items at the end.
    Step,
}

/// How an action is chosen.
#[derive(Clone, Copy, Debug)]
pub enum Draw<'a> {
    /// By its probability: the first at which the running sum exceeds the step's uniform, `[member, lane, horizon]`.
    Sampled(&'a [f64]),
    /// The likeliest; of equals the first.
    Greedy,
}

/// Which trajectories to draw.
#[derive(Clone, Copy, Debug)]
pub struct DrawRequest<'a> {
    /// Trajectories per member.
    pub lanes: usize,
    /// The instance of each group of lanes, `[member, group]`; empty where a task has only one.
    pub instances: &'a [u32],
    /// How actions are chosen.
    pub how: Draw<'a>,
    /// Whether they are to be scored; where not, nothing need be left loaded.
    pub score: bool,
}

/// A neural policy for the population engine.
pub trait Policy: Sized + Sync {
    /// The view of a task that the policy plays.
    type View: ?Sized;

    /// What sampling keeps from one rollout to the next: engines and buffers of its own.
    type Scratch: Default;

    /// The program.
    fn graph(&self) -> &Graph;

    /// Its outputs.
    fn heads(&self) -> Heads;

    /// What one item of the program holds.
    fn item(&self) -> Item;

    /// The most steps that a trajectory can have.
    fn horizon(&self) -> usize;

    /// Whether it draws on the engine that scores, row by row, which then keeps all rows of all items.
    fn steps(&self) -> bool {
        false
    }

    /// A member's first parameters, flat.
    fn initial_parameters(&self, seed: u64) -> Vec<f32> {
        initialise(self.graph().layout(), seed)
    }

    /// The same policy over one trajectory per instance, with the same parameters.
    ///
    /// # Errors
    /// If the program cannot be made.
    fn single(&self) -> Result<Self, Error>;

    /// Draws trajectories and leaves them loaded, ready to be scored, where that was asked for. Fills all of the rollout but the rewards.
    ///
    /// # Errors
    /// If lengths do not fit together, the task refuses an instance, or the device fails.
    fn draw(
        &self,
        engine: &mut DynEngine,
        scratch: &mut Self::Scratch,
        make: &MakeEngine,
        task: &Self::View,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> Result<(), Error>;

    /// Every member's exact return, where the policy can enumerate the task; `None` where not.
    ///
    /// # Errors
    /// If the device fails.
    fn exact_returns(
        &self,
        engine: &DynEngine,
        scratch: &mut Self::Scratch,
        make: &MakeEngine,
        task: &Self::View,
    ) -> Result<Option<Vec<f64>>, Error> {
        let _ = (engine, scratch, make, task);
        Ok(None)
    }

    /// What every member says at all prefixes, `[prefixes, vocab]` log-probabilities each, prefixes breadth first, where the
    /// policy can enumerate the task and as many choices are open everywhere; `None` where not.
    ///
    /// # Errors
    /// If the device fails.
    fn tables(
        &self,
        engine: &DynEngine,
        scratch: &mut Self::Scratch,
        make: &MakeEngine,
    ) -> Result<Option<Vec<Vec<f64>>>, Error> {
        let _ = (engine, scratch, make);
        Ok(None)
    }

    /// Loads trajectories to be scored.
    ///
    /// # Errors
    /// If lengths do not fit together, an action was closed, or the device fails.
    fn load(&self, engine: &mut DynEngine, task: &Self::View, rollout: &Rollout) -> Result<(), Error>;

    /// Loads some lanes of each member to be scored; what drawing left in `scratch` may serve where it is of this rollout.
    ///
    /// # Errors
    /// As [`Policy::load`].
    fn load_part(
        &self,
        engine: &mut DynEngine,
        scratch: &mut Self::Scratch,
        task: &Self::View,
        rollout: &Rollout,
        lanes: &[Vec<usize>],
    ) -> Result<(), Error> {
        let _ = scratch;
        self.load(engine, task, &rollout.part(lanes))
    }
}
