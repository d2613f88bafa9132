//! `point`: glimpse and pointer in one kernel each way, and whole constructions.

use super::{Lowering, SCALAR};
use crate::cuda::kernels::{SHARED_LIMIT, Unit};
use crate::cuda::tape::arguments;
use crate::engine::Constructing;
use crate::graph::{Graph, Point, Value};
use crate::plan::{Backward, Write};
use crate::{Error, Result};

/// Threads of a block, each with a row: most of the backward pass, and of the forward pass.
const MOST_ROWS: usize = 160;

/// Trajectories of an item that are built side by side.
const MOST_WARPS: usize = 16;

/// Widest queries: a thread keeps a row of them and of its cotangent in registers.
const MOST_COLUMNS: usize = 128;

/// The kernel file of a pointer's sizes.
///
/// # Errors
/// If a row is too wide for a thread.
pub(super) fn unit(graph: &Graph, point: &Point) -> Result<Unit> {
    let width = graph.shape(point.query).width;
    let keys = graph.shape(point.key).rows;
    if keys > MOST_KEYS {
        let reason = format!("{keys} keys are more than the {MOST_KEYS} of this device");
        return Err(Error::Unsupported { op: "point", reason });
    }
    if width > MOST_COLUMNS || !width.is_multiple_of(2) {
        let reason =
            format!("{width} columns of queries; this device takes an even number up to {MOST_COLUMNS}");
        return Err(Error::Unsupported { op: "point", reason });
    }
    Ok(Unit::Point(width as u8, point.heads as u8))
}

/// Threads for some rows: whole warps, and about equally many rows for each.
fn threads(rows: usize, most: usize) -> usize {
    rows.div_ceil(rows.div_ceil(most)).next_multiple_of(32)
}

/// Keys that a row's open ones are kept for.
const MOST_KEYS: usize = 128;

fn fitting(bytes: usize) -> Result<u32> {
    if bytes <= SHARED_LIMIT as usize {
        return Ok(bytes as u32);
    }
    let reason =
        format!("{bytes} bytes of shared memory are needed on this device and {SHARED_LIMIT} are there");
    Err(Error::Unsupported { op: "point", reason })
}

/// Where a construction's data lies: inputs of the line, uniforms (0 for none) and what comes out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Places {
    pub(crate) times: u64,
    pub(crate) whole: u64,
    pub(crate) unit: u64,
    pub(crate) uniforms: u64,
    pub(crate) ends: u64,
}

impl<'a> Lowering<'a> {
    pub(super) fn point_forward(&mut self, point: &Point, output: Value) -> Result<()> {
        let (rows, key) = (self.shape(point.query).rows, self.shape(point.key));
        let arguments = arguments![
            self.base(point.query)?,
            self.base(point.glimpse)?,
            self.base(point.key)?,
            self.ground.masks[point.open.position()],
            self.base(output)?,
            rows,
            key.rows,
            point.bound as f32,
        ];
        let shared = fitting(3 * key.size() * SCALAR)?;
        let kernel = (unit(self.tools.graph, point)?, "point_forward");
        let block = threads(rows, MOST_ROWS) as u32;
        self.launch("point", kernel, (self.items(), 1, 1), block, shared, arguments)
    }

    pub(super) fn point_backward(&mut self, step: &Backward, point: &Point, output: Value) -> Result<()> {
        let (rows, key) = (self.shape(point.query).rows, self.shape(point.key));
        let target = |place: usize, value: Value| match step.writes[place] {
            None => Ok((None, false)),
            Some(write) => Ok::<_, Error>((Some(self.cotangent(value)?), write == Write::Add)),
        };
        let (dquery, add_query) = target(0, point.query)?;
        let (dglimpse, add_glimpse) = target(1, point.glimpse)?;
        let (dkey, add_key) = target(2, point.key)?;
        let depth = key.width / point.heads;
        let bytes = |threads: usize| (6 * key.size() + 3 * (key.rows + depth) * (threads + 4)) * SCALAR;
        // As many rows at a time as there is room for.
        let most = (1..=MOST_ROWS / 32).rev().map(|warps| 32 * warps);
        let most = most.clone().find(|&most| bytes(most) <= SHARED_LIMIT as usize).unwrap_or(32);
        let block = threads(rows, most);
        let arguments = arguments![
            self.base(point.query)?,
            self.base(point.glimpse)?,
            self.base(point.key)?,
            self.ground.masks[point.open.position()],
            self.cotangent(output)?,
            dquery,
            dglimpse,
            dkey,
            add_query,
            add_glimpse,
            add_key,
            rows,
            key.rows,
            point.bound as f32,
        ];
        let kernel = (unit(self.tools.graph, point)?, "point_backward");
        let shared = fitting(bytes(block))?;
        self.launch("point'", kernel, (self.items(), 1, 1), block as u32, shared, arguments)
    }

    /// The encoding of all items, then whole constructions.
    ///
    /// # Errors
    /// If an op's shape is beyond the kernels.
    pub(crate) fn constructing(
        tools: super::Tools<'a>,
        ground: &super::Ground,
        program: &Constructing,
        places: Places,
    ) -> Result<super::Lowered> {
        let mut lowering = Self::new(tools, ground, None);
        for &position in tools.plan.forward() {
            lowering.op_forward(position)?;
        }
        let key = lowering.shape(program.point.key);
        let inputs = lowering.shape(program.context).width;
        let (stations, group) = (inputs / 2, lowering.shape(program.context).rows / key.rows);
        let arguments = arguments![
            lowering.base(program.known)?,
            lowering.base(program.point.glimpse)?,
            lowering.base(program.point.key)?,
            lowering.param(program.weight),
            lowering.param(program.bias),
            lowering.length(),
            places.times,
            places.whole,
            places.unit,
            places.uniforms,
            ground.indices[program.actions.position()],
            ground.indices[program.last.position()],
            ground.inputs[program.context.position()],
            ground.masks[program.point.open.position()],
            places.ends,
            ground.items,
            group,
            key.rows,
            stations,
            program.point.bound as f32,
        ];
        // A warp per trajectory; rows of keys are padded by a quad.
        let warps = group.min(MOST_WARPS);
        let block = 32 * warps;
        let weights = key.rows * (3 * key.width + 8) + (key.rows + 1 + inputs + 1) * key.width;
        let own = 2 * key.width + program.point.heads * key.rows + inputs + stations;
        let shared = fitting((weights + warps * own) * SCALAR)?;
        let kernel = (unit(tools.graph, &program.point)?, "point_construct");
        lowering.launch("construct", kernel, (lowering.items(), 1, 1), block as u32, shared, arguments)?;
        Ok(lowering.finish())
    }
}
