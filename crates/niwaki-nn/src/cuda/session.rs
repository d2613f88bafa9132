//! Memory and tapes for one number of items: how many members run together, where their arena lies, what to replay.
//! Memory for gradients is laid out when the first is asked for: what is only scored keeps no activations.
//!
//! A large cohort runs in two passes, each with an arena of its own, so that the host can work on one while the device
//! works on the other. Where the whole cohort's arena does not fit, members run in equal groups, one after the other, in
//! the same arena.

use super::chunks::chunks;
use super::device::{Buffer, Device, Pinned, refused};
use super::event::Event;
use super::kernels::Kernels;
use super::lower::{Addresses, Lowering, SCALAR, Tools, padded};
use super::part::{Left, Part, deal, room_for, slots_of};
use super::tape::Tape;
use crate::engine::Choosing;
use crate::extension::Extension;
use crate::graph::{Graph, IndexSource};
use crate::plan::Plan;
use crate::{Error, Result};
use std::ops::Range;

/// Members from which on a cohort runs in two passes: each then fills the device.
const LARGE: usize = 128;

/// Bytes of which every input starts on a multiple.
const ALIGNED: usize = 256;

/// Device copies of a program's inputs, for all members: where each starts. They lie side by side, constants last.
pub(super) struct Inputs {
    /// By position of the value; `None` for values that are computed.
    pub(super) scalars: Vec<Option<u64>>,
    /// By position of the index; constants are repeated for every item.
    pub(super) indices: Vec<u64>,
    /// By position of the mask.
    pub(super) masks: Vec<u64>,
    _room: Buffer,
}

impl Inputs {
    pub(super) fn new(device: &Device, graph: &Graph, count: usize) -> Result<Self> {
        let mut room = 0;
        let mut take = |bytes: usize| {
            let at = room as u64;
            room += (count * bytes).next_multiple_of(ALIGNED);
            at
        };
        let mut scalars = vec![None; graph.values()];
        for input in graph.inputs() {
            scalars[input.what.position()] = Some(take(graph.shape(input.what).size() * SCALAR));
        }
        let masks: Vec<u64> = graph.masks().iter().map(|mask| take(mask.what.size())).collect();
        let mut indices = vec![0; graph.index_sources().len()];
        let is_constant = |source: &IndexSource| matches!(source, IndexSource::Constant(_));
        for constant in [false, true] {
            for (at, source) in indices.iter_mut().zip(graph.index_sources()) {
                if is_constant(source) == constant {
                    *at = take(source.rows() * SCALAR);
                }
            }
        }
        let room = device.allocate(room)?;
        let placed = |at: Vec<u64>| at.into_iter().map(|at| room.at + at).collect::<Vec<u64>>();
        let (indices, masks) = (placed(indices), placed(masks));
        for (&at, source) in indices.iter().zip(graph.index_sources()) {
            if let IndexSource::Constant(entries) = source {
                device.write(at, &entries.repeat(count))?;
            }
        }
        let scalars = scalars.into_iter().map(|at: Option<u64>| at.map(|at| room.at + at)).collect();
        Ok(Self { scalars, indices, masks, _room: room })
    }

    /// Copies pieces of host memory to where inputs start; those that lie side by side go together.
    pub(super) fn write(device: &Device, mut pieces: Vec<(u64, &[u8])>) -> Result<()> {
        pieces.sort_unstable_by_key(|&(at, _)| at);
        let end = |(at, bytes): &(u64, &[u8])| at + bytes.len() as u64;
        let side_by_side = |one: &(u64, &[u8]), next: &(u64, &[u8])| {
            next.0 >= end(one) && next.0 - end(one) < ALIGNED as u64
        };
        pieces.chunk_by(side_by_side).try_for_each(|pieces| device.write_together(pieces))
    }
}

/// One group of members: the tapes of its passes.
pub(super) struct Pass {
    pub(super) members: Range<usize>,
    pub(super) arena: u64,
    /// When the outputs of a forward pass have reached the host.
    pub(super) fetched: Event,
    /// The training plan's forward pass.
    pub(super) forward: Tape,
    pub(super) backward: Tape,
    /// The forward-only plan.
    pub(super) alone: Tape,
    /// Whether that leaves outputs where the host waits for them.
    pub(super) delivers: bool,
}

