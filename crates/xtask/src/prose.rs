//! Sentences that a reader loses: none above 35 words in the README, the tutorials and the pages that strangers open first.

use crate::root;
use anyhow::ensure;
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use std::fs;

/// Most words in a sentence, as `STYLE.md` has it.
const MOST: usize = 35;

/// What is read; help texts are held to the same by a test of the command.
const PAGES: &[&str] = &[
    "README.md",
    "STYLE.md",
    "docs/glossary.md",
    "docs/questions.md",
    "docs/release.md",
    "docs/start.md",
    "docs/strength.md",
    "docs/tutorial-loss.md",
    "docs/tutorial-paper.md",
    "docs/tutorial-shop.md",
    "docs/tutorial-stale.md",
    "docs/tutorial-train.md",
];

pub(crate) fn run() -> anyhow::Result<String> {
    let (mut long, mut count) = (Vec::new(), 0);
    for name in PAGES {
        for sentence in sentences(&fs::read_to_string(root().join(name))?) {
            count += 1;
            let words = words(&sentence);
            if words > MOST {
                long.push(format!("{name}: {words} words: {sentence}"));
            }
        }
    }
    ensure!(long.is_empty(), "sentences above {MOST} words:\n  {}", long.join("\n  "));
    Ok(format!("prose: {count} sentences of {} pages have at most {MOST} words", PAGES.len()))
}

/// The sentences of a page; a heading, a cell and a point of a list end one, and code is not read.
fn sentences(text: &str) -> Vec<String> {
    let (mut found, mut open, mut code) = (Vec::new(), String::new(), false);
    let close = |open: &mut String, found: &mut Vec<String>| {
        let mut rest = open.as_str();
        while let Some(at) = end(rest) {
            found.push(rest[..at].trim().to_owned());
            rest = &rest[at..];
        }
        found.push(rest.trim().to_owned());
        open.clear();
    };
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code = true,
            Event::End(TagEnd::CodeBlock) => code = false,
            Event::Text(words) if !code => open.push_str(&words),
            Event::Code(words) => open.push_str(&words),
            Event::SoftBreak | Event::HardBreak => open.push(' '),
            Event::End(
                TagEnd::Paragraph
                | TagEnd::Heading(_)
                | TagEnd::Item
                | TagEnd::TableCell
                | TagEnd::BlockQuote(_),
            ) => close(&mut open, &mut found),
            _ => {}
        }
    }
    close(&mut open, &mut found);
    found.retain(|sentence| !sentence.is_empty());
    found
}

/// Where the first sentence ends: at a full stop, a question mark or an exclamation mark before a space.
fn end(text: &str) -> Option<usize> {
    text.char_indices().find_map(|(at, letter)| {
        let after = &text[at + letter.len_utf8()..];
        (matches!(letter, '.' | '?' | '!') && after.starts_with(' ')).then_some(at + letter.len_utf8())
    })
}

fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.contains(char::is_alphanumeric)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_where_readers_breathe() {
        let text = "# A title\n\nOne `a.b` two. Three\nfour?\n\n- five\n- six\n\n| a b | c |\n|---|---|\n| d | e |\n\n```text\nnot read\n```\n";
        assert_eq!(
            sentences(text),
            ["A title", "One a.b two.", "Three four?", "five", "six", "a b", "c", "d", "e"]
        );
        assert_eq!(words("One a.b – two."), 3);
    }
}
