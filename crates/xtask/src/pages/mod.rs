//! Every kind of page, opened in a real browser: `cargo xtask pages [--binary PATH] [--shots DIR]`.
//!
//! Each page is made by the command, put into a frame of 1400 and of 390 pixels in headless Chromium, and played through by
//! `harness.js`: errors, hidden verdicts, cut axes, toggles or values that do nothing, what paper would cut, and requests to a
//! network all fail.

use crate::root;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Widths of a desk and of a phone, in pixels.
const WIDTHS: [u32; 2] = [1400, 390];

/// Width of what is printed on a sheet of A4 with Chromium's margins, in pixels.
const PAPER: u32 = 718;

/// Largest page, in bytes.
const MOST: u64 = 1_000_000;

/// What the page itself must not do.
const FENCE: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; img-src data:\"><script>addEventListener('error',e=>parent.troubles(e.message));\
    addEventListener('securitypolicyviolation',e=>parent.troubles('network: '+e.blockedURI));\
    console.error=console.warn=(...w)=>parent.troubles(w.join(' '))</script>";

/// Every kind of page: its name, and the commands that make it at `OUT/index.html`.
const KINDS: [(&str, &[&str]); 14] = [
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
    let (mut binary, mut shots) = (None, None);
    let mut arguments = arguments;
    while let Some(word) = arguments.next() {
        match word.as_str() {
            "--binary" => binary = arguments.next(),
            "--shots" => shots = arguments.next().map(PathBuf::from),
            other => bail!("pages: {other} is no option; there are --binary PATH and --shots DIR"),
        }
    }
    let Some(browser) = browser() else {
        return Ok("pages: left out, for no Chromium is installed".to_owned());
    };
    let binary = binary.map_or_else(|| root().join("target/release/niwaki"), PathBuf::from);
    ensure!(binary.is_file(), "pages: there is no {}; build it, or name one with --binary", binary.display());
    let home = root().join("target/pages");
    let mut faults = Vec::new();
    for (kind, commands) in KINDS {
        let folder = home.join(kind);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        make(&binary, &folder, commands).with_context(|| format!("the page of {kind}"))?;
        let page = folder.join("index.html");
        let size = fs::metadata(&page).with_context(|| format!("{kind} wrote no page"))?.len();
        let (counts, said) = look(&browser, &page)?;
        println!("   {kind}: {} kB, drawings,toggles,values,zooms,verdicts {counts}", size / 1000);
        faults.extend(said.into_iter().map(|line| format!("{kind}, {line}")));
        if size > MOST {
            faults.push(format!("{kind}: {size} bytes"));
        }
        if let Some(shots) = &shots {
            shoot(&browser, &page, shots, kind)?;
        }
    }
    ensure!(faults.is_empty(), "pages:\n  {}", faults.join("\n  "));
    Ok(format!("pages: {} kinds at {} widths and on paper, as they should be", KINDS.len(), WIDTHS.len()))
}

/// The first Chromium on the path.
fn browser() -> Option<String> {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|ran| ran.status.success());
    known.into_iter().find(there).map(ToOwned::to_owned)
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
        let ran = Command::new(binary).args(line.split(' ')).current_dir(root()).output()?;
        // A missed deadline is an answer.
        ensure!(
            matches!(ran.status.code(), Some(0 | 1)),
            "niwaki {line} failed: {}",
            String::from_utf8_lossy(&ran.stderr)
        );
    }
    Ok(())
}

/// The page within the fence, framed by the harness; what it counted and what is wrong.
fn look(browser: &str, page: &Path) -> anyhow::Result<(String, Vec<String>)> {
    let text = fs::read_to_string(page)?;
    let fenced = text.replacen("<head>", &format!("<head>{FENCE}"), 1);
    ensure!(fenced.len() > text.len(), "{} has no head", page.display());
    let quoted = serde_json::to_string(&fenced)?.replace("</", "<\\/").replace("<!--", "<\\u0021--");
    let harness = format!(
        "<!DOCTYPE html><html><body style=\"margin:0\"><script>{}\nrun({quoted},{WIDTHS:?},{PAPER})</script></body></html>",
        include_str!("harness.js")
    );
    let path = page.with_file_name("harness.html");
    fs::write(&path, harness)?;
    let ran = headless(browser)
        .args(["--window-size=1500,1700", "--virtual-time-budget=60000", "--dump-dom"])
        .arg(&path)
        .output()
        .context("cannot run Chromium")?;
    let dom = String::from_utf8_lossy(&ran.stdout).into_owned();
    let said = dom.split_once("<pre id=\"said\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let Some((said, _)) = said else {
        bail!("Chromium said nothing of {}: {}", page.display(), String::from_utf8_lossy(&ran.stderr))
    };
    let mut lines = said.lines();
    let counts = lines.next().and_then(|line| line.strip_prefix("counts ")).unwrap_or("none").to_owned();
    Ok((counts, lines.map(ToOwned::to_owned).collect()))
}

/// Pictures for people to look at: desk, phone, dark, and the printed page.
fn shoot(browser: &str, page: &Path, folder: &Path, kind: &str) -> anyhow::Result<()> {
    fs::create_dir_all(folder)?;
    let phone = page.with_file_name("phone.html");
    let frame = "<body style=\"margin:0\"><iframe style=\"border:0;width:390px;height:3000px\" src=\"index.html\"></iframe>";
    fs::write(&phone, frame)?;
    let forms: [(&str, &Path, &str, &[&str]); 3] = [
        ("desk", page, "1400,2200", &[]),
        ("phone", &phone, "500,3000", &[]),
        ("dark", page, "1400,2200", &["--blink-settings=preferredColorScheme=0"]),
    ];
    for (form, from, size, flags) in forms {
        let to = folder.join(format!("{kind}-{form}.png"));
        headless(browser)
            .args([format!("--screenshot={}", to.display()), format!("--window-size={size}")])
            .args(flags)
            .arg(from)
            .output()?;
    }
    let pdf = folder.join(format!("{kind}.pdf"));
    headless(browser)
        .arg("--no-pdf-header-footer")
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(page)
        .output()?;
    Ok(())
}

fn headless(browser: &str) -> Command {
    let mut command = Command::new(browser);
    command.args([
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--allow-file-access-from-files",
    ]);
    command.arg("--host-resolver-rules=MAP * ~NOTFOUND");
    command
}
