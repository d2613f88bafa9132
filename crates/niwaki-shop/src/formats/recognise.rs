//! A file of a shop: what was recognised, and what the file leaves open.

use super::Format;
use crate::{Error, Instance, Result};
use std::path::Path;

/// A file that was understood.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// The problem.
    pub instance: Instance,
    /// The layout in which it was read.
    pub format: Format,
    /// What the file leaves open and how it was settled, if anything.
    pub open: Option<&'static str>,
}

/// Reads a file, in a layout that is named or in the one that it has. The ending `.fjs` settles a layout that the text
/// leaves open.
///
/// # Errors
/// If the file cannot be read, or its first mistake; both name the file.
pub fn recognise(path: &Path, format: Option<Format>) -> Result<Recognised> {
    let named = |what: String| Error::File { path: path.display().to_string(), what };
    let bytes = std::fs::read(path).map_err(|error| named(error.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        named(format!("line {line}: expected text in UTF-8"))
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_fjs = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("fjs"));
    let settled = format.or(is_fjs.then_some(Format::Fjs));
    let format = settled.map_or_else(|| Format::detect(text), Ok).map_err(|error| named(error.to_string()))?;
    let instance = format.read(text).map_err(|error| named(error.to_string()))?;
    let open = (settled.is_none() && format.could_be_flow_shop(text)).then_some(
        "every job visits the machines in order: machines may serve the jobs in different orders; read it in the layout \
         `pairs` for one common order",
    );
    Ok(Recognised { instance, format, open })
}
