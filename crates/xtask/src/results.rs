//! The index of results, made from the pages of the questions: `cargo xtask results` writes the table of `results/README.md`.

use crate::root;
use anyhow::{Context, ensure};
use std::fs;

const INDEX: &str = "results/README.md";
const HEAD: &str = "| question | answer |\n|---|---|\n";

/// Writes the table.
pub(crate) fn write() -> anyhow::Result<String> {
    let (text, made) = made()?;
    if text != made {
        fs::write(root().join(INDEX), made)?;
    }
    Ok(format!("results: {INDEX} written"))
}

/// Fails where the table is not what the pages say.
pub(crate) fn verify() -> anyhow::Result<String> {
    let (text, made) = made()?;
    ensure!(text == made, "{INDEX} is not current: run cargo xtask results");
    Ok("results: the index is current".to_owned())
}

/// The index as it stands, and as the questions' pages have it: those it lists in its order, then new ones.
fn made() -> anyhow::Result<(String, String)> {
    let text = fs::read_to_string(root().join(INDEX)).with_context(|| format!("cannot read {INDEX}"))?;
    let (before, table) =
        text.split_once(HEAD).with_context(|| format!("{INDEX} has no table of questions"))?;
    let mut names = Vec::new();
    for entry in fs::read_dir(root().join("results"))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names
        .sort_by_key(|name| (table.find(&format!("({name}/README.md)")).unwrap_or(usize::MAX), name.clone()));
    let mut rows = String::new();
    for name in names {
        let page = fs::read_to_string(root().join("results").join(&name).join("README.md"))
            .with_context(|| format!("results/{name} has no README.md"))?;
        let (question, answer) = stated(&page)
            .with_context(|| format!("results/{name}/README.md: write '# QUESTION', then '**ANSWER**'"))?;
        rows += &format!("| [{question}]({name}/README.md) | {answer} |\n");
    }
    let after = table.split_once("\n\n").map_or(String::new(), |(_, after)| format!("\n{after}"));
    let made = format!("{before}{HEAD}{rows}{after}");
    Ok((text, made))
}

/// The heading of a page, and the bold words that its first paragraph begins with.
fn stated(page: &str) -> Option<(String, String)> {
    let (question, rest) = page.strip_prefix("# ")?.split_once('\n')?;
    let (answer, _) = rest.trim_start().strip_prefix("**")?.split_once("**")?;
    Some((question.trim().to_owned(), answer.replace('\n', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_states_its_question_and_its_answer() {
        let found = stated("# Does it?\n\n**Yes: in\nmost cases.** More words.\n");
        assert_eq!(found, Some(("Does it?".to_owned(), "Yes: in most cases.".to_owned())));
        assert_eq!(stated("# Does it?\n\nPerhaps.\n"), None);
    }
}
