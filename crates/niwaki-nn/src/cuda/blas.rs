//! Products batched over members: cuBLASLt's strided-batched matrix products, planned once and replayed.
//!
//! Knows rows, columns and members; nothing of ops.

use super::device::{Buffer, Device, alone, refused};
use crate::Result;
use cudarc::cublaslt::{result, sys};
use std::ffi::c_void;

/// How products round their operands. Sums are always f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Precision {
    /// Operands and sums in f32.
    F32,
    /// Operands rounded to tf32 (10 mantissa bits).
    #[default]
    Tf32,
    /// Operands of the library's products rounded to bf16 (7 mantissa bits), and what lies between ops of transformers stored so;
    /// products of what is not keep tf32's ten bits where they are fused with GELU.
    Bf16,
}

/// One operand of a product, row-major `[rows, columns]` per member.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Operand {
    /// Rows as stored.
    pub(crate) rows: usize,
    /// Columns as stored, contiguous.
    pub(crate) columns: usize,
    /// Elements from one row to the next.
    pub(crate) pitch: usize,
    /// Elements from one member to the next.
    pub(crate) stride: usize,
    /// Whether the product reads it transposed.
    pub(crate) transposed: bool,
}

const WORKSPACE: usize = 32 << 20;

/// Summands that one block adds up, whatever the library thinks of it (H200: of the 55 kernels of a dispatcher's step 12 did nothing but add up
/// shares, 2.4 µs each).
const UNSHARED: usize = 512;

/// The library's handle with its scratch memory.
pub(crate) struct Blas {
    handle: sys::cublasLtHandle_t,
    /// For products on each of the device's streams.
    workspaces: [Buffer; 2],
}

/// Where a product's operands lie on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Places {
    pub(crate) left: u64,
    pub(crate) right: u64,
    /// The matrix that is added; the result itself where none is.
    pub(crate) onto: u64,
    pub(crate) out: u64,
}

/// Bytes to which every member's operand is aligned, 256 at most; `stride` in bytes.
fn alignment(at: u64, stride: usize) -> u32 {
    let bits = at | stride as u64 | 256;
    1 << bits.trailing_zeros()
}

/// What is added to a product as it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onto {
    /// Nothing: the result replaces what is there.
    Nothing,
    /// Another matrix of the result's shape, which may be the result itself.
    Matrix,
}

/// A product with its algorithm chosen.
pub(crate) struct Product {
    desc: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
    onto: f32,
}

fn fail(what: &'static str) -> impl Fn(result::CublasError) -> crate::Error {
    move |error| refused(format!("{what}: {error:?}"))
}

impl Blas {
    /// Opens the library on `device`.
    pub(crate) fn open(device: &Device) -> Result<Self> {
        let handle = {
            let _alone = alone();
            result::create_handle().map_err(fail("create"))?
        };
        Ok(Self { handle, workspaces: [device.allocate(WORKSPACE)?, device.allocate(WORKSPACE)?] })
    }

