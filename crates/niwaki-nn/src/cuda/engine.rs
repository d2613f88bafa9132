//! The population on the device, as a policy sees it.

use super::blas::Blas;
use super::compile::{Target, cache_folder};
use super::device::{Device, bytes};
use super::extension::Library;
use super::kernels::{Kernels, SHARED_LIMIT};
use super::lower::{Lowering, Program, Tools, padded};
use super::options::Options;
use super::parameters::{Gradient, Parameters};
use super::pieces::Pieces;
use super::pull_back::fetch_outputs;
use super::session::{Flat, Inputs, Session, Wanted, check_length, no_items};
use super::storage::{half_gradients, halves};
use super::update::{TAKEN, Update};
use crate::engine::{Choosing, CotangentFn, DynEngine, Engine, Load, check_members, check_silent};
use crate::extension::{Extension, HostArray};
use crate::graph::{Graph, Index, IndexSource, Mask, Value};
use crate::limits::Limits;
use crate::optimiser::Optimiser;
use crate::plan::Plan;
use crate::{Error, Result};
use std::any::Any;
use std::fmt;

/// A population on one GPU.
pub struct Cuda {
    pub(super) graph: Graph,
    pub(super) training: Plan,
    alone: Plan,
    members: usize,
    pub(super) items: usize,
    pub(super) options: Options,
    hopper: bool,
    /// Values that are stored in halves, by position.
    halves: Vec<bool>,
    /// Parameters whose gradients are, by position.
    half_gradients: Vec<bool>,
    // The order of the fields is the order in which they are given back: tapes, buffers, library, device.
    pub(super) session: Option<Session>,
    /// The session of the number of items before this one, which programs that go to and fro come back to.
    spare: Option<(usize, Session)>,
    pub(super) parameters: Parameters,
    pub(super) gradient: Gradient,
    update: Update,
    /// The pieces of an update, where the next pass can begin beside it.
    pieces: Option<Pieces>,
    pub(super) kernels: Kernels,
    pub(super) library: Library,
    pub(super) blas: Blas,
    pub(super) device: Device,
}

// SAFETY: what the driver and its libraries hand out belongs to a context and not to a thread, and an engine is used by one thread at
// a time; `move_here` tells the driver which context that thread means.
unsafe impl Send for Cuda {}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { members, items, .. } = self;
        f.debug_struct("Cuda").field("members", members).field("items", items).finish_non_exhaustive()
    }
}

impl Cuda {
    /// A population whose parameters are zero, with no items yet.
    ///
    /// # Errors
    /// If there is no GPU, a library is missing, or an op is beyond the kernels: one line each, with the mend.
    pub fn new(graph: &Graph, outputs: &[Value], members: usize, options: &Options) -> Result<Self> {
        let device = Device::open(options.ordinal as i32)?;
        let hopper = device.capability == (9, 0);
        let target = target(&device);
        let cache = options.cache.clone().or_else(cache_folder);
        let halves = halves(graph, outputs, options.precision);
        let program = Program { graph, outputs, precision: options.precision, hopper, halves: &halves };
        let units = Lowering::units(&program)?;
        let kernels = Kernels::load(target, &units, cache.as_deref())?;
        let blas = Blas::open(&device)?;
        let parameters = Parameters::new(&device, members, padded(graph), options.precision)?;
        let half_gradients = half_gradients(graph, &halves);
        let gradient = Gradient::new(&device, graph, members, &half_gradients)?;
        let update = Update::new(&device, members)?;
        let training = Plan::training(graph, outputs);
        let pieces = Pieces::new(graph, &training, TAKEN)?;
        Ok(Self {
            training,
            alone: Plan::forward_only(graph, outputs),
            graph: graph.clone(),
            members,
            items: 0,
            options: options.clone(),
            hopper,
            halves,
            half_gradients,
            session: None,
            spare: None,
            parameters,
            gradient,
            update,
            pieces,
            kernels,
            library: Library::default(),
            blas,
            device,
        })
    }

    /// The device in words: name, compute capability, multiprocessors.
    #[must_use]
    pub fn device_name(&self) -> String {
        let (major, minor) = self.device.capability;
        format!("{} (sm_{major}{minor}, {} multiprocessors)", self.device.name, self.device.multiprocessors)
    }

