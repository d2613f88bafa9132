//! Tables of `f64` from `.npy` files, with refusals that name the file and the mend.

use anyhow::{Context, bail, ensure};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;

/// An array of `f64` and its shape, in row-major order.
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

/// Reads an array of `f64` (or `f32`, widened).
pub(crate) fn read(path: &Path) -> anyhow::Result<Array> {
    let shown = path.display();
    let file = File::open(path).with_context(|| format!("cannot read {shown}"))?;
    let array = npyz::NpyFile::new(BufReader::new(file))
        .with_context(|| format!("{shown} is not a .npy file (write it with numpy.save)"))?;
    let shape: Vec<usize> = array.shape().iter().map(|&axis| axis as usize).collect();
    ensure!(
        array.order() == npyz::Order::C || shape.len() < 2,
        "{shown} is in Fortran order; save numpy.ascontiguousarray(x)"
    );
    let kind = array.dtype().descr();
    let values: Vec<f64> = match kind.trim_matches('\'') {
        "<f8" => array.into_vec().with_context(|| format!("{shown} is cut short"))?,
        "<f4" => {
            let narrow: Vec<f32> = array.into_vec().with_context(|| format!("{shown} is cut short"))?;
            narrow.into_iter().map(f64::from).collect()
        }
        other => bail!("{shown} holds {other}; save it as float64"),
    };
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        let width = shape.last().copied().unwrap_or(1).max(1);
        bail!(
            "{shown} holds {} at row {}, column {}; every value must be finite",
            values[index],
            index / width,
            index % width
        );
    }
    Ok(Array { shape, values })
}