    /// Plans `out[rows, columns] = left · right (+ onto) (+ bias)` for `members` members. A bias is an address and the
    /// elements from one member's to the next. In bf16 both operands are bf16 in memory; the rest is f32 or, with `half`, bf16 too.
    /// Where `multiprocessors` says how many, it is planned for so many of them.
    pub(crate) fn plan(
        &self,
        precision: Precision,
        members: usize,
        (left, right, out): (Operand, Operand, Operand),
        half: bool,
        places: Places,
        onto: Onto,
        bias: Option<(u64, usize)>,
        multiprocessors: Option<usize>,
    ) -> Result<Product> {
        use sys::cublasComputeType_t as Compute;
        // The library's own `FAST_16BF` runs tf32 products, to the bit: bf16 operands are bf16 in memory.
        let single = (sys::cudaDataType_t::CUDA_R_32F, 4);
        let (compute, (scalar, bytes)) = match precision {
            Precision::F32 => (Compute::CUBLAS_COMPUTE_32F, single),
            Precision::Tf32 => (Compute::CUBLAS_COMPUTE_32F_FAST_TF32, single),
            Precision::Bf16 => (Compute::CUBLAS_COMPUTE_32F, (sys::cudaDataType_t::CUDA_R_16BF, 2)),
        };
        let (result_scalar, result_bytes) = if half { (sys::cudaDataType_t::CUDA_R_16BF, 2) } else { single };
        let desc =
            result::create_matmul_desc(compute, sys::cudaDataType_t::CUDA_R_32F).map_err(fail("desc"))?;
        // cuBLAS is column-major: a row-major product `L · R` is the column-major `Rᵀ · Lᵀ`, so the operands swap.
        let transposes = [
            (sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSA, right.transposed),
            (sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_TRANSB, left.transposed),
        ];
        // SAFETY: each attribute's buffer has the size cuBLASLt documents for it and outlives the call.
        unsafe {
            for (attribute, transposed) in transposes {
                let value = i32::from(transposed);
                result::set_matmul_desc_attribute(desc, attribute, (&raw const value).cast(), 4)
                    .map_err(fail("transpose"))?;
            }
            if let Some(count) = multiprocessors {
                let attribute = sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET;
                let count = count as i32;
                result::set_matmul_desc_attribute(desc, attribute, (&raw const count).cast(), 4)
                    .map_err(fail("multiprocessors"))?;
            }
            if let Some((address, stride)) = bias {
                use sys::cublasLtMatmulDescAttributes_t as Attribute;
                let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
                let stride = stride as i64;
                let settings: [(_, *const c_void, usize); 3] = [
                    (Attribute::CUBLASLT_MATMUL_DESC_EPILOGUE, (&raw const epilogue).cast(), 4),
                    (Attribute::CUBLASLT_MATMUL_DESC_BIAS_POINTER, (&raw const address).cast(), 8),
                    (Attribute::CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE, (&raw const stride).cast(), 8),
                ];
                for (attribute, value, size) in settings {
                    result::set_matmul_desc_attribute(desc, attribute, value, size).map_err(fail("bias"))?;
                }
            }
            let layout = |scalar, operand: Operand| -> Result<_> {
                let layout = result::create_matrix_layout(
                    scalar,
                    operand.columns as u64,
                    operand.rows as u64,
                    operand.pitch as i64,
                )
                .map_err(fail("layout"))?;
                use sys::cublasLtMatrixLayoutAttribute_t as Attribute;
                let (count, stride) = (members as i32, operand.stride as i64);
                result::set_matrix_layout_attribute(
                    layout,
                    Attribute::CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                    (&raw const count).cast(),
                    4,
                )
                .map_err(fail("batch"))?;
                result::set_matrix_layout_attribute(
                    layout,
                    Attribute::CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                    (&raw const stride).cast(),
                    8,
                )
                .map_err(fail("stride"))?;
                Ok(layout)
            };
            let layouts = [layout(scalar, right)?, layout(scalar, left)?, layout(result_scalar, out)?];
            let preference = result::create_matmul_pref().map_err(fail("preference"))?;
            let workspace = WORKSPACE;
            result::set_matmul_pref_attribute(
                preference,
                sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                (&raw const workspace).cast(),
                8,
            )
            .map_err(fail("workspace"))?;
            // Few summands are not worth being shared out, since a second kernel adds up the shares.
            let summed = if left.transposed { left.rows } else { left.columns };
            if summed <= UNSHARED {
                let scheme = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_NONE as u32;
                result::set_matmul_pref_attribute(
                    preference,
                    sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                    (&raw const scheme).cast(),
                    4,
                )
                .map_err(fail("reduction"))?;
            }
            // A bias in halves is aligned to 8 bytes only; it counts with the result.
            let beside = bias.filter(|_| half).map_or(0, |(address, _)| address);
            // The library's default promise of 256 bytes does not hold for every parameter.
            use sys::cublasLtMatmulPreferenceAttributes_t as Preference;
            for (side, at, stride) in [
                (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, places.right, right.stride * bytes),
                (Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, places.left, left.stride * bytes),
                (
                    Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
                    places.onto,
                    out.stride * result_bytes,
                ),
                (
                    Preference::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES,
                    places.out | beside,
                    out.stride * result_bytes,
                ),
            ] {
                let alignment = alignment(at, stride);
                result::set_matmul_pref_attribute(preference, side, (&raw const alignment).cast(), 4)
                    .map_err(fail("alignment"))?;
            }
            let mut found = result::get_matmul_algo_heuristic(
                self.handle,
                desc,
                layouts[0],
                layouts[1],
                layouts[2],
                layouts[2],
                preference,
            )
            .map_err(fail("no algorithm for this product"));
            let _ = result::destroy_matmul_pref(preference);
            if let (Precision::Bf16, Ok(found)) = (precision, &mut found) {
                self.unclustered(desc, layouts, found);
            }
            Ok(Product {
                desc,
                layouts,
                algorithm: found?.algo,
                onto: if onto == Onto::Matrix { 1.0 } else { 0.0 },
            })
        }
    }

