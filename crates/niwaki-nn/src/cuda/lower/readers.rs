//! What runs aside reads, and who must not overwrite it before.

use super::{Lowering, View, bytes};
use crate::graph::Value;
use crate::ops::Op;
use crate::plan::{Backward, Write};
use std::ops::Range;

impl Lowering<'_> {
    /// Sees to it that products aside have read what a step of the backward pass writes: cotangents of its operands, and, where an
    /// activation's slope is applied in place, that of its output.
    pub(crate) fn wait_for_readers(&mut self, step: &Backward) {
        if self.read_aside.is_empty() {
            return;
        }
        let op = &self.tools.graph.ops()[step.op];
        // Such an op does the steps of others, too.
        let several = self.perceptrons[step.op].is_some() || matches!(op, Op::Point(_));
        let written = op
            .operands()
            .into_iter()
            .zip(&step.writes)
            .filter(|(_, write)| matches!(write, Some(Write::Set | Write::Add)));
        let written = written.map(|(operand, _)| operand).chain(op.outputs());
        let written: Vec<Range<u64>> = written.filter_map(|value| self.cotangent_range(value)).collect();
        let overwritten =
            |read: &Range<u64>| written.iter().any(|range| read.start < range.end && range.start < read.end);
        self.wait_for_reads(|read| several || overwritten(read));
    }

    /// Sees to it that products aside have read what lies at a place that is written next.
    pub(crate) fn wait_to_write(&mut self, at: u64, bytes: usize) {
        let written = at..at + bytes as u64;
        self.wait_for_reads(|read| read.start < written.end && written.start < read.end);
    }

    fn wait_for_reads(&mut self, concerns: impl Fn(&Range<u64>) -> bool) {
        let readers = self.read_aside.iter().filter(|(read, _)| concerns(read));
        // What was queued aside before the last of them has then run, too.
        if let Some(last) = readers.map(|&(_, place)| place).max() {
            self.tape.wait_for(last);
            self.read_aside.retain(|&(_, place)| place > last);
        }
    }

    fn cotangent_range(&self, value: Value) -> Option<Range<u64>> {
        let at = self.maybe_cotangent(value)?;
        Some(at..at + self.cotangent_bytes(value) as u64)
    }

    /// Notes what a product aside reads, at its place on the tape.
    pub(crate) fn reads_aside(&mut self, view: View, place: usize) {
        let bytes = view.rows * view.pitch * bytes(view.half);
        self.read_aside.push((view.at..view.at + bytes as u64, place));
    }
}