    /// Free and total bytes of the device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn device_memory(&self) -> Result<(usize, usize)> {
        self.device.memory()
    }

    /// What the device can do at best in this engine's precision, measured now; takes about 2.5 GB
    /// for a moment.
    ///
    /// # Errors
    /// If there is no room for them, or the device fails.
    pub fn limits(&self) -> Result<Limits> {
        super::limits::measure(&self.device, &self.blas, self.options.precision)
    }

    /// How many kernel files had to be compiled when the engine was made; 0 with a warm cache.
    #[must_use]
    pub fn compiled(&self) -> usize {
        self.kernels.compiled
    }

    /// The line to show where the cohort was split because it exceeds memory.
    #[must_use]
    pub fn notice(&self) -> Option<&str> {
        self.session.as_ref()?.laid.notice.as_deref()
    }

    /// Runs the training passes once, work by work, and gives each one's label and milliseconds: forward, then
    /// backward with the cotangents as they are.
    ///
    /// # Errors
    /// If no items are set, or the device fails.
    pub fn profile(&mut self) -> Result<Vec<(&'static str, f32)>> {
        self.prepare()?;
        let Self { session, device, blas, .. } = self;
        let session = session.as_mut().ok_or_else(no_items)?;
        let mut times = Vec::new();
        for pass in &mut session.laid.passes {
            times.extend(pass.forward.profile(device, blas)?);
            times.extend(pass.backward.profile(device, blas)?);
        }
        Ok(times)
    }

    /// The same for the pass that chooses its own inputs; empty until [`Engine::choose_rows`] has been called.
    ///
    /// # Errors
    /// If the device fails.
    pub fn profile_choices(&mut self) -> Result<Vec<(&'static str, f32)>> {
        let Self { session, device, blas, .. } = self;
        let chosen = session.as_mut().and_then(|session| session.chosen.as_mut());
        chosen.map_or_else(|| Ok(Vec::new()), |chosen| chosen.tape.profile(device, blas))
    }

    pub(super) fn target(&self) -> Target {
        target(&self.device)
    }

    pub(super) fn wanted(&self) -> Wanted<'_> {
        Wanted {
            tools: Tools {
                graph: &self.graph,
                plan: &self.training,
                blas: &self.blas,
                kernels: &self.kernels,
                precision: self.options.precision,
                hopper: self.hopper,
                halves: &self.halves,
                half_gradients: &self.half_gradients,
                multiprocessors: self.device.multiprocessors as usize,
                shared: self.device.shared.min(SHARED_LIMIT) as usize,
                pieces: self.pieces.as_ref(),
            },
            alone: &self.alone,
            flat: Flat {
                parameters: self.parameters.at(),
                rounded: self.parameters.rounded_at(),
                gradient: self.gradient.at(),
                places: self.gradient.places_at(),
                squares: Some(self.gradient.squares_at()),
                live: Some(self.gradient.live_at()),
            },
            members: self.members,
            items: self.items,
            memory: self.options.memory,
            beside: self.options.beside,
            gradients: false,
        }
    }

    /// Sees to it that gradients have their memory.
    pub(super) fn prepare(&mut self) -> Result<()> {
        let Some(mut session) = self.session.take() else { return Err(no_items()) };
        session.prepare(&self.device, &self.wanted())?;
        self.session = Some(session);
        Ok(())
    }

    /// Where an input starts, and what goes there.
    fn piece<'a>(&self, load: Load<'a, f32>) -> Result<(u64, &'a [u8])> {
        let inputs = &self.session.as_ref().ok_or_else(no_items)?.inputs;
        let check = |name: &str, per_item: usize, got: usize| {
            check_length(name, self.members * self.items * per_item, got)
        };
        match load {
            Load::Scalars(input, data) => {
                let named = self.graph.inputs().iter().find(|named| named.what == input);
                let (Some(named), Some(at)) = (named, inputs.scalars[input.position()]) else {
                    let reason = "the value is computed, not an input".to_owned();
                    return Err(Error::Unsupported { op: "load_scalars", reason });
                };
                check(&named.name, self.graph.shape(input).size(), data.len())?;
                Ok((at, bytes(data)))
            }
            Load::Indices(index, data) => {
                let IndexSource::Input { name, rows, bound } = &self.graph.index_sources()[index.position()]
                else {
                    let reason = "constant indices are part of the program".to_owned();
                    return Err(Error::Unsupported { op: "load_indices", reason });
                };
                if let Some(position) = data.iter().position(|&entry| i64::from(entry) >= *bound as i64) {
                    let name = name.clone();
                    return Err(Error::IndexRange { name, position, got: data[position], bound: *bound });
                }
                check(name, *rows, data.len())?;
                Ok((inputs.indices[index.position()], bytes(data)))
            }
            Load::Mask(mask, data) => {
                let named = &self.graph.masks()[mask.position()];
                check(&named.name, named.what.size(), data.len())?;
                Ok((inputs.masks[mask.position()], data))
            }
        }
    }

    /// Works on all items again, because inputs are about to change.
    pub(super) fn take_all(&mut self) {
        if let Some(session) = &mut self.session {
            session.left = None;
        }
    }
}

