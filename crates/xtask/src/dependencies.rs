//! What is built beside our own code: licences, versions and sources by `deny.toml`, and a line in
//! `docs/dependencies.md` for everything that a crate of ours names.

use crate::root;
use anyhow::{Context, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

pub(crate) fn run() -> anyhow::Result<String> {
    let rules: toml::Table = toml::from_str(&read("deny.toml")?).context("deny.toml does not read")?;
    let notes = read("docs/dependencies.md")?;
    let metadata = metadata()?;
    let packages = metadata["packages"].as_array().context("cargo metadata lists no packages")?;
    let faults = faults(packages, &rules, &notes);
    ensure!(faults.is_empty(), "{}", faults.join("; "));
    let foreign = packages.iter().filter(|package| !package["source"].is_null()).count();
    Ok(format!("dependencies: {foreign} crates, licences, versions, sources and notes in order"))
}

fn read(name: &str) -> anyhow::Result<String> {
    fs::read_to_string(root().join(name)).with_context(|| format!("cannot read {name}"))
}

fn metadata() -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--all-features"])
        .current_dir(root())
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn faults(packages: &[Value], rules: &toml::Table, notes: &str) -> Vec<String> {
    let list = |table: &str, key: &str| -> Vec<&str> {
        let values = rules.get(table).and_then(|table| table.get(key)).and_then(|list| list.as_array());
        values.into_iter().flatten().filter_map(named_by).collect()
    };
    let (licences, skipped) = (list("licenses", "allow"), list("bans", "skip"));
    let registries = list("sources", "allow-registry");
    let text = |package: &Value, key: &str| package[key].as_str().unwrap_or_default().to_owned();
    let mut faults = Vec::new();
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut named = BTreeSet::new();
    for package in packages {
        let (name, version) = (text(package, "name"), text(package, "version"));
        if package["source"].is_null() {
            let direct = package["dependencies"].as_array().into_iter().flatten();
            // What stands in the workspace itself needs no note.
            named.extend(direct.filter(|one| !one["source"].is_null()).map(|one| text(one, "name")));
            continue;
        }
        let (licence, source) = (text(package, "license"), text(package, "source"));
        if !allowed(&licence, &licences) {
            faults.push(format!(
                "{name} {version} has the licence '{licence}', which deny.toml does not allow"
            ));
        }
        if !registries.iter().any(|registry| source == format!("registry+{registry}")) {
            faults.push(format!("{name} {version} comes from {source}"));
        }
        let excused = skipped.iter().any(|skip| {
            let (of, major) = skip.split_once('@').unwrap_or((skip, ""));
            of == name && (version == major || version.starts_with(&format!("{major}.")))
        });
        if !excused {
            versions.entry(name).or_default().push(version);
        }
    }
    for (name, versions) in versions.iter().filter(|(_, versions)| versions.len() > 1) {
        faults.push(format!("{name} is built {} times: {}", versions.len(), versions.join(", ")));
    }
    let noted = |name: &&String| !notes.contains(&format!("| `{name}` |"));
    faults.extend(
        named.iter().filter(noted).map(|name| format!("docs/dependencies.md has no line for {name}")),
    );
    faults
}

/// A word of a list, or the crate that a table of a list names.
fn named_by(value: &toml::Value) -> Option<&str> {
    value.as_str().or_else(|| value.get("crate").and_then(toml::Value::as_str))
}

/// Whether an expression of licences can be met by the allowed ones. AND binds closer than OR, as in SPDX.
fn allowed(expression: &str, allow: &[&str]) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut at = 0;
    any(&words, &mut at, allow) && at == words.len()
}

fn any(words: &[&str], at: &mut usize, allow: &[&str]) -> bool {
    let mut met = all(words, at, allow);
    while words.get(*at) == Some(&"OR") {
        *at += 1;
        met |= all(words, at, allow);
    }
    met
}

fn all(words: &[&str], at: &mut usize, allow: &[&str]) -> bool {
    let mut met = one(words, at, allow);
    while words.get(*at) == Some(&"AND") {
        *at += 1;
        met &= one(words, at, allow);
    }
    met
}

fn one(words: &[&str], at: &mut usize, allow: &[&str]) -> bool {
    let Some(&word) = words.get(*at) else { return false };
    *at += 1;
    if word == "(" {
        let met = any(words, at, allow);
        *at += 1;
        return met;
    }
    if words.get(*at) == Some(&"WITH") {
        let exception = words.get(*at + 1).copied().unwrap_or_default();
        *at += 2;
        return allow.contains(&format!("{word} WITH {exception}").as_str());
    }
    allow.contains(&word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn licences_are_met_as_spdx_reads_them() {
        let allow = ["MIT", "Apache-2.0", "Unicode-3.0", "Apache-2.0 WITH LLVM-exception"];
        for met in ["MIT", "MIT/GPL-3.0", "GPL-3.0 OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
            assert!(allowed(met, &allow), "{met}");
        }
        assert!(allowed("Apache-2.0 WITH LLVM-exception OR GPL-2.0", &allow));
        for not in ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "GPL-3.0 OR MIT AND LGPL-2.1", "MIT WITH x"] {
            assert!(!allowed(not, &allow), "{not}");
        }
    }

    #[test]
    fn each_kind_of_fault_is_found() {
        let registry = "registry+https://r";
        let package = |name: &str, version: &str, licence: &str, source: &str| serde_json::json!({"name": name, "version": version, "license": licence, "source": source});
        let ours = serde_json::json!({"name": "ours", "source": null, "dependencies": [
            {"name": "a", "source": registry}, {"name": "niwaki-x", "source": null}]});
        let rules: toml::Table = toml::from_str(
            "[licenses]\nallow = ['MIT']\n[sources]\nallow-registry = ['https://r']\n[bans]\nskip = [{ crate = 'b@1' }]",
        )
        .unwrap();
        let sound = [
            ours.clone(),
            package("a", "1.0.0", "MIT", registry),
            package("b", "1.2.0", "MIT", registry),
            package("b", "2.0.0", "MIT", registry),
        ];
        assert_eq!(faults(&sound, &rules, "| `a` | x |"), [""; 0]);
        let broken =
            [ours, package("a", "1.0.0", "GPL-3.0", registry), package("a", "2.0.0", "MIT", "git+https://g")];
        assert_eq!(
            faults(&broken, &rules, ""),
            [
                "a 1.0.0 has the licence 'GPL-3.0', which deny.toml does not allow",
                "a 2.0.0 comes from git+https://g",
                "a is built 2 times: 1.0.0, 2.0.0",
                "docs/dependencies.md has no line for a",
            ]
        );
    }
}
