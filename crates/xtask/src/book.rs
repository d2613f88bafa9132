//! The book: `docs/` as HTML in `target/book`, with every link of every page checked.
//!
//! `docs/SUMMARY.md` is the table of contents, in mdBook's layout. This builder is part of xtask, so a cold cache has nothing
//! more to install; it also checks what mdBook does not: that every link leads somewhere and every page is listed.

use crate::root;
use anyhow::{Context, ensure};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

const STYLE: &str = include_str!("book.css");

/// A page of the book.
struct Leaf {
    title: String,
    /// From `docs/`.
    path: PathBuf,
    depth: usize,
}

/// Builds the book and checks every link; also those of pages beside it.
pub(crate) fn run() -> anyhow::Result<String> {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).context("cannot read docs/SUMMARY.md")?;
    let leaves = leaves(&summary);
    ensure!(leaves.len() > 10, "docs/SUMMARY.md lists {} pages", leaves.len());
    let out = root().join("target/book");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let mut broken = Vec::new();
    for (at, leaf) in leaves.iter().enumerate() {
        let from = docs.join(&leaf.path);
        let text = fs::read_to_string(&from)
            .with_context(|| format!("docs/SUMMARY.md names {}", leaf.path.display()))?;
        let to = out.join(&leaf.path).with_extension("html");
        fs::create_dir_all(to.parent().unwrap_or(&out))?;
        let html = page(&leaves, at, &text);
        // The first page is also what a browser shows of the folder.
        if at == 0 {
            fs::write(out.join("index.html"), &html)?;
        }
        fs::write(&to, html)?;
    }
    let listed: BTreeSet<PathBuf> = leaves.iter().map(|leaf| docs.join(&leaf.path)).collect();
    for path in pages()? {
        if path.starts_with(&docs) && !listed.contains(&path) && !path.ends_with("SUMMARY.md") {
            broken.push(format!("{} is not in docs/SUMMARY.md", shown(&path)));
        }
        broken.extend(faults(&path)?);
    }
    broken.extend(unlisted(&root().join("results"), 2)?);
    copy(&docs.join("images"), &out.join("images"))?;
    ensure!(broken.is_empty(), "book:\n  {}", broken.join("\n  "));
    Ok(format!("book: {} pages in target/book, every link leads somewhere", leaves.len()))
}

/// Pages of the table of contents, in order.
fn leaves(summary: &str) -> Vec<Leaf> {
    let mut found = Vec::new();
    for line in summary.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let Some(rest) = line.trim_start().trim_start_matches("- ").strip_prefix('[') else { continue };
        if let Some((title, path)) = rest.trim_end().trim_end_matches(')').split_once("](") {
            found.push(Leaf { title: title.to_owned(), path: path.into(), depth });
        }
    }
    found
}

/// Every Markdown file that people read: the book, the root's, and the results'.
fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for name in ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "data/NOTICE.md"] {
        found.push(root().join(name));
    }
    for folder in ["docs", "results"] {
        gather(&root().join(folder), &mut found)?;
    }
    found.sort();
    Ok(found)
}

fn gather(folder: &Path, found: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, found)?;
        } else if path.extension().is_some_and(|ending| ending == "md") {
            found.push(path);
        }
    }
    Ok(())
}

/// Folders that the `README.md` above them does not link to, so many levels down.
fn unlisted(folder: &Path, levels: usize) -> anyhow::Result<Vec<String>> {
    let index = folder.join("README.md");
    let text = fs::read_to_string(&index).with_context(|| format!("{} is missing", shown(&index)))?;
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if !entry.file_type()?.is_dir() {
            continue;
        }
        let name = entry.file_name().to_string_lossy().into_owned();
        if !text.contains(&format!("({name}/README.md)")) {
            found.push(format!("{} does not link to {name}/README.md", shown(&index)));
        }
        if levels > 1 {
            found.extend(unlisted(&entry.path(), levels - 1)?);
        }
    }
    Ok(found)
}

/// Links of a page that lead nowhere.
fn faults(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(path)?;
    let mut faults = Vec::new();
    for event in Parser::new_ext(&text, options()) {
        let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) = event
        else {
            continue;
        };
        if dest_url.contains("://") || dest_url.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
        let target =
            if file.is_empty() { path.to_owned() } else { plain(&path.parent().unwrap_or(path).join(file)) };
        if !target.exists() {
            faults.push(format!("{}: there is no {dest_url}", shown(path)));
        } else if !anchor.is_empty() && target.extension().is_some_and(|ending| ending == "md") {
            let there = headings(&fs::read_to_string(&target)?);
            if !there.iter().any(|(_, known)| known == anchor) {
                faults.push(format!("{}: {} has no heading #{anchor}", shown(path), shown(&target)));
            }
        }
    }
    Ok(faults)
}

/// A path without `..`.
fn plain(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => _ = parts.pop(),
            Component::CurDir => {}
            other => parts.push(other),
        }
    }
    parts
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH
}

