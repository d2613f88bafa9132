//! The tiles of a layer's products, and the kernels for them.

use super::Layer;
use crate::cuda::Precision;
use crate::cuda::kernels::{EARLY, File, TILES, Unit};
use crate::cuda::lower::Program;
use crate::cuda::map::Swizzle;
use crate::graph::Value;
use crate::ops::Linear;

/// Bytes of shared memory that a block may ask for on Hopper beside its barriers.
const SHARED: u32 = 226 * 1024;

const KERNELS: &File = &File {
    name: "layer",
    source: &[EARLY, TILES, include_str!("kernel.cu")],
    constants: &["TILE_COLUMNS", "TILE_STAGES", "LAYER_ENDING", "LAYER_SPLIT", "LAYER_GIVEN"],
    kernels: &[("layer_product", SHARED), ("layer_start", 0)],
};

/// Gradients of weights.
const WEIGHT_KERNELS: &File = &File {
    name: "layer-weight",
    source: &[TILES, include_str!("weight.cu")],
    constants: &["TILE_COLUMNS", "TILE_STAGES"],
    kernels: &[("layer_weights", SHARED)],
};

/// Rows of a tile, and scalars of a slice of the summed axis.
pub(super) const ROWS: usize = 64;
pub(super) const SLICE: usize = 64;

/// The summed axis from which on two blocks share it.
const LONG: usize = 1024;

/// Stages of a block that makes weights' gradients.
const GRADIENT_STAGES: usize = 5;

/// What becomes of a product: the kernel's ENDING.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Turn,
    Onto,
    Gate,
    Slope,
    Norm,
    Plain,
}

/// A product's tiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    pub(super) ending: Ending,
    /// Columns in all, and of a tile.
    pub(super) total: usize,
    pub(super) columns: usize,
    pub(super) depth: usize,
    /// Blocks that share the summed axis.
    pub(super) split: usize,
}

impl Sizes {
    pub(super) fn new(ending: Ending, total: usize, depth: usize) -> Self {
        let split = match ending {
            Ending::Onto | Ending::Norm if depth > LONG => 2,
            _ => 1,
        };
        let by = |wide: usize, narrow: usize| if total.is_multiple_of(wide) { wide } else { narrow };
        let columns = match ending {
            Ending::Gate => by(192, 128),
            Ending::Slope => by(128, 64),
            _ if split > 1 => by(96, 64),
            _ => 64,
        };
        Self { ending, total, columns, depth, split }
    }

    /// Blocks along the columns, each of which has a part of what is summed over a row.
    pub(super) fn blocks(&self) -> usize {
        self.total / self.columns * self.split
    }

    /// Bytes in which blocks that share a product exchange sums.
    fn exchanged(&self) -> usize {
        if self.split > 1 { self.columns * 128 } else { 0 }
    }

    fn stage(&self) -> usize {
        (ROWS + self.columns) * SLICE * 2
    }

    fn stages(&self) -> usize {
        let room = (SHARED as usize - 1024 - self.exchanged()) / self.stage();
        room.min((self.depth / SLICE).div_ceil(self.split))
    }

    pub(super) fn shared(&self) -> u32 {
        // The last 1024 bytes are for the start on a multiple of as many.
        (self.stages() * self.stage() + self.exchanged() + 1024) as u32
    }

    /// A kernel that is given sums over rows in so many parts.
    pub(super) fn unit(&self, parts: usize) -> Unit {
        let sizes = [self.columns, self.stages(), self.ending as usize, self.split, parts.div_ceil(4)];
        Unit::sized(KERNELS, &sizes.map(|size| size as u8))
    }

    pub(super) fn is_forward(&self) -> bool {
        matches!(self.ending, Ending::Turn | Ending::Onto | Ending::Gate)
    }
}

/// Columns of a factor `[depth, columns]` that are brought side by side, for tiles of so many.
pub(super) fn across(columns: usize) -> (usize, Swizzle) {
    if columns.is_multiple_of(96) { (32, Swizzle::Bytes64) } else { (64, Swizzle::Bytes128) }
}