    /// Where all blocks of a product fit the device at once, lets each run by itself: to wait until several can start together costs more
    /// than what they share (H200: 3.9 instead of 4.4 µs for 387 × 576 × 960, 7.6 instead of 8.7 for 387 × 3072 × 576).
    ///
    /// # Safety
    /// Descriptors must be live, and the algorithm one for them.
    unsafe fn unclustered(
        &self,
        desc: sys::cublasLtMatmulDesc_t,
        layouts: [sys::cublasLtMatrixLayout_t; 3],
        found: &mut sys::cublasLtMatmulHeuristicResult_t,
    ) {
        use sys::cublasLtMatmulAlgoConfigAttributes_t::CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID as CLUSTER;
        let (alone, mut now, mut written) =
            (sys::cublasLtClusterShape_t::CUBLASLT_CLUSTER_SHAPE_1x1x1 as u16, 0_u16, 0);
        let mut changed = found.algo;
        // SAFETY: descriptors and algorithms are live; a cluster's shape takes two bytes.
        unsafe {
            let read = sys::cublasLtMatmulAlgoConfigGetAttribute(
                &raw const found.algo,
                CLUSTER,
                (&raw mut now).cast(),
                2,
                &raw mut written,
            );
            let clustered = read == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS && now > alone;
            if !clustered || found.wavesCount > 1.0 {
                return;
            }
            let set = sys::cublasLtMatmulAlgoConfigSetAttribute(
                &raw mut changed,
                CLUSTER,
                (&raw const alone).cast(),
                2,
            );
            let mut checked = sys::cublasLtMatmulHeuristicResult_t { algo: changed, ..*found };
            let check = sys::cublasLtMatmulAlgoCheck(
                self.handle,
                desc,
                layouts[0],
                layouts[1],
                layouts[2],
                layouts[2],
                &raw const changed,
                &raw mut checked,
            );
            let fine = [set, check, checked.state] == [sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS; 3];
            if fine && checked.workspaceSize <= WORKSPACE {
                found.algo = changed;
            }
        }
    }

    /// Queues the product on `device`'s stream, or on the one aside.
    ///
    /// # Safety
    /// The addresses must hold `members` operands of the planned shapes.
    pub(crate) unsafe fn run(
        &self,
        device: &Device,
        product: &Product,
        Places { left, right, onto, out }: Places,
        aside: bool,
    ) -> Result<()> {
        let [workspace, other] = &self.workspaces;
        let (workspace, stream) = if aside { (other, device.aside) } else { (workspace, device.stream) };
        let (one, keep) = (1.0_f32, product.onto);
        // SAFETY: the plan's descriptors are live; addresses are the caller's word.
        unsafe {
            result::matmul(
                self.handle,
                product.desc,
                (&raw const one).cast(),
                (&raw const keep).cast(),
                right as *const c_void,
                product.layouts[0],
                left as *const c_void,
                product.layouts[1],
                onto as *const c_void,
                product.layouts[2],
                out as *mut c_void,
                product.layouts[2],
                &raw const product.algorithm,
                workspace.at as *mut c_void,
                WORKSPACE,
                stream as sys::cudaStream_t,
            )
        }
        .map_err(fail("product"))
    }
}

impl Drop for Blas {
    fn drop(&mut self) {
        // SAFETY: created in `open`, destroyed once.
        unsafe {
            let _ = result::destroy_handle(self.handle);
        }
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // SAFETY: created in `plan`, destroyed once.
        unsafe {
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
            let _ = result::destroy_matmul_desc(self.desc);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alignments() {
        // 4096 is 2^12, capped at 256; a stride of 24 = 8 · 3 bytes; an address ending in 0x10.
        assert_eq!(alignment(4096, 256), 256);
        assert_eq!(alignment(4096, 24), 8);
        assert_eq!(alignment(0x1010, 4096), 16);
    }
}
