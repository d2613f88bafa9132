//! One gradient: forward passes, the caller's surrogate on the host, backward passes.
//!
//! Where the cohort has room for two passes at once, the host works on one while the device works on the other.

use super::Cuda;
use super::device::{Device, Pinned};
use super::lower::SCALAR;
use super::part::{Left, Part, Share};
use super::session::{Laid, Pass, Session, no_items};
use crate::Result;
use crate::engine::{CotangentFn, Span};
use crate::graph::Graph;
use crate::plan::Plan;
use rayon::prelude::*;
use std::ops::Range;

/// Scalars of outputs from which on cores share a surrogate: for fewer, waking them takes longer.
const SHARED_OUT: usize = 4096;

/// Some items of a member that follow each other: their outputs, and the cotangents that the surrogate owes for them.
struct Question<'a> {
    span: Span,
    /// Where the first of them stands among the items of the pass.
    slot: usize,
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
        self.prepare()?;
        let Self { session, device, blas, kernels, graph, training, items, parameters, gradient, .. } = self;
        let session = session.as_mut().ok_or_else(no_items)?;
        let at_once = session.at_once();
        let Session { laid: Laid { passes, .. }, parts, left, outputs, cotangents, .. } = session;
        let (passes, slots, some) = match left {
            Some(Left { part, shares }) => {
                let Part { slots, passes, copies, .. } = &mut parts[*part];
                (passes, *slots, Some((&*copies, &**shares)))
            }
            None => (passes, *items, None),
        };
        if let Some((copies, _)) = some {
            copies.lend(device, kernels, parameters)?;
        }
        let sizes: Vec<usize> = training.outputs().iter().map(|&output| graph.shape(output).size()).collect();
        for passes in passes.chunks_mut(at_once) {
            for pass in &mut *passes {
                pass.forward.replay(device, blas)?;
                fetch_outputs(device, graph, training, pass, slots, true, outputs)?;
                device.mark(&pass.fetched)?;
            }
            for pass in passes {
                pass.fetched.wait()?;
                let members = pass.members.clone();
                let asked = questions(&members, slots, some.map(|(_, shares)| shares));
                ask(surrogate, asked, (&members, slots), &sizes, outputs, cotangents);
                for ((&output, host), &size) in training.outputs().iter().zip(cotangents.iter()).zip(&sizes) {
                    let Some(region) = training.asked(output) else { continue };
                    let at = pass.arena + (region.offset * members.len() * slots * SCALAR) as u64;
                    let size = slots * size;
                    device.send(at, &host.values()[members.start * size..members.end * size])?;
                }
                pass.backward.replay(device, blas)?;
            }
        }
        match some {
            Some((copies, _)) => {
                copies.collect(device, kernels, gradient)?;
                gradient.sum_squares(device, kernels)
            }
            None => Ok(()),
        }
    }
}

/// What the surrogate is asked about a pass: all items of its members, or those of its shares.
fn questions<'a>(members: &Range<usize>, slots: usize, shares: Option<&[Share]>) -> Vec<Question<'a>> {
    let question = |span: Span, slot: usize| Question { span, slot, seen: Vec::new(), wanted: Vec::new() };
    let mut questions = Vec::new();
    for (place, member) in members.clone().enumerate() {
        let mut slot = place * slots;
        let Some(shares) = shares else {
            questions.push(question(Span { member, items: 0..slots }, slot));
            continue;
        };
        let Some(Share { member, items }) = shares.get(member) else { continue };
        for run in items.chunk_by(|one, next| one + 1 == *next) {
            questions.push(question(Span { member: *member, items: run[0]..run[0] + run.len() }, slot));
            slot += run.len();
        }
    }
    questions
}

/// The surrogate of a pass, on all cores where there is work for several.
fn ask<'a>(
    surrogate: &CotangentFn<'_, f32>,
    mut questions: Vec<Question<'a>>,
    (members, slots): (&Range<usize>, usize),
    sizes: &[usize],
    outputs: &'a [Pinned<f32>],
    cotangents: &'a mut [Pinned<f32>],
) {
    for ((seen, wanted), &size) in outputs.iter().zip(cotangents.iter_mut()).zip(sizes) {
        let range = members.start * slots * size..members.end * slots * size;
        let empty = wanted.values().is_empty();
        let seen = &seen.values()[range.clone()];
        let mut rest = if empty { &mut [][..] } else { &mut wanted.values_mut()[range] };
        let mut given = 0;
        for question in &mut questions {
            let (start, end) = (question.slot * size, (question.slot + question.span.items.len()) * size);
            question.seen.push(&seen[start..end]);
            if empty {
                question.wanted.push(&mut []);
                continue;
            }
            let (mine, others) = std::mem::take(&mut rest)[start - given..].split_at_mut(end - start);
            question.wanted.push(mine);
            (rest, given) = (others, end);
        }
    }
    let answer =
        |Question { span, seen, wanted, .. }: &mut Question<'_>| surrogate(span.clone(), seen, wanted);
    let seen: usize = questions.iter().flat_map(|question| &question.seen).map(|seen| seen.len()).sum();
    if questions.len() == 1 || seen < SHARED_OUT {
        questions.iter_mut().for_each(answer);
    } else {
        questions.par_iter_mut().for_each(answer);
    }
}
