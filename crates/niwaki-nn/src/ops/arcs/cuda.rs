//! Attention along arcs on CUDA: a warp per machine; backward a thread per machine, then one per operation, with partial sums for
//! the vectors.

use super::{Arcs, AttendArcs, Sizes};
use crate::cuda::check::{Case, grown};
use crate::cuda::kernels::{ENTRIES, File, Unit};
use crate::cuda::lower::{Block, Fused, Kind, Lowering, Partial, Program, SCALAR, Stage};
use crate::cuda::tape::arguments;
use crate::graph::{Graph, Value};
use crate::ops::OnCuda;
use crate::plan::{Backward, Write};
use crate::{Error, Init, Result};

const KERNELS: &File = &File {
    name: "arcs",
    source: &[ENTRIES, include_str!("leaky.cu"), include_str!("kernel.cu")],
    constants: &["ARCS_WIDTH"],
    kernels: &[("arcs_forward", 0), ("arcs_backward_machines", 0), ("arcs_backward_operations", 0)],
};

/// Threads of a block: backward each has a row.
const BLOCK: usize = 128;
/// Threads that have a row together.
const WARP: usize = 32;

/// The kernels for a width, which a thread must hold in registers.
fn unit(width: usize) -> Result<Unit> {
    if width > 64 {
        let reason = format!("rows of {width} do not fit a thread's registers on this device, at most 64 do");
        return Err(Error::Unsupported { op: "arcs", reason });
    }
    Ok(Unit::sized(KERNELS, &[width as u8]))
}

fn program(g: &mut Graph, each: usize, width: usize, grown_times: bool) -> Result<Vec<Value>> {
    // Three states of some operations and two machines.
    let rows = 3 * each;
    let operations = grown(g, "operations", rows, width)?;
    let machines = grown(g, "machines", 6, width)?;
    let times = if grown_times { grown(g, "times", rows, 2)? } else { g.scalars("times", rows, 2) };
    let [along, source, target] =
        ["along", "source", "target"].map(|name| g.param(name, &[width], Init::Normal { deviation: 0.5 }));
    let present = g.mask("present", rows, 2);
    let arcs = Arcs { operations, machines, times, along: along?, source: source?, target: target?, present };
    let once = g.attend_arcs(arcs)?;
    // The same parameters and operations again: gradients and cotangents must add up.
    let again = g.attend_arcs(Arcs { machines: once, ..arcs })?;
    Ok(vec![once, again, operations])
}

impl OnCuda for AttendArcs {
    const CASES: &'static [Case] = &[
        ("arcs 8", |g| program(g, 5, 8, false)),
        ("arcs 5, times that lead back", |g| program(g, 5, 5, true)),
        ("arcs 48, more operations than a warp has lanes", |g| program(g, 70, 48, false)),
    ];

    fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
        Vec::new()
    }

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        Ok(vec![unit(program.graph.shape(self.output).width)?])
    }

    fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
        let Sizes { operations, machines, width } = self.sizes(to.tools.graph);
        let Arcs { along, source, target, present, .. } = self.arcs;
        let rows = to.all_rows(self.output);
        let per_member = rows / to.addresses.members;
        let arguments = arguments![
            to.base(self.arcs.operations)?,
            to.base(self.arcs.machines)?,
            to.base(self.arcs.times)?,
            to.mask(Some(present)),
            to.param(along),
            to.param(source),
            to.param(target),
            to.length(),
            to.base(self.output)?,
            operations,
            machines,
            per_member,
        ];
        let grid = (per_member.div_ceil(BLOCK / WARP), to.addresses.members, 1);
        to.launch("arcs", (unit(width)?, "arcs_forward"), grid, BLOCK as u32, 0, arguments)
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        let Sizes { operations, machines, width } = self.sizes(to.tools.graph);
        let Arcs { along, source, target, present, .. } = self.arcs;
        let members = to.addresses.members;
        let (rows, others) = (to.all_rows(self.output), to.all_rows(self.arcs.operations));
        let (own, other) = ((rows / members).div_ceil(BLOCK), (others / members).div_ceil(BLOCK));
        // What the second kernel needs of each machine, then the partial sums of both.
        let stats = to.scratch(2 * rows + members * width * (own + 2 * other));
        let scalars = |count: usize| (count * SCALAR) as u64;
        let first = stats + scalars(2 * rows);
        let second = first + scalars(members * own * width);
        // The machines' kernel comes first, and the other writes times before operations: one value may be several of
        // them, and the first to write it replaces what is there.
        let values = [self.arcs.operations, self.arcs.machines, self.arcs.times];
        let (mut into, mut begun) = ([(None, false); 3], Vec::new());
        for place in [1, 2, 0] {
            if step.writes[place].is_none() {
                continue;
            }
            let mut same = values.iter().zip(&step.writes).filter(|(value, _)| **value == values[place]);
            let fresh = same.any(|(_, write)| *write == Some(Write::Set));
            into[place] = (Some(to.cotangent(values[place])?), !fresh || begun.contains(&values[place]));
            begun.push(values[place]);
        }
        let [of, on, times] = [to.base(values[0])?, to.base(values[1])?, to.base(values[2])?];
        let d = to.cotangent(self.output)?;
        let arguments = arguments![
            of,
            on,
            times,
            to.mask(Some(present)),
            to.param(along),
            to.param(source),
            to.param(target),
            to.length(),
            d,
            stats,
            into[1].0,
            into[1].1,
            first,
            operations,
            machines,
            rows / members,
        ];
        let unit = unit(width)?;
        to.launch("arcs'", (unit, "arcs_backward_machines"), (own, members, 1), BLOCK as u32, 0, arguments)?;
        to.gather_partials("arcs'", first, Partial::dense(own, width), (target, width), None)?;
        let arguments = arguments![
            of,
            on,
            times,
            to.mask(Some(present)),
            to.param(along),
            to.param(source),
            to.param(target),
            to.length(),
            d,
            stats,
            into[0].0,
            into[0].1,
            into[2].0,
            into[2].1,
            second,
            operations,
            machines,
            others / members,
        ];
        to.launch(
            "arcs'",
            (unit, "arcs_backward_operations"),
            (other, members, 1),
            BLOCK as u32,
            0,
            arguments,
        )?;
        to.gather_partials("arcs'", second, Partial::dense(other, 2 * width), (along, width), Some(source))
    }
}

impl Fused for AttendArcs {
    fn stages(&self, block: &Block<'_>) -> Result<Vec<Stage>> {
        let Sizes { operations, machines, width } = self.sizes(block.graph());
        let Arcs { along, source, target, present, .. } = self.arcs;
        let rows = block.shape(self.output).rows;
        let states = rows / machines;
        let values = [self.arcs.operations, self.arcs.machines, self.arcs.times];
        let [of, on, times] = values.map(|value| block.value(value));
        let stage = Stage::new(Kind::Arcs).at(&[along, source, target].map(|vector| block.param(vector)));
        let stage = stage.with(&[of?, on?, times?, block.mask(Some(present))?]);
        let stage = stage.with(&[operations, machines, states, width]);
        let stage = stage.with(&[block.value(self.output)?, block.room]);
        // Of each operation a score; of each machine one, too, a weight for each operation, and three sums.
        Ok(vec![stage.using(states * operations + rows * (1 + operations + 3))])
    }
}