/// Headings with their anchors, as GitHub makes them.
fn headings(text: &str) -> Vec<(String, String)> {
    let (mut found, mut inside): (Vec<(String, String)>, Option<String>) = (Vec::new(), None);
    for event in Parser::new_ext(text, options()) {
        match (event, &mut inside) {
            (Event::Start(Tag::Heading { .. }), _) => inside = Some(String::new()),
            (Event::End(TagEnd::Heading(_)), Some(title)) => {
                let wish = anchor(title);
                let twins = found
                    .iter()
                    .filter(|(_, known)| {
                        known.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-') == wish
                    })
                    .count();
                let unique = if twins == 0 { wish } else { format!("{wish}-{twins}") };
                found.push((title.clone(), unique));
                inside = None;
            }
            (Event::Text(words) | Event::Code(words), Some(title)) => title.push_str(&words),
            _ => {}
        }
    }
    found
}

/// Letters, digits and hyphens, in lower case.
fn anchor(title: &str) -> String {
    let kept = title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .collect::<String>();
    kept.replace(' ', "-")
}

fn page(leaves: &[Leaf], at: usize, text: &str) -> String {
    let here = &leaves[at];
    let up = "../".repeat(here.path.components().count() - 1);
    let link = |leaf: &Leaf| format!("{up}{}", leaf.path.with_extension("html").display());
    let mut contents = String::new();
    for leaf in leaves {
        let class = if leaf.path == here.path { " class=\"here\"" } else { "" };
        contents += &format!(
            "<li style=\"--depth:{}\"><a{class} href=\"{}\">{}</a></li>\n",
            leaf.depth,
            link(leaf),
            escape(&leaf.title)
        );
    }
    let mut anchors = headings(text).into_iter().map(|(_, anchor)| anchor);
    let events = Parser::new_ext(text, options()).map(|event| match event {
        Event::Start(Tag::Heading { level, classes, attrs, .. }) => {
            Event::Start(Tag::Heading { level, id: anchors.next().map(CowStr::from), classes, attrs })
        }
        Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
            let turned =
                if dest_url.contains("://") { dest_url } else { within(leaves, here, &dest_url).into() };
            Event::Start(Tag::Link { link_type, dest_url: turned, title, id })
        }
        other => other,
    });
    let mut body = String::new();
    html::push_html(&mut body, events);
    let beside = |leaf: Option<&Leaf>, word: &str| {
        leaf.map_or(String::new(), |leaf| {
            format!("<a href=\"{}\">{word}: {}</a>", link(leaf), escape(&leaf.title))
        })
    };
    format!(
        "<!DOCTYPE html>\n<html lang=\"en-GB\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\"><title>{} · Niwaki</title><style>{STYLE}</style></head><body><nav id=\"contents\"><strong>Niwaki</strong><ul>{contents}</ul></nav>\
         <main><a class=\"menu\" href=\"#contents\">Contents</a>{body}<footer>{}{}</footer></main></body></html>\n",
        escape(&here.title),
        beside(at.checked_sub(1).and_then(|before| leaves.get(before)), "Before"),
        beside(leaves.get(at + 1), "Next"),
    )
}

/// A link between pages of the book leads to HTML; one that leaves it, to the repository's file.
fn within(leaves: &[Leaf], here: &Leaf, to: &str) -> String {
    let (file, anchor) =
        to.split_once('#').map_or((to, String::new()), |(file, anchor)| (file, format!("#{anchor}")));
    let folder = here.path.parent().unwrap_or(Path::new(""));
    let target = plain(&folder.join(file));
    if file.is_empty() || !leaves.iter().any(|leaf| leaf.path == target) {
        let out = "../".repeat(folder.components().count());
        let leaves_book = file.starts_with("..") && !file.is_empty();
        return if leaves_book {
            format!("{out}../../{}{anchor}", file.trim_start_matches("../"))
        } else {
            to.to_owned()
        };
    }
    format!("{}{anchor}", Path::new(file).with_extension("html").display())
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('`', "")
}

fn copy(from: &Path, to: &Path) -> anyhow::Result<()> {
    if !from.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_headings_and_links() {
        let all = leaves("# Contents\n\n- [Start](start.md)\n  - [A `b`](deep/a.md)\n");
        assert_eq!((all.len(), all[1].depth, all[1].title.as_str()), (2, 1, "A `b`"));
        let found = headings("# One `two`\n\n## Same\n\n## Same\n");
        let anchors: Vec<&str> = found.iter().map(|(_, anchor)| anchor.as_str()).collect();
        assert_eq!(anchors, ["one-two", "same", "same-1"]);
        assert_eq!(within(&all, &all[1], "../start.md#x"), "../start.html#x");
        assert_eq!(within(&all, &all[0], "deep/a.md"), "deep/a.html");
        assert_eq!(plain(Path::new("a/../b/./c")), Path::new("b/c"));
        let html = page(&all, 0, "# Start\n\n[next](deep/a.md)\n");
        assert!(html.contains("<h1 id=\"start\">") && html.contains("href=\"deep/a.html\""), "{html}");
    }
}