impl Drop for Cuda {
    fn drop(&mut self) {
        // A pass that was begun may still write to the host's memory. A failure has nobody left to hear it.
        let _ = self.device.synchronize();
    }
}

/// What machine code for a device is made for.
fn target(device: &Device) -> Target {
    Target { capability: device.capability, driver: device.driver_version, shared: device.shared }
}

impl Engine for Cuda {
    type Scalar = f32;

    fn members(&self) -> usize {
        self.members
    }

    fn items(&self) -> usize {
        self.items
    }

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn set_items(&mut self, items: usize) -> Result<()> {
        if self.items == items && self.session.is_some() {
            return Ok(());
        }
        self.device.synchronize()?;
        let before = self.session.take().map(|session| (self.items, session));
        self.items = items;
        let session = match std::mem::replace(&mut self.spare, before) {
            Some((of, session)) if of == items => session,
            _ => match Session::new(&self.device, &self.wanted()) {
                Ok(session) if session.laid.notice.is_none() => session,
                // Not beside the one before: that leaves more room.
                crowded => {
                    drop(crowded);
                    self.spare = None;
                    Session::new(&self.device, &self.wanted())?
                }
            },
        };
        self.session = Some(session);
        // What else a session may ask for later comes first.
        let (free, total) = self.device.memory()?;
        if free < total / 4 {
            self.spare = None;
        }
        Ok(())
    }

    fn move_here(&self) -> Result<()> {
        self.device.move_here()
    }

    fn load_scalars(&mut self, input: Value, data: &[f32]) -> Result<()> {
        self.load(&[Load::Scalars(input, data)])
    }

    fn load_indices(&mut self, index: Index, data: &[i32]) -> Result<()> {
        self.load(&[Load::Indices(index, data)])
    }

    fn load_mask(&mut self, mask: Mask, data: &[u8]) -> Result<()> {
        self.load(&[Load::Mask(mask, data)])
    }

