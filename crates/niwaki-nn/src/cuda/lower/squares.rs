//! The sums of squares of a gradient, which its norm is made of, while the backward pass goes on.
//!
//! A backward pass completes gradients from the last parameter to the first, so that what lies behind the last one still open can be summed aside.

use super::{Addresses, Lowering};
use crate::Result;
use crate::cuda::chunks::chunks;
use crate::cuda::kernels::STEP;
use crate::cuda::tape::arguments;
use crate::graph::Graph;
use crate::ops::Operation;
use crate::plan::Backward;
use std::ops::Range;

/// Chunks whose sums are worth a launch of their own while the backward pass goes on: of all members, and of each. A layer of a decoder of
/// 135M has 216.
const WORTH_IT: usize = 200;
const OF_EACH: usize = 50;

/// How far a backward pass's sums are.
pub(super) struct Squares {
    /// For each parameter, the last step that may write its gradient.
    lasts: Vec<Option<usize>>,
    /// The first chunk that has been summed.
    summed: usize,
    /// As many are worth a launch.
    worth_it: usize,
}

impl Squares {
    pub(super) fn new(lowering: &Lowering<'_>) -> Self {
        let tools = lowering.tools;
        let lasts = lasts(tools.graph, tools.plan.backward());
        let worth_it = (WORTH_IT / lowering.addresses.members).max(OF_EACH);
        Self { lasts, summed: chunks(lowering.length()), worth_it }
    }

    /// Sums aside what is complete after the step at a place, where that is worth a launch.
    pub(super) fn sum_complete(&mut self, lowering: &mut Lowering<'_>, place: usize) -> Result<()> {
        let complete = chunks(complete_from(lowering.tools.graph, &self.lasts, place));
        if complete + self.worth_it <= self.summed {
            lowering.sum_squares(complete..self.summed, true)?;
            self.summed = complete;
        }
        Ok(())
    }

    /// Sums the rest, once what runs aside is over.
    pub(super) fn sum_rest(self, lowering: &mut Lowering<'_>) -> Result<()> {
        lowering.tape.wait();
        lowering.sum_squares(0..self.summed, false)
    }
}

impl Lowering<'_> {
    /// Sums the squares of some chunks of the gradients, where they are wanted.
    fn sum_squares(&mut self, which: Range<usize>, aside: bool) -> Result<()> {
        let Some(squares) = self.addresses.squares else { return Ok(()) };
        let Addresses { gradient, places, live, members, .. } = self.addresses;
        let (length, grid) = (self.length(), (which.len(), members, 1));
        let arguments =
            arguments![gradient, places, squares, live, false, which.start, chunks(length), length];
        self.aside = aside;
        let launched = self.launch("norm", (STEP, "sum_squares"), grid, 256, 0, arguments);
        self.aside = false;
        launched
    }
}

/// For each parameter, the place of the last step of a backward pass that may write its gradient; `None` where none does.
fn lasts(graph: &Graph, backward: &[Backward]) -> Vec<Option<usize>> {
    let mut lasts = vec![None; graph.layout().slices().len()];
    for (place, step) in backward.iter().enumerate() {
        for param in graph.ops()[step.op].reads().params {
            lasts[param.0] = Some(place);
        }
    }
    lasts
}

/// The scalar from which on a gradient is complete after the step at a place.
fn complete_from(graph: &Graph, lasts: &[Option<usize>], place: usize) -> usize {
    let slices = graph.layout().slices().iter().zip(lasts);
    let open = slices.filter(|(_, last)| last.is_some_and(|last| last > place));
    open.map(|(slice, _)| slice.offset + slice.len()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Init;
    use crate::ops::Activation;
    use crate::plan::Plan;

    #[test]
    fn gradients_are_complete_from_the_end_on() {
        let mut g = Graph::new();
        let x = g.scalars("x", 1, 4);
        let first = g.param("first", &[4, 4], Init::Zeros).unwrap();
        let second = g.param("second", &[4, 4], Init::Zeros).unwrap();
        let unread = g.param("unread", &[8], Init::Zeros).unwrap();
        let y = g.linear(x, first, None, Activation::None).unwrap();
        let z = g.linear(y, second, None, Activation::None).unwrap();
        let again = g.linear(z, first, None, Activation::None).unwrap();
        let plan = Plan::training(&g, &[again]);
        let lasts = lasts(&g, plan.backward());
        // Steps: again, z, y. The first weight is read twice, so its gradient is complete with the last of them.
        assert_eq!([first, second, unread].map(|param| lasts[param.0]), [Some(2), Some(1), None]);
        let ends = [first, second].map(|param| {
            let slice = g.layout().slice(param);
            slice.offset + slice.len()
        });
        assert_eq!([0, 1, 2].map(|place| complete_from(&g, &lasts, place)), [ends[1], ends[0], 0]);
    }
}