impl Pass {
    /// Writes the tapes of some members.
    pub(super) fn new(wanted: &Wanted<'_>, members: Range<usize>, addresses: &Addresses) -> Result<Self> {
        let (mut forward, mut backward) = (Tape::default(), Tape::default());
        if wanted.gradients {
            forward = Lowering::forward(wanted.tools, addresses)?.tape;
            backward = Lowering::backward(wanted.tools, addresses)?.tape;
        }
        let whole = Lowering::fused_forward(wanted.alone_tools(), addresses)?;
        let delivers = whole.is_some();
        let alone = match whole {
            Some(tape) => tape,
            None => Lowering::forward(wanted.alone_tools(), addresses)?.tape,
        };
        let (arena, fetched) = (addresses.arena, Event::new()?);
        Ok(Self { members, arena, fetched, forward, backward, alone, delivers })
    }
}

/// Row-by-row passes, with the arena that holds keys and values from row to row.
pub(super) struct Rows {
    _arena: Buffer,
    _scratch: Buffer,
    pub(super) tapes: Vec<Tape>,
    /// One row of each output of every item, packed: on the device and on the host.
    pub(super) packed: Vec<(Buffer, Pinned<f32>)>,
}

/// All rows with their choices as one tape.
pub(super) struct Chosen {
    pub(super) choosing: Choosing,
    pub(super) tape: Tape,
    /// Arena, scratch and what tapes make once.
    _room: [Buffer; 3],
    /// `[member, item, row]`.
    pub(super) uniforms: Buffer,
    pub(super) host: Pinned<f32>,
    pub(super) actions: Pinned<i32>,
}

/// The tape of one extension, and its memory.
pub(super) struct Extended {
    pub(super) extension: Extension,
    pub(super) tape: Tape,
    /// Arena, scratch and what tapes make once.
    pub(super) _room: [Buffer; 3],
    pub(super) given: Vec<(Buffer, Option<Pinned<f32>>)>,
    pub(super) answers: Vec<(u64, Pinned<i32>)>,
    /// Those of the answers that are not the program's own.
    pub(super) _own: Vec<Buffer>,
}

/// The passes over all items, and their memory.
#[derive(Default)]
pub(super) struct Laid {
    pub(super) passes: Vec<Pass>,
    /// Arena, scratch and what tapes make once.
    _room: Vec<Buffer>,
    /// Bytes of a pass's arena.
    pub(super) arena: usize,
    /// Whether every pass has an arena of its own.
    apart: bool,
    /// Whether gradients have their memory.
    gradients: bool,
    /// Said once where a cohort was split.
    pub(super) notice: Option<String>,
}

/// Everything that depends on the number of items.
pub(super) struct Session {
    pub(super) inputs: Inputs,
    pub(super) laid: Laid,
    /// Passes over some items, one for each number of shares that was asked for.
    pub(super) parts: Vec<Part>,
    /// Where some items are left out of gradients.
    pub(super) left: Option<Left>,
    pub(super) rows: Option<Rows>,
    pub(super) chosen: Option<Chosen>,
    pub(super) extended: Option<Extended>,
    /// Host copies of the outputs and of their cotangents, `[member, item, rows, width]` each; a cotangent that no
    /// parameter wants is empty.
    pub(super) outputs: Vec<Pinned<f32>>,
    pub(super) cotangents: Vec<Pinned<f32>>,
}

/// Where the flat buffers of all members lie.
#[derive(Clone, Copy)]
pub(super) struct Flat {
    pub(super) parameters: u64,
    /// The parameters in bf16, where products read them so.
    pub(super) rounded: Option<u64>,
    pub(super) gradient: u64,
    /// Where groups of a member's gradient lie, where not all are in f32.
    pub(super) places: Option<u64>,
    /// Sums of squares of the gradients' chunks, where backward passes make them.
    pub(super) squares: Option<u64>,
    /// Which of the chunks do not rest, where that is kept.
    pub(super) live: Option<u64>,
}

