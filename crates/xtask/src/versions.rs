//! One version for all crates, the wheel, the changelog and what the README prints.

use crate::root;
use anyhow::{Context, ensure};
use std::fs;

pub(crate) fn run() -> anyhow::Result<String> {
    let read =
        |name: &str| fs::read_to_string(root().join(name)).with_context(|| format!("cannot read {name}"));
    let manifest: toml::Table = read("Cargo.toml")?.parse()?;
    let workspace = &manifest["workspace"];
    let version = workspace["package"]["version"].as_str().context("Cargo.toml has no version")?.to_owned();
    let mut faults = Vec::new();
    for (name, dependency) in workspace["dependencies"].as_table().into_iter().flatten() {
        let given = dependency.get("version").and_then(toml::Value::as_str);
        if dependency.get("path").is_some() && given.is_some_and(|given| given != version) {
            faults.push(format!("Cargo.toml asks for {name} {}", given.unwrap_or_default()));
        }
    }
    for path in crate::files::below(&root(), &["Cargo.toml"])? {
        let crate_: toml::Table = fs::read_to_string(&path)?.parse()?;
        let own =
            crate_.get("package").and_then(|package| package.get("version")).and_then(toml::Value::as_str);
        if let Some(own) = own.filter(|own| *own != version) {
            faults.push(format!("{} says {own}", path.display()));
        }
    }
    let project: toml::Table = read("pyproject.toml")?.parse()?;
    if let Some(given) =
        project["project"].get("version").and_then(toml::Value::as_str).filter(|v| *v != version)
    {
        faults.push(format!("pyproject.toml says {given}"));
    }
    for (name, text) in [
        ("CHANGELOG.md", format!("\n## {version}")),
        ("README.md", format!("Implementation: Niwaki {version}")),
        ("README.md", format!("niwaki-{version}-cp310-abi3-")),
    ] {
        if !read(name)?.contains(&text) {
            faults.push(format!("{name} does not say '{}'", text.trim()));
        }
    }
    ensure!(faults.is_empty(), "the version is {version}, but\n  {}", faults.join("\n  "));
    Ok(format!("versions: {version} everywhere"))
}
