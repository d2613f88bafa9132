//! Documents by path or by address: a file, or an object of a bucket.

use crate::output;
use anyhow::{Context, bail};
use niwaki_store::Store;
use std::path::Path;
use std::sync::Arc;

/// Whether a text is the address of a bucket rather than a path.
pub(crate) fn is_bucket(text: &str) -> bool {
    text.contains("://") && !text.starts_with("file://")
}

/// Refuses a bucket where a command writes files of many kinds.
pub(crate) fn folder_only(flag: &str, path: &Path, mend: &str) -> anyhow::Result<()> {
    let text = path.to_string_lossy();
    if is_bucket(&text) {
        bail!("{flag} {text}: this has to be a folder; {mend}");
    }
    Ok(())
}

/// Reads a document.
pub(crate) fn read(place: &Path) -> anyhow::Result<String> {
    let address = place.to_string_lossy();
    if !is_bucket(&address) {
        return Ok(niwaki_files::read_text(file(place, &address))?);
    }
    let (bucket, name) = object(&address)?;
    let bytes = bucket.read(name)?.with_context(|| format!("{} has no {name}", bucket.name()))?;
    String::from_utf8(bytes).ok().with_context(|| format!("{address} is not UTF-8 text"))
}

/// Writes a document whole.
pub(crate) fn write(place: &Path, text: &str) -> anyhow::Result<()> {
    let address = place.to_string_lossy();
    if !is_bucket(&address) {
        return output::write_whole(file(place, &address), text);
    }
    let (bucket, name) = object(&address)?;
    Ok(bucket.write(name, text.as_bytes())?)
}

/// A path that may be written as an address.
fn file<'a>(place: &'a Path, address: &'a str) -> &'a Path {
    address.strip_prefix("file://").map_or(place, Path::new)
}

/// The bucket, or the prefix in one, of an object, and its name there.
fn object(address: &str) -> anyhow::Result<(Arc<dyn Store>, &str)> {
    match address.rsplit_once('/') {
        Some((bucket, name)) if !name.is_empty() && !bucket.ends_with('/') && bucket.contains("://") => {
            Ok((niwaki_store::open(bucket)?, name))
        }
        _ => bail!("{address} is not an object in a bucket; write it as s3://bucket/plan.json"),
    }
}
