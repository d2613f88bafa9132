//! Headings with their anchors, and links that lead nowhere.

use super::shown;
use crate::root;
use anyhow::Context;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A heading of a page.
#[derive(Debug, Clone)]
pub(super) struct Heading {
    pub(super) level: HeadingLevel,
    pub(super) title: String,
    pub(super) anchor: String,
}

pub(super) fn options() -> Options {
    Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH
}

/// Folders that the `README.md` above them does not link to, so many levels down.
pub(super) fn unlisted(folder: &Path, levels: usize) -> anyhow::Result<Vec<String>> {
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
pub(super) fn faults(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(path)?;
    let mut faults = Vec::new();
    for event in Parser::new_ext(&text, options()) {
        let (Event::Start(Tag::Link { dest_url, .. }) | Event::Start(Tag::Image { dest_url, .. })) = event
        else {
            continue;
        };
        if is_elsewhere(&dest_url) {
            continue;
        }
        let (file, anchor) = dest_url.split_once('#').unwrap_or((&dest_url, ""));
        let target =
            if file.is_empty() { path.to_owned() } else { plain(&path.parent().unwrap_or(path).join(file)) };
        if !target.exists() {
            faults.push(format!("{}: there is no {dest_url}", shown(path)));
        } else if !anchor.is_empty() && target.extension().is_some_and(|ending| ending == "md") {
            let there = headings(&fs::read_to_string(&target)?);
            if !there.iter().any(|heading| heading.anchor == anchor) {
                faults.push(format!("{}: {} has no heading #{anchor}", shown(path), shown(&target)));
            }
        }
    }
    Ok(faults)
}

/// Paths that a page names in code and that are not there: below the root, or as the end of some file's path.
pub(super) fn lost(path: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(path)?;
    let files = crate::files::below(&root(), &[""])?;
    let named = Parser::new_ext(&text, options()).filter_map(|event| match event {
        Event::Code(code) if is_path(&code) => Some(code.trim_end_matches('/').to_owned()),
        _ => None,
    });
    let there = |name: &str| {
        root().join(name).exists()
            || files.iter().any(|file| {
                file.ends_with(name) || file.parent().is_some_and(|folder| folder.ends_with(name))
            })
    };
    Ok(named.filter(|name| !there(name)).map(|name| format!("{}: there is no {name}", shown(path))).collect())
}

/// Whether code is a path of the repository: a word with a slash and nothing to fill in.
fn is_path(code: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '/' | '.' | '_' | '-');
    code.contains('/') && !code.starts_with(['/', '-']) && code.chars().all(plain)
}

/// Whether a link leaves the repository.
pub(super) fn is_elsewhere(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

/// A path without `..`.
pub(super) fn plain(path: &Path) -> PathBuf {
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

/// Headings with their anchors, as GitHub makes them.
pub(super) fn headings(text: &str) -> Vec<Heading> {
    let (mut found, mut inside): (Vec<Heading>, Option<String>) = (Vec::new(), None);
    for event in Parser::new_ext(text, options()) {
        match (event, &mut inside) {
            (Event::Start(Tag::Heading { .. }), _) => inside = Some(String::new()),
            (Event::End(TagEnd::Heading(level)), Some(title)) => {
                let wish = anchor(title);
                let twins = found
                    .iter()
                    .filter(|heading| {
                        heading.anchor.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-') == wish
                    })
                    .count();
                let anchor = if twins == 0 { wish } else { format!("{wish}-{twins}") };
                found.push(Heading { level, title: title.clone(), anchor });
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn anchors_are_those_of_github() {
        let found = headings("# One `two`\n\n## Same\n\n## Same\n");
        let anchors: Vec<&str> = found.iter().map(|heading| heading.anchor.as_str()).collect();
        assert_eq!(anchors, ["one-two", "same", "same-1"]);
        assert_eq!(plain(Path::new("a/../b/./c")), Path::new("b/c"));
        let paths =
            ["studies/", "ops/mod.rs", "studies/NAME.toml", "a::b/c", "x / y", "--out/x"].map(is_path);
        assert_eq!(paths, [true, true, false, false, false, false]);
    }
}
