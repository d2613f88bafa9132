//! The page of promises names a test for each: every one of them is there.

use crate::files::below;
use crate::root;
use anyhow::{Context, ensure};
use std::fs;

pub(crate) fn run() -> anyhow::Result<String> {
    let page = root().join("docs/promises.md");
    let text = fs::read_to_string(&page).context("cannot read docs/promises.md")?;
    let named = tests(&text);
    ensure!(named.len() > 10, "docs/promises.md names only {} tests", named.len());
    let mut sources = String::new();
    for file in below(&root(), &[".rs"])? {
        sources += &fs::read_to_string(&file)?;
    }
    let lost: Vec<&str> =
        named.iter().filter(|name| !sources.contains(&format!("fn {name}("))).copied().collect();
    ensure!(lost.is_empty(), "docs/promises.md names tests that are not there: {}", lost.join(", "));
    Ok(format!("promises: {} tests named, all there", named.len()))
}

/// Names between backticks that are made of four words or more, as tests' are.
fn tests(text: &str) -> Vec<&str> {
    let test = |name: &&str| {
        name.matches('_').count() >= 3 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    text.split('`').skip(1).step_by(2).filter(test).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_of_tests_are_told_from_other_code() {
        let text = "| x | `a_law_that_holds`, `cargo xtask same`; `two_words` |\n`another_law_that_holds_2`";
        assert_eq!(super::tests(text), ["a_law_that_holds", "another_law_that_holds_2"]);
    }
}
