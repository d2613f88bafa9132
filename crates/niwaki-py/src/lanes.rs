//! Flow shops under construction, thousands of lanes per call, for `niwaki.gym`.
//!
//! Arrays belong to Python and are filled in place: a step allocates nothing.

use niwaki_shop::FlowShop;
use niwaki_shop::construct::{Lanes as _, Order, SequenceLanes};
use niwaki_shop::heuristics::neh;
use numpy::{
    PyArray1, PyArray2, PyArray3, PyArrayMethods, PyReadonlyArray1, PyReadonlyArray3, PyUntypedArrayMethods,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Lanes over a pool of flow shops of one shape; a lane that ends begins again on the next instance of the pool.
#[pyclass]
pub(crate) struct FlowLanes {
    lanes: SequenceLanes,
    jobs: usize,
    machines: usize,
    /// Of each instance: its times as shares of its NEH makespan, and that makespan.
    times: Vec<f32>,
    scale: Vec<f32>,
    instance: Vec<u32>,
}

/// What a step fills, `[lanes, …]` each.
#[derive(FromPyObject)]
struct Seen<'py> {
    times: Bound<'py, PyArray3<f32>>,
    front: Bound<'py, PyArray2<f32>>,
    mask: Bound<'py, PyArray2<bool>>,
    reward: Bound<'py, PyArray1<f64>>,
    done: Bound<'py, PyArray1<bool>>,
    makespan: Bound<'py, PyArray1<u32>>,
}

fn refuse(error: niwaki_shop::Error) -> PyErr {
    PyValueError::new_err(error.to_string())
}

#[pymethods]
impl FlowLanes {
    /// `pool [instances, jobs, machines]`.
    #[new]
    fn new(pool: PyReadonlyArray3<'_, u32>, lanes: usize) -> PyResult<Self> {
        let &[_, jobs, machines] = pool.shape() else { unreachable!("an array of three axes") };
        let shops: Result<Vec<FlowShop>, _> = (pool.as_slice()?)
            .chunks_exact((jobs * machines).max(1))
            .map(|times| FlowShop::new(jobs, machines, times.to_vec()))
            .collect();
        let shops = shops.map_err(refuse)?;
        let scale: Vec<f32> = shops.iter().map(|shop| shop.makespan(&neh(shop)).max(1) as f32).collect();
        let shares = |(shop, &scale): (&FlowShop, &f32)| -> Vec<f32> {
            shop.times().iter().map(|&time| time as f32 / scale).collect()
        };
        Ok(Self {
            lanes: SequenceLanes::flow(&shops, lanes, Order::Canonical).map_err(refuse)?,
            jobs,
            machines,
            times: shops.iter().zip(&scale).flat_map(shares).collect(),
            scale,
            instance: vec![0; lanes],
        })
    }

    /// Starts every lane on the instance that it is given, and fills what is seen then.
    fn reset(&mut self, instances: PyReadonlyArray1<'_, u32>, seen: Seen<'_>) -> PyResult<()> {
        self.lanes.reset(instances.as_slice()?).map_err(refuse)?;
        self.instance.copy_from_slice(instances.as_slice()?);
        let mut seen = seen.open(self)?;
        for lane in 0..self.instance.len() {
            self.show(lane, &mut seen);
        }
        Ok(())
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
        py.detach(|| self.advance(actions, instances, &mut seen)).map_err(PyValueError::new_err::<String>)
    }

    /// The order of the jobs that a lane has built.
    fn sequence(&self, lane: usize) -> PyResult<Vec<u32>> {
        if lane >= self.instance.len() {
            return Err(PyValueError::new_err(format!("lane {lane} is not one of {}", self.instance.len())));
        }
        Ok(self.lanes.sequence(lane).to_vec())
    }
}

/// The arrays of a step as slices.
struct Shown<'a> {
    times: &'a mut [f32],
    front: &'a mut [f32],
    mask: &'a mut [bool],
    reward: &'a mut [f64],
    done: &'a mut [bool],
    makespan: &'a mut [u32],
}

impl Seen<'_> {
    fn open(&self, lanes: &FlowLanes) -> PyResult<Shown<'_>> {
        let (count, jobs, machines) = (lanes.instance.len(), lanes.jobs, lanes.machines);
        let whole = self.times.len() == count * jobs * machines
            && self.front.len() == count * machines
            && self.mask.len() == count * jobs
            && [self.reward.len(), self.done.len(), self.makespan.len()] == [count; 3];
        if !whole {
            return Err(PyValueError::new_err("the arrays of a step do not fit its lanes"));
        }
        // SAFETY: the Python half makes these arrays for this call alone, each its own memory, and keeps no other view
        // of them while it runs; lengths were checked above, and `as_slice_mut` refuses what is not contiguous.
        unsafe {
            Ok(Shown {
                times: self.times.as_slice_mut()?,
                front: self.front.as_slice_mut()?,
                mask: self.mask.as_slice_mut()?,
                reward: self.reward.as_slice_mut()?,
                done: self.done.as_slice_mut()?,
                makespan: self.makespan.as_slice_mut()?,
            })
        }
    }
}

impl FlowLanes {
    fn advance(&mut self, actions: &[i64], instances: &[u32], seen: &mut Shown<'_>) -> Result<(), String> {
        let (jobs, machines) = (self.jobs, self.machines);
        if actions.len() != self.instance.len() {
            return Err(format!("actions has {} values for {} lanes", actions.len(), self.instance.len()));
        }
        // Every lane places every job once, so that all end together.
        if self.instance.is_empty() || self.lanes.done(0) {
            self.lanes.reset(instances).map_err(|error| error.to_string())?;
            self.instance.copy_from_slice(instances);
            (0..self.instance.len()).for_each(|lane| self.show(lane, seen));
            return Ok(());
        }
        // All are looked at before any lane moves.
        let open = |lane: usize, action: i64| {
            usize::try_from(action).is_ok_and(|job| job < jobs && seen.mask[lane * jobs + job])
        };
        if let Some((lane, action)) = actions.iter().enumerate().find(|&(lane, &action)| !open(lane, action))
        {
            return Err(format!("actions[{lane}] = {action} is not open; the mask says which are"));
        }
        for (lane, &action) in actions.iter().enumerate() {
            let job = action as usize;
            self.lanes.act(lane, job as u32);
            seen.mask[lane * jobs + job] = false;
            let scale = self.scale[self.instance[lane] as usize];
            let front = &mut seen.front[lane * machines..(lane + 1) * machines];
            for (shown, &time) in front.iter_mut().zip(self.lanes.front(lane)) {
                *shown = time as f32 / scale;
            }
            let done = self.lanes.done(lane);
            seen.done[lane] = done;
            seen.makespan[lane] = self.lanes.makespan(lane);
            // Paid at the end: how far below the NEH order's makespan the built one lies, as a share of it.
            seen.reward[lane] =
                if done { 1.0 - f64::from(seen.makespan[lane]) / f64::from(scale) } else { 0.0 };
        }
        Ok(())
    }

    fn show(&self, lane: usize, seen: &mut Shown<'_>) {
        let (jobs, machines) = (self.jobs, self.machines);
        let (size, instance) = (jobs * machines, self.instance[lane] as usize);
        let times = &self.times[instance * size..(instance + 1) * size];
        seen.times[lane * size..(lane + 1) * size].copy_from_slice(times);
        seen.front[lane * machines..(lane + 1) * machines].fill(0.0);
        seen.mask[lane * jobs..(lane + 1) * jobs].fill(true);
        (seen.reward[lane], seen.done[lane], seen.makespan[lane]) = (0.0, false, 0);
    }
}
