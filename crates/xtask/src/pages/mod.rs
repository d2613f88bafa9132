//! Every kind of page and the book, opened in a real browser: `cargo xtask pages [--binary PATH] [--shots DIR] [--book]`.
//!
//! Each page is made by the command or the book's builder, put into a frame of 1400 and of 390 pixels in headless Chromium, and played through by
//! `harness.js`: errors, hidden verdicts, cut axes, toggles or values that do nothing, what paper would cut, and requests to a
//! network all fail, and so does what axe finds wrong, in light and in dark.

mod browser;

use crate::{book, root};
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Largest page, in bytes.
const MOST: u64 = 1_000_000;

/// Every kind of page: its name, and the commands that make it at `OUT/index.html`.
const KINDS: [(&str, &[&str]); 15] = [
    ("tour", &["tour --out OUT"]),
    ("advise", &["advise examples/advise/win.jsonl --out OUT"]),
    ("advise-two", &["advise examples/advise/win.jsonl examples/advise/easy.jsonl --out OUT"]),
    ("oracle", &["oracle --horizon 4 --seeds 3 --out OUT"]),
    (
        "oracle-run",
        &[
            "train examples/train/tour.toml --set iterations=8 --set dump.policies=true --out OUT/run",
            "oracle --run OUT/run --losses ppo tempered:0.25 full --out OUT",
        ],
    ),
    ("study", &["reproduce tab:diag-summary --seeds 3 --out OUT/all", "COPY OUT/all/tab-diag-summary"]),
    (
        "training-study",
        &[
            "sweep examples/train/tour.toml --arm ppo --arm tempered:0.25 --seeds 3 --set iterations=12 --name few --out OUT/all",
            "COPY OUT/all/few",
        ],
    ),
    ("train", &["train examples/train/tour.toml --set iterations=30 --out OUT"]),
    (
        "compare",
        &[
            "train examples/train/tour.toml --set iterations=30 --out OUT/a",
            "train examples/train/tour.toml --set iterations=30 --set update.correction=tempered:0.25 --out OUT/b",
            "compare OUT/a OUT/b --out OUT",
        ],
    ),
    (
        "board",
        &[
            "sweep examples/train/tour.toml --arm ppo --arm tempered:0.25 --arm full --vary optimiser.rate=0.05,0.2 --vary update.reuse=2,6 \
             --seeds 12 --set iterations=12 --name grid --out OUT/all",
            "REMOVE OUT/all/grid/full/rate=0.05,reuse=2/3/summary.json",
            "SPOIL OUT/all/grid/ppo/rate=0.2,reuse=6/1/curve.jsonl",
            "FAILS train examples/train/tour.toml --set policy.kind=bag --set policy.width=8 --set optimiser.kind=adam --set optimiser.rate=1.0 \
             --set optimiser.decay=1e9 --set iterations=12 --out OUT/all/wild",
            "board OUT/all --out OUT",
        ],
    ),
    ("solve", &["solve data/jsp/la01.txt --time 1s --deadline 700 --out OUT"]),
    (
        "solve-large",
        &[
            "generate taillard-flow --jobs 100 --machines 20 --out OUT/shop",
            "solve OUT/shop/FIRST --method neh --out OUT",
        ],
    ),
    ("lags", &["generate lags --out OUT/shop", "solve OUT/shop/FIRST --out OUT"]),
    ("planner", &["solve examples/planner/shop.csv --time 1s --out OUT"]),
    ("bench", &["bench shop data/jsp --prefix ft --methods rule:spt,rule:mwkr,exact --time 200ms --out OUT"]),
];

