//! Runs the README's commands: what it promises is what CI does.

use crate::root;
use anyhow::{Context, ensure};
use std::fs;
use std::process::Command;

#[expect(clippy::print_stdout, reason = "the log of a long run needs its place")]
pub(crate) fn run() -> anyhow::Result<String> {
    let text = fs::read_to_string(root().join("README.md")).context("cannot read README.md")?;
    let commands = commands(&text);
    ensure!(!commands.is_empty(), "the README has no `sh` block");
    for command in &commands {
        println!("$ {command}");
        // The check that calls this runs these as steps of its own.
        if command.starts_with("cargo test --workspace") || command.starts_with("cargo xtask") {
            continue;
        }
        let status =
            Command::new("bash").args(["-euo", "pipefail", "-c", command]).current_dir(root()).status()?;
        ensure!(status.success(), "the README's command failed: {command}");
    }
    Ok(format!("readme: {} commands run", commands.len()))
}

/// The commands of all `sh` blocks, with comments left out and continued lines joined.
fn commands(text: &str) -> Vec<String> {
    let mut commands: Vec<String> = Vec::new();
    let (mut inside, mut continued) = (false, false);
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            inside = line.trim() == "```sh";
            continued = false;
            continue;
        }
        let line = line.split("  #").next().unwrap_or(line).trim();
        if !inside || line.is_empty() || line.starts_with('#') {
            continue;
        }
        let part = line.trim_end_matches('\\').trim();
        match commands.last_mut() {
            Some(last) if continued => *last = format!("{last} {part}"),
            _ => commands.push(part.to_owned()),
        }
        continued = line.ends_with('\\');
    }
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_from_sh_blocks_only() {
        let text = "```sh\n# a comment\ncargo run \\\n  -- x  # told\nls\n```\n```text\nno\n```\n";
        assert_eq!(commands(text), ["cargo run -- x", "ls"]);
    }
}
