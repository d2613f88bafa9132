//! An update in pieces, each of which is over before the forward pass behind it asks for what it changes, so that both run side by side.

use super::event::Event;
use super::lower::padded;
use crate::Result;
use crate::graph::Graph;
use crate::ops::{Layer, Operation};
use crate::plan::Plan;
use std::ops::Range;

/// The pieces of the flat parameters, in the order in which a forward pass asks for them.
pub(crate) struct Pieces {
    /// The position of the op before which each one must be over, and where it ends, in blocks of an update.
    cuts: Vec<(usize, usize)>,
    /// When each one is over.
    marks: Vec<Event>,
}

impl Pieces {
    /// The pieces for a program's training pass, blocks having so many scalars; none where it has few layers, or asks for parameters in
    /// another order than they lie in.
    pub(crate) fn new(graph: &Graph, plan: &Plan, block: usize) -> Result<Option<Self>> {
        let cuts = cuts(graph, plan, block);
        if cuts.len() < 2 {
            return Ok(None);
        }
        let marks = cuts.iter().map(|_| Event::new()).collect::<Result<_>>()?;
        Ok(Some(Self { cuts, marks }))
    }

    /// The blocks of each piece, with its mark.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Range<usize>, &Event)> {
        let starts = std::iter::once(0).chain(self.cuts.iter().map(|&(_, end)| end));
        starts.zip(&self.cuts).map(|(start, &(_, end))| start..end).zip(&self.marks)
    }

    /// The mark of the piece that must be over before the op at a position.
    pub(crate) fn before(&self, position: usize) -> Option<&Event> {
        let which = self.cuts.iter().position(|&(first, _)| first == position)?;
        Some(&self.marks[which])
    }
}

fn cuts(graph: &Graph, plan: &Plan, block: usize) -> Vec<(usize, usize)> {
    let layout = graph.layout();
    let Some(&first) = plan.forward().first() else { return Vec::new() };
    let layers = Layer::all(graph, plan.outputs());
    let begins = |position: usize| {
        let params = graph.ops()[position].reads().params;
        params.iter().map(|&param| layout.slice(param).offset).min()
    };
    // The first piece is for what stands before the layers, too. A layer's last kernel reads the gain of the norm behind it: the op before
    // a layer waits for its piece.
    // An update runs ahead, so that pieces may grow: each has a layer more than the one before it.
    let firsts = (0..).map(|piece| piece * (piece + 1) / 2);
    let starts: Vec<usize> =
        firsts.map_while(|first: usize| layers.get(first)).map(|layer| layer.first).collect();
    let ends: Option<Vec<usize>> = starts.iter().skip(1).map(|&start| begins(start)).collect();
    let Some(ends) = ends else { return Vec::new() };
    let ends = ends.iter().map(|scalar| scalar.div_ceil(block)).chain([padded(graph).div_ceil(block)]);
    let before = starts.iter().skip(1).map(|&start| start - 1);
    let cuts: Vec<(usize, usize)> = std::iter::once(first).chain(before).zip(ends).collect();
    let ascending = cuts.windows(2).all(|two| two[0].1 < two[1].1);
    let in_order = plan.forward().iter().all(|&position| {
        let over = cuts.iter().take_while(|&&(first, _)| first <= position).map(|&(_, end)| end).last();
        let params = graph.ops()[position].reads().params;
        params.iter().all(|&param| {
            let end = layout.slice(param).range().end.div_ceil(block);
            over.is_some_and(|over| end <= over)
        })
    });
    if ascending && in_order { cuts } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::stacked;

    #[test]
    fn pieces_grow_and_each_is_over_before_it_is_read() {
        let mut graph = Graph::new();
        let stream = stacked(&mut graph, 20, 9, [64, 1, 1, 64]).unwrap();
        let plan = Plan::training(&graph, &[stream]);
        let cuts = cuts(&graph, &plan, 64);
        // The table's look-up, then the ops before layers 1, 3 and 6 of nine ops each.
        let firsts: Vec<usize> = cuts.iter().map(|&(first, _)| first).collect();
        assert_eq!(firsts, [0, 9, 3 * 9, 6 * 9]);
        assert_eq!(cuts.last().map(|&(_, end)| end), Some(padded(&graph).div_ceil(64)));
        // A table that the last op reads again lies in the first piece; one that the first op reads and that lies last allows none.
        let mut late = Graph::new();
        let stream = stacked(&mut late, 20, 3, [64, 1, 1, 64]).unwrap();
        let last = late.param("last", &[64], crate::Init::Ones).unwrap();
        let normed = late.rms_norm(stream, last, 1e-5).unwrap();
        assert_eq!(super::cuts(&late, &Plan::training(&late, &[normed]), 64).len(), 2);
    }
}
