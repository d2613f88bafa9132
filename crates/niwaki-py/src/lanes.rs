//! Shops under construction, thousands of lanes per call, for `niwaki.gym`: what `niwaki train` plays, in other hands.
//!
//! Arrays belong to Python and are filled in place: between two starts a step allocates nothing.

use crate::shop::Instance;
use crate::waiting;
use niwaki_shop::Schedule;
use niwaki_tasks::{Building, Construction, Payment, Shop, construct};
use niwaki_train::Spec;
use niwaki_train::spec::{Played, Shops, TaskKind};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::Arc;

/// Lanes over a pool of shops of one shape. All take as many steps, so all end together.
#[pyclass]
pub(crate) struct Lanes {
    task: Arc<dyn Construction>,
    payment: Payment,
    pool: Vec<niwaki_shop::Instance>,
    building: Box<dyn Building>,
    /// `[lane]`, as are the choices.
    instance: Vec<u32>,
    choices: Vec<i32>,
    /// Steps that were taken since the start.
    taken: usize,
}

/// What a step fills, `[lanes, …]` each.
#[derive(FromPyObject)]
struct Seen<'py> {
    features: Bound<'py, PyArray3<f32>>,
    context: Bound<'py, PyArray2<f32>>,
    open: Bound<'py, PyArray2<u8>>,
    reward: Bound<'py, PyArray1<f64>>,
    done: Bound<'py, PyArray1<bool>>,
    makespan: Bound<'py, PyArray1<u32>>,
    late: Bound<'py, PyArray1<u32>>,
}

fn refuse(error: impl ToString) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl Lanes {
    /// `settings` are those of a run's spec, `task.key=value`, the kind first; `given` instances take the place of drawn
    /// ones.
    #[new]
    fn new(
        py: Python<'_>,
        settings: Vec<String>,
        given: Option<Vec<PyRef<'_, Instance>>>,
        lanes: usize,
    ) -> PyResult<Self> {
        let given = given.map(|given| given.iter().map(|one| one.instance().clone()).collect());
        // Optima are sought here, which may take a while.
        waiting::run(py, move |_| Self::build(&settings, given, lanes))?.map_err(refuse)
    }

    /// Candidates, their features, numbers of the state, steps.
    fn sizes(&self) -> (usize, usize, usize, usize) {
        (self.task.candidates(), self.task.features(), self.task.context(), self.task.horizon())
    }

    /// The instances of the pool.
    fn instances(&self) -> Vec<Instance> {
        self.pool.iter().cloned().map(Instance::from).collect()
    }

    /// Of each instance the best known makespan.
    fn optima(&self) -> Vec<u32> {
        self.task.bounds()[..self.pool.len()].iter().map(|bounds| bounds.upper).collect()
    }

    /// Starts every lane on the instance that it is given, and fills what is seen then.
    fn reset(&mut self, instances: PyReadonlyArray1<'_, u32>, seen: Seen<'_>) -> PyResult<()> {
        let mut seen = seen.open(self)?;
        self.start(instances.as_slice()?, &mut seen).map_err(refuse)
    }

    /// Takes one action in every lane. Where they have ended they are started again on `instances [lanes]`, as
    /// Gymnasium's `NEXT_STEP` asks, and the actions are passed over.
    fn step(
        &mut self,
        py: Python<'_>,
        actions: PyReadonlyArray1<'_, i64>,
        instances: PyReadonlyArray1<'_, u32>,
        seen: Seen<'_>,
    ) -> PyResult<()> {
        let (actions, instances) = (actions.as_slice()?, instances.as_slice()?);
        let mut seen = seen.open(self)?;
        py.detach(|| waiting::pooled(|| self.advance(actions, instances, &mut seen))).map_err(refuse)
    }

    /// What a lane has scheduled so far.
    fn schedule(&self, lane: usize) -> PyResult<Vec<crate::shop::Row>> {
        if lane >= self.instance.len() {
            return Err(refuse(format!("lane is {lane}; there are {}", self.instance.len())));
        }
        let schedule: Schedule = self.building.schedule(lane);
        Ok(crate::shop::rows(&schedule))
    }
}

/// The arrays of a step as slices.
struct Shown<'a> {
    features: &'a mut [f32],
    context: &'a mut [f32],
    open: &'a mut [u8],
    reward: &'a mut [f64],
    done: &'a mut [bool],
    makespan: &'a mut [u32],
    late: &'a mut [u32],
}

impl Seen<'_> {
    fn open(&self, lanes: &Lanes) -> PyResult<Shown<'_>> {
        let (count, (candidates, features, context, _)) = (lanes.instance.len(), lanes.sizes());
        let whole = self.features.len() == count * candidates * features
            && self.context.len() == count * context
            && self.open.len() == count * candidates
            && [self.reward.len(), self.done.len(), self.makespan.len(), self.late.len()] == [count; 4];
        if !whole {
            return Err(refuse("the arrays of a step do not fit its lanes"));
        }
        // SAFETY: the Python half makes these arrays for this call alone, each its own memory, and keeps no other view
        // of them while it runs; lengths were checked above, and `as_slice_mut` refuses what is not contiguous.
        unsafe {
            Ok(Shown {
                features: self.features.as_slice_mut()?,
                context: self.context.as_slice_mut()?,
                open: self.open.as_slice_mut()?,
                reward: self.reward.as_slice_mut()?,
                done: self.done.as_slice_mut()?,
                makespan: self.makespan.as_slice_mut()?,
                late: self.late.as_slice_mut()?,
            })
        }
    }
}

