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
    let cut_short = || format!("{shown} is cut short; save it again with numpy.save");
    let values: Vec<f64> = match kind.trim_matches('\'') {
        "<f8" => array.into_vec().with_context(cut_short)?,
        "<f4" => array.into_vec::<f32>().with_context(cut_short)?.into_iter().map(f64::from).collect(),
        other => bail!("{shown} holds {other}; save x.astype('<f8')"),
    };
    if let Some(index) = values.iter().position(|value| !value.is_finite()) {
        let at = match shape[..] {
            [_, width] => format!("row {}, column {}", index / width, index % width),
            _ => format!("index {index}"),
        };
        bail!("{shown} holds {} at {at}; every value must be finite", values[index]);
    }
    Ok(Array { shape, values })
}
