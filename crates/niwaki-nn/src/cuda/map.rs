//! How the copy engine of a Hopper device finds tiles of an array.

use super::device::Named;
use crate::Result;
use cudarc::driver::sys;

/// Bytes side by side that a tile's rows have, and by which its pieces of 16 bytes are swizzled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Swizzle {
    Bytes64,
    Bytes128,
}

/// An axis of an array: its places, how many halves lie from one to the next, and places of a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) size: usize,
    pub(crate) apart: usize,
    pub(crate) tile: usize,
}

/// Two numbers of 32 bits.
pub(crate) fn two(low: usize, high: usize) -> u64 {
    low as u64 | (high as u64) << 32
}

/// An array of halves, in tiles. Entries of its first axis lie side by side.
#[derive(Clone, Debug)]
pub(crate) struct Tiled {
    pub(crate) at: u64,
    pub(crate) axes: Vec<Axis>,
    pub(crate) swizzle: Swizzle,
}

impl Tiled {
    /// How much a kernel is given of it.
    pub(crate) const WORDS: usize = 16;

    /// A matrix `[rows, columns]` whose tiles have so many columns and rows.
    pub(crate) fn rows(at: u64, [columns, rows]: [usize; 2], tile: [usize; 2], swizzle: Swizzle) -> Self {
        let axes = vec![
            Axis { size: columns, apart: 1, tile: tile[0] },
            Axis { size: rows, apart: columns, tile: tile[1] },
        ];
        Self { at, axes, swizzle }
    }

    /// Such a matrix for each of some members, so many halves apart.
    pub(crate) fn of_members(mut self, members: usize, apart: usize) -> Self {
        self.axes.push(Axis { size: members, apart, tile: 1 });
        self
    }

    /// What a kernel is given of it.
    ///
    /// # Errors
    /// If the driver finds it out of line: places and lengths of rows are multiples of 16 bytes.
    pub(crate) fn words(&self) -> Result<[u64; Self::WORDS]> {
        let sizes: Vec<u64> = self.axes.iter().map(|axis| axis.size as u64).collect();
        let strides: Vec<u64> = self.axes.iter().skip(1).map(|axis| 2 * axis.apart as u64).collect();
        let tile: Vec<u32> = self.axes.iter().map(|axis| axis.tile as u32).collect();
        let each = vec![1_u32; self.axes.len()];
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
                self.axes.len() as u32,
                self.at as *mut std::ffi::c_void,
                sizes.as_ptr(),
                strides.as_ptr(),
                tile.as_ptr(),
                each.as_ptr(),
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
