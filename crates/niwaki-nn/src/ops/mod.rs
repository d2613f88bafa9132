//! What each op computes, and how: one file or folder for each, with its declaration (shapes that do not fit are refused),
//! what it reads and keeps, its passes on the CPU and on CUDA, and its laws.
//!
//! An op is a struct of its operands. It implements `Operation` (what a plan must know), `OnCpu` and, behind the
//! feature `cuda`, `OnCuda`; under test also `Law`, its backward pass against finite differences. None of these
//! traits has defaults, and the list at the foot of this file is the only one: an op that is not whole does not compile.
//!
//! Notation, for one item of one member: `x[r, i]` is row `r`, column `i`; `d·` is the cotangent of `·`, the
//! derivative of the objective with respect to it. A backward pass turns the cotangents of an op's outputs into
//! those of its operands (`+=` over all uses) and of its parameters (`+=` over uses, items and rows). Cotangents
//! of inputs of scalars are never computed. In f32 engines the long sums (norms' means, softmax) may be taken in
//! any order; on the CPU the order depends only on the op's shape, never on how many rows are computed together.

mod activate;
mod add;
mod arcs;
mod around;
mod attention;
mod concat;
mod embed;
mod gather;
#[cfg(test)]
mod law;
mod layer;
mod linear;
mod mul;
mod norm;
mod pairs;
mod pick;
mod point;
mod pool;
mod reshape;
mod rope;
mod scale;
mod score;
mod surround;
mod swiglu;
mod tree_attention;

pub use activate::{Activate, Activation};
pub use add::Add;
pub use arcs::{Arcs, AttendArcs};
pub use around::Around;
pub use attention::{Attend, Attention, Visible};
pub use concat::Concat;
pub use embed::Embed;
pub use gather::Gather;
pub(crate) use layer::Layer;
#[cfg(all(test, feature = "cuda"))]
pub(crate) use layer::stacked;
pub use linear::Linear;
pub(crate) use linear::{Perceptron, Weights};
pub use mul::Mul;
pub use norm::{LayerNorm, RmsNorm};
pub use pairs::Pairs;
pub use pick::{Pick, log_softmax};
pub(crate) use point::picked_by;
pub use point::{Point, PointAt};
pub use pool::{Pool, Pooling};
pub use reshape::Reshape;
pub use rope::{Rope, Rotary};
pub use scale::Scale;
pub use score::Score;
pub use surround::Surround;
pub use swiglu::Swiglu;
#[cfg(feature = "cuda")]
pub(crate) use tree_attention::Pulled;
pub use tree_attention::{AttendTree, TreeAttention};
#[cfg(feature = "cuda")]
pub(crate) use {
    embed::{looked_up, summed_embeddings},
    layer::units as layer_units,
    linear::products_of_halves,
    point::folded,
};

#[cfg(feature = "cuda")]
use crate::Result;
use crate::cpu::{Block, Real};
#[cfg(feature = "cuda")]
use crate::cuda::{
    check::Case,
    kernels::Unit,
    lower::{Fused, Lowering, Program},
};
use crate::graph::{Graph, Index, Mask, Value};
use crate::layout::Param;
use crate::plan::Backward;

/// What an op reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reads {
    /// Values, in a fixed order; one that is read twice stands here twice.
    pub(crate) values: Vec<Value>,
    /// Parameters.
    pub(crate) params: Vec<Param>,
    /// Integers.
    pub(crate) index: Option<Index>,
    /// A mask.
    pub(crate) mask: Option<Mask>,
}

impl Reads {
    /// Values and nothing else.
    pub(crate) fn values(values: impl Into<Vec<Value>>) -> Self {
        Self { values: values.into(), ..Self::default() }
    }
}

/// How an op's rows hang together.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Rows {
    /// Row `t` of its results needs row `t` of its operands.
    Apart,
    /// Row `t` needs rows up to `t` of these values, which then stay in the arena from row to row.
    UpTo(Vec<Value>),
    /// It needs others too, so that a program with it cannot run row by row.
    Mixed,
}

