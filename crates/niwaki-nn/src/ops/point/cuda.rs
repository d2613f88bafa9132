//! A pointer on CUDA: glimpse and pointer in one kernel each way.

use super::{Point, PointAt, picked_by, query_makers};
use crate::cuda::Precision;
use crate::cuda::check::{Case, grown};
use crate::cuda::kernels::{File, PRODUCTS, SHARED_LIMIT, TENSOR, Unit};
use crate::cuda::lower::{Lowering, Partial, Program, SCALAR};
use crate::cuda::tape::{Arguments, arguments};
use crate::graph::{Graph, Index, Shape, Value};
use crate::layout::Param;
use crate::ops::attention::cuda::{ROWS, pitch, stage};
use crate::ops::{OnCuda, Op, Pick};
use crate::plan::{Backward, Write};
use crate::{Error, Init, Result};

/// Constants: those of the glimpse, columns of the context that queries are made of (none where queries are read), whether
/// the query joins its glimpse, and whether choices are picked.
const KERNELS: &File = &File {
    name: "point",
    source: &[PRODUCTS, TENSOR, include_str!("kernel.cu")],
    constants: &[
        "TENSOR_HEADS",
        "TENSOR_DEPTH",
        "TENSOR_KEYS",
        "TENSOR_SPLIT",
        "POINT_CONTEXT",
        "POINT_RESIDUAL",
        "POINT_PICKED",
    ],
    kernels: &[("point_forward", SHARED_LIMIT), ("point_backward", SHARED_LIMIT)],
};

impl OnCuda for PointAt {
    const CASES: &'static [Case] = &[
        ("point", |g| program(g, 6, 7, (64, 4), false)),
        ("point, one head", |g| program(g, 45, 3, (12, 1), false)),
        ("point, several tiles", |g| program(g, 200, 20, (64, 4), false)),
        ("point, many keys", |g| program(g, 70, 50, (64, 4), false)),
        ("point, with its query", |g| program(g, 200, 20, (64, 4), true)),
        ("point, with its query, one head", |g| program(g, 45, 3, (12, 1), true)),
        ("point, no bound", |g| program_free(g, 200, 20, (64, 4))),
        ("point, queries made", |g| program_made(g, 200, 20, (64, 4), 14, false)),
        ("point, queries made, many keys", |g| program_made(g, 70, 50, (64, 4), 17, false)),
        ("point, queries made, odd sizes", |g| program_made(g, 45, 7, (12, 4), 5, false)),
        ("point, queries made, with its query", |g| program_made(g, 200, 20, (64, 4), 14, true)),
        ("point, queries made, with its query, many keys", |g| program_made(g, 70, 40, (64, 4), 18, true)),
        ("point, queries made, with its query, odd sizes", |g| program_made(g, 45, 7, (12, 4), 5, true)),
        ("point, picked", |g| program_picked(g, 200, 20, (64, 4), 14)),
        ("point, picked, many keys", |g| program_picked(g, 70, 40, (64, 4), 18)),
        ("point, picked, odd sizes", |g| program_picked(g, 45, 7, (12, 4), 5)),
        ("point, more rows than are sorted out at once", |g| program(g, 1100, 5, (16, 2), false)),
        ("point, queries made, more rows than that", |g| program_made(g, 1100, 6, (16, 2), 5, true)),
    ];

    fn halves(&self, _: &Graph) -> Vec<Vec<Value>> {
        Vec::new()
    }

    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
        Ok(vec![unit(program.graph, program.outputs, self, program.precision)?])
    }

    fn lower(&self, to: &mut Lowering<'_>, _: usize) -> Result<()> {
        to.point_forward(self)
    }

    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
        to.point_backward(step, self)
    }
}

/// Warps of a block of the forward pass.
const MOST_FORWARD: usize = 8;

/// Rows whose places the kernels sort out at once, in shared memory: WINDOW there.
const WINDOW: usize = 1024;

/// Widest queries that the kernels are laid out for.
const MOST_COLUMNS: usize = 128;

/// Keys whose being open fits the bits that a lane keeps for them.
const MOST_KEYS: usize = 128;

/// Widest context that queries are made of in the kernels: more would not leave room for the sums in registers.
const MOST_CONTEXT: usize = 31;

/// Most keys that queries are made for in the kernels, for the same reason.
const MOST_MADE: usize = 50;

/// What a pointer's queries are made of: `known[last] + context · weight + bias`.
#[derive(Clone, Copy)]
struct Making {
    /// Positions of the `linear` and of the `gather` before it.
    ops: [usize; 2],
    known: Value,
    last: Index,
    context: Value,
    weight: Param,
    bias: Param,
}

/// Finds what a pointer's queries are made of, where its kernels can make them.
fn making(graph: &Graph, outputs: &[Value], point: &Point) -> Option<Making> {
    let ops = query_makers(graph, outputs, point)?;
    let (Op::Linear(linear), Op::Gather(gather)) = (&graph.ops()[ops[0]], &graph.ops()[ops[1]]) else {
        return None;
    };
    let (known, last, context) = (gather.input, gather.index, linear.input);
    let fits = graph.shape(point.key).rows <= MOST_MADE && graph.shape(context).width <= MOST_CONTEXT;
    let bias = linear.bias.filter(|_| fits)?;
    Some(Making { ops, known, last, context, weight: linear.weight, bias })
}

