//! Which kernel files a program needs, and the kernels in them by name.
//!
//! Files are compiled side by side on threads of the host, and only those that the program calls for.

use super::compile::{Image, Module, Target};
use super::device::refused;
use crate::Result;
use cudarc::driver::sys::CUfunction;
use std::collections::BTreeMap;
use std::path::Path;

const COMMON: &str = include_str!("kernels/common.cu");

/// The sizes of attention to few keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Heads {
    pub(crate) heads: u8,
    /// Columns of a head.
    pub(crate) depth: u8,
    pub(crate) keys: u8,
    /// Whether products keep what rounding their operands loses.
    pub(crate) split: bool,
}

impl Heads {
    fn name(self) -> String {
        let Self { heads, depth, keys, split } = self;
        format!("{heads}-{depth}-{keys}{}", if split { "-split" } else { "" })
    }

    fn constants(self) -> String {
        let Self { heads, depth, keys, split } = self;
        let values = [("HEADS", heads), ("DEPTH", depth), ("KEYS", keys), ("SPLIT", u8::from(split))];
        values.iter().map(|(name, value)| format!("#define TENSOR_{name} {value}\n")).collect()
    }
}

/// A kernel file, with its constants where it has some.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Unit {
    /// Row-wise and entry-wise ops, sums over rows.
    Rows,
    /// Ops steered by integers and masks.
    Index,
    /// Optimisers.
    Step,
    /// Attention of 8 rows and 32 columns.
    AttentionSmall,
    /// Attention to few keys.
    AttentionFew(Heads),
    /// Attention of any shape.
    AttentionAny,
    /// Products on Hopper's tensor cores.
    Hopper,
    /// Pointers: their glimpse, columns of the context that queries are made of (none where queries are read), and whether
    /// the query joins its glimpse.
    Point(Heads, u8, bool),
    /// Norms: accesses per lane, floats per access.
    Norm(u8, u8),
}

/// Bytes of shared memory that a block may have on every GPU since Volta's successors (A100: 164 KB, H100: 227 KB).
pub(crate) const SHARED_LIMIT: u32 = 160 * 1024;

/// Shared memory of a block of [`Unit::Hopper`]: three stages of two 16 KB tiles, and room to align them to 1 KB.
pub(crate) const HOPPER_SHARED: u32 = (3 * 2 * 16 + 1) * 1024;

/// What a caller brings, behind what all kernels share.
pub(crate) fn with_prelude(code: &str) -> String {
    format!("{COMMON}\n{code}")
}

impl Unit {
    fn name(self) -> String {
        match self {
            Self::Rows => "rows".to_owned(),
            Self::Index => "index".to_owned(),
            Self::Step => "step".to_owned(),
            Self::AttentionSmall => "attention-small".to_owned(),
            Self::AttentionFew(heads) => format!("attention-few-{}", heads.name()),
            Self::AttentionAny => "attention-any".to_owned(),
            Self::Hopper => "hopper".to_owned(),
            Self::Point(heads, context, residual) => {
                format!("point-{}-{context}-{}", heads.name(), u8::from(residual))
            }
            Self::Norm(accesses, floats) => format!("norm-{accesses}-{floats}"),
        }
    }

    fn source(self) -> String {
        let (constants, body) = match self {
            Self::Rows => (String::new(), include_str!("kernels/rows.cu")),
            Self::Index => (String::new(), include_str!("kernels/index.cu")),
            Self::Step => (String::new(), include_str!("kernels/step.cu")),
            Self::AttentionSmall => (String::new(), include_str!("kernels/attention_small.cu")),
            Self::AttentionFew(heads) => (
                heads.constants(),
                concat!(include_str!("kernels/tensor.cu"), "\n", include_str!("kernels/attention_few.cu")),
            ),
            Self::AttentionAny => (String::new(), include_str!("kernels/attention_any.cu")),
            Self::Hopper => (String::new(), include_str!("kernels/hopper.cu")),
            Self::Point(heads, context, residual) => (
                format!(
                    "{}#define POINT_CONTEXT {context}\n#define POINT_RESIDUAL {}\n",
                    heads.constants(),
                    u8::from(residual)
                ),
                concat!(include_str!("kernels/tensor.cu"), "\n", include_str!("kernels/point.cu")),
            ),
            Self::Norm(accesses, floats) => (
                format!("#define NORM_V {accesses}\n#define NORM_P {floats}\n"),
                include_str!("kernels/norm.cu"),
            ),
        };
        format!("{constants}{COMMON}\n{body}")
    }

