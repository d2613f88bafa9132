//! The pictures of the README and the tutorials: each is a figure of the page that a command writes, as an SVG file of its own.
//!
//! `cargo xtask pictures [--binary PATH]` draws them; the check draws them again and compares every byte.

use crate::root;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// A picture under `docs/images`, the command that makes it, and which figure of its page it is.
struct Picture {
    name: &'static str,
    command: &'static str,
    figure: usize,
}

const PICTURES: &[Picture] = &[
    Picture { name: "stale.svg", command: "advise examples/advise/win.jsonl --out OUT", figure: 0 },
    Picture {
        name: "losses.svg",
        command: "oracle --losses ppo tempered:0.25 full gspo cispo --out OUT",
        figure: 0,
    },
    Picture {
        name: "shop.svg",
        command: "solve examples/planner/shop.csv --rounds 3 --threads 2 --out OUT",
        figure: 0,
    },
    Picture {
        name: "train.svg",
        command: "train examples/train/tabular-tempered.toml --set seed=1 --out OUT",
        figure: 0,
    },
    Picture { name: "paper.svg", command: "reproduce tab:diag-summary --out OUT", figure: 0 },
];

/// What a drawing takes from the page around it.
const STYLES: [&str; 2] = ["theme.css", "chart/chart.css"];

/// Draws every picture; with `--verify` it writes none and fails where one is not today's.
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> anyhow::Result<String> {
    let (mut binary, mut verify) = (root().join("target/release/niwaki"), false);
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--binary" => binary = PathBuf::from(arguments.next().context("--binary needs a path")?),
            "--verify" => verify = true,
            other => bail!("pictures: '{other}' is not an option; there are --binary PATH and --verify"),
        }
    }
    ensure!(
        binary.is_file(),
        "pictures: there is no {}; build it, or name one with --binary",
        binary.display()
    );
    let binary = fs::canonicalize(binary)?;
    let style = STYLES
        .iter()
        .map(|name| fs::read_to_string(root().join("crates/niwaki-page/src").join(name)))
        .collect::<Result<String, _>>()?;
    let mut stale = Vec::new();
    for picture in PICTURES {
        let drawn =
            draw(picture, &binary, &style).with_context(|| format!("docs/images/{}", picture.name))?;
        let path = root().join("docs/images").join(picture.name);
        if verify {
            if fs::read_to_string(&path).unwrap_or_default() != drawn {
                stale.push(picture.name);
            }
        } else {
            fs::write(path, drawn)?;
        }
    }
    ensure!(
        stale.is_empty(),
        "docs/images: {} not what the command draws; run cargo xtask pictures",
        stale.join(", ")
    );
    Ok(format!(
        "pictures: {} {}",
        PICTURES.len(),
        if verify { "as their commands draw them" } else { "drawn" }
    ))
}

fn draw(picture: &Picture, binary: &PathBuf, style: &str) -> anyhow::Result<String> {
    let folder = root().join("target/pictures").join(picture.name.trim_end_matches(".svg"));
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let arguments = picture.command.replace("OUT", &folder.display().to_string());
    let ran = Command::new(binary).args(arguments.split(' ')).current_dir(root()).output()?;
    ensure!(ran.status.success(), "niwaki {arguments} failed: {}", String::from_utf8_lossy(&ran.stderr));
    let page =
        crate::files::below(&folder, &["index.html"])?.into_iter().next().context("no page was written")?;
    let page = fs::read_to_string(page)?;
    let figure = figures(&page).nth(picture.figure).context("the page has no such figure")?;
    alone(figure, style)
}

/// The drawings of a page, each as it stands on a wide screen.
fn figures(page: &str) -> impl Iterator<Item = &str> {
    page.split("<figure").skip(1).filter_map(|figure| {
        let drawing = &figure[figure.find("<svg class=\"")?..];
        let mut depth = 0;
        for (at, _) in drawing.match_indices("svg") {
            if drawing[..at].ends_with("</") {
                depth -= 1;
            } else if drawing[..at].ends_with('<') {
                depth += 1;
            }
            if depth == 0 {
                return Some(&drawing[..at + "svg>".len()]);
            }
        }
        None
    })
}

/// A drawing with its size and its colours within.
fn alone(figure: &str, style: &str) -> anyhow::Result<String> {
    let size =
        figure.split_once("viewBox=\"").and_then(|(_, rest)| rest.split_once('"')).context("no viewBox")?.0;
    let size: Vec<&str> = size.split(' ').collect();
    let [_, _, width, height] = size[..] else { bail!("'{}' is not a viewBox", size.join(" ")) };
    let (open, rest) = figure.split_once('>').context("the drawing does not open")?;
    let named = if open.contains("xmlns=") { "" } else { " xmlns=\"http://www.w3.org/2000/svg\"" };
    let sized = if open.contains(" width=") {
        String::new()
    } else {
        format!(" width=\"{width}\" height=\"{height}\"")
    };
    let style =
        format!("{style}svg:root{{background:var(--paper)}}").replace('&', "&amp;").replace('<', "&lt;");
    Ok(format!("{open}{named}{sized}><style>{style}</style>{rest}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_is_taken_whole_and_stands_alone() {
        let page = "<svg id=\"logo\"></svg><figure><div><svg class=\"chart\" viewBox=\"0 0 8 6\"><svg><g/></svg></svg></div>\
                    <div><svg class=\"narrow\"></svg></div></figure><figure>none</figure>";
        let found: Vec<&str> = figures(page).collect();
        assert_eq!(found, ["<svg class=\"chart\" viewBox=\"0 0 8 6\"><svg><g/></svg></svg>"]);
        let file = alone(found[0], "a>b{}").unwrap();
        assert!(file.starts_with("<svg class=\"chart\" viewBox=\"0 0 8 6\" xmlns=\"http://www.w3.org/2000/svg\" width=\"8\" height=\"6\"><style>a>b{}"), "{file}");
        assert!(alone("<svg>", "").is_err());
    }
}