    fn load(&mut self, inputs: &[Load<'_, f32>]) -> Result<()> {
        self.take_all();
        let pieces = inputs.iter().map(|&load| self.piece(load)).collect::<Result<Vec<_>>>()?;
        Inputs::write(&self.device, pieces)
    }

    fn set_parameters(&mut self, member: usize, flat: &[f32]) -> Result<()> {
        check_length("parameters", self.graph.layout().len(), flat.len())?;
        self.device.settle()?;
        self.device.write(self.parameters.of(member), flat)?;
        self.parameters.round(&self.device, &self.kernels, member..member + 1)
    }

    fn parameters(&self, member: usize) -> Result<Vec<f32>> {
        let mut flat = vec![0.0; self.graph.layout().len()];
        self.device.read(self.parameters.of(member), &mut flat)?;
        Ok(flat)
    }

    fn synchronize(&self) -> Result<()> {
        self.device.synchronize()
    }

    fn forward(&mut self) -> Result<()> {
        self.start_forward()?;
        self.device.synchronize()
    }

    fn start_forward(&mut self) -> Result<()> {
        let Self { session, device, blas, graph, alone, items, .. } = self;
        let session = session.as_mut().ok_or_else(no_items)?;
        for pass in &mut session.laid.passes {
            pass.alone.replay(device, blas)?;
            if !pass.delivers {
                fetch_outputs(device, graph, alone, pass, *items, false, &mut session.outputs)?;
            }
        }
        Ok(())
    }

    fn forward_row(&mut self, row: usize) -> Result<()> {
        let Some(mut session) = self.session.take() else { return Err(no_items()) };
        let made =
            if session.rows.is_none() { session.make_rows(&self.device, &self.wanted()) } else { Ok(()) };
        self.session = Some(session);
        made?;
        let Self { session: Some(session), device, blas, graph, training, .. } = self else {
            return Err(no_items());
        };
        let Session { rows, outputs, .. } = session;
        let rows = rows.as_mut().ok_or_else(no_items)?;
        let Some(tape) = rows.tapes.get_mut(row) else {
            return Err(Error::Shape {
                op: "forward_row",
                axis: "row, below",
                expected: rows.tapes.len(),
                got: row,
            });
        };
        tape.replay(device, blas)?;
        for (buffer, host) in &mut rows.packed {
            device.fetch(buffer.at, host.values_mut())?;
        }
        device.synchronize()?;
        for ((&output, (_, packed)), host) in training.outputs().iter().zip(&rows.packed).zip(outputs) {
            let shape = graph.shape(output);
            let place = row * shape.width..(row + 1) * shape.width;
            for (to, from) in host
                .values_mut()
                .chunks_exact_mut(shape.size())
                .zip(packed.values().chunks_exact(shape.width))
            {
                to[place.clone()].copy_from_slice(from);
            }
        }
        Ok(())
    }

    fn choose_rows(
        &mut self,
        choosing: Choosing,
        beginning: i32,
        uniforms: &[f64],
    ) -> Result<Option<Vec<i32>>> {
        self.take_all();
        let Some(mut session) = self.session.take() else { return Err(no_items()) };
        let fits = session.chosen.as_ref().is_some_and(|chosen| chosen.choosing == choosing);
        let made = if fits { Ok(()) } else { session.make_chosen(&self.device, &self.wanted(), choosing) };
        self.session = Some(session);
        made?;
        let Self { session: Some(session), device, blas, graph, .. } = self else { return Err(no_items()) };
        let Some(chosen) = &mut session.chosen else { return Err(no_items()) };
        check_length("uniforms", chosen.actions.values().len(), uniforms.len())?;
        let rows = graph.shape(choosing.logits).rows;
        for (to, &from) in chosen.host.values_mut().iter_mut().zip(uniforms) {
            *to = from as f32;
        }
        device.send(chosen.uniforms.at, chosen.host.values())?;
        // The tape writes the tokens of all rows but the first.
        chosen.actions.values_mut().iter_mut().step_by(rows).for_each(|token| *token = beginning);
        device.send(session.inputs.indices[choosing.tokens.position()], chosen.actions.values())?;
        chosen.tape.replay(device, blas)?;
        device.fetch(session.inputs.indices[choosing.actions.position()], chosen.actions.values_mut())?;
        device.synchronize()?;
        Ok(Some(chosen.actions.values().to_vec()))
    }

    fn extend(
        &mut self,
        extension: &Extension,
        given: &[HostArray<'_>],
        answers: &mut [Vec<i32>],
    ) -> Result<bool> {
        self.extend_here(extension, given, answers).map(|()| true)
    }

    fn copy_parameters(&mut self, from: &DynEngine) -> Result<()> {
        check_members("parameters", self.members, from.members())?;
        let any: &dyn Any = from;
        let Some(from) = any.downcast_ref::<Self>() else {
            return (0..self.members)
                .try_for_each(|member| self.set_parameters(member, &from.parameters(member)?));
        };
        check_length("parameters", self.graph.layout().len(), from.graph.layout().len())?;
        from.device.synchronize()?;
        self.device.copy(from.parameters.at(), self.parameters.at(), self.parameters.bytes())?;
        self.parameters.round_all(&self.device, &self.kernels)
    }

    fn leave_out(&mut self, silent: &[Vec<bool>]) -> Result<()> {
        check_silent(self.members, self.items, silent)?;
        self.prepare()?;
        let Some(mut session) = self.session.take() else { return Err(no_items()) };
        let wanted = Wanted { gradients: true, ..self.wanted() };
        let left = session.leave_out(&self.device, &self.kernels, &wanted, silent);
        self.session = Some(session);
        left
    }

    fn pull_back(&mut self, surrogate: &CotangentFn<'_, f32>) -> Result<()> {
        self.pull_back_here(surrogate)
    }

    fn output(&self, member: usize, output: usize) -> &[f32] {
        let Some(session) = &self.session else { return &[] };
        let size = self.items * self.graph.shape(self.training.outputs()[output]).size();
        &session.outputs[output].values()[member * size..(member + 1) * size]
    }

    fn gradient(&self, member: usize) -> Result<Vec<f32>> {
        self.gradient.read(&self.device, member, self.graph.layout().len())
    }

    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>> {
        let Self { update, device, kernels, parameters, gradient, graph, pieces, session, .. } = self;
        let beside = session.as_ref().is_some_and(Session::begins_beside);
        let (pieces, length) = (pieces.as_ref().filter(|_| beside), padded(graph));
        update.step(device, kernels, optimiser, rates, parameters, gradient, pieces, length)
    }

    fn state(&self, member: usize) -> Result<(u64, Vec<Vec<f32>>)> {
        self.update.state(&self.device, member, self.graph.layout().len(), padded(&self.graph))
    }

    fn set_state(&mut self, member: usize, steps: u64, moments: &[Vec<f32>]) -> Result<()> {
        let length = self.graph.layout().len();
        for moment in moments {
            check_length("moments", length, moment.len())?;
        }
        let length = padded(&self.graph);
        self.device.settle()?;
        self.update.set_state(&self.device, &self.gradient, member, steps, moments, length)
    }
}
