//! What the book's search looks through: the words of every section, in one script that a page loads when it is asked.

use super::Leaf;
use super::links::{headings, options};
use pulldown_cmark::{Event, HeadingLevel, Parser, Tag, TagEnd};
use serde_json::{Value, json};

/// One entry per section of a page.
pub(super) fn entries(leaf: &Leaf, text: &str) -> Vec<Value> {
    let mut headings = headings(text).into_iter();
    let (mut found, mut section, mut anchor, mut words): (Vec<Value>, String, String, String) =
        Default::default();
    let mut inside = false;
    let entry = |section: &str, anchor: &str, words: &str| {
        let at = if anchor.is_empty() { String::new() } else { format!("#{anchor}") };
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        json!({"t": leaf.title, "s": section, "u": format!("{}{at}", leaf.out.display()), "x": words})
    };
    for event in Parser::new_ext(text, options()) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                inside = true;
                let heading = headings.next();
                if let Some(heading) = heading.filter(|_| level != HeadingLevel::H1) {
                    if !words.trim().is_empty() {
                        found.push(entry(&section, &anchor, &words));
                    }
                    (section, anchor, words) = (heading.title, heading.anchor, String::new());
                }
            }
            Event::End(TagEnd::Heading(_)) => inside = false,
            Event::Text(part) | Event::Code(part) if !inside => words.push_str(&part),
            Event::SoftBreak | Event::HardBreak | Event::End(_) => words.push(' '),
            _ => {}
        }
    }
    found.push(entry(&section, &anchor, &words));
    found
}

/// The index as a script: a page that was opened from a folder may not read a file of data.
pub(super) fn script(entries: &[Value]) -> anyhow::Result<String> {
    Ok(format!("window.BOOK={};\n", serde_json::to_string(entries)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_is_an_entry() {
        let leaf = Leaf {
            title: "Page".to_owned(),
            source: "docs/a.md".into(),
            out: "a.html".into(),
            depth: Some(0),
        };
        let found =
            entries(&leaf, "# Page\n\nfirst `code`\nline\n\n## Part\n\n| a | b |\n|---|---|\n| c | d |\n");
        assert_eq!(
            found,
            [
                json!({"t": "Page", "s": "", "u": "a.html", "x": "first code line"}),
                json!({"t": "Page", "s": "Part", "u": "a.html#part", "x": "a b c d"})
            ]
        );
    }
}
