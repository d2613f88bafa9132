//! Which kernel files a program needs, and the kernels in them by name.
//!
//! Files are compiled side by side on threads of the host, and only those that the program calls for.

use super::blas::Precision;
use super::compile::{Image, Module, Target};
use super::device::refused;
use crate::Result;
use cudarc::driver::sys::CUfunction;
use std::collections::BTreeMap;
use std::path::Path;

const COMMON: &str = include_str!("kernels/common.cu");

/// What kernels with a thread per entry share, and its constant: whether an array may be in halves.
pub(crate) const ENTRIES: &str = include_str!("kernels/entries.cu");
pub(crate) const MIXED: &[&str] = &["MIXED"];

/// Where a gradient's entries lie.
const GRADIENT: &str = include_str!("kernels/gradient.cu");

/// Kernels that begin before the one before them has ended.
pub(crate) const EARLY: &str = include_str!("kernels/early.cu");

/// Tiles of a product on Hopper's tensor cores; it has the constants `TILE_COLUMNS` and `TILE_STAGES`.
pub(crate) const TILES: &str = include_str!("kernels/tiles.cu");

/// Products of a warp on the tensor cores; it has the constant `TENSOR_SPLIT`.
pub(crate) const PRODUCTS: &str = include_str!("kernels/products.cu");

/// What attention to few keys and pointers share on the tensor cores, and its constants.
pub(crate) const TENSOR: &str = include_str!("kernels/tensor.cu");
pub(crate) const TENSOR_CONSTANTS: &[&str] = &["TENSOR_HEADS", "TENSOR_DEPTH", "TENSOR_KEYS", "TENSOR_SPLIT"];

/// Most constants that a file has.
const MOST: usize = 7;

/// A kernel file.
#[derive(Debug)]
pub(crate) struct File {
    /// Its name in messages and in the cache.
    pub(crate) name: &'static str,
    /// Its parts, behind what all kernels share.
    pub(crate) source: &'static [&'static str],
    /// Constants that it is compiled with.
    pub(crate) constants: &'static [&'static str],
    /// Its kernels, each with the dynamic shared memory that it may be given.
    pub(crate) kernels: &'static [(&'static str, u32)],
}

/// A kernel file with the values of its constants.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    file: &'static File,
    values: [u8; MOST],
}

/// Row-wise and entry-wise work that several ops share, sums over rows.
pub(crate) const ROWWISE: &File = &File {
    name: "rows",
    source: &[ENTRIES, include_str!("kernels/rows.cu")],
    constants: MIXED,
    kernels: &[
        ("combine", 0),
        ("finish", 0),
        ("activate_backward", 0),
        ("column_sums", 0),
        ("gather_partials", 0),
    ],
};

/// Optimisers.
pub(crate) const STEP: Unit = Unit::plain(&File {
    name: "step",
    source: &[GRADIENT, include_str!("kernels/step.cu")],
    constants: &[],
    kernels: &[
        ("sum_squares", 0),
        ("clear_chunks", 0),
        ("norm_finish", 0),
        ("step_sgd", 0),
        ("step_adam", 0),
        ("step_adam_bf16", 0),
        ("parameters_to_bf16", 0),
    ],
});

/// A program that chooses its own next input.
pub(crate) const CHOOSE: Unit = Unit::plain(&File {
    name: "choose",
    source: &[include_str!("kernels/choose.cu")],
    constants: &[],
    kernels: &[("choose_row", 0)],
});

/// Some of each member's items, and what their shares are given and give.
pub(crate) const ITEMS: Unit = Unit::plain(&File {
    name: "items",
    source: &[GRADIENT, include_str!("kernels/items.cu")],
    constants: &[],
    kernels: &[("pick_words", 0), ("pick_bytes", 0), ("lend_parameters", 0), ("collect_gradients", 0)],
});

/// Bytes of shared memory that a block may ask for on an A100 (163 KB) and an H100 (227 KB); elsewhere it may be less.
pub(crate) const SHARED_LIMIT: u32 = 160 * 1024;

/// Shared memory of a block of a product on Hopper's tensor cores: three stages of two 16 KB tiles, and room to align them to 1 KB.
pub(crate) const HOPPER_SHARED: u32 = (3 * 2 * 16 + 1) * 1024;