/// What a plan must know of an op.
pub(crate) trait Operation {
    /// Its name in error messages and profiles.
    fn name(&self) -> &'static str;

    /// What it reads.
    fn reads(&self) -> Reads;

    /// The values that it writes.
    fn writes(&self) -> Vec<Value>;

    /// The values that its backward pass reads.
    fn kept(&self) -> Vec<Value>;

    /// Scalars per item that its forward pass saves for its backward pass.
    fn saved(&self, graph: &Graph) -> usize;

    /// How its rows hang together.
    fn rows(&self) -> Rows;

    /// Whether the operand at a place receives exactly the output's cotangent, which nothing needs afterwards.
    fn passes_through(&self, place: usize) -> bool;
}

/// An op on the CPU. `at` is its position in the program.
pub(crate) trait OnCpu {
    /// Scalars that its kernels need besides the arena.
    fn scratch(&self, graph: &Graph) -> usize;

    /// Its results, all rows or one.
    fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize);

    /// Cotangents of its operands, and a part of the member's gradient.
    fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, gradient: &mut [F]);
}

/// An op on CUDA.
#[cfg(feature = "cuda")]
pub(crate) trait OnCuda {
    /// Programs in which the device is compared with the CPU, small but off the round sizes.
    const CASES: &'static [Case];

    /// The values whose kernels read and write halves as well as f32, cotangents included: groups that must be stored alike.
    fn halves(&self, graph: &Graph) -> Vec<Vec<Value>>;

    /// The kernel files that its passes in a program call for.
    ///
    /// # Errors
    /// If its sizes are beyond the kernels.
    fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>>;

    /// Writes its forward pass down.
    ///
    /// # Errors
    /// If its sizes are beyond the kernels.
    fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()>;

    /// Writes its backward pass down.
    ///
    /// # Errors
    /// If its sizes are beyond the kernels.
    fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()>;
}

/// An op's backward pass against finite differences in f64, in every variant that it has.
#[cfg(test)]
trait Law {
    fn check();
}

/// Makes [`Op`] of the list, and hands on to each op what is asked of it.
macro_rules! ops {
    ($($law:ident: $name:ident($kind:ident),)*) => {
        /// One op of the tape.
        #[derive(Clone, Debug, PartialEq)]
        pub enum Op {
            $(#[doc = concat!("[`", stringify!($kind), "`]")] $name($kind),)*
        }

        $(impl From<$kind> for Op {
            fn from(op: $kind) -> Self {
                Self::$name(op)
            }
        })*

        impl Operation for Op {
            fn name(&self) -> &'static str {
                match self { $(Self::$name(op) => op.name(),)* }
            }

            fn reads(&self) -> Reads {
                match self { $(Self::$name(op) => op.reads(),)* }
            }

            fn writes(&self) -> Vec<Value> {
                match self { $(Self::$name(op) => op.writes(),)* }
            }

            fn kept(&self) -> Vec<Value> {
                match self { $(Self::$name(op) => op.kept(),)* }
            }

            fn saved(&self, graph: &Graph) -> usize {
                match self { $(Self::$name(op) => op.saved(graph),)* }
            }

            fn rows(&self) -> Rows {
                match self { $(Self::$name(op) => op.rows(),)* }
            }

            fn passes_through(&self, place: usize) -> bool {
                match self { $(Self::$name(op) => op.passes_through(place),)* }
            }
        }

        impl OnCpu for Op {
            fn scratch(&self, graph: &Graph) -> usize {
                match self { $(Self::$name(op) => op.scratch(graph),)* }
            }

            fn forward<F: Real>(&self, block: &mut Block<'_, F>, at: usize) {
                match self { $(Self::$name(op) => op.forward(block, at),)* }
            }

            fn backward<F: Real>(&self, block: &mut Block<'_, F>, step: &Backward, gradient: &mut [F]) {
                match self { $(Self::$name(op) => op.backward(block, step, gradient),)* }
            }
        }

        #[cfg(feature = "cuda")]
        impl Op {
            /// [`OnCuda::halves`]
            pub(crate) fn halves(&self, graph: &Graph) -> Vec<Vec<Value>> {
                match self { $(Self::$name(op) => op.halves(graph),)* }
            }

            /// [`OnCuda::units`]
            pub(crate) fn units(&self, program: &Program<'_>) -> Result<Vec<Unit>> {
                match self { $(Self::$name(op) => op.units(program),)* }
            }

            /// [`OnCuda::lower`]
            pub(crate) fn lower(&self, to: &mut Lowering<'_>, at: usize) -> Result<()> {
                match self { $(Self::$name(op) => op.lower(to, at),)* }
            }

            /// [`OnCuda::lower_backward`]
            pub(crate) fn lower_backward(&self, to: &mut Lowering<'_>, step: &Backward) -> Result<()> {
                match self { $(Self::$name(op) => op.lower_backward(to, step),)* }
            }

            /// The programs of all ops in which the device is compared with the CPU.
            pub(crate) fn cases() -> Vec<Case> {
                [layer::CASES, $(<$kind as OnCuda>::CASES,)*].concat()
            }
        }

        #[cfg(test)]
        mod laws {
            $(#[test]
            fn $law() {
                <super::$kind as super::Law>::check();
            })*
        }
    };
}

