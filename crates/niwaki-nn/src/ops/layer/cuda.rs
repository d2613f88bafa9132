//! A decoder's layer on Hopper's tensor cores: five kernels there, five back, and one aside for the gradients of its parameters.
//!
//! `normed` values hold the stream times the gain: what scales a row is applied where a product ends. Cotangents of what follows such
//! a product are stored scaled alike, so that weights' gradients are products of what is stored.

use super::sizes::{Products, ROWS, SLICE, Sizes, across};
use super::{HEAD, Layer, OPS, stacked};
use crate::Result;
use crate::cuda::check::{Case, followed};
use crate::cuda::lower::{Lowering, Once, SCALAR, Tools, View};
use crate::cuda::map::{Swizzle, Tiled, two};
use crate::cuda::tape::{Arguments, arguments};
use crate::layout::Param;
use crate::ops::{Linear, Pulled, RmsNorm};
use crate::plan::Write;

/// Places that cotangents within layers take in turn, so that weights' gradients aside have time to read them.
const TURNS: usize = 4;

/// Multiprocessors that make gradients of parameters beside the backward pass (H200: with 52 of 132 a decoder's step took 2.72 ms, with 41,
/// 44, 48, 56 or 64 of them 2.76 to 2.78, with 32 or 24 2.95 and 3.29).
const fn beside(multiprocessors: usize) -> usize {
    multiprocessors * 2 / 5
}

pub(crate) const CASES: &[Case] = &[
    ("a decoder's layers", |g| {
        let stream = stacked(g, 70, 2, [192, 3, 1, 192])?;
        Ok(vec![followed(g, stream)?])
    }),
    ("a decoder's layers, wide", |g| {
        let stream = stacked(g, 131, 2, [128, 4, 2, 1088])?;
        Ok(vec![followed(g, stream)?])
    }),
    // Tiles of keys that some tiles of queries do not see, and heads that share nothing.
    ("a decoder's layers, many rows", |g| {
        let stream = stacked(g, 200, 2, [192, 2, 2, 192])?;
        Ok(vec![followed(g, stream)?])
    }),
    // The stream's cotangents above and below it have one place.
    ("a decoder's layer, alone", |g| {
        let stream = stacked(g, 70, 1, [192, 3, 1, 192])?;
        Ok(vec![followed(g, stream)?])
    }),
];

/// What a kernel is told: its Job. Addresses that are absent are 0.
#[derive(Default)]
struct Job {
    stream: u64,
    other: u64,
    gain: Option<u64>,
    turns: u64,
    given: (u64, usize),
    scales: u64,
    out: (u64, usize),
    second: u64,
    sums: u64,
    partial: u64,
    columns: usize,
    turned: usize,
    epsilon: f64,
}

impl Layer {
    /// The layers that the kernels can do in a training pass: alike, and two or more of them one behind the other, since the cotangents
    /// of the stream above and below one that stands alone would have the same place.
    pub(crate) fn able(tools: &Tools<'_>) -> Vec<Self> {
        let mut layers = Self::all(tools.graph, tools.plan.outputs());
        layers.retain(|layer| layer.is_able(tools));
        if let Some(first) = layers.first().copied() {
            layers.retain(|layer| layer.is_like(&first, tools.graph));
        }
        let all = layers.clone();
        layers.retain(|layer| all.iter().any(|other| layer.is_below(other) || other.is_below(layer)));
        layers
    }