impl Lanes {
    fn build(
        settings: &[String],
        given: Option<Vec<niwaki_shop::Instance>>,
        lanes: usize,
    ) -> Result<Self, String> {
        let said = |error: niwaki_train::Error| error.to_string();
        // What no shop is, is told before its keys are looked at.
        let named = Spec::read("niwaki.gym", "", &settings[..settings.len().min(1)]).map_err(said)?;
        let TaskKind::Shop(shop) = named.task_kind().map_err(said)? else {
            let names = Shop::ALL.map(Shop::name).join(", ");
            return Err(format!("task.kind: '{}' is not a shop; the shops are {names}", named.task.kind));
        };
        let spec = Spec::read("niwaki.gym", "", settings).map_err(said)?;
        let Played::Shops(Shops { pool, payment, .. }) = spec.check().map_err(said)?.task else {
            unreachable!("a shop is played as one")
        };
        let (instances, training) = match given {
            None => pool.instances().map_err(|error| error.to_string())?,
            Some(given) => {
                let accept =
                    |(place, one)| shop.accept(one).map_err(|error| format!("instances[{place}]: {error}"));
                let given = given.into_iter().enumerate().map(accept).collect::<Result<Vec<_>, _>>()?;
                let count = given.len();
                (given, count)
            }
        };
        let bounds = pool.seek(&instances, &|_, _| {});
        let played = instances[..training].to_vec();
        let task = construct(instances, bounds, training, pool.reading)
            .map_err(|error| format!("instances: {error}"))?;
        let instance = vec![0; lanes];
        let building = task.begin(&instance).map_err(|error| error.to_string())?;
        Ok(Self { task, payment, pool: played, building, instance, choices: vec![0; lanes], taken: 0 })
    }

    fn start(&mut self, instances: &[u32], seen: &mut Shown<'_>) -> Result<(), String> {
        if instances.len() != self.instance.len() {
            return Err(format!(
                "instances has {} values for {} lanes",
                instances.len(),
                self.instance.len()
            ));
        }
        if let Some(none) = instances.iter().find(|&&one| one as usize >= self.pool.len()) {
            return Err(format!("instances names {none} of a pool of {}", self.pool.len()));
        }
        self.building = self.task.begin(instances).map_err(|error| error.to_string())?;
        self.instance.copy_from_slice(instances);
        self.taken = 0;
        let size = self.task.candidates() * self.task.features();
        for (&instance, features) in instances.iter().zip(seen.features.chunks_exact_mut(size)) {
            self.task.describe(instance as usize, features);
        }
        self.show(seen);
        seen.reward.fill(0.0);
        seen.done.fill(false);
        seen.makespan.fill(0);
        seen.late.fill(0);
        Ok(())
    }

    fn advance(&mut self, actions: &[i64], instances: &[u32], seen: &mut Shown<'_>) -> Result<(), String> {
        if actions.len() != self.instance.len() {
            return Err(format!("actions has {} values for {} lanes", actions.len(), self.instance.len()));
        }
        if self.taken == self.task.horizon() {
            return self.start(instances, seen);
        }
        // All are looked at before any lane moves.
        let candidates = self.task.candidates();
        for (lane, (&action, open)) in actions.iter().zip(seen.open.chunks_exact(candidates)).enumerate() {
            if usize::try_from(action).ok().and_then(|place| open.get(place)) != Some(&1) {
                return Err(format!("actions[{lane}] = {action} is not open; the mask says which are"));
            }
            self.choices[lane] = action as i32;
        }
        self.building.choose(&self.choices).map_err(|error| error.to_string())?;
        self.taken += 1;
        self.show(seen);
        if self.taken == self.task.horizon() {
            seen.done.fill(true);
            for (lane, &instance) in self.instance.iter().enumerate() {
                let outcome = self.building.outcome(lane);
                seen.makespan[lane] = outcome.makespan;
                seen.late[lane] = outcome.late;
                seen.reward[lane] = self.payment.pay(outcome, self.task.bounds()[instance as usize].upper);
            }
        }
        Ok(())
    }

    /// Fills what changes between two steps.
    fn show(&self, seen: &mut Shown<'_>) {
        let (candidates, context) = (self.task.candidates(), self.task.context());
        let each = seen.context.chunks_exact_mut(context).zip(seen.open.chunks_exact_mut(candidates));
        for (lane, (context, open)) in each.enumerate() {
            self.building.context(lane, context);
            self.building.open(lane, open);
        }
    }
}
