//! Files that commands leave behind: written whole or not at all, and how they were made.

use anyhow::Context;
use niwaki_page::{Made, csv_text};
use niwaki_study::diagnostics::Summary;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// Writes a file whole, in a folder that is made where it is missing.
pub(crate) fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    make_folder(folder)?;
    niwaki_files::write_atomically(path, text.as_bytes())
        .with_context(|| format!("cannot write {}", path.display()))
}

/// Makes a folder, so that a command finds out before its work rather than after it.
pub(crate) fn make_folder(folder: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(folder).with_context(|| {
        format!("cannot make the folder {}; choose one that can be written", folder.display())
    })
}

/// How the page in hand was made: the command as it was typed, and the program's version.
pub(crate) fn made() -> Made {
    let words = std::env::args_os().skip(1).map(|word| shown(&word.to_string_lossy()));
    let command = std::iter::once("niwaki".to_owned()).chain(words).collect::<Vec<_>>().join(" ");
    Made::new(command)
        .fact("version", env!("CARGO_PKG_VERSION"))
        .fact("processor", format!("{} ({} threads)", std::env::consts::ARCH, threads()))
}

/// A word of the command line as one would type it.
fn shown(word: &str) -> String {
    if word.contains(' ') { format!("'{word}'") } else { word.to_owned() }
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// One line per loss, reward and drift, at full precision.
pub(crate) fn summaries_as_csv(summaries: &[Summary]) -> String {
    let mut text = format!(
        "loss,reward,drift,seeds,{},vocab,horizon,clip_low,clip_high,routing\n",
        Summary::COLUMNS.join(",")
    );
    for row in summaries {
        let (loss, reward) = (csv_text(&row.surrogate.correction.to_string()), csv_text(&row.reward));
        let _ = write!(text, "{loss},{reward},{},{}", row.drift, row.seeds);
        for value in row.values() {
            let _ = write!(text, ",{value}");
        }
        let clip = row.surrogate.clip.map_or(",".to_owned(), |clip| format!("{},{}", clip.low, clip.high));
        let (process, routing) = (row.process, row.surrogate.routing);
        let _ = writeln!(text, ",{},{},{clip},{routing}", process.vocab(), process.horizon());
    }
    text
}

/// The same as a JSON array of objects; what is not a number becomes `null`.
pub(crate) fn summaries_as_json(summaries: &[Summary]) -> anyhow::Result<String> {
    let rows: Vec<serde_json::Value> = summaries
        .iter()
        .map(|row| {
            let mut object = serde_json::Map::new();
            object.insert("loss".into(), row.surrogate.correction.to_string().into());
            object.insert("reward".into(), row.reward.clone().into());
            object.insert("drift".into(), row.drift.into());
            object.insert("seeds".into(), row.seeds.into());
            for (name, value) in Summary::COLUMNS.iter().zip(row.values()) {
                object.insert((*name).into(), value.into());
            }
            object.insert("vocab".into(), row.process.vocab().into());
            object.insert("horizon".into(), row.process.horizon().into());
            object.insert("clip_low".into(), row.surrogate.clip.map(|clip| clip.low).into());
            object.insert("clip_high".into(), row.surrogate.clip.map(|clip| clip.high).into());
            object.insert("routing".into(), row.surrogate.routing.into());
            object.into()
        })
        .collect();
    Ok(serde_json::to_string_pretty(&rows)? + "\n")
}