    /// Whether the kernels can do it: all is stored in halves, and every cotangent is written as they do.
    fn is_able(&self, tools: &Tools<'_>) -> bool {
        let layout = tools.graph.layout();
        let ends = [self.norms[0].input, self.down.output];
        let between = self.between().map(|(value, _)| value);
        let half = between.iter().chain(&ends).all(|value| tools.halves[value.position()]);
        let gains = self.norms.map(|norm| norm.gain);
        let even = |gain: Param| layout.slice(gain).offset.is_multiple_of(8);
        let gains = gains.into_iter().all(|gain| even(gain) && tools.graph.has_one_reader(gain));
        // They say that nobody else reads the weights, and where these begin.
        let weights = [self.mixed, self.out, self.wide, self.down].map(|linear| linear.weight);
        let gradients = weights.iter().all(|weight| tools.half_gradients[weight.0]);
        // Rope adds to what attention has written of the values' columns; its step is attention's.
        let (set, add, alias) = (Some(Write::Set), Some(Write::Add), Some(Write::Alias));
        let expected: [&[Option<Write>]; OPS] =
            [&[add], &[set], &[set], &[set, add, set], &[set, alias], &[add], &[set], &[set], &[set, alias]];
        let writes = |part: usize| tools.plan.backward().iter().find(|step| step.op == self.first + part);
        let pulled = (0..OPS)
            .filter(|&part| part != 2)
            .all(|part| writes(part).is_some_and(|step| step.writes == expected[part]));
        half && gains && gradients && pulled
    }

    fn norm_at(&self, which: usize) -> usize {
        self.first + [0, 5][which]
    }

    fn attend_at(&self) -> usize {
        self.first + 3
    }
}

