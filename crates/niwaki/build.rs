//! The commit that the command is built from, for `niwaki --version`.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=NIWAKI_COMMIT");
    let version = env!("CARGO_PKG_VERSION");
    let version = commit().map_or_else(|| version.to_owned(), |commit| format!("{version} ({commit})"));
    println!("cargo::rustc-env=NIWAKI_VERSION={version}");
}

/// The commit: NIWAKI_COMMIT where sources come without their history, else what git says.
fn commit() -> Option<String> {
    if let Ok(given) = std::env::var("NIWAKI_COMMIT") {
        return Some(given.trim().to_owned()).filter(|commit| !commit.is_empty());
    }
    // Another repository around unpacked sources says nothing about them.
    let top = git(&["rev-parse", "--show-toplevel"])?;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2)?.canonicalize().ok()?;
    (Path::new(&top).canonicalize().ok()? == root).then_some(())?;
    // It has a new line whenever a commit is made or chosen.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"])?;
    if Path::new(&log).exists() {
        println!("cargo::rerun-if-changed={log}");
    }
    git(&["rev-parse", "--short=9", "HEAD"])
}

fn git(words: &[&str]) -> Option<String> {
    let ended = Command::new("git").args(words).output().ok().filter(|ended| ended.status.success())?;
    Some(String::from_utf8(ended.stdout).ok()?.trim().to_owned())
}
