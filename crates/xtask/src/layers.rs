//! Dependencies point down: the edges between crates, and the crates that only one of them may name.

use crate::root;
use anyhow::{Context, bail, ensure};
use std::process::Command;

/// Every crate and its layer. A crate may depend on crates of lower layers only.
const LAYERS: &[(&str, u8)] = &[
    ("niwaki-correction", 0),
    ("niwaki-stats", 0),
    ("niwaki-stream", 0),
    ("niwaki-files", 0),
    ("niwaki-page", 0),
    ("niwaki-words", 0),
    ("niwaki-simd", 0),
    ("niwaki-store", 1),
    ("niwaki-exact", 1),
    ("niwaki-shop", 1),
    ("niwaki-advise", 2),
    ("niwaki-tasks", 2),
    ("niwaki-nn", 2),
    ("niwaki-policies", 3),
    ("niwaki-lm", 4),
    ("niwaki-train", 5),
    ("niwaki-study", 6),
    ("niwaki", 7),
    ("niwaki-py", 7),
    ("niwaki-fuzz", 7),
    ("own-parts", 7),
    ("own-task", 8),
    ("xtask", 7),
];

/// Crates that must work without any dependency.
const ALONE: &[&str] = &["niwaki-correction", "niwaki-stats", "niwaki-words", "niwaki-simd"];

/// Dependencies that belong to one crate.
const RESERVED: &[(&str, &str)] = &[
    ("gemm-common", "niwaki-nn"),
    ("gemm-f32", "niwaki-nn"),
    ("gemm-f64", "niwaki-nn"),
    ("cudarc", "niwaki-nn"),
    ("tokenizers", "niwaki-lm"),
];

/// One crate and what it names under `[dependencies]`.
struct Package {
    name: String,
    dependencies: Vec<String>,
}

pub(crate) fn run() -> anyhow::Result<String> {
    let packages = packages()?;
    let broken: Vec<String> = packages.iter().flat_map(faults).collect();
    ensure!(broken.is_empty(), "{}", broken.join("; "));
    Ok(format!("layers: {} crates, every edge points down", packages.len()))
}

fn packages() -> anyhow::Result<Vec<Package>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let Some(packages) = metadata["packages"].as_array() else { bail!("cargo metadata lists no packages") };
    Ok(packages
        .iter()
        .map(|package| Package {
            name: package["name"].as_str().unwrap_or_default().to_owned(),
            dependencies: package["dependencies"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|dependency| dependency["kind"].is_null())
                .filter_map(|dependency| dependency["name"].as_str().map(ToOwned::to_owned))
                .collect(),
        })
        .collect())
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

fn faults(package: &Package) -> Vec<String> {
    let name = package.name.as_str();
    let Some(own) = layer(name) else { return vec![format!("{name} has no layer; add it to the table")] };
    let mut faults = Vec::new();
    for dependency in &package.dependencies {
        if layer(dependency).is_some_and(|below| below >= own) {
            faults.push(format!("{name} (layer {own}) must not depend on {dependency}"));
        }
        if ALONE.contains(&name) {
            faults.push(format!("{name} must have no dependency and names {dependency}"));
        }
        for (reserved, owner) in RESERVED {
            if dependency == reserved && name != *owner {
                faults.push(format!("only {owner} may name {reserved}; {name} does"));
            }
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[&str]) -> Package {
        Package {
            name: name.to_owned(),
            dependencies: dependencies.iter().map(|d| (*d).to_owned()).collect(),
        }
    }

    #[test]
    fn the_workspace_keeps_its_layers() {
        run().unwrap();
    }

    #[test]
    fn upward_edges_and_strangers_are_found() {
        assert!(faults(&package("niwaki-exact", &["niwaki-correction", "thiserror"])).is_empty());
        assert_eq!(faults(&package("niwaki-exact", &["niwaki-shop"])).len(), 1);
        assert_eq!(faults(&package("niwaki-correction", &["serde"])).len(), 1);
        assert_eq!(faults(&package("niwaki-shop", &["gemm-f32"])).len(), 1);
        assert_eq!(faults(&package("niwaki-new", &[])).len(), 1);
    }
}
