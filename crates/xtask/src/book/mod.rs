//! The book: `docs/`, its notebooks and the pages that it links to, as HTML in `target/book`, with every link checked.
//!
//! `docs/SUMMARY.md` is the table of contents, in mdBook's layout; `docs/decision-book.md` says why the builder is ours.

mod highlight;
mod links;
mod notebook;
mod page;
mod search;

use crate::root;
use anyhow::{Context, ensure};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A page of the book.
#[derive(Debug)]
struct Leaf {
    title: String,
    /// From the repository's root.
    source: PathBuf,
    /// From the book's root.
    out: PathBuf,
    /// How deep the contents have it; a page that is linked to alone has no place there.
    depth: Option<usize>,
}

/// Builds the book and checks every link; also those of pages beside it.
pub(crate) fn run() -> anyhow::Result<String> {
    let out = root().join("target/book");
    let leaves = build(&out)?;
    let mut broken = Vec::new();
    let listed: BTreeSet<PathBuf> =
        leaves.iter().filter(|leaf| leaf.depth.is_some()).map(|leaf| root().join(&leaf.source)).collect();
    for path in pages()? {
        let contents = path.ends_with("SUMMARY.md");
        if path.starts_with(root().join("docs")) && !listed.contains(&path) && !contents {
            broken.push(format!("{} is not in docs/SUMMARY.md", shown(&path)));
        }
        if path.extension().is_some_and(|ending| ending == "md") {
            broken.extend(links::faults(&path)?);
        }
    }
    // Recipes name the files that they touch.
    broken.extend(links::lost(&root().join("CONTRIBUTING.md"))?);
    broken.extend(links::unlisted(&root().join("results"), 2)?);
    ensure!(broken.is_empty(), "book:\n  {}", broken.join("\n  "));
    let listed = listed.len();
    Ok(format!(
        "book: {listed} pages and {} that they link to in target/book, every link leads somewhere",
        leaves.len() - listed
    ))
}

/// Writes the book into a folder, which it replaces.
fn build(out: &Path) -> anyhow::Result<Vec<Leaf>> {
    let docs = root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).context("cannot read docs/SUMMARY.md")?;
    let mut leaves = contents(&summary);
    ensure!(leaves.len() > 10, "docs/SUMMARY.md lists {} pages", leaves.len());
    for path in pages()? {
        let source = path.strip_prefix(root()).unwrap_or(&path).to_owned();
        if source.starts_with("docs") {
            continue;
        }
        let title = links::headings(&fs::read_to_string(&path)?).into_iter().next();
        let title = title.map_or_else(|| source.display().to_string(), |heading| heading.title);
        leaves.push(Leaf { title, out: rendered(&source), source, depth: None });
    }
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    let mut index = Vec::new();
    for (at, leaf) in leaves.iter().enumerate() {
        let text = fs::read_to_string(root().join(&leaf.source))
            .with_context(|| format!("docs/SUMMARY.md names {}", leaf.source.display()))?;
        let text = if notebook::is_one(&leaf.source) { notebook::markdown(&text)? } else { text };
        let to = out.join(&leaf.out);
        fs::create_dir_all(to.parent().unwrap_or(out))?;
        let html = page::html(&leaves, at, &text);
        // The first page is also what a browser shows of the folder.
        if at == 0 {
            fs::write(out.join("index.html"), &html)?;
        }
        fs::write(&to, html)?;
        index.extend(search::entries(leaf, &text));
    }
    fs::write(out.join("search.js"), search::script(&index)?)?;
    copy(&docs.join("images"), &out.join("images"))?;
    Ok(leaves)
}

/// Where a Markdown file of the repository stands in the book.
fn rendered(source: &Path) -> PathBuf {
    match source.strip_prefix("docs") {
        Ok(within) => within.with_extension("html"),
        Err(_) => Path::new("repository").join(source).with_extension("html"),
    }
}

/// Pages of the table of contents, in order.
fn contents(summary: &str) -> Vec<Leaf> {
    let mut found = Vec::new();
    for line in summary.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let Some(rest) = line.trim_start().trim_start_matches("- ").strip_prefix('[') else { continue };
        if let Some((title, path)) = rest.trim_end().trim_end_matches(')').split_once("](") {
            let source = links::plain(&Path::new("docs").join(path));
            found.push(Leaf {
                title: title.replace('`', ""),
                out: rendered(&source),
                source,
                depth: Some(depth),
            });
        }
    }
    found
}

/// Every page that people read: the book with its notebooks, the root's, the results', and the registered designs'.
fn pages() -> anyhow::Result<Vec<PathBuf>> {
    let alone = ["README.md", "CONTRIBUTING.md", "STYLE.md", "CHANGELOG.md", "PAPER.md", "data/NOTICE.md"];
    let mut found: Vec<PathBuf> = alone.iter().map(|name| root().join(name)).collect();
    for folder in ["docs", "results", "studies"] {
        found.extend(crate::files::below(&root().join(folder), &[".md", ".ipynb"])?);
    }
    found.sort();
    Ok(found)
}

fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
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
    fn the_contents_give_each_page_its_place() {
        let all =
            contents("# Contents\n\n- [Start](start.md)\n  - [A `b`](deep/a.md)\n- [Style](../STYLE.md)\n");
        assert_eq!((all.len(), all[1].depth, all[1].title.as_str()), (3, Some(1), "A b"));
        assert_eq!(
            (all[1].source.as_path(), all[1].out.as_path()),
            (Path::new("docs/deep/a.md"), Path::new("deep/a.html"))
        );
        assert_eq!(
            (all[2].source.as_path(), all[2].out.as_path()),
            (Path::new("STYLE.md"), Path::new("repository/STYLE.html"))
        );
    }
}