/// Addresses of the inputs, parameters and gradients of a group.
pub(super) fn addresses(
    graph: &Graph,
    inputs: &Inputs,
    flat: Flat,
    members: &Range<usize>,
    items: usize,
) -> Addresses {
    let skip = members.start * items;
    let values = (0..graph.values()).map(|position| {
        inputs.scalars[position].map_or(0, |at| {
            let named = graph.inputs().iter().find(|input| input.what.position() == position);
            at + named.map_or(0, |input| skip * graph.shape(input.what).size() * SCALAR) as u64
        })
    });
    let integers = graph.index_sources().iter().zip(&inputs.indices);
    let masks = graph.masks().iter().zip(&inputs.masks);
    let length = padded(graph);
    Addresses {
        members: members.len(),
        items,
        parameters: flat.parameters + (members.start * length * SCALAR) as u64,
        rounded: flat.rounded.map(|at| at + (members.start * length * SCALAR / 2) as u64),
        gradient: flat.gradient + (members.start * length * SCALAR) as u64,
        places: flat.places,
        squares: flat.squares.map(|at| at + (members.start * chunks(length) * size_of::<f64>()) as u64),
        live: flat.live.map(|at| at + (members.start * chunks(length)) as u64),
        inputs: values.collect(),
        indices: integers.map(|(source, at)| at + (skip * source.rows() * SCALAR) as u64).collect(),
        masks: masks.map(|(mask, at)| at + (skip * mask.what.size()) as u64).collect(),
        ..Addresses::default()
    }
}

/// What a session is laid out for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'a> {
    pub(super) tools: Tools<'a>,
    /// The plan of forward passes alone; the tools' plan is the training one.
    pub(super) alone: &'a Plan,
    pub(super) flat: Flat,
    pub(super) members: usize,
    pub(super) items: usize,
    /// Bytes that arena and scratch may take; the device's free memory where absent.
    pub(super) memory: Option<usize>,
    /// Engines that take their part of it.
    pub(super) beside: usize,
    /// Whether gradients are wanted, or forward passes alone.
    pub(super) gradients: bool,
}

impl Wanted<'_> {
    fn alone_tools(&self) -> Tools<'_> {
        Tools { plan: self.alone, ..self.tools }
    }

    /// Bytes of arena, scratch and what tapes make once that `members` members need together.
    pub(super) fn needs(&self, inputs: &Inputs, members: usize) -> Result<[usize; 3]> {
        let addresses = addresses(self.tools.graph, inputs, self.flat, &(0..members), self.items);
        let alone = Lowering::forward(self.alone_tools(), &addresses)?;
        let (mut arena, mut scratch, mut shared) = (self.alone.arena(), alone.scratch, alone.shared);
        if self.gradients {
            arena = arena.max(self.tools.plan.arena());
            for pass in [Lowering::forward, Lowering::backward] {
                let needed = pass(self.tools, &addresses)?;
                scratch = scratch.max(needed.scratch);
                shared = shared.max(needed.shared);
            }
        }
        Ok([arena * members * self.items * SCALAR, scratch, shared])
    }
}