ops! {
    linear: Linear(Linear),
    layer_norm: LayerNorm(LayerNorm),
    rms_norm: RmsNorm(RmsNorm),
    attention: Attention(Attend),
    score: Score(Score),
    point: Point(PointAt),
    embed: Embed(Embed),
    gather: Gather(Gather),
    pool: Pool(Pool),
    concat: Concat(Concat),
    add: Add(Add),
    mul: Mul(Mul),
    scale: Scale(Scale),
    activate: Activate(Activate),
    rope: Rope(Rope),
    pick_log_prob: Pick(Pick),
    swiglu: Swiglu(Swiglu),
    tree_attention: TreeAttention(AttendTree),
    arcs: Arcs(AttendArcs),
    around: Around(Around),
    surround: Surround(Surround),
    pairs: Pairs(Pairs),
    reshape: Reshape(Reshape),
}

/// The value that an op's operands may be made of within that op: by a device that does a pointer's queries, or all layers
/// of a perceptron, in one kernel.
pub(crate) fn made_of(graph: &Graph, outputs: &[Value], op: &Op) -> Option<Value> {
    match op {
        Op::Point(PointAt { point, .. }) => point::queries_of(graph, outputs, point),
        Op::Linear(last) => Perceptron::ending_with(graph, outputs, last).map(|found| found.input()),
        _ => None,
    }
}

#[cfg(feature = "cuda")]
impl Op {
    /// The op as a block of threads does it for one item, where it knows how.
    pub(crate) fn fused(&self) -> Option<&dyn Fused> {
        match self {
            Self::Linear(op) if !op.transposed => Some(op),
            Self::Add(op) => Some(op),
            Self::Mul(op) => Some(op),
            Self::Scale(op) => Some(op),
            Self::Activate(op) => Some(op),
            Self::Concat(op) => Some(op),
            Self::Reshape(op) => Some(op),
            Self::Pool(op) => Some(op),
            Self::Arcs(op) => Some(op),
            Self::Around(op) => Some(op),
            Self::Surround(op) => Some(op),
            Self::Pairs(op) => Some(op),
            _ => None,
        }
    }
}

impl Op {
    /// The values that it reads, in a fixed order; one that is read twice appears twice.
    #[must_use]
    pub fn operands(&self) -> Vec<Value> {
        self.reads().values
    }

    /// The values that it writes.
    #[must_use]
    pub fn outputs(&self) -> Vec<Value> {
        self.writes()
    }

    /// The integers that it reads.
    #[must_use]
    pub fn index(&self) -> Option<Index> {
        self.reads().index
    }

    /// The mask that it reads.
    #[must_use]
    pub fn mask(&self) -> Option<Mask> {
        self.reads().mask
    }
}
