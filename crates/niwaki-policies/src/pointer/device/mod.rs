//! Whole constructions on the device: a pointer's steps and a shop's dynamics in one kernel, without a word to the host.
//!
//! `construct.cu` is the pointer's part: it encodes nothing, draws every choice, and writes down what scoring reads of a
//! step. A shop is one `.cu` file, a struct with what a trajectory keeps and a kernel that takes the pointer's parameters
//! first and its own after them, one Rust file that says what that kernel is given, and a line of [`Tables`].

mod flow_shop;
mod job_shop;
mod tables;

pub(super) use tables::Tables;

use super::program::PointerShape;
use niwaki_nn::{Answer, Argument, Extension, HostArray, Index, Param, Point, Value};

/// Trajectories of an item that are built side by side, a warp each.
const MOST_WARPS: usize = 16;

/// Bytes of a scalar.
const SCALAR: usize = 4;

/// The pointer's handles to a program that scores trajectories.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pointing {
    pub(super) shape: PointerShape,
    /// `[candidates + 1, width]`; the last row is for the first step.
    pub(super) known: Value,
    pub(super) point: Point,
    /// `[context, width]`.
    pub(super) weight: Param,
    /// `[width]`.
    pub(super) bias: Param,
    /// `[rows]`: the last choice.
    pub(super) last: Index,
    /// `[rows, context]`.
    pub(super) context: Value,
    /// `[rows]`: what is chosen.
    pub(super) actions: Index,
}

/// A shop's dynamics for all items of a run.
#[derive(Clone, Debug)]
pub(super) struct Dynamics<'a> {
    /// Its name in messages and profiles.
    name: &'static str,
    /// The pointer's source, then the shop's own.
    source: &'static str,
    /// The kernel, which takes the pointer's parameters, then the tables, where each trajectory's makespan goes, and the
    /// numbers.
    kernel: &'static str,
    /// Entries per item, and those of all items.
    tables: Vec<(usize, HostArray<'a>)>,
    numbers: Vec<usize>,
    /// Scalars of shared memory that a trajectory keeps.
    room: usize,
}

impl<'a> Dynamics<'a> {
    /// The arrays of a run; without uniforms the likeliest candidates are taken.
    pub(super) fn given(&self, uniforms: Option<&'a [f64]>) -> Vec<HostArray<'a>> {
        let tables = self.tables.iter().map(|(_, table)| *table);
        tables.chain(uniforms.map(HostArray::Doubles)).collect()
    }
}

impl Pointing {
    /// The kernel of a shop. It answers with the choices and each trajectory's makespan.
    pub(super) fn extension(&self, shop: &Dynamics<'_>, sampled: bool) -> Extension {
        let PointerShape { candidates, horizon, context, group, width, heads, .. } = self.shape;
        let tables = shop.tables.len();
        let mut given: Vec<usize> = shop.tables.iter().map(|(per_item, _)| *per_item).collect();
        given.extend(sampled.then_some(group * horizon));
        let mut arguments = vec![
            Argument::Value(self.known),
            Argument::Value(self.point.glimpse),
            Argument::Value(self.point.key),
            Argument::Param(self.weight),
            Argument::Param(self.bias),
            Argument::Stride,
            if sampled { Argument::HostArray(tables) } else { Argument::Null },
            Argument::Answer(0),
            Argument::Index(self.last),
            Argument::Value(self.context),
            Argument::Mask(self.point.open),
            Argument::Items,
            Argument::Integer(group),
            Argument::Integer(horizon),
            Argument::Integer(candidates),
            Argument::Integer(context),
            Argument::Scalar(self.point.bound as f32),
        ];
        arguments.extend((0..tables).map(Argument::HostArray));
        arguments.push(Argument::Answer(1));
        arguments.extend(shop.numbers.iter().map(|&number| Argument::Integer(number)));
        // Rows of keys are padded by a quad.
        let warps = group.min(MOST_WARPS);
        let shared = candidates * (3 * width + 8) + (candidates + 1 + context + 1) * width;
        let own = 2 * width + heads * candidates + context + shop.room;
        Extension {
            name: shop.name,
            source: shop.source,
            constants: vec![
                ("CONSTRUCT_WIDTH", width),
                ("CONSTRUCT_HEADS", heads),
                ("CONSTRUCT_RESIDUAL", usize::from(self.point.residual)),
            ],
            kernel: shop.kernel,
            threads: 32 * warps,
            shared: (shared + warps * own) * SCALAR,
            given,
            answers: vec![Answer::Index(self.actions), Answer::PerItem(group)],
            arguments,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::flow_shop::flow_shop;
    use super::job_shop::job_shop;
    use super::*;
    use niwaki_shop::construct::JobOrder;

    /// What stands between the brackets that follow a name.
    fn bracketed<'a>(source: &'a str, name: &str) -> &'a str {
        let from = source.find(name).unwrap_or_else(|| panic!("no {name}")) + name.len();
        let after = source[from..].trim_start_matches('(');
        &after[..after.find([')', '{']).unwrap()]
    }

    /// A kernel takes as many arguments as it is handed: the compiler of the device would not say so.
    #[test]
    fn every_kernel_takes_what_it_is_given() {
        let shape = PointerShape {
            candidates: 5,
            horizon: 5,
            features: 3,
            context: 6,
            group: 2,
            width: 8,
            heads: 2,
            blocks: 1,
            hidden: 8,
            residual: true,
            bound: 10.0,
        };
        let policy = shape.policy().unwrap();
        let jobs = job_shop([2, 3], JobOrder::Machine, &[0; 15], &[0; 4], &[1.0]).unwrap();
        let shops = [(flow_shop(3, &[0; 15], &[1.0], &[1.0]), vec![15, 1, 1]), (jobs, vec![15, 4, 1])];
        for (shop, given) in shops {
            let extension = policy.pointing().extension(&shop, true);
            let pointers = bracketed(extension.source, "#define POINTER_PARAMETERS")
                .lines()
                .take_while(|line| !line.starts_with("#define POINTER "));
            let pointers: usize = pointers.map(|line| line.matches(',').count()).sum();
            let own = bracketed(extension.source, &format!("{}(POINTER_PARAMETERS", extension.kernel));
            assert_eq!(pointers + 1 + own.matches(',').count(), extension.arguments.len());
            assert_eq!(extension.given, [&given[..], &[10]].concat());
            let greedy = policy.pointing().extension(&shop, false);
            assert_eq!(greedy.arguments.len(), extension.arguments.len());
            assert_eq!(greedy.given, given);
        }
    }
}