impl Laid {
    /// Lays out memory and writes the tapes.
    ///
    /// # Errors
    /// If not even one member fits, or an op is beyond the kernels.
    fn new(device: &Device, wanted: &Wanted<'_>, inputs: &Inputs, outputs: &[Pinned<f32>]) -> Result<Self> {
        let Wanted { tools, members, items, flat, gradients, .. } = *wanted;
        let graph = tools.graph;
        let free = device.memory()?.0;
        // Leave room for what the driver takes when it captures graphs.
        let room = wanted.memory.unwrap_or((free - free / 16) / (wanted.beside + 1)).min(free);
        let one: usize = wanted.needs(inputs, 1)?.iter().sum();
        if one > room {
            let mend = "use fewer lanes";
            return Err(refused(format!("one member needs {one} bytes and {room} are free; {mend}")));
        }
        let groups = members.div_ceil((room / one.max(1)).clamp(1, members.max(1)));
        let apart = groups == 1 && members >= LARGE;
        let size = members.div_ceil(if apart { 2 } else { groups.max(1) });
        let notice = (groups > 1).then(|| {
            format!(
                "{members} members of {items} items need about {} MB and {} MB are free: they run in {groups} groups of up to {size}",
                (one * members) >> 20,
                room >> 20
            )
        });
        let [bytes, scratch, shared] = wanted.needs(inputs, size)?;
        let arena = device.allocate(if apart { 2 * bytes } else { bytes })?;
        let (scratch, shared) = (device.allocate(scratch)?, device.allocate(shared)?);
        let mut passes = Vec::new();
        for start in (0..members).step_by(size.max(1)) {
            let members = start..(start + size).min(members);
            let arena = arena.at + if apart && start > 0 { bytes as u64 } else { 0 };
            let addresses = Addresses {
                arena,
                scratch: scratch.at,
                shared: shared.at,
                outputs: outputs.iter().map(|output| output.part(members.start, wanted.members)).collect(),
                ..addresses(graph, inputs, flat, &members, items)
            };
            passes.push(Pass::new(wanted, members, &addresses)?);
        }
        Ok(Self { passes, _room: vec![arena, scratch, shared], arena: bytes, apart, gradients, notice })
    }
}

impl Session {
    /// Lays out memory and writes the tapes.
    ///
    /// # Errors
    /// If not even one member fits, or an op is beyond the kernels.
    pub(super) fn new(device: &Device, wanted: &Wanted<'_>) -> Result<Self> {
        let Wanted { tools, members, items, .. } = *wanted;
        let graph = tools.graph;
        let inputs = Inputs::new(device, graph, members * items)?;
        let count = members * items;
        let size = |output: &crate::Value| count * graph.shape(*output).size();
        let outputs = tools.plan.outputs().iter().map(|output| Pinned::new(size(output)));
        let outputs: Vec<Pinned<f32>> = outputs.collect::<Result<_>>()?;
        let cotangents = tools.plan.outputs().iter().map(|output| {
            let wanted = tools.plan.asked(*output).is_some();
            Pinned::new(if wanted { size(output) } else { 0 })
        });
        Ok(Self {
            laid: Laid::new(device, wanted, &inputs, &outputs)?,
            cotangents: cotangents.collect::<Result<_>>()?,
            outputs,
            inputs,
            parts: Vec::new(),
            left: None,
            rows: None,
            chosen: None,
            extended: None,
        })
    }

    /// Makes room for gradients where there is none yet; inputs stay as they are.
    ///
    /// # Errors
    /// If not even one member fits.
    pub(super) fn prepare(&mut self, device: &Device, wanted: &Wanted<'_>) -> Result<()> {
        if self.laid.gradients {
            return Ok(());
        }
        device.synchronize()?;
        // Its memory is given back before more is asked for.
        self.laid = Laid::default();
        self.laid = Laid::new(device, &Wanted { gradients: true, ..*wanted }, &self.inputs, &self.outputs)?;
        Ok(())
    }

    /// Leaves items out of gradients until inputs change, where that makes passes smaller.
    pub(super) fn leave_out(
        &mut self,
        device: &Device,
        kernels: &Kernels,
        wanted: &Wanted<'_>,
        silent: &[Vec<bool>],
    ) -> Result<()> {
        self.left = None;
        let slots = slots_of(wanted.items);
        let shares = deal(silent, slots);
        let room = room_for(wanted.members, shares.len());
        // Copies and sums cost something, too.
        if 8 * room * slots > 7 * wanted.members * wanted.items {
            return Ok(());
        }
        let part = match self.parts.iter().position(|part| part.shares == room) {
            Some(part) => part,
            None => {
                // Parts of other sizes are made again where they come back; what else there is on the device needs room first.
                let (free, total) = device.memory()?;
                if free < total / 4 {
                    device.synchronize()?;
                    self.parts.clear();
                }
                let Some(part) = Part::new(device, self, wanted, room)? else { return Ok(()) };
                self.parts.push(part);
                self.parts.len() - 1
            }
        };
        // Copies to and from the host are still queued where the shares' cotangents will stand.
        device.synchronize()?;
        self.parts[part].fill(device, kernels, (wanted.tools.graph, &self.inputs, wanted.items), &shares)?;
        for cotangents in &mut self.cotangents {
            cotangents.values_mut().fill(0.0);
        }
        self.left = Some(Left { part, shares });
        Ok(())
    }