impl Lowering<'_> {
    /// The layer that has an op at this position, and which of its ops it is.
    pub(crate) fn layer_at(&self, position: usize) -> Option<(Layer, usize)> {
        let layer = self.layers.iter().find(|layer| (layer.first..layer.first + OPS).contains(&position))?;
        Some((*layer, position - layer.first))
    }

    /// The layer that begins where this one ends.
    fn layer_behind(&self, layer: &Layer) -> Option<Layer> {
        let (next, part) = self.layer_at(layer.first + OPS)?;
        (part == 0 && layer.is_below(&next)).then_some(next)
    }

    /// The layer that ends where this one begins.
    fn layer_before(&self, layer: &Layer) -> Option<Layer> {
        let (before, _) = self.layer_at(layer.first.checked_sub(1)?)?;
        before.is_below(layer).then_some(before)
    }

    fn products(&self, layer: &Layer) -> Products {
        Products::new(layer, |value| self.shape(value).width)
    }

    /// Parts of sums over rows that an op needs: for a norm squares on the way there, result times cotangent on the way back.
    fn row_sums(&mut self, op: usize, rows: usize, parts: usize) -> u64 {
        self.once(Once::Rows(op), rows * parts * SCALAR).0
    }

    /// The parts in which the squares of a norm's rows come.
    fn squares(&mut self, layer: &Layer, which: usize) -> (u64, usize) {
        let parts = match which {
            0 => self.layer_before(layer).map_or(1, |before| self.products(&before).down.blocks()),
            _ => self.products(layer).out.blocks(),
        };
        let rows = self.all_rows(layer.norms[which].input);
        (self.row_sums(layer.norm_at(which), rows, parts), parts)
    }

    /// Where the cotangent of what one of a layer's ops makes lies, by turns.
    fn within(&mut self, layer: &Layer, part: usize) -> u64 {
        let value = match part {
            0 | 5 => layer.down.output,
            1 => layer.mixed.output,
            3 => layer.attend.output,
            _ => layer.wide.output,
        };
        let bytes = self.cotangent_bytes(value);
        // Layers follow each other at a distance of their ops.
        self.once(Once::Within { part, turn: layer.first / OPS % TURNS }, bytes).0
    }

    /// The cotangent of the stream above a layer, in it, and below it.
    fn stream_cotangents(&mut self, layer: &Layer) -> Result<[u64; 3]> {
        let above = match self.layer_behind(layer) {
            Some(next) => self.within(&next, 0),
            None => self.cotangent(layer.down.output)?,
        };
        let below = match self.layer_before(layer) {
            Some(_) => self.within(layer, 0),
            None => self.cotangent(layer.norms[0].input)?,
        };
        Ok([above, self.within(layer, 5), below])
    }

    /// One of a layer's ops.
    pub(crate) fn layer_forward(&mut self, layer: &Layer, part: usize) -> Result<()> {
        match part {
            0 if self.layer_before(layer).is_none() => self.layer_start(layer),
            1 => self.layer_mixed(layer),
            3 => {
                let (packed, ways) = (self.pack(&layer.attend), self.seen_rows(&layer.attend)?);
                let saved = self.must_saved(layer.attend_at())?;
                self.early(|to| to.attend_packed(&layer.attend, packed, ways, saved))
            }
            4 => {
                let sizes = self.products(layer).out;
                self.layer_onto(&layer.out, sizes, Some((layer.norms[1], layer.norm_at(1))))
            }
            6 => self.layer_wide(layer),
            8 => {
                let next = self.layer_behind(layer).map(|next| (next.norms[0], next.norm_at(0)));
                self.layer_onto(&layer.down, self.products(layer).down, next)
            }
            // Done with the one before it.
            _ => Ok(()),
        }
    }

    /// Means of the cotangent of what attention gives times that.
    fn means(&mut self, layer: &Layer) -> u64 {
        let (rows, heads) = (self.all_rows(layer.attend.output), layer.attend.attention.heads);
        self.row_sums(layer.attend_at(), rows, heads)
    }

    /// The first layer's stream times gain, and its squares.
    fn layer_start(&mut self, layer: &Layer) -> Result<()> {
        let norm = layer.norms[0];
        let (x, y) = (self.view(norm.input)?, self.view(norm.output)?);
        let (sums, _) = self.squares(layer, 0);
        let arguments = arguments![
            x.at,
            self.param(norm.gain),
            y.at,
            sums,
            x.rows,
            x.rows_per_member,
            x.width,
            self.length(),
        ];
        let unit = self.products(layer).units()[0];
        self.launch("rms_norm", (unit, "layer_start"), (x.rows.div_ceil(8), 1, 1), 256, 0, arguments)
    }

    fn layer_mixed(&mut self, layer: &Layer) -> Result<()> {
        let (norm, rope, products) = (layer.norms[0], &layer.rope, self.products(layer));
        let given = self.squares(layer, 0);
        let job = Job {
            turns: self.turns(rope, HEAD / 2)?,
            given,
            scales: self.must_saved(layer.norm_at(0))?,
            out: (self.base(rope.output)?, self.shape(rope.output).width),
            second: self.base(layer.mixed.output)?,
            columns: products.mixed.total,
            turned: rope.heads,
            epsilon: norm.epsilon,
            ..Job::default()
        };
        let parts = products.down.blocks();
        self.layer_product("linear", &layer.mixed, products.mixed, self.base(norm.output)?, parts, job)
    }

    /// A product onto the stream, and what the norm behind it needs.
    fn layer_onto(&mut self, linear: &Linear, sizes: Sizes, next: Option<(RmsNorm, usize)>) -> Result<()> {
        let rows = self.all_rows(linear.output);
        let (gain, second, norm) = match next {
            Some((norm, at)) => (Some(self.param(norm.gain)), self.base(norm.output)?, at),
            // Nobody asks for the sums.
            None => (None, 0, usize::MAX),
        };
        let job = Job {
            stream: self.base(linear.residual.unwrap_or(linear.output))?,
            gain,
            out: (self.base(linear.output)?, sizes.total),
            second,
            sums: self.row_sums(norm, rows, sizes.blocks()),
            columns: sizes.total,
            ..Job::default()
        };
        self.layer_product("linear", linear, sizes, self.base(linear.input)?, 1, job)
    }

    fn layer_wide(&mut self, layer: &Layer) -> Result<()> {
        let (norm, products) = (layer.norms[1], self.products(layer));
        let given = self.squares(layer, 1);
        let job = Job {
            given,
            scales: self.must_saved(layer.norm_at(1))?,
            out: (self.base(layer.wide.output)?, products.wide.total),
            second: self.base(layer.gate.output)?,
            columns: products.wide.total / 2,
            epsilon: norm.epsilon,
            ..Job::default()
        };
        let parts = products.out.blocks();
        self.layer_product("linear", &layer.wide, products.wide, self.base(norm.output)?, parts, job)
    }

    /// The backward pass of one of a layer's ops.
    pub(crate) fn layer_backward(&mut self, layer: &Layer, part: usize) -> Result<()> {
        let [above, inside, below] = self.stream_cotangents(layer)?;
        let (products, rows) = (self.products(layer), self.all_rows(layer.down.output));
        match part {
            8 => {
                let (both, sizes) = (self.within(layer, 6), products.slope);
                self.wait_to_write(both, self.cotangent_bytes(layer.wide.output));
                let job = Job {
                    other: self.base(layer.wide.output)?,
                    scales: self.must_saved(layer.norm_at(1))?,
                    out: (both, 2 * sizes.total),
                    sums: self.row_sums(layer.norm_at(1), rows, sizes.blocks()),
                    columns: sizes.total,
                    ..Job::default()
                };
                self.layer_product("linear'", &layer.down, sizes, above, 1, job)
            }
            6 => self.layer_norm_backward(layer, 1, (above, inside), products.slope.blocks()),
            4 => {
                let attended = self.within(layer, 3);
                self.wait_to_write(attended, self.cotangent_bytes(layer.attend.output));
                let sizes = products.attended;
                let job = Job {
                    stream: self.base(layer.attend.output)?,
                    out: (attended, sizes.total),
                    sums: self.means(layer),
                    columns: sizes.total,
                    ..Job::default()
                };
                self.layer_product("linear'", &layer.out, sizes, inside, 1, job)
            }
            3 => {
                let mixed = self.within(layer, 1);
                self.wait_to_write(mixed, self.cotangent_bytes(layer.mixed.output));
                let pulled = Pulled {
                    slope: self.within(layer, 3),
                    means: self.means(layer),
                    turns: self.turns(&layer.rope, HEAD / 2)?,
                    out: mixed,
                    scaled: Some((
                        self.must_saved(layer.norm_at(0))?,
                        self.row_sums(layer.norm_at(0), rows, products.heads),
                    )),
                };
                let (packed, ways) = (self.pack(&layer.attend), self.seen_rows(&layer.attend)?);
                let known = (ways, self.must_saved(layer.attend_at())?);
                self.attend_packed_backward(&layer.attend, packed, known, pulled)
            }
            1 => {
                self.layer_norm_backward(layer, 0, (inside, below), products.heads)?;
                self.layer_gradients(layer, [above, inside, below])
            }
            // Done with the one behind it.
            _ => Ok(()),
        }
    }

    /// Through a product and the norm before it: the stream's cotangent goes from one place to another with what comes from here.
    fn layer_norm_backward(
        &mut self,
        layer: &Layer,
        which: usize,
        (from, to): (u64, u64),
        parts: usize,
    ) -> Result<()> {
        let (norm, products) = (layer.norms[which], self.products(layer));
        let (linear, sizes) =
            if which == 0 { (&layer.mixed, products.first) } else { (&layer.wide, products.second) };
        let (d, partial) = (self.within(layer, [1, 6][which]), self.gain_parts(layer, which));
        self.wait_to_write(to, self.cotangent_bytes(norm.input));
        let all = self.all_rows(norm.input);
        let job = Job {
            stream: self.base(norm.input)?,
            other: from,
            gain: Some(self.param(norm.gain)),
            given: (self.row_sums(layer.norm_at(which), all, parts), parts),
            scales: self.must_saved(layer.norm_at(which))?,
            out: (to, sizes.total),
            partial,
            columns: sizes.total,
            ..Job::default()
        };
        self.layer_product("linear'", linear, sizes, d, parts, job)
    }

    /// Gradients of all of a layer's parameters, aside: `above`, `inside` are the stream's cotangents.
    fn layer_gradients(&mut self, layer: &Layer, [above, inside, _]: [u64; 3]) -> Result<()> {
        let (products, members) = (self.products(layer), self.addresses.members);
        let sizes = products.gradients();
        let made = [
            (&layer.mixed, self.within(layer, 1)),
            (&layer.out, inside),
            (&layer.wide, self.within(layer, 6)),
            (&layer.down, above),
        ];
        let (mut tiled, mut tiles, mut read, mut first) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for (linear, at) in made {
            let (x, dy) = (self.view(linear.input)?, View { at, ..self.view(linear.output)? });
            for (view, (columns, swizzle)) in [(x, (ROWS, Swizzle::Bytes128)), (dy, across(sizes.columns))] {
                let (rows, width) = (view.rows_per_member, view.width);
                let matrix = Tiled::rows(view.at, [width, rows], [columns, SLICE], swizzle);
                tiled.push(matrix.of_members(members, rows * width));
                read.push(view);
            }
            let high = x.width.div_ceil(2 * ROWS);
            tiles.extend([self.gradient(linear.weight).0, two(first, high), two(dy.width, x.width)]);
            first += high * (dy.width / sizes.columns) * members;
        }
        let rows = read[0].rows_per_member;
        let blocks = rows.div_ceil(ROWS);
        let columns = self.shape(layer.norms[0].input).width;
        for (which, norm) in layer.norms.iter().enumerate() {
            tiles.extend([self.gain_parts(layer, which), self.gradient(norm.gain).0]);
        }
        let numbers = [two(4, 2), two(rows, members), two(self.length(), blocks), two(columns, 0)];
        tiles.extend(numbers);
        let grid = (first.min(beside(self.tools.multiprocessors)), 1, 1);
        let (kernel, arguments) = ((sizes.unit(), "layer_weights"), Arguments::behind(tiled, &tiles));
        self.aside = true;
        let launched = self.launch("weight'", kernel, grid, 288, sizes.shared(), arguments);
        self.aside = false;
        launched?;
        let place = self.tape.last();
        read.into_iter().for_each(|view| self.reads_aside(view, place));
        Ok(())
    }

    /// Where a gain's gradient lies in parts, one for each tile of rows.
    fn gain_parts(&mut self, layer: &Layer, which: usize) -> u64 {
        let norm = layer.norms[which];
        let View { rows_per_member, width, .. } = self.view_shape(norm.input);
        let count = self.addresses.members * rows_per_member.div_ceil(ROWS) * width;
        self.once(Once::Sums(layer.norm_at(which)), count * SCALAR).0
    }

    /// One product of a layer; `left` is `[rows, depth]`.
    fn layer_product(
        &mut self,
        label: &'static str,
        linear: &Linear,
        sizes: Sizes,
        left: u64,
        parts: usize,
        job: Job,
    ) -> Result<()> {
        let (members, rows) = (self.addresses.members, self.view(linear.input)?.rows_per_member);
        let (wide, swizzle) = across(sizes.columns);
        let tile = if sizes.is_forward() { [wide, SLICE] } else { [SLICE, sizes.columns] };
        let left = Tiled::rows(left, [sizes.depth, members * rows], [SLICE, ROWS], Swizzle::Bytes128);
        let swizzle = if sizes.is_forward() { swizzle } else { Swizzle::Bytes128 };
        let weight = [linear.output, linear.input].map(|value| self.shape(value).width);
        let right = Tiled::rows(self.working(linear.weight), weight, tile, swizzle);
        let right = right.of_members(members, self.length());
        let grid = (sizes.blocks(), rows.div_ceil(ROWS), members);
        let kernel = (sizes.unit(parts), "layer_product");
        let arguments = self.told(vec![left, right], sizes, rows, job);
        self.early(|to| to.launch(label, kernel, grid, 160, sizes.shared(), arguments))
    }

    /// The kernel's argument.
    fn told(&self, tiled: Vec<Tiled>, sizes: Sizes, rows: usize, job: Job) -> Arguments {
        let Job {
            stream,
            other,
            gain,
            turns,
            given,
            scales,
            out,
            second,
            sums,
            partial,
            columns,
            turned,
            epsilon,
        } = job;
        let mut words =
            vec![stream, other, gain.unwrap_or(0), turns, given.0, scales, out.0, second, sums, partial];
        words.extend([two(rows, columns), two(sizes.depth, given.1), two(out.1, turned)]);
        words.push(two(self.length(), (epsilon as f32).to_bits() as usize));
        Arguments::behind(tiled, &words)
    }
}
