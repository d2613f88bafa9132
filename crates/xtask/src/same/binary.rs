//! The two commands: an older commit's, built once and kept, and today's.

use super::workshop;
use crate::root;
use anyhow::{Context, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An older commit's command and examples.
pub(super) struct Older {
    /// Holds the command and `examples`.
    pub(super) folder: PathBuf,
    pub(super) binary: PathBuf,
}

/// Checks a commit out, keeps its examples, and builds its command unless one is given or kept from an earlier call.
pub(super) fn older(commit: &str, release: bool, given: Option<&Path>) -> anyhow::Result<Older> {
    let hash = git(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")])?;
    let folder = workshop().join(hash.get(..12).unwrap_or(&hash));
    let kept = folder.join(if release { "niwaki-release" } else { "niwaki-debug" });
    let binary = given.map_or_else(|| Ok(kept.clone()), whole)?;
    if !binary.exists() || !folder.join("examples").exists() {
        fs::create_dir_all(&folder)?;
        let source = folder.join("source");
        let place = source.display().to_string();
        git(&["worktree", "prune"])?;
        git(&["worktree", "add", "--force", "--detach", &place, &hash])?;
        let made = copy(&source.join("examples"), &folder.join("examples")).and_then(|()| {
            if binary.exists() {
                return Ok(());
            }
            // A folder of its own: two checkouts of one package in one would take each other's files for fresh.
            let built = build(&source, &workshop().join("build"), release)?;
            fs::copy(&built, &kept).map(drop).context("cannot keep the older command")
        });
        git(&["worktree", "remove", "--force", &place])?;
        made?;
    }
    Ok(Older { folder, binary })
}

/// Builds the command of the working tree, unless one is given.
pub(super) fn today(release: bool, given: Option<&Path>) -> anyhow::Result<PathBuf> {
    given.map_or_else(|| build(&root(), &root().join("target"), release), whole)
}

/// A given command's path, which must not depend on the folder that it is run in.
fn whole(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("there is no command at {}", path.display()))
}

fn build(source: &Path, target: &Path, release: bool) -> anyhow::Result<PathBuf> {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--locked", "--package", "niwaki", "--target-dir"]).arg(target).current_dir(source);
    if release {
        cargo.arg("--release");
    }
    ensure!(cargo.status()?.success(), "{} does not build", source.display());
    Ok(target.join(if release { "release" } else { "debug" }).join("niwaki"))
}

fn git(words: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("git").args(words).current_dir(root()).output().context("cannot run git")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "git {}: {}", words.join(" "), said.trim());
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether a commit is another one or one of those that led to it.
pub(super) fn is_ancestor(commit: &str, of: &str) -> anyhow::Result<bool> {
    git(&["rev-parse", "--verify", &format!("{of}^{{commit}}")])?;
    let words = ["merge-base", "--is-ancestor", commit, of];
    let ended = Command::new("git").args(words).current_dir(root()).status().context("cannot run git")?;
    match ended.code() {
        Some(0) => Ok(true),
        Some(1) => Ok(false),
        _ => anyhow::bail!("git cannot compare {commit} with {of}"),
    }
}

/// Copies a folder and all that is in it.
pub(super) fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(to).with_context(|| format!("cannot make {}", to.display()))?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot list {}", from.display()))? {
        let path = entry?.path();
        let target = to.join(path.file_name().unwrap_or_default());
        if path.is_dir() {
            copy(&path, &target)?;
        } else {
            fs::copy(&path, &target).with_context(|| format!("cannot copy {}", path.display()))?;
        }
    }
    Ok(())
}