    /// Its kernels, each with the dynamic shared memory that it may be given.
    fn kernels(self) -> &'static [(&'static str, u32)] {
        match self {
            Self::Rows => &[
                ("combine", 0),
                ("finish", 0),
                ("activate_backward", 0),
                ("column_sums", 0),
                ("gather_partials", 0),
                ("transpose", 0),
                ("to_bf16", 0),
                ("narrow_forward_4", 0),
                ("narrow_forward_8", 0),
                ("narrow_backward_4", 0),
                ("narrow_backward_8", 0),
            ],
            Self::Index => &[
                ("embed_forward", 0),
                ("embed_pair_forward", 0),
                ("embed_backward_small", 0),
                ("embed_backward_large", 0),
                ("gather_forward", 0),
                ("gather_forward_4", 0),
                ("gather_backward", 0),
                ("pool_forward", 0),
                ("pool_backward", 0),
                ("score_forward", 0),
                ("score_backward_query", 0),
                ("score_backward_key", 0),
                ("rope", 0),
                ("pick_few", 0),
                ("pick_many", 0),
                ("pick_backward", 0),
                ("choose_row", 0),
            ],
            Self::Step => &[("norm_partials", 0), ("norm_finish", 0), ("step_sgd", 0), ("step_adam", 0)],
            Self::AttentionSmall => &[("attention_small_forward", 0), ("attention_small_backward", 0)],
            Self::AttentionFew(_) => {
                &[("attention_few_forward", SHARED_LIMIT), ("attention_few_backward", SHARED_LIMIT)]
            }
            Self::AttentionAny => &[
                ("attention_any_forward", SHARED_LIMIT),
                ("attention_row", 0),
                ("attention_row_32", 0),
                ("attention_any_backward", SHARED_LIMIT),
            ],
            Self::Hopper => &[("product_gelu", HOPPER_SHARED), ("product_slope", HOPPER_SHARED)],
            Self::Point(..) => &[("point_forward", SHARED_LIMIT), ("point_backward", SHARED_LIMIT)],
            Self::Norm(..) => &[("norm_forward_rows", 0), ("norm_backward_rows", 0)],
        }
    }

    /// The norm unit for rows of a width, or `None` where a row does not fit a warp's registers.
    pub(crate) fn norm(width: usize) -> Option<Self> {
        match (width, width % 4) {
            (..=128, 0) => Some(Self::Norm(1, 4)),
            (..=256, 0) => Some(Self::Norm(2, 4)),
            (..=1024, 0) => Some(Self::Norm(8, 4)),
            (..=256, _) => Some(Self::Norm(8, 1)),
            (..=1024, _) => Some(Self::Norm(32, 1)),
            _ => None,
        }
    }
}

/// The kernels of some units, loaded.
pub(crate) struct Kernels {
    functions: BTreeMap<(Unit, &'static str), CUfunction>,
    /// How many units NVRTC had to compile.
    pub(crate) compiled: usize,
}

impl Kernels {
    /// Loads units into the current context, those missing from the cache compiled in parallel.
    ///
    /// # Errors
    /// If a unit does not compile or load.
    pub(crate) fn load(target: Target, units: &[Unit], cache: Option<&Path>) -> Result<Self> {
        let images: Vec<Result<(Unit, String, Image)>> = std::thread::scope(|scope| {
            let workers: Vec<_> = units
                .iter()
                .map(|&unit| {
                    scope.spawn(move || {
                        let source = unit.source();
                        let image = Image::make(target, &unit.name(), &source, cache)?;
                        Ok((unit, source, image))
                    })
                })
                .collect();
            let join = |worker: std::thread::ScopedJoinHandle<'_, Result<_>>| {
                worker.join().unwrap_or_else(|_| Err(refused("the kernel compiler panicked")))
            };
            workers.into_iter().map(join).collect()
        });
        let mut kernels = Self { functions: BTreeMap::new(), compiled: 0 };
        for image in images {
            let (unit, source, image) = image?;
            kernels.compiled += usize::from(!image.cached);
            let module = Module::load(target, &unit.name(), &source, image)?;
            for &(name, shared) in unit.kernels() {
                kernels.functions.insert((unit, name), module.kernel(name, shared)?);
            }
        }
        Ok(kernels)
    }

    /// A kernel of a loaded unit.
    ///
    /// # Errors
    /// If the unit was not loaded.
    pub(crate) fn get(&self, unit: Unit, name: &'static str) -> Result<CUfunction> {
        let found = self.functions.get(&(unit, name)).copied();
        found.ok_or_else(|| refused(format!("kernel {name} of {unit:?} is not loaded")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_width_up_to_1024_has_a_norm_that_covers_it() {
        for width in 1..=1024 {
            let Some(Unit::Norm(accesses, floats)) = Unit::norm(width) else { panic!("no unit for {width}") };
            assert!(32 * usize::from(accesses) * usize::from(floats) >= width, "{width}");
            assert!(width.is_multiple_of(usize::from(floats)), "{width}");
        }
        assert_eq!(Unit::norm(1025), None);
    }

    #[test]
    fn every_kernel_named_is_in_its_source() {
        let units =
            [Unit::Rows, Unit::Index, Unit::Step, Unit::AttentionSmall, Unit::AttentionAny, Unit::Hopper];
        let heads = Heads { heads: 4, depth: 16, keys: 20, split: false };
        let pointers = [false, true].map(|residual| Unit::Point(heads, 14, residual));
        let sized = [Unit::Norm(1, 4), Unit::AttentionFew(heads)].into_iter().chain(pointers);
        for unit in units.into_iter().chain(sized) {
            for (name, _) in unit.kernels() {
                // `narrow_forward_4` is made by a macro from `narrow_forward_##N`.
                let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
                let found = [format!("{name}("), format!("{stem}##N(")];
                assert!(found.iter().any(|text| unit.source().contains(text)), "{name}");
            }
        }
    }
}
