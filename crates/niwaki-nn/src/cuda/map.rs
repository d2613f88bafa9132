//! How the copy engine of a Hopper device finds tiles of a matrix.

use super::device::Named;
use crate::Result;
use cudarc::driver::sys;

/// Bytes side by side that a tile's rows have, and by which its pieces of 16 bytes are swizzled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swizzle {
    Bytes64,
    Bytes128,
}

/// Matrices of halves `[member, rows, columns]`, in tiles.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tiled {
    pub(crate) at: u64,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    /// How many such matrices there are and how many halves lie from one to the next, where it is not one.
    pub(crate) members: Option<(usize, usize)>,
    /// Columns and rows of a tile.
    pub(crate) tile: [usize; 2],
    pub(crate) swizzle: Swizzle,
}

impl Tiled {
    /// How much a kernel is given of it.
    pub(crate) const WORDS: usize = 16;

    /// What a kernel is given of it.
    ///
    /// # Errors
    /// If the driver finds it out of line: places and lengths of rows are multiples of 16 bytes.
    pub(crate) fn words(&self) -> Result<[u64; Self::WORDS]> {
        let (count, stride) = self.members.unwrap_or((1, 0));
        let rank = if self.members.is_some() { 3 } else { 2 };
        let sizes = [self.columns, self.rows, count].map(|size| size as u64);
        let strides = [self.columns * 2, stride * 2].map(|bytes| bytes as u64);
        let tile = [self.tile[0] as u32, self.tile[1] as u32, 1];
        let swizzle = match self.swizzle {
            Swizzle::Bytes64 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            Swizzle::Bytes128 => sys::CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
        };
        let mut map = sys::CUtensorMap { opaque: [0; Self::WORDS] };
        // SAFETY: the arrays have an entry for each axis and outlive the call, which only writes the map.
        unsafe {
            sys::cuTensorMapEncodeTiled(
                &raw mut map,
                sys::CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                rank,
                self.at as *mut std::ffi::c_void,
                sizes.as_ptr(),
                strides.as_ptr(),
                tile.as_ptr(),
                [1_u32; 3].as_ptr(),
                sys::CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                swizzle,
                sys::CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                sys::CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
            )
        }
        .result()
        .named("cuTensorMapEncodeTiled")?;
        Ok(map.opaque)
    }
}
