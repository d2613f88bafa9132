//! Headless Chromium: pages in frames, played by `harness.js`, judged by axe, and as pictures.

use crate::root;
use anyhow::{Context, bail, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Widths of a desk and of a phone, in pixels.
const WIDTHS: [u32; 2] = [1400, 390];

/// Width of what is printed on a sheet of A4 with Chromium's margins, in pixels.
const PAPER: u32 = 718;

/// What a page itself must not do.
const FENCE: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
    script-src 'unsafe-inline'; img-src data: file:\"><script>addEventListener('error',e=>parent.troubles(e.message));\
    addEventListener('securitypolicyviolation',e=>parent.troubles('network: '+e.blockedURI));\
    console.error=console.warn=(...w)=>parent.troubles(w.join(' '))</script>";

/// Where `.ci/run` unpacks axe-core, which judges what a page is to keyboards and screen readers.
const AXE: &str = "target/axe/package/axe.min.js";

/// The first Chromium on the path.
pub(super) fn browser() -> Option<String> {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|ran| ran.status.success());
    known.into_iter().find(there).map(ToOwned::to_owned)
}

/// Whether axe judges the pages.
pub(super) fn has_axe() -> bool {
    root().join(AXE).is_file()
}

/// What one page counted and what is wrong with it.
pub(super) struct Seen {
    pub(super) counts: String,
    pub(super) faults: Vec<String>,
}

/// Every page within the fence, framed by the harness at `harness`, in light and in dark.
pub(super) fn look(browser: &str, pages: &[&Path], harness: &Path) -> anyhow::Result<Vec<Seen>> {
    let mut texts = Vec::new();
    for page in pages {
        let text = fs::read_to_string(page).with_context(|| format!("there is no {}", page.display()))?;
        let folder = page.parent().unwrap_or(page);
        let fenced =
            text.replacen("<head>", &format!("<head>{FENCE}<base href=\"file://{}/\">", folder.display()), 1);
        ensure!(fenced.len() > text.len(), "{} has no head", page.display());
        texts.push(fenced);
    }
    let quoted = |text: &str| -> anyhow::Result<String> {
        Ok(serde_json::to_string(text)?.replace("</", "<\\/").replace("<!--", "<\\u0021--"))
    };
    let axe = if has_axe() { fs::read_to_string(root().join(AXE))? } else { String::new() };
    let all = texts.iter().map(|text| quoted(text)).collect::<anyhow::Result<Vec<_>>>()?.join(",");
    let script = format!(
        "{}\n{}\nrun([{all}],{WIDTHS:?},{PAPER},{})",
        include_str!("harness.js"),
        include_str!("questions.js"),
        quoted(&axe)?
    );
    fs::write(
        harness,
        format!("<!DOCTYPE html><html><body style=\"margin:0\"><script>{script}</script></body></html>"),
    )?;
    let mut seen: Vec<Seen> = Vec::new();
    for dark in [false, true] {
        let mut command = headless(browser);
        if dark {
            command.arg("--blink-settings=preferredColorScheme=0");
        }
        let ran = command
            .args(["--window-size=1500,1700", "--virtual-time-budget=600000", "--dump-dom"])
            .arg(format!("file://{}", harness.display()))
            .output()
            .context("cannot run Chromium")?;
        let dom = String::from_utf8_lossy(&ran.stdout).into_owned();
        let said = dom.split_once("<pre id=\"said\">").and_then(|(_, rest)| rest.split_once("</pre>"));
        let Some((said, _)) = said else {
            bail!("Chromium said nothing of {}: {}", harness.display(), String::from_utf8_lossy(&ran.stderr))
        };
        for (at, page) in said.split("\u{c}").enumerate() {
            let mut lines = page.trim_start_matches('\n').lines();
            let counts =
                lines.next().and_then(|line| line.strip_prefix("counts ")).unwrap_or("none").to_owned();
            let faults: Vec<String> = lines.map(ToOwned::to_owned).collect();
            match seen.get_mut(at) {
                Some(known) => known.faults.extend(faults.into_iter().map(|fault| format!("dark: {fault}"))),
                None => seen.push(Seen { counts, faults }),
            }
        }
    }
    ensure!(seen.len() == pages.len(), "{} pages were played of {}", seen.len(), pages.len());
    Ok(seen)
}

/// Pictures for people to look at: desk, phone, dark, and the printed page.
pub(super) fn shoot(browser: &str, page: &Path, folder: &Path, kind: &str) -> anyhow::Result<()> {
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