impl Unit {
    /// A file without constants.
    pub(crate) const fn plain(file: &'static File) -> Self {
        assert!(file.constants.is_empty(), "the file has constants");
        Self { file, values: [0; MOST] }
    }

    /// A file with a value for each of its constants.
    pub(crate) fn sized(file: &'static File, values: &[u8]) -> Self {
        assert_eq!(file.constants.len(), values.len(), "constants of {}", file.name);
        let mut all = [0; MOST];
        all[..values.len()].copy_from_slice(values);
        Self { file, values: all }
    }

    /// A file whose arrays may be in halves in bf16.
    pub(crate) fn mixed(file: &'static File, precision: Precision) -> Self {
        Self::sized(file, &[u8::from(precision == Precision::Bf16)])
    }

    fn values(&self) -> &[u8] {
        &self.values[..self.file.constants.len()]
    }

    pub(crate) fn name(&self) -> String {
        self.values().iter().fold(self.file.name.to_owned(), |name, value| format!("{name}-{value}"))
    }

    pub(crate) fn source(&self) -> String {
        let constants = self.file.constants.iter().zip(self.values());
        let constants: String = constants.map(|(name, value)| format!("#define {name} {value}\n")).collect();
        format!("{constants}{}", with_prelude(&self.file.source.join("\n")))
    }

    fn key(&self) -> (&'static str, &[u8]) {
        (self.file.name, self.values())
    }
}

impl PartialEq for Unit {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Unit {}

impl PartialOrd for Unit {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Unit {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

/// What stands behind what all kernels share.
pub(crate) fn with_prelude(code: &str) -> String {
    format!("{COMMON}\n{code}")
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
            for &(name, shared) in unit.file.kernels {
                kernels.functions.insert((unit, name), module.kernel(name, shared, target)?);
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
        found.ok_or_else(|| refused(format!("kernel {name} of {} is not loaded", unit.name())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::compile;
    use crate::cuda::compile::Target;
    use crate::cuda::lower::{Lowering, Program};
    use crate::cuda::storage::halves;
    use crate::graph::Graph;
    use crate::ops::Op;

    /// The units of all programs in which a device is compared with the CPU.
    fn units(hopper: bool) -> Vec<Unit> {
        let mut units = Vec::new();
        for (_, case) in Op::cases() {
            let mut graph = Graph::new();
            let outputs = case(&mut graph).unwrap();
            for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
                let halves = &*halves(&graph, &outputs, precision);
                let program = Program { graph: &graph, outputs: &outputs, precision, hopper, halves };
                units.extend(Lowering::units(&program).unwrap());
            }
        }
        units.sort_unstable();
        units.dedup();
        units
    }

    #[test]
    fn every_kernel_named_is_in_its_source_and_the_other_way_round() {
        for unit in units(true) {
            let (source, file) = (unit.source(), unit.file);
            for (name, _) in file.kernels {
                // `narrow_forward_4` is made by a macro from `narrow_forward_##N`.
                let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
                let found = [format!("{name}("), format!("{stem}##N(")];
                assert!(found.iter().any(|text| source.contains(text)), "{name} of {}", file.name);
            }
            // The macro makes two kernels twice.
            let made = if source.contains("#define NARROW") { 2 } else { 0 };
            let kernels = source.matches("extern \"C\" __global__").count();
            assert_eq!(kernels + made, file.kernels.len(), "kernels of {}", file.name);
        }
    }

    /// Compiles every kernel that `bench device` runs, for the oldest and the newest architecture. It needs NVRTC (a
    /// CUDA toolkit, or the wheel `nvidia-cuda-nvrtc-cu12` with `CUDA_HOME` at its folder) and no GPU.
    #[test]
    #[ignore = "needs NVRTC: CUDA_HOME=… cargo test -p niwaki-nn --features cuda -- --ignored every_kernel_compiles"]
    fn every_kernel_compiles() {
        for (capability, hopper) in [((8, 0), false), ((9, 0), true)] {
            let target = Target { capability, driver: 0, shared: SHARED_LIMIT };
            for unit in units(hopper) {
                compile::try_out(target, &unit.name(), &unit.source()).unwrap();
            }
        }
    }
}
