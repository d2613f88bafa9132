//! Tables of `f64` from `.npy` files, with refusals that name the file and the mend.

use anyhow::{Context, bail};
use niwaki_advise::read::Numbers;
use std::path::Path;

/// Reads an array of finite numbers.
pub(crate) fn read(path: &Path) -> anyhow::Result<Numbers> {
    let shown = path.display();
    let array =
        Numbers::read(path).with_context(|| format!("{shown} is no array (write it with numpy.save)"))?;
    if let Some(index) = array.values.iter().position(|value| !value.is_finite()) {
        let at = match array.shape[..] {
            [_, width] => format!("row {}, column {}", index / width, index % width),
            _ => format!("index {index}"),
        };
        bail!("{shown} holds {} at {at}; every value must be finite", array.values[index]);
    }
    Ok(array)
}
