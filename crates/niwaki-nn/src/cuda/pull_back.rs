//! One gradient: forward passes, the caller's surrogate on the host, backward passes.
//!
//! Where the cohort has room for two passes at once, the host works on one while the device works on the other.

use super::Cuda;
use super::device::{Device, Pinned};
use super::lower::SCALAR;
use super::session::{Pass, Session, no_items};
use crate::Result;
use crate::engine::{CotangentFn, Span};
use crate::graph::Graph;
use crate::plan::Plan;
use rayon::prelude::*;

/// One member's outputs and the cotangents that the surrogate owes for them.
struct Share<'a> {
    member: usize,
    seen: Vec<&'a [f32]>,
    wanted: Vec<&'a mut [f32]>,
}

/// Queues copies of a pass's outputs from its arena to the host; with `asked`, of those alone that the caller owes a
/// cotangent for.
pub(super) fn fetch_outputs(
    device: &Device,
    graph: &Graph,
    plan: &Plan,
    pass: &Pass,
    items: usize,
    asked: bool,
    outputs: &mut [Pinned<f32>],
) -> Result<()> {
    let members = &pass.members;
    for (&output, host) in plan.outputs().iter().zip(outputs) {
        let Some(region) = plan.value(output).filter(|_| !asked || !graph.is_shown(output)) else { continue };
        let size = items * graph.shape(output).size();
        let at = pass.arena + (region.offset * members.len() * items * SCALAR) as u64;
        device.fetch(at, &mut host.values_mut()[members.start * size..members.end * size])?;
    }
    Ok(())
}

impl Cuda {
    /// [`Engine::pull_back`](crate::Engine::pull_back)
    pub(super) fn pull_back_here(&mut self, surrogate: &CotangentFn<'_, f32>) -> Result<()> {
        let Self { session, device, blas, graph, training, items, .. } = self;
        let session = session.as_mut().ok_or_else(no_items)?;
        let at_once = session.at_once();
        let Session { passes, outputs, cotangents, .. } = session;
        let sizes: Vec<usize> =
            training.outputs().iter().map(|&output| *items * graph.shape(output).size()).collect();
        for passes in passes.chunks_mut(at_once) {
            for pass in &mut *passes {
                pass.forward.replay(device, blas)?;
                fetch_outputs(device, graph, training, pass, *items, true, outputs)?;
                device.mark(&pass.fetched)?;
            }
            for pass in passes {
                pass.fetched.wait()?;
                let members = pass.members.clone();
                apply(surrogate, &members, *items, &sizes, outputs, cotangents);
                for ((&output, host), &size) in training.outputs().iter().zip(cotangents.iter()).zip(&sizes) {
                    let Some(region) = training.asked(output) else { continue };
                    let at = pass.arena + (region.offset * members.len() * *items * SCALAR) as u64;
                    device.send(at, &host.values()[members.start * size..members.end * size])?;
                }
                pass.backward.replay(device, blas)?;
            }
        }
        Ok(())
    }
}

/// The surrogate of some members, on all cores.
fn apply(
    surrogate: &CotangentFn<'_, f32>,
    members: &std::ops::Range<usize>,
    items: usize,
    sizes: &[usize],
    outputs: &[Pinned<f32>],
    cotangents: &mut [Pinned<f32>],
) {
    let mut work: Vec<Share<'_>> =
        members.clone().map(|member| Share { member, seen: Vec::new(), wanted: Vec::new() }).collect();
    for ((seen, wanted), &size) in outputs.iter().zip(cotangents.iter_mut()).zip(sizes) {
        let range = members.start * size..members.end * size;
        let empty = wanted.values().is_empty();
        let mut rest = if empty { &mut [][..] } else { &mut wanted.values_mut()[range.clone()] };
        for (share, seen) in work.iter_mut().zip(seen.values()[range].chunks_exact(size.max(1))) {
            let (mine, others) = rest.split_at_mut(if empty { 0 } else { size });
            rest = others;
            share.seen.push(seen);
            share.wanted.push(mine);
        }
    }
    work.par_iter_mut().for_each(|Share { member, seen, wanted }| {
        surrogate(Span { member: *member, items: 0..items }, seen, wanted);
    });
}
