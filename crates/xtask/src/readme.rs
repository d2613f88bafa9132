//! Runs the README's commands: what it promises is what CI does, and what it prints is what they print.

use crate::root;
use anyhow::{Context, ensure};
use std::fs;
use std::process::{Command, Stdio};

/// A command of the README, and the output that stands under it.
#[derive(Debug, Default, PartialEq)]
struct Step {
    command: String,
    shown: Option<String>,
}

#[expect(clippy::print_stdout, reason = "the log of a long run needs its place")]
pub(crate) fn run() -> anyhow::Result<String> {
    let text = fs::read_to_string(root().join("README.md")).context("cannot read README.md")?;
    let steps = steps(&text);
    ensure!(!steps.is_empty(), "the README has no `sh` block");
    let mut compared = 0;
    for Step { command, shown } in &steps {
        println!("$ {command}");
        // The check that calls this runs these as steps of its own.
        if command.starts_with("cargo test --workspace") || command.starts_with("cargo xtask") {
            continue;
        }
        let ran = Command::new("bash")
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(root())
            .stderr(Stdio::inherit())
            .output()?;
        let output = String::from_utf8_lossy(&ran.stdout);
        println!("{}", output.trim_end());
        ensure!(ran.status.success(), "the README's command failed: {command}");
        if let Some(shown) = shown {
            // The clock decides how far a search comes.
            let fault = if command.contains("--time") {
                difference(&without_numbers(shown), &without_numbers(&output))
            } else {
                difference(shown, &output)
            };
            if let Some(line) = fault {
                anyhow::bail!("the README shows another output of `{command}`: {line}");
            }
            compared += 1;
        }
    }
    Ok(format!("readme: {} commands run, {compared} outputs as printed there", steps.len()))
}

/// The commands of all `sh` blocks, with comments left out and continued lines joined; the `text` block that follows one
/// shows the output of its last command.
fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let (mut block, mut continued, mut follows) = ("", false, false);
    for line in text.lines() {
        if let Some(kind) = line.trim_start().strip_prefix("```") {
            let closes = !block.is_empty();
            follows = if closes { block == "sh" } else { follows && kind == "text" };
            block = if closes { "" } else { if kind.is_empty() { "text" } else { kind } };
            if block == "text" && follows {
                steps.iter_mut().last().into_iter().for_each(|step| step.shown = Some(String::new()));
            }
            continued = false;
            continue;
        }
        match block {
            "sh" => {
                let line = line.split("  #").next().unwrap_or(line).trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let part = line.trim_end_matches('\\').trim();
                match steps.last_mut() {
                    Some(last) if continued => last.command = format!("{} {part}", last.command),
                    _ => steps.push(Step { command: part.to_owned(), shown: None }),
                }
                continued = line.ends_with('\\');
            }
            "text" if follows => {
                let shown = steps.last_mut().and_then(|step| step.shown.as_mut());
                shown.into_iter().for_each(|shown| *shown += &format!("{line}\n"));
            }
            "" => follows &= line.trim().is_empty(),
            _ => {}
        }
    }
    steps
}

/// What of an output is not as shown, where a line of three dots stands for any lines.
fn difference(shown: &str, output: &str) -> Option<String> {
    let mut rest = output.lines();
    let mut gap = false;
    for line in shown.lines() {
        if line.trim() == "…" {
            gap = true;
            continue;
        }
        let found = if gap {
            rest.find(|found| found.trim_end() == line.trim_end())
        } else {
            rest.next().filter(|found| found.trim_end() == line.trim_end())
        };
        if found.is_none() {
            return Some(format!("`{line}` does not come"));
        }
        gap = false;
    }
    rest.next().filter(|_| !gap).map(|line| format!("`{line}` is not shown"))
}

/// A text with one sign in the place of every number.
fn without_numbers(text: &str) -> String {
    let mut kept = String::new();
    for letter in text.chars() {
        match letter {
            '0'..='9' if kept.ends_with('#') => {}
            '0'..='9' => kept.push('#'),
            other => kept.push(other),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_from_sh_blocks_only() {
        let text = "```sh\n# a comment\ncargo run \\\n  -- x  # told\nls\n```\n\n```text\na\nb\n```\nwords\n\n```text\nno\n```\n";
        let step = |command: &str, shown: Option<&str>| Step {
            command: command.to_owned(),
            shown: shown.map(ToOwned::to_owned),
        };
        assert_eq!(steps(text), [step("cargo run -- x", None), step("ls", Some("a\nb\n"))]);
        assert_eq!(steps("```sh\nls\n```\nwords\n```text\nno\n```\n"), [step("ls", None)]);
    }

    #[test]
    fn outputs_are_compared_line_by_line() {
        assert_eq!(difference("a\n…\nc\n", "a\nb\nb\nc\n"), None);
        assert_eq!(difference("…\nc\n", "c\n"), None);
        assert_eq!(difference("a\n  …\n", "a\nb\n"), None);
        assert_eq!(difference("a\nc\n", "a\nb\n").unwrap(), "`c` does not come");
        assert_eq!(difference("…\nd\n", "a\nb\n").unwrap(), "`d` does not come");
        assert_eq!(difference("a\n", "a\nb\n").unwrap(), "`b` is not shown");
        assert_eq!(without_numbers("ends 2026-11-18, bound 0.5"), "ends #-#-#, bound #.#");
    }
}
