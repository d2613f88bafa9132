//! One page of the book as HTML.

use super::highlight::marked;
use super::links::{headings, is_elsewhere, options, plain};
use super::{Leaf, rendered};
use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Parser, Tag, TagEnd, html};
use std::path::{Component, Path, PathBuf};

const STYLE: &str = include_str!("book.css");
const SCRIPT: &str = include_str!("book.js");

/// From this many headings on, a page has a table of contents of its own.
const SECTIONS_FROM: usize = 3;

pub(super) fn html(leaves: &[Leaf], at: usize, text: &str) -> String {
    let here = &leaves[at];
    let link = |leaf: &Leaf| relative(&here.out, &leaf.out);
    let mut contents = String::new();
    for (leaf, depth) in leaves.iter().filter_map(|leaf| Some((leaf, leaf.depth?))) {
        let class = if leaf.source == here.source { " aria-current=\"page\"" } else { "" };
        contents += &format!(
            "<li style=\"--depth:{depth}\"><a{class} href=\"{}\">{}</a></li>\n",
            link(leaf),
            escape(&leaf.title)
        );
    }
    let beside = |leaf: Option<&Leaf>, word: &str| {
        leaf.filter(|leaf| leaf.depth.is_some() && here.depth.is_some()).map_or(String::new(), |leaf| {
            format!("<a href=\"{}\">{word}: {}</a>", link(leaf), escape(&leaf.title))
        })
    };
    let up = "../".repeat(here.out.components().count() - 1);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en-GB\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\"><title>{title} · Niwaki</title><style>{STYLE}</style></head><body data-up=\"{up}\">\
         <nav id=\"contents\" aria-label=\"Book\"><a class=\"home\" href=\"{up}index.html\">Niwaki</a>\
         <form role=\"search\"><input type=\"search\" aria-label=\"Search the book\" placeholder=\"Search ( / )\" autocomplete=\"off\">\
         <div id=\"found\" role=\"status\"></div></form><ul>{contents}</ul></nav>\
         <main><a class=\"menu\" href=\"#contents\">Contents and search</a>{sections}<article>{body}</article><footer>{}{}</footer></main>\
         <script>{SCRIPT}</script></body></html>\n",
        beside(at.checked_sub(1).and_then(|before| leaves.get(before)), "Before"),
        beside(leaves.get(at + 1), "Next"),
        title = escape(&here.title),
        sections = sections(text),
        body = body(here, text),
    )
}

/// What is on the page, where there is enough of it.
fn sections(text: &str) -> String {
    let all: Vec<_> = headings(text)
        .into_iter()
        .filter(|heading| matches!(heading.level, HeadingLevel::H2 | HeadingLevel::H3))
        .collect();
    if all.len() < SECTIONS_FROM {
        return String::new();
    }
    let lines: Vec<String> = all
        .iter()
        .map(|heading| {
            let depth = usize::from(heading.level == HeadingLevel::H3);
            format!(
                "<li style=\"--depth:{depth}\"><a href=\"#{}\">{}</a></li>",
                heading.anchor,
                escape(&heading.title)
            )
        })
        .collect();
    format!(
        "<nav class=\"sections\" aria-label=\"On this page\"><details open><summary>On this page</summary><ul>{}</ul></details></nav>",
        lines.concat()
    )
}

fn body(here: &Leaf, text: &str) -> String {
    let mut anchors = headings(text).into_iter().map(|heading| heading.anchor);
    let (mut code, mut tables): (Option<(String, String)>, usize) = (None, 0);
    let mut events = Vec::new();
    for event in Parser::new_ext(text, options()) {
        let turned = match (event, &mut code) {
            (Event::Start(Tag::CodeBlock(kind)), _) => {
                let language = match &kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                code = Some((language, String::new()));
                continue;
            }
            (Event::Text(words), Some((_, lines))) => {
                lines.push_str(&words);
                continue;
            }
            (Event::End(TagEnd::CodeBlock), _) => {
                let (language, lines) = code.take().unwrap_or_default();
                Event::Html(block(&language, &lines).into())
            }
            (Event::Start(Tag::Heading { level, classes, attrs, .. }), _) => {
                Event::Start(Tag::Heading { level, id: anchors.next().map(CowStr::from), classes, attrs })
            }
            (Event::Start(Tag::Link { link_type, dest_url, title, id }), _) => {
                Event::Start(Tag::Link { link_type, dest_url: within(here, &dest_url).into(), title, id })
            }
            (Event::Start(Tag::Image { link_type, dest_url, title, id }), _) => {
                Event::Start(Tag::Image { link_type, dest_url: within(here, &dest_url).into(), title, id })
            }
            // A wide table scrolls by itself, and with the keyboard.
            (table @ Event::Start(Tag::Table(_)), _) => {
                tables += 1;
                events.push(Event::Html(scroll(tables).into()));
                table
            }
            (end @ Event::End(TagEnd::Table), _) => {
                events.push(end);
                Event::Html("</div>\n".into())
            }
            (other, _) => other,
        };
        events.push(turned);
    }
    let mut body = String::new();
    html::push_html(&mut body, events.into_iter());
    // A corner without words heads nothing.
    body.replace("<th></th>", "<td></td>")
}

