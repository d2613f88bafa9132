//! What the device can do at best: a large product and a copy, measured beside the engine in the same process.

use super::blas::{Blas, Onto, Operand, Places, Precision};
use super::device::{Device, Named};
use crate::Result;
use crate::limits::Limits;
use cudarc::driver::result;
use niwaki_stream::Key;

/// Rows and columns of the product.
const SIDE: usize = 8192;

/// Bytes of the copy.
const COPY: usize = 1 << 30;

const REPEATS: usize = 9;

/// Operations per second of an 8192³ product of noise in a precision, and bytes per second that a copy of 1 GiB reads
/// and writes; medians of nine after one to warm up.
pub(super) fn measure(device: &Device, blas: &Blas, precision: Precision) -> Result<Limits> {
    let bytes = SIDE * SIDE * 4;
    let (left, right, out) = (device.allocate(bytes)?, device.allocate(bytes)?, device.allocate(bytes)?);
    // Noise: a product of zeros runs faster than one of data.
    let mut stream = Key::new(1, "limits").open();
    let noise: Vec<f32> = (0..1 << 20).map(|_| 2.0 * stream.uniform() as f32 - 1.0).collect();
    for (part, base) in [(&left, 0), (&right, 7)] {
        for at in 0..SIDE * SIDE / noise.len() {
            let rotated = [&noise[base + at..], &noise[..base + at]].concat();
            match precision {
                Precision::F32 | Precision::Tf32 => {
                    device.write(part.at + (at * noise.len() * 4) as u64, &rotated)?
                }
                Precision::Bf16 => {
                    // The upper half of an f32 is a bf16.
                    let cut: Vec<u16> = rotated.iter().map(|x| (x.to_bits() >> 16) as u16).collect();
                    device.write(part.at + (at * noise.len() * 2) as u64, &cut)?;
                }
            }
        }
    }
    let square = Operand { rows: SIDE, columns: SIDE, pitch: SIDE, stride: SIDE * SIDE, transposed: false };
    let places = Places { left: left.at, right: right.at, onto: out.at, out: out.at };
    let product =
        blas.plan(precision, 1, (square, square, square), false, places, Onto::Nothing, None, None)?;
    // SAFETY: three squares of the planned size lie at these addresses.
    let multiply = || unsafe { blas.run(device, &product, places, false) };
    let seconds = median(device, multiply)?;
    drop(out);
    let (from, to) = (device.allocate(COPY)?, device.allocate(COPY)?);
    device.zero(from.at, COPY)?;
    let copy = || {
        // SAFETY: both buffers have `COPY` bytes.
        unsafe { result::memcpy_dtod_async(to.at, from.at, COPY, device.stream).named("cuMemcpyDtoD") }
    };
    let copied = 2.0 * COPY as f64 / median(device, copy)?;
    Ok(Limits { product: 2.0 * (SIDE as f64).powi(3) / seconds, copy: copied })
}

fn median(device: &Device, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    work()?;
    let mut times = Vec::new();
    for _ in 0..REPEATS {
        times.push(f64::from(device.time(&mut work)?) * 1e-3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[REPEATS / 2])
}
