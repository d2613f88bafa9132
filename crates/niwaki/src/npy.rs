//! Tables of `f64` from `.npy` files, with refusals that name the file and the mend.

use anyhow::{anyhow, bail};
use niwaki_advise::Error;
use niwaki_advise::read::Numbers;
use std::path::Path;

/// Reads an array of finite numbers.
pub(crate) fn read(path: &Path) -> anyhow::Result<Numbers> {
    let shown = path.display();
    let array = Numbers::read(path).map_err(|error| match error {
        Error::File { source, .. } => anyhow!(source).context(format!("cannot read {shown}")),
        Error::Broken { why, .. } => anyhow!("{shown}: {why}; save it again with numpy.save"),
        other => other.into(),
    })?;
    if let Some(index) = array.values.iter().position(|value| !value.is_finite()) {
        let at = match array.shape[..] {
            [_, width] => format!("row {}, column {}", index / width, index % width),
            _ => format!("index {index}"),
        };
        bail!("{shown} holds {} at {at}; every value must be finite", array.values[index]);
    }
    Ok(array)
}