/// Which ops pointers do in their own kernels, by position.
pub(crate) fn folded(graph: &Graph, outputs: &[Value]) -> Vec<bool> {
    let mut folded = vec![false; graph.ops().len()];
    for op in graph.ops() {
        let Op::Point(PointAt { point, .. }) = op else { continue };
        let making = making(graph, outputs, point).into_iter().flat_map(|making| making.ops);
        for position in making.chain(picked_by(graph, outputs, op).map(|(position, _)| position)) {
            folded[position] = true;
        }
    }
    folded
}

/// The kernel file of a pointer's passes.
///
/// # Errors
/// If its sizes are beyond the kernels.
fn unit(graph: &Graph, outputs: &[Value], at: &PointAt, precision: Precision) -> Result<Unit> {
    let point = &at.point;
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
    let (heads, depth) = (point.heads as u8, (width / point.heads) as u8);
    let split = u8::from(precision == Precision::F32);
    let context = making(graph, outputs, point).map_or(0, |making| graph.shape(making.context).width as u8);
    let picked = picked_by(graph, outputs, &Op::Point(*at)).is_some();
    let (residual, picked) = (u8::from(point.residual), u8::from(picked));
    Ok(Unit::sized(KERNELS, &[heads, depth, keys as u8, split, context, residual, picked]))
}

/// Scalars of shared memory that a pointer's passes need: keys and what makes queries, and what a warp of the backward
/// pass transposes its rows in.
fn room(key: Shape, heads: usize, context: Option<usize>) -> (usize, usize) {
    let depth = key.width / heads;
    let made = context.map_or(0, |context| (context + 1).next_multiple_of(8) + key.rows + 2);
    let states = context.map_or(0, |context| stage(context + 1, depth));
    let rows = 3 * key.rows.next_multiple_of(8) + made;
    (rows * pitch(heads, depth), stage(depth, key.rows).max(states))
}

fn fitting(bytes: usize) -> Result<u32> {
    if bytes <= SHARED_LIMIT as usize {
        return Ok(bytes as u32);
    }
    let reason =
        format!("{bytes} bytes of shared memory are needed on this device and {SHARED_LIMIT} are there");
    Err(Error::Unsupported { op: "point", reason })
}

impl Lowering<'_> {
    /// The kernels' first arguments: queries, or what they are made of.
    fn queries(&self, point: &Point, making: Option<Making>) -> Result<Arguments> {
        let none: Option<u64> = None;
        let Some(Making { known, last, context, weight, bias, .. }) = making else {
            return Ok(arguments![
                self.base(point.query)?,
                none,
                none,
                none,
                none,
                none,
                self.length(),
                self.addresses.items,
            ]);
        };
        Ok(arguments![
            none,
            self.base(known)?,
            self.addresses.indices[last.position()],
            self.base(context)?,
            self.param(weight),
            self.param(bias),
            self.length(),
            self.addresses.items,
        ])
    }

    fn point_forward(&mut self, at: &PointAt) -> Result<()> {
        let PointAt { point, output } = at;
        let (rows, key) = (self.shape(point.query).rows, self.shape(point.key));
        let (graph, outputs) = (self.tools.graph, self.tools.plan.outputs());
        let making = making(graph, outputs, point);
        let arguments = self
            .queries(point, making)?
            .with(self.base(point.glimpse)?)
            .with(self.base(point.key)?)
            .with(self.addresses.masks[point.open.position()])
            .with(self.base(*output)?);
        let arguments = match picked_by(graph, outputs, &Op::Point(*at)) {
            None => (0..4).fold(arguments, |arguments, _| arguments.with(None)),
            Some((position, Pick { action, log_prob, entropy, .. })) => arguments
                .with(self.integers(action))
                .with(self.base(log_prob)?)
                .with(self.base(entropy)?)
                .with(self.saved(position)),
        };
        let arguments = arguments.with(rows).with(point.bound as f32);
        let context = making.map(|making| self.shape(making.context).width);
        let shared = fitting((room(key, point.heads, context).0 + rows.min(WINDOW)) * SCALAR)?;
        // About equally many tiles of rows for each warp.
        let tiles = rows.min(WINDOW).div_ceil(ROWS);
        let block = 32 * tiles.div_ceil(tiles.div_ceil(MOST_FORWARD)) as u32;
        let kernel = (unit(graph, outputs, at, self.tools.precision)?, "point_forward");
        self.launch("point", kernel, (self.items(), 1, 1), block, shared, arguments)
    }

    fn point_backward(&mut self, step: &Backward, at: &PointAt) -> Result<()> {
        let PointAt { point, output } = at;
        let (rows, key) = (self.shape(point.query).rows, self.shape(point.key));
        let (graph, outputs) = (self.tools.graph, self.tools.plan.outputs());
        let making = making(graph, outputs, point);
        let target = |write: Option<Write>, value: Value| match write {
            None => Ok((None, false)),
            Some(write) => Ok::<_, Error>((Some(self.cotangent(value)?), write == Write::Add)),
        };
        let (dquery, add_query) = match making {
            None => target(step.writes[0], point.query)?,
            // What the gather's backward pass would do with it.
            Some(Making { ops: [_, gather], known, .. }) => {
                let later = self.tools.plan.backward().iter().find(|step| step.op == gather);
                target(later.and_then(|step| step.writes[0]), known)?
            }
        };
        let (dglimpse, add_glimpse) = target(step.writes[1], point.glimpse)?;
        let (dkey, add_key) = target(step.writes[2], point.key)?;
        let context = making.map(|making| self.shape(making.context).width);
        let columns = context.map_or(0, |context| (context + 1) * key.width);
        let partial = self.scratch(self.items() * columns);
        let arguments = self
            .queries(point, making)?
            .with(self.base(point.glimpse)?)
            .with(self.base(point.key)?)
            .with(self.addresses.masks[point.open.position()])
            .with(self.base(*output)?);
        let arguments = match picked_by(graph, outputs, &Op::Point(*at)) {
            None => {
                (0..4).fold(arguments.with(self.cotangent(*output)?), |arguments, _| arguments.with(None))
            }
            Some((position, Pick { action, log_prob, entropy, .. })) => arguments
                .with(None)
                .with(self.integers(action))
                .with(self.must_saved(position)?)
                .with(self.maybe_cotangent(log_prob))
                .with(self.maybe_cotangent(entropy)),
        };
        let arguments = arguments
            .with(dquery)
            .with(partial)
            .with(dglimpse)
            .with(dkey)
            .with(add_query)
            .with(add_glimpse)
            .with(add_key)
            .with(rows)
            .with(point.bound as f32);
        let (keys, stage) = room(key, point.heads, context);
        let shared = fitting((keys + point.heads * stage + rows.min(WINDOW)) * SCALAR)?;
        let kernel = (unit(graph, outputs, at, self.tools.precision)?, "point_backward");
        self.launch("point'", kernel, (self.items(), 1, 1), 32 * point.heads as u32, shared, arguments)?;
        let Some(Making { weight, bias, .. }) = making else { return Ok(()) };
        let sums = Partial::dense(self.addresses.items, columns);
        self.gather_partials("point'", partial, sums, (weight, columns - key.width), Some(bias))
    }
}