fn scroll(table: usize) -> String {
    format!("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Table {table}\">")
}

/// A block of code, with a button that copies it where it is typed.
fn block(language: &str, text: &str) -> String {
    format!("<div class=\"code\"><pre tabindex=\"0\"><code>{}</code></pre></div>\n", marked(language, text))
}

/// Where a link of a page leads in the book; one that leaves it, to the repository's file.
fn within(here: &Leaf, to: &str) -> String {
    if is_elsewhere(to) || to.starts_with('#') {
        return to.to_owned();
    }
    let (file, anchor) =
        to.split_once('#').map_or((to, String::new()), |(file, anchor)| (file, format!("#{anchor}")));
    let target = plain(&here.source.parent().unwrap_or(Path::new("")).join(file));
    let page = target.extension().is_some_and(|ending| ending == "md" || ending == "ipynb");
    let out = match target.strip_prefix("docs") {
        _ if page => rendered(&target),
        Ok(image) if image.starts_with("images") => image.to_owned(),
        // The book stands in `target/book`.
        _ => Path::new("../..").join(&target),
    };
    relative(&here.out, &out) + &anchor
}

/// A path of the book as a page links to it.
fn relative(from: &Path, to: &Path) -> String {
    let folder: Vec<Component<'_>> = from.parent().into_iter().flat_map(Path::components).collect();
    let to: Vec<Component<'_>> = to.components().collect();
    let shared = folder.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let path: PathBuf = std::iter::repeat_n(Component::ParentDir, folder.len() - shared)
        .chain(to[shared..].iter().copied())
        .collect();
    path.display().to_string()
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaf(source: &str, depth: Option<usize>) -> Leaf {
        Leaf { title: source.to_owned(), source: source.into(), out: rendered(Path::new(source)), depth }
    }

    #[test]
    fn links_lead_to_the_page_or_to_the_file() {
        let deep = leaf("docs/deep/a.md", Some(1));
        assert_eq!(within(&deep, "../start.md#x"), "../start.html#x");
        assert_eq!(within(&deep, "../../results/README.md"), "../repository/results/README.html");
        assert_eq!(within(&deep, "../../Cargo.toml"), "../../../Cargo.toml");
        assert_eq!(within(&deep, "../images/one.svg"), "../images/one.svg");
        let result = leaf("results/losses/README.md", None);
        assert_eq!(within(&result, "../../docs/losses.md"), "../../../losses.html");
        assert_eq!(within(&result, "2026/README.md"), "2026/README.html");
        assert_eq!(within(&result, "#there"), "#there");
    }

    #[test]
    fn a_page_has_its_contents_code_and_tables() {
        let all = [leaf("docs/start.md", Some(0)), leaf("docs/deep/a.md", Some(1)), leaf("README.md", None)];
        let text = "# Start\n\n## One\n\n[next](deep/a.md)\n\n## Two\n\n```sh\nls # all\n```\n\n## Three\n\n| a |\n|---|\n| b |\n";
        let page = html(&all, 0, text);
        for part in [
            "<h1 id=\"start\">",
            "href=\"deep/a.html\"",
            "<a aria-current=\"page\" href=\"start.html\">",
            "<a href=\"#three\">Three</a>",
            "<i class=\"c\"># all</i>",
            "aria-label=\"Table 1\"><table>",
            "Next: docs/deep/a.md",
        ] {
            assert!(page.contains(part), "{part} is not in\n{page}");
        }
        assert_eq!(page.matches("<table").count(), page.matches("</table>\n</div>").count());
        // A page outside the contents has no neighbours.
        assert!(!html(&all, 2, "# Read\n").contains("Before:"));
    }
}