/// The tiles of weights' gradients.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gradients {
    pub(super) columns: usize,
}

impl Gradients {
    pub(super) fn unit(self) -> Unit {
        Unit::sized(WEIGHT_KERNELS, &[self.columns as u8, GRADIENT_STAGES as u8])
    }

    pub(super) fn shared(self) -> u32 {
        (GRADIENT_STAGES * (2 * ROWS + self.columns) * SLICE * 2 + 1024) as u32
    }
}

/// The products of a layer.
pub(super) struct Products {
    pub(super) mixed: Sizes,
    pub(super) out: Sizes,
    pub(super) wide: Sizes,
    pub(super) down: Sizes,
    /// Backward.
    pub(super) slope: Sizes,
    pub(super) second: Sizes,
    pub(super) attended: Sizes,
    pub(super) first: Sizes,
    /// Parts of attention's sums over rows.
    pub(super) heads: usize,
}

impl Products {
    pub(super) fn new(layer: &Layer, width: impl Fn(Value) -> usize) -> Self {
        let of = |ending, linear: &Linear| Sizes::new(ending, width(linear.output), width(linear.input));
        let back = |ending, linear: &Linear| Sizes::new(ending, width(linear.input), width(linear.output));
        let attention = &layer.attend.attention;
        Self {
            mixed: of(Ending::Turn, &layer.mixed),
            out: of(Ending::Onto, &layer.out),
            wide: of(Ending::Gate, &layer.wide),
            down: of(Ending::Onto, &layer.down),
            slope: back(Ending::Slope, &layer.down),
            second: back(Ending::Norm, &layer.wide),
            attended: back(Ending::Plain, &layer.out),
            first: back(Ending::Norm, &layer.mixed),
            heads: attention.heads + 2 * attention.key_heads,
        }
    }

    /// The tiles of weights' gradients.
    pub(super) fn gradients(&self) -> Gradients {
        let widths = [self.mixed, self.out, self.wide, self.down].map(|sizes| sizes.total);
        Gradients { columns: if widths.iter().all(|width| width.is_multiple_of(192)) { 192 } else { 64 } }
    }

    /// All kernels, by the most parts that sums over rows come in.
    pub(super) fn units(&self) -> [Unit; 9] {
        [
            self.mixed.unit(self.down.blocks()),
            self.out.unit(1),
            self.wide.unit(self.out.blocks()),
            self.down.unit(1),
            self.slope.unit(1),
            self.second.unit(self.slope.blocks()),
            self.attended.unit(1),
            self.first.unit(self.heads),
            self.gradients().unit(),
        ]
    }
}

/// The kernel files of a program's layers.
pub(crate) fn units(program: &Program<'_>) -> Vec<Unit> {
    if !program.hopper || program.precision != Precision::Bf16 {
        return Vec::new();
    }
    let width = |value: Value| program.graph.shape(value).width;
    let layers = Layer::all(program.graph, program.outputs);
    layers.iter().flat_map(|layer| Products::new(layer, width).units()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_fit_shared_memory() {
        // SmolLM2-135M: 576 columns, 9 + 2 x 3 heads, 1536 hidden.
        let all = [
            (Sizes::new(Ending::Turn, 960, 576), (15, 9, 64)),
            (Sizes::new(Ending::Onto, 576, 576), (9, 9, 64)),
            (Sizes::new(Ending::Gate, 3072, 576), (16, 7, 192)),
            (Sizes::new(Ending::Onto, 576, 1536), (12, 10, 96)),
            (Sizes::new(Ending::Slope, 1536, 576), (12, 9, 128)),
            (Sizes::new(Ending::Norm, 576, 3072), (12, 10, 96)),
            (Sizes::new(Ending::Plain, 576, 576), (9, 9, 64)),
            (Sizes::new(Ending::Norm, 576, 960), (9, 14, 64)),
        ];
        for (sizes, expected) in all {
            assert_eq!((sizes.blocks(), sizes.stages(), sizes.columns), expected);
            assert!(sizes.shared() <= SHARED, "{sizes:?}");
        }
    }
}