fn program(
    g: &mut Graph,
    rows: usize,
    keys: usize,
    (width, heads): (usize, usize),
    residual: bool,
) -> Result<Vec<Value>> {
    let query = grown(g, "query", rows, width)?;
    let glimpse = grown(g, "glimpse", keys, 2 * width)?;
    let key = grown(g, "key", keys, width)?;
    let open = g.mask("open", rows, keys);
    let once = g.point(Point { query, glimpse, key, heads, residual, bound: 10.0, open })?;
    let again = g.point(Point { query, glimpse, key, heads, residual, bound: 2.0, open })?;
    Ok(vec![once, again])
}

/// Scores that are logits.
fn program_free(
    g: &mut Graph,
    rows: usize,
    keys: usize,
    (width, heads): (usize, usize),
) -> Result<Vec<Value>> {
    let query = grown(g, "query", rows, width)?;
    let glimpse = grown(g, "glimpse", keys, 2 * width)?;
    let key = grown(g, "key", keys, width)?;
    let open = g.mask("open", rows, keys);
    Ok(vec![g.point(Point { query, glimpse, key, heads, residual: true, bound: 0.0, open })?])
}

/// Queries of a last choice and a context, which nothing else reads.
fn program_made(
    g: &mut Graph,
    rows: usize,
    keys: usize,
    (width, heads): (usize, usize),
    context: usize,
    residual: bool,
) -> Result<Vec<Value>> {
    let known = grown(g, "known", keys + 1, width)?;
    let glimpse = grown(g, "glimpse", keys, 2 * width)?;
    let key = grown(g, "key", keys, width)?;
    let last = g.indices("last", rows, keys + 1);
    let state = g.scalars("state", rows, context);
    let open = g.mask("open", rows, keys);
    let weight = g.param("weight", &[context, width], Init::Linear { fan_in: context })?;
    let bias = g.param("bias", &[width], Init::Linear { fan_in: context })?;
    let gathered = g.gather(known, last)?;
    let query = g.linear_onto(gathered, state, weight, Some(bias))?;
    let once = g.point(Point { query, glimpse, key, heads, residual, bound: 10.0, open })?;
    Ok(vec![once, known])
}

/// A pointer whose choices alone are read.
fn program_picked(
    g: &mut Graph,
    rows: usize,
    keys: usize,
    sizes: (usize, usize),
    context: usize,
) -> Result<Vec<Value>> {
    let made = program_made(g, rows, keys, sizes, context, true)?;
    let Some(&Op::Point(PointAt { point, output })) = g.ops().last() else { return Ok(made) };
    let action = g.indices("action", rows, keys);
    let (log_prob, entropy) = g.pick_log_prob(output, action, Some(point.open))?;
    Ok(vec![log_prob, entropy])
}
