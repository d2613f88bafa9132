//! What a command leaves in its folder, but for the clock's doing.

use crate::events::timeless;
use anyhow::Context;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Every file below a folder by its name. A call that finds everything done has no speed, so that file may be missing and a
/// page that shows it is compared by its name only; times within events are left out.
pub(super) fn files(folder: &Path) -> anyhow::Result<BTreeMap<String, Vec<u8>>> {
    let (mut found, mut todo) = (BTreeMap::new(), vec![folder.to_owned()]);
    while let Some(at) = todo.pop() {
        for entry in fs::read_dir(&at).with_context(|| format!("cannot list {}", at.display()))? {
            let path = entry?.path();
            let name = path.strip_prefix(folder)?.display().to_string();
            if path.is_dir() {
                todo.push(path);
                continue;
            }
            match name.rsplit('/').next().unwrap_or(&name) {
                "speed.json" => {}
                "index.html" => drop(found.insert(name, Vec::new())),
                file if file.contains("tfevents") => drop(found.insert(name, timeless(fs::read(path)?))),
                _ => drop(found.insert(name, fs::read(path)?)),
            }
        }
    }
    Ok(found)
}
