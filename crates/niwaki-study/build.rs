//! Lists the studies: a TOML under `studies/` ships with the program, in the order of its `place`.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../studies").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut studies = Vec::new();
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "toml") {
            studies.push(head(path)?);
        }
    }
    studies.sort();
    let mut list = "&[\n".to_owned();
    for (_, label, path) in &studies {
        writeln!(list, "    Study {{ label: {label:?}, text: include_str!({path:?}) }},")?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("studies.rs"), list + "]\n")?;
    Ok(())
}

/// The place, the label and the path of a study: what its file says before its first table, one key a line.
fn head(path: PathBuf) -> Result<(u32, String, PathBuf), Box<dyn Error>> {
    let text = fs::read_to_string(&path)?;
    let value = |key: &str| {
        let mut lines = text.lines().take_while(|line| !line.starts_with('['));
        lines.find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix('=')).map(str::trim)
    };
    let label = value("label").map(|label| label.trim_matches('"').to_owned());
    let label = label.ok_or_else(|| format!("{}: give it a label = \"…\"", path.display()))?;
    let place = value("place").map_or(Ok(u32::MAX), str::parse);
    let place = place.map_err(|error| format!("{}: place: {error}", path.display()))?;
    Ok((place, label, path))
}
