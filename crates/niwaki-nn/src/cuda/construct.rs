//! Whole constructions on the device: one tape that encodes all items and builds their trajectories.

use super::Cuda;
use super::device::{Buffer, Device, Pinned};
use super::engine::{check_length, no_items};
use super::lower::{Ground, Lowering, Places, SCALAR, Tools};
use super::session::{Session, Wanted, ground};
use super::tape::Tape;
use crate::Result;
use crate::engine::{Constructed, Constructing, Engine, Line};
use crate::plan::Plan;
use rayon::prelude::*;

/// Numbers that a thread narrows at a time.
const CHUNK: usize = 1 << 14;

/// The tape of one program, drawing or greedy, and its memory.
pub(super) struct Constructor {
    program: Constructing,
    greedy: bool,
    tape: Tape,
    /// Arena, scratch, transposed weights, and the line's three tables.
    room: [Buffer; 6],
    uniforms: Buffer,
    ends: Buffer,
    host: Pinned<f32>,
    actions: Pinned<i32>,
    ended: Pinned<i32>,
}

impl Constructor {
    fn new(
        device: &Device,
        wanted: &Wanted<'_>,
        session: &Session,
        program: &Constructing,
        greedy: bool,
    ) -> Result<Self> {
        let Wanted { tools, members, items, flat, .. } = *wanted;
        let (graph, point) = (tools.graph, program.point);
        let plan = Plan::forward_only(graph, &[program.known, point.glimpse, point.key]);
        let (context, keys) = (graph.shape(program.context), graph.shape(point.key).rows);
        let count = members * items;
        let (rows, lanes) = (count * context.rows, count * context.rows / keys);
        let arena = device.allocate(plan.arena() * count * SCALAR)?;
        let times = device.allocate(count * keys * context.width / 2 * SCALAR)?;
        let (whole, unit) = (device.allocate(count * SCALAR)?, device.allocate(count * SCALAR)?);
        let (uniforms, ends) = (device.allocate(rows * SCALAR)?, device.allocate(lanes * SCALAR)?);
        let places = Places {
            times: times.at,
            whole: whole.at,
            unit: unit.at,
            uniforms: if greedy { 0 } else { uniforms.at },
            ends: ends.at,
        };
        let tools = Tools { plan: &plan, ..tools };
        let ground = Ground { arena: arena.at, ..ground(graph, &session.inputs, flat, &(0..members), items) };
        let needed = Lowering::constructing(tools, &ground, program, places)?;
        let (scratch, turned) = (device.allocate(needed.scratch)?, device.allocate(needed.turned)?);
        let ground = Ground { scratch: scratch.at, turned: turned.at, ..ground };
        Ok(Self {
            program: *program,
            greedy,
            tape: Lowering::constructing(tools, &ground, program, places)?.tape,
            room: [arena, scratch, turned, times, whole, unit],
            uniforms,
            ends,
            host: Pinned::new(if greedy { 0 } else { rows })?,
            actions: Pinned::new(rows)?,
            ended: Pinned::new(lanes)?,
        })
    }
}

impl Cuda {
    /// Each work of the pass that builds trajectories, by label, with its milliseconds; empty until
    /// [`Engine::construct`] has been called.
    ///
    /// # Errors
    /// If the device fails.
    pub fn profile_construction(&mut self) -> Result<Vec<(&'static str, f32)>> {
        let Self { session, device, blas, .. } = self;
        let constructor = session.as_mut().and_then(|session| session.constructor.as_mut());
        constructor.map_or_else(|| Ok(Vec::new()), |made| made.tape.profile(device, blas))
    }

    /// [`Engine::construct`]
    pub(super) fn construct_here(
        &mut self,
        program: &Constructing,
        line: Line<'_>,
        uniforms: Option<&[f64]>,
        to: &mut Constructed,
    ) -> Result<()> {
        let Some(mut session) = self.session.take() else { return Err(no_items()) };
        let greedy = uniforms.is_none();
        let fits = session.constructor.as_ref().is_some_and(|c| c.program == *program && c.greedy == greedy);
        let made = if fits {
            Ok(())
        } else {
            Constructor::new(&self.device, &self.wanted(), &session, program, greedy)
                .map(|made| session.constructor = Some(made))
        };
        self.session = Some(session);
        made?;
        let count = self.members() * self.items();
        let Self { session: Some(session), device, blas, graph, .. } = self else { return Err(no_items()) };
        let Some(constructor) = &mut session.constructor else { return Err(no_items()) };
        let keys = graph.shape(program.point.key).rows;
        check_length("times", count * keys * line.stations, line.times.len())?;
        check_length("whole", count, line.whole.len())?;
        check_length("unit", count, line.unit.len())?;
        let [.., times, whole, unit] = &constructor.room;
        device.write(times.at, line.times)?;
        device.write(whole.at, line.whole)?;
        device.write(unit.at, line.unit)?;
        if let Some(uniforms) = uniforms {
            check_length("uniforms", constructor.host.values().len(), uniforms.len())?;
            let host = constructor.host.values_mut().par_chunks_mut(CHUNK);
            host.zip(uniforms.par_chunks(CHUNK)).for_each(|(to, from)| {
                to.iter_mut().zip(from).for_each(|(to, &from)| *to = from as f32);
            });
            device.send(constructor.uniforms.at, constructor.host.values())?;
        }
        constructor.tape.replay(device, blas)?;
        let actions = session.inputs.indices[program.actions.position()].at;
        device.fetch(actions, constructor.actions.values_mut())?;
        device.fetch(constructor.ends.at, constructor.ended.values_mut())?;
        device.synchronize()?;
        to.actions.clear();
        to.actions.extend_from_slice(constructor.actions.values());
        to.ends.clear();
        to.ends.extend_from_slice(constructor.ended.values());
        Ok(())
    }
}