    /// Whether gradients begin beside the update before them.
    pub(super) fn begins_beside(&self) -> bool {
        self.laid.passes.iter().all(|pass| pass.forward.awaits())
    }

    /// Passes whose forward halves may all run before the first backward one.
    pub(super) fn at_once(&self) -> usize {
        if self.laid.apart { self.laid.passes.len() } else { 1 }
    }

    /// Makes the row-by-row passes for all members at once.
    ///
    /// # Errors
    /// If the program mixes rows, or their arena does not fit.
    pub(super) fn make_rows(&mut self, device: &Device, wanted: &Wanted<'_>) -> Result<()> {
        let Wanted { tools, members, items, flat, .. } = *wanted;
        let plan = Plan::stepping(tools.graph, tools.plan.outputs())?;
        let arena = device.allocate(plan.arena() * members * items * SCALAR)?;
        let addresses =
            Addresses { arena: arena.at, ..addresses(tools.graph, &self.inputs, flat, &(0..members), items) };
        let mut packed = Vec::new();
        for output in plan.outputs() {
            let count = members * items * tools.graph.shape(*output).width;
            packed.push((device.allocate(count * SCALAR)?, Pinned::new(count)?));
        }
        let places: Vec<u64> = packed.iter().map(|(buffer, _)| buffer.at).collect();
        // Every row needs the same scratch; weights are multiplied as they are stored.
        let tools = Tools { plan: &plan, ..tools };
        let needed = Lowering::forward_row(tools, &addresses, 0, &places)?;
        if needed.shared > 0 {
            return Err(refused("a pass over one row asked for room of its own"));
        }
        let scratch = device.allocate(needed.scratch)?;
        let addresses = Addresses { scratch: scratch.at, ..addresses };
        let tapes = (0..tools.graph.tallest())
            .map(|row| Ok(Lowering::forward_row(tools, &addresses, row, &places)?.tape))
            .collect::<Result<_>>()?;
        self.rows = Some(Rows { tapes, packed, _arena: arena, _scratch: scratch });
        Ok(())
    }

    /// Makes the pass that chooses its own inputs, for all members at once.
    ///
    /// # Errors
    /// If the program mixes rows, or its arena does not fit.
    pub(super) fn make_chosen(
        &mut self,
        device: &Device,
        wanted: &Wanted<'_>,
        choosing: Choosing,
    ) -> Result<()> {
        let Wanted { tools, members, items, flat, .. } = *wanted;
        let plan = Plan::stepping(tools.graph, &[choosing.logits])?;
        let arena = device.allocate(plan.arena() * members * items * SCALAR)?;
        let addresses =
            Addresses { arena: arena.at, ..addresses(tools.graph, &self.inputs, flat, &(0..members), items) };
        let count = members * items * tools.graph.shape(choosing.logits).rows;
        let uniforms = device.allocate(count * SCALAR)?;
        let tools = Tools { plan: &plan, ..tools };
        let needed = Lowering::choosing(tools, &addresses, choosing, uniforms.at)?;
        let (scratch, shared) = (device.allocate(needed.scratch)?, device.allocate(needed.shared)?);
        let addresses = Addresses { scratch: scratch.at, shared: shared.at, ..addresses };
        let tape = Lowering::choosing(tools, &addresses, choosing, uniforms.at)?.tape;
        let (host, actions) = (Pinned::new(count)?, Pinned::new(count)?);
        let room = [arena, scratch, shared];
        self.chosen = Some(Chosen { choosing, tape, _room: room, uniforms, host, actions });
        Ok(())
    }
}

pub(super) fn no_items() -> Error {
    refused("set the number of items and load the inputs before running")
}

pub(super) fn check_length(name: &str, expected: usize, got: usize) -> Result<()> {
    if expected == got { Ok(()) } else { Err(Error::InputLength { name: name.to_owned(), expected, got }) }
}
