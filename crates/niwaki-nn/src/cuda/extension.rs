//! Kernels that callers bring: one tape that computes the values they read, then runs them.

use super::Cuda;
use super::compile::{Image, Module, cache_folder};
use super::device::{Device, Pinned};
use super::kernels::{SHARED_LIMIT, with_prelude};
use super::lower::{Addresses, Brought, Lowering, SCALAR, Tools};
use super::session::{Extended, Session, Wanted, addresses, check_length, no_items};
use crate::engine::Engine;
use crate::extension::{Answer, Argument, Extension, HostArray};
use crate::plan::Plan;
use crate::{Error, Result};
use cudarc::driver::sys::CUfunction;
use rayon::prelude::*;

/// Numbers that a thread narrows at a time.
const CHUNK: usize = 1 << 14;

/// Kernels that were brought so far, by source and name: they outlive a change of items.
#[derive(Default)]
pub(super) struct Library(Vec<(String, &'static str, CUfunction)>);

impl Extended {
    fn new(
        device: &Device,
        wanted: &Wanted<'_>,
        session: &Session,
        extension: &Extension,
        function: CUfunction,
    ) -> Result<Self> {
        let Wanted { tools, members, items, flat, .. } = *wanted;
        let (graph, count) = (tools.graph, members * items);
        let read = extension.arguments.iter().filter_map(|argument| match argument {
            Argument::Value(value) => Some(*value),
            _ => None,
        });
        let is_input = |value| graph.inputs().iter().any(|input| input.what == value);
        let computed: Vec<_> = read.filter(|&value| !is_input(value)).collect();
        let plan = Plan::forward_only(graph, &computed);
        let arena = device.allocate(plan.arena() * count * SCALAR)?;
        let mut given = Vec::new();
        for per_item in &extension.given {
            given.push((device.allocate(count * per_item * SCALAR)?, None));
        }
        let (mut answers, mut own) = (Vec::new(), Vec::new());
        for answer in &extension.answers {
            let (at, per_item) = match *answer {
                Answer::Index(index) => {
                    let rows = graph.index_sources()[index.position()].rows();
                    (session.inputs.indices[index.position()], rows)
                }
                Answer::PerItem(per_item) => {
                    own.push(device.allocate(count * per_item * SCALAR)?);
                    (own[own.len() - 1].at, per_item)
                }
            };
            answers.push((at, Pinned::new(count * per_item)?));
        }
        let brought = Brought {
            extension,
            function,
            given: given.iter().map(|(buffer, _)| buffer.at).collect(),
            answers: answers.iter().map(|(at, _)| *at).collect(),
        };
        let tools = Tools { plan: &plan, ..tools };
        let addresses =
            Addresses { arena: arena.at, ..addresses(graph, &session.inputs, flat, &(0..members), items) };
        let needed = Lowering::extended(tools, &addresses, &brought)?;
        let (scratch, shared) = (device.allocate(needed.scratch)?, device.allocate(needed.shared)?);
        let addresses = Addresses { scratch: scratch.at, shared: shared.at, ..addresses };
        let tape = Lowering::extended(tools, &addresses, &brought)?.tape;
        let room = [arena, scratch, shared];
        Ok(Self { extension: extension.clone(), tape, _room: room, given, answers, _own: own })
    }

    /// Sends an array to the device.
    fn give(&mut self, device: &Device, place: usize, given: HostArray<'_>) -> Result<()> {
        let (buffer, host) = &mut self.given[place];
        match given {
            HostArray::Integers(data) => device.write(buffer.at, data),
            HostArray::Scalars(data) => device.write(buffer.at, data),
            HostArray::Doubles(data) => {
                let host = match host {
                    Some(host) => host,
                    None => host.insert(Pinned::new(data.len())?),
                };
                let narrow = host.values_mut().par_chunks_mut(CHUNK).zip(data.par_chunks(CHUNK));
                narrow.for_each(|(to, from)| {
                    to.iter_mut().zip(from).for_each(|(to, &from)| *to = from as f32);
                });
                device.send(buffer.at, host.values())
            }
        }
    }
}

impl Cuda {
    /// Each work of the pass of the last extension, by label, with its milliseconds; empty until [`Engine::extend`] has
    /// been called.
    ///
    /// # Errors
    /// If the device fails.
    pub fn profile_extension(&mut self) -> Result<Vec<(&'static str, f32)>> {
        let Self { session, device, blas, .. } = self;
        let extended = session.as_mut().and_then(|session| session.extended.as_mut());
        extended.map_or_else(|| Ok(Vec::new()), |made| made.tape.profile(device, blas))
    }

    /// The kernel of an extension, compiled where this engine has not met it yet.
    fn bring(&mut self, extension: &Extension) -> Result<CUfunction> {
        if extension.shared > SHARED_LIMIT as usize {
            let reason = format!(
                "{} bytes of shared memory are needed on this device and {SHARED_LIMIT} are there",
                extension.shared
            );
            return Err(Error::Unsupported { op: extension.name, reason });
        }
        let source = with_prelude(&extension.code());
        let known =
            self.library.0.iter().find(|(known, name, _)| *name == extension.kernel && *known == source);
        if let Some(&(.., function)) = known {
            return Ok(function);
        }
        let (target, name) = (self.target(), extension.name);
        let cache = self.options.cache.clone().or_else(cache_folder);
        let image = Image::make(target, name, &source, cache.as_deref())?;
        let function =
            Module::load(target, name, &source, image)?.kernel(extension.kernel, SHARED_LIMIT, target)?;
        self.library.0.push((source, extension.kernel, function));
        Ok(function)
    }

    /// [`Engine::extend`]
    pub(super) fn extend_here(
        &mut self,
        extension: &Extension,
        given: &[HostArray<'_>],
        answers: &mut [Vec<i32>],
    ) -> Result<()> {
        self.take_all();
        let count = self.members() * self.items();
        check_length("arrays given", extension.given.len(), given.len())?;
        check_length("answers", extension.answers.len(), answers.len())?;
        for (per_item, given) in extension.given.iter().zip(given) {
            check_length(extension.name, count * per_item, given.len())?;
        }
        let made = self.session.as_ref().and_then(|session| session.extended.as_ref());
        if made.is_none_or(|made| made.extension != *extension) {
            let function = self.bring(extension)?;
            let Some(session) = &self.session else { return Err(no_items()) };
            let made = Extended::new(&self.device, &self.wanted(), session, extension, function)?;
            if let Some(session) = &mut self.session {
                session.extended = Some(made);
            }
        }
        let Self { session, device, blas, .. } = self;
        let extended = session.as_mut().and_then(|session| session.extended.as_mut()).ok_or_else(no_items)?;
        for (place, &given) in given.iter().enumerate() {
            extended.give(device, place, given)?;
        }
        extended.tape.replay(device, blas)?;
        for (at, host) in &mut extended.answers {
            device.fetch(*at, host.values_mut())?;
        }
        device.synchronize()?;
        for (to, (_, host)) in answers.iter_mut().zip(&extended.answers) {
            to.clear();
            to.extend_from_slice(host.values());
        }
        Ok(())
    }
}