#[expect(clippy::print_stdout, reason = "the log of a long run needs its place")]
pub(crate) fn run(arguments: impl Iterator<Item = String>) -> anyhow::Result<String> {
    let (mut binary, mut shots, mut book_alone) = (None, None, false);
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--binary" => binary = arguments.next(),
            "--shots" => shots = arguments.next().map(PathBuf::from),
            "--book" => book_alone = true,
            other => {
                bail!("pages: '{other}' is not an option; there are --binary PATH, --shots DIR and --book")
            }
        }
    }
    let Some(browser) = browser::browser() else {
        return Ok("pages: left out, since Chromium is not installed".to_owned());
    };
    let mut pages = book()?;
    if !book_alone {
        let binary = binary.map_or_else(|| root().join("target/release/niwaki"), PathBuf::from);
        ensure!(
            binary.is_file(),
            "pages: there is no {}; build it, or name one with --binary",
            binary.display()
        );
        for (kind, commands) in KINDS {
            let folder = root().join("target/pages").join(kind);
            if folder.exists() {
                fs::remove_dir_all(&folder)?;
            }
            fs::create_dir_all(&folder)?;
            make(&binary, &folder, commands).with_context(|| format!("the page of {kind}"))?;
            pages.push((kind.to_owned(), folder.join("index.html")));
        }
    }
    let paths: Vec<&Path> = pages.iter().map(|(_, path)| path.as_path()).collect();
    let seen = browser::look(&browser, &paths, &root().join("target/harness.html"))?;
    let mut faults = Vec::new();
    for ((name, path), seen) in pages.iter().zip(seen) {
        let size = fs::metadata(path)?.len();
        println!("   {name}: {} kB, drawings,toggles,values,zooms,verdicts {}", size / 1000, seen.counts);
        faults.extend(seen.faults.into_iter().map(|line| format!("{name}, {line}")));
        if size > MOST {
            faults.push(format!("{name}: {size} bytes"));
        }
        if let Some(shots) = &shots {
            browser::shoot(&browser, path, shots, name)?;
        }
    }
    ensure!(faults.is_empty(), "pages: {} faults\n  {}", faults.len(), faults.join("\n  "));
    let axe = if browser::has_axe() { "axe has nothing to say" } else { "axe is not installed" };
    Ok(format!("pages: {} as they should be at two widths, in the dark and on paper; {axe}", pages.len()))
}

/// The pages of the book that its contents list.
fn book() -> anyhow::Result<Vec<(String, PathBuf)>> {
    book::run()?;
    let folder = root().join("target/book");
    let pages = crate::files::below(&folder, &[".html"])?;
    let listed = pages.into_iter().filter(|page| !page.starts_with(folder.join("repository")));
    let name = |page: &Path| {
        let within = page.strip_prefix(&folder).unwrap_or(page).with_extension("");
        format!("book-{}", within.display().to_string().replace('/', "-"))
    };
    Ok(listed.map(|page| (name(&page), page)).collect())
}

/// Runs the commands of a kind.
fn make(binary: &Path, folder: &Path, commands: &[&str]) -> anyhow::Result<()> {
    for command in commands {
        let mut line = command.replace("OUT", &folder.display().to_string());
        if let Some(from) = line.strip_prefix("COPY ") {
            fs::copy(Path::new(from).join("index.html"), folder.join("index.html"))?;
            continue;
        }
        if line.contains("FIRST") {
            let first = fs::read_dir(folder.join("shop"))?.next().context("nothing was drawn")??;
            line = line.replace("FIRST", &first.file_name().to_string_lossy());
        }
        if let Some(path) = line.strip_prefix("REMOVE ") {
            fs::remove_file(path).with_context(|| format!("{path} is not there"))?;
            continue;
        }
        if let Some(path) = line.strip_prefix("SPOIL ") {
            let text = fs::read_to_string(path).with_context(|| format!("{path} is not there"))?;
            fs::write(path, text.replacen("\"iteration\":2", "\"iteration\":7", 1))?;
            continue;
        }
        let (words, fails) = line.strip_prefix("FAILS ").map_or((line.as_str(), false), |line| (line, true));
        let ran = Command::new(binary).args(words.split_whitespace()).current_dir(root()).output()?;
        // A missed deadline is an answer.
        ensure!(
            matches!(ran.status.code(), Some(0 | 1)) || fails,
            "niwaki {line} failed: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    Ok(())
}
