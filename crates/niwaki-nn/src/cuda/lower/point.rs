//! `point`: glimpse and pointer in one kernel each way, and whole constructions.

use super::{Lowering, SCALAR};
use crate::cuda::blas::Precision;
use crate::cuda::kernels::{SHARED_LIMIT, Unit};
use crate::cuda::tape::arguments;
use crate::engine::Constructing;
use crate::graph::{Graph, Point, Shape, Value};
use crate::plan::{Backward, Write};
use crate::{Error, Result};

/// Rows that a warp takes at a time.
const ROWS: usize = 16;

/// Warps of a block of the forward pass.
const MOST_FORWARD: usize = 8;

/// Trajectories of an item that are built side by side.
const MOST_WARPS: usize = 16;

/// Widest queries that the kernels are laid out for.
const MOST_COLUMNS: usize = 128;

/// Keys whose being open fits the bits that a lane keeps for them.
const MOST_KEYS: usize = 128;

/// The kernel files of a pointer's sizes: its passes, and constructions by it.
///
/// # Errors
/// If its sizes are beyond the kernels.
pub(super) fn units(graph: &Graph, point: &Point, precision: Precision) -> Result<[Unit; 2]> {
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
    let (width, heads) = (width as u8, point.heads as u8);
    let split = precision == Precision::F32;
    Ok([Unit::Point { width, heads, keys: keys as u8, split }, Unit::Construct(width, heads)])
}

/// Scalars of shared memory that a pointer's passes need: the keys of an item, and what a warp of the backward pass
/// turns its rows in. The file of the kernels says how they lie.
fn room(key: Shape, heads: usize) -> (usize, usize) {
    let (tiles, depth) = (key.rows.div_ceil(8), key.width / heads);
    let keys = 3 * 8 * tiles * (heads * depth.next_multiple_of(8) + 4);
    let stage = (depth.next_multiple_of(16) + 8 * tiles + 23) / 32 * 32 + 8;
    (keys, ROWS * stage)
}

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
        let [unit, _] = units(self.tools.graph, point, self.tools.precision)?;
        let arguments = arguments![
            self.base(point.query)?,
            self.base(point.glimpse)?,
            self.base(point.key)?,
            self.ground.masks[point.open.position()],
            self.base(output)?,
            rows,
            point.bound as f32,
        ];
        let shared = fitting(room(key, point.heads).0 * SCALAR)?;
        // About equally many tiles of rows for each warp.
        let tiles = rows.div_ceil(ROWS);
        let block = 32 * tiles.div_ceil(tiles.div_ceil(MOST_FORWARD)) as u32;
        self.launch("point", (unit, "point_forward"), (self.items(), 1, 1), block, shared, arguments)
    }

    pub(super) fn point_backward(&mut self, step: &Backward, point: &Point, output: Value) -> Result<()> {
        let (rows, key) = (self.shape(point.query).rows, self.shape(point.key));
        let [unit, _] = units(self.tools.graph, point, self.tools.precision)?;
        let target = |place: usize, value: Value| match step.writes[place] {
            None => Ok((None, false)),
            Some(write) => Ok::<_, Error>((Some(self.cotangent(value)?), write == Write::Add)),
        };
        let (dquery, add_query) = target(0, point.query)?;
        let (dglimpse, add_glimpse) = target(1, point.glimpse)?;
        let (dkey, add_key) = target(2, point.key)?;
        let arguments = arguments![
            self.base(point.query)?,
            self.base(point.glimpse)?,
            self.base(point.key)?,
            self.ground.masks[point.open.position()],
            self.base(output)?,
            self.cotangent(output)?,
            dquery,
            dglimpse,
            dkey,
            add_query,
            add_glimpse,
            add_key,
            rows,
            point.bound as f32,
        ];
        let (keys, stage) = room(key, point.heads);
        let shared = fitting((keys + point.heads * stage) * SCALAR)?;
        let block = 32 * point.heads as u32;
        self.launch("point'", (unit, "point_backward"), (self.items(), 1, 1), block, shared, arguments)
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
        let [_, unit] = units(tools.graph, &program.point, tools.precision)?;
        lowering.launch(
            "construct",
            (unit, "point_construct"),
            (lowering.items(), 1, 1),
            block as u32,
            shared,
            arguments,
        )?;
        Ok(lowering.finish())
    }
}
