//! How the terms of an estimate weigh the scores of the choices, and the gradient that this makes.
//!
//! Weights are made a block of rows at a time, so that a gradient needs no table beside its own.

use super::Workspace;
use crate::Pair;
use crate::sum::{dot, sum};
use crate::tree::{by_width, scale_rows, width};
use crate::wide::wide;
use niwaki_correction::Rule;
use niwaki_correction::family::Reads;
use std::ops::Range;

/// Rows per block: a few kilobytes, so that what one step writes the next finds in the nearest cache.
pub(super) const BLOCK: usize = 128;

/// Where the weights of a loss come from, after its moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Scores {
    /// `own`, `routed` and `square` hold every edge.
    #[default]
    Given,
    /// The live terms of every edge; `routing` says how credit reaches earlier choices.
    FromTerms {
        /// Where the live terms are.
        terms: Terms,
        /// How credit reaches earlier choices.
        routing: Routing,
        /// Whether the factor stands in place of the step's ratio: its own weight is then taken back.
        replaces: bool,
    },
}

/// Where the live terms of a loss are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Terms {
    /// Nothing is clipped: `value` holds them.
    Value,
    /// `live` holds them.
    Live,
    /// PPO's own, times the factor of their row.
    Plain,
}

/// How credit reaches earlier choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Routing {
    /// It does not.
    Off,
    /// `future` of the child, weighted by the chance of the edge.
    Downstream,
    /// `routed` holds every edge.
    Scattered,
}

impl Pair<'_> {
    /// The weights of both channels for a stretch of rows.
    pub(crate) fn weights(&self, rows: Range<usize>, work: &Workspace, own: &mut [f64], routed: &mut [f64]) {
        let vocab = self.process.vocab();
        let edges = vocab * rows.start..vocab * rows.end;
        let Scores::FromTerms { terms, routing, replaces } = work.scores else {
            own.copy_from_slice(&work.own[edges.clone()]);
            routed.copy_from_slice(&work.routed[edges]);
            return;
        };
        let (reach, prob) = (&self.reach[rows.clone()], &self.old.prob()[edges.clone()]);
        let live = match terms {
            Terms::Value => &work.value,
            Terms::Live => &work.live,
            Terms::Plain => &self.plain.term,
        };
        weigh(vocab, reach, prob, &live[edges.clone()], own);
        if terms == Terms::Plain {
            scale_rows(vocab, &work.factor[rows.clone()], own);
        }
        let inner = self.process.prefixes() / vocab;
        match routing {
            Routing::Scattered => routed.copy_from_slice(&work.routed[edges]),
            Routing::Downstream if rows.start < inner => {
                let end = rows.end.min(inner);
                let count = vocab * (end - rows.start);
                let children = &work.future[edges.start + 1..edges.start + 1 + count];
                weigh(vocab, reach, prob, children, &mut routed[..count]);
                routed[count..].fill(0.0);
            }
            Routing::Off | Routing::Downstream => routed.fill(0.0),
        }
        if replaces && routing != Routing::Off {
            routed.iter_mut().zip(own).for_each(|(routed, own)| *routed -= *own);
        }
    }

    /// The first rows of the gradient of the expected estimate, block by block: `visit(edges, gradient of the block)`.
    pub(super) fn each_gradient(
        &self,
        rows: usize,
        work: &Workspace,
        mut visit: impl FnMut(Range<usize>, &[f64]),
    ) {
        let vocab = self.process.vocab();
        let mut own = vec![0.0; BLOCK * vocab];
        let mut routed = own.clone();
        for start in (0..rows).step_by(BLOCK) {
            let rows = start..(start + BLOCK).min(rows);
            let count = vocab * rows.len();
            let (own, routed) = (&mut own[..count], &mut routed[..count]);
            self.weights(rows, work, own, routed);
            own.iter_mut().zip(&*routed).for_each(|(own, routed)| *own += routed);
            let from = vocab * start;
            self.new.pull_back_from(from, own);
            visit(from..from + count, own);
        }
    }

    /// Norm of the gradient and its cosine with the gradient of η.
    ///
    /// Paper: `sec:exact-diagnostics` (direction)
    pub(super) fn direction(&self, work: &Workspace) -> (f64, f64) {
        let plain = matches!(work.scores, Scores::FromTerms { terms: Terms::Plain, .. });
        let rows = if plain { self.process.last_rows().start } else { self.process.prefixes() };
        let mut parts = vec![];
        self.each_gradient(rows, work, |edges, gradient| {
            parts.push((dot(gradient, gradient), dot(gradient, &self.eta_gradient()[edges])));
        });
        if plain {
            self.plain_direction(work, |part| parts.push(part));
        }
        let norm = sum(0..parts.len(), |block| parts[block].0).sqrt();
        let along = sum(0..parts.len(), |block| parts[block].1);
        (norm, (along / (norm * self.eta_gradient_norm())).clamp(-1.0, 1.0))
    }

    /// Lays out how the credit of every prefix reaches earlier choices; `credit` holds it.
    pub(super) fn route(&self, rule: &Rule, work: &mut Workspace) -> Routing {
        let (process, prob) = (self.process, self.old.prob());
        let Workspace { attained, future, credit, routed, .. } = work;
        match rule.reads {
            Reads::Minimum => {
                routed.clear();
                routed.resize(process.edges(), 0.0);
                for row in 1..process.prefixes() {
                    routed[attained[row]] += self.reach[row] * credit[row];
                }
                return Routing::Scattered;
            }
            Reads::Window(window) if window < process.horizon() - 1 => {
                crate::tree::windowed_sum(process, prob, credit, window, future);
            }
            _ => crate::tree::expected_sum(process, prob, credit, future),
        }
        Routing::Downstream
    }
}

wide! {
    /// `out[p,a] = reach[p] · prob[p,a] · term[p,a]` over a stretch of rows.
    fn weigh(vocab: usize, reach: &[f64], prob: &[f64], term: &[f64], out: &mut [f64]) {
        by_width!(vocab, weigh_of(vocab, reach, prob, term, out));
    }
}

#[inline(always)]
fn weigh_of<const V: usize>(vocab: usize, reach: &[f64], prob: &[f64], term: &[f64], out: &mut [f64]) {
    let v = width::<V>(vocab);
    let rows = prob.chunks_exact(v).zip(term.chunks_exact(v));
    for ((out, (prob, term)), &reach) in out.chunks_exact_mut(v).zip(rows).zip(reach) {
        for a in 0..v {
            out[a] = reach * (prob[a] * term[a]);
        }
    }
}
