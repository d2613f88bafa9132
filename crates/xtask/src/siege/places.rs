//! Where inputs come from and results go: unusual names, things that are no files, other environments, outputs that take
//! nothing.

use super::attempt::{Arena, files};
use super::words::{DOORS, line};
use super::{Row, Scale};
use crate::root;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;

/// Commands that leave files; the name of what they leave follows.
const LEAVING: &[&str] = &[
    "solve ROOT/data/jsp/ft06.txt --method rule:spt --out",
    "solve ROOT/data/jsp/ft06.txt --method rule:spt --gantt",
    "train ROOT/examples/train/tabular-ppo.toml --set iterations=1 --set task.horizon=2 --out",
    "generate easy-flow --count 1 --out",
    "advise ROOT/examples/advise/null.jsonl --out",
    "oracle --horizon 2 --seeds 1 --losses ppo --out",
    "convert ROOT/data/jsp/ft06.txt",
    "template",
];

/// Commands that read a file, whose name follows.
const READING: &[&str] = &[
    "advise",
    "solve --time 1s",
    "verify ROOT/data/jsp/ft06.txt",
    "bench shop ROOT/data/jsp --prefix ft06 --bounds",
    "train --print-spec",
    "reproduce --out out",
    "solve ROOT/examples/planner/shop.csv --time 1s --from",
    "oracle --horizon 2 --seeds 1 --losses ppo --reward-table",
];

pub(super) fn attack(arena: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    let doors = if scale == Scale::Quick { &DOORS[..5] } else { DOORS };
    Ok(vec![
        names(arena)?,
        no_files(arena)?,
        environments(arena)?,
        full(arena, doors)?,
        closed(arena, doors)?,
    ])
}

/// Names of what is left: each is used or refused, and nothing is left beside it.
fn names(arena: &Arena) -> anyhow::Result<Row> {
    let mut row = Row::new("unusual names of results");
    let long = "n".repeat(250);
    let raw = OsString::from_vec(b"\xff\xfe.json".to_vec());
    let odd: Vec<OsString> = [
        "..",
        ".",
        "",
        "a b",
        "-x.json",
        "é\u{202e}.json",
        "\u{1b}[2J.svg",
        "a\nb.json",
        "x.json/",
        "dir/../y.json",
        "a/b/c/d.svg",
        "%s%n.json",
        "'\"$(id).json",
        "=1+1.csv",
        "/proc/nothing/x.json",
        "/dev/full/x.json",
        &long,
    ]
    .into_iter()
    .map(OsString::from)
    .chain([raw, format!("{long}n.json").into(), format!("{}/x.json", "d/".repeat(3000)).into()])
    .collect();
    for asked in LEAVING {
        for name in &odd {
            let folder = arena.folder("names")?;
            let inside = folder.join("here");
            fs::create_dir(&inside)?;
            let attempt = line(asked).word(name).within(60);
            let broke = arena.broken(&attempt, &inside)?;
            let litter = files(&folder)?.into_keys().find(|path| path.to_string_lossy().contains(".part"));
            row.add(
                broke.or_else(|| litter.map(|path| format!("{}: left {}", attempt.shown(), path.display()))),
            );
        }
    }
    Ok(row)
}

/// Inputs and outputs that are folders, devices, pipes, links to nothing, or without end.
fn no_files(arena: &Arena) -> anyhow::Result<Row> {
    let mut row = Row::new("folders, devices, pipes and links in the place of files");
    for asked in READING {
        for name in NO_FILES {
            let folder = arena.folder("files")?;
            // A pipe that is fed for a while, as `<(…)` gives one.
            let prelude = "ln -s nowhere dangling.json; ln -s loop.json loop.json; mkdir folder.json; \
                mkfifo pipe.json; (timeout 20 bash -c 'cat /dev/zero >pipe.json' 2>/dev/null &); truncate -s 64G sparse.json; \
                : >empty.json; : >empty.npz; : >empty.parquet; printf '\\xef\\xbb\\xbf' >bom.json; \
                head -c 70000 /dev/zero | tr '\\0' '[' >deep.json; ln -s sparse.json sparse.csv; ln -s sparse.json sparse.npz";
            let attempt = line(asked).word(name).after(prelude).within(30);
            row.add(arena.broken(&attempt, &folder)?);
        }
    }
    for asked in LEAVING {
        for kind in [
            "mkfifo out.json; (timeout 5 bash -c 'cat out.json >/dev/null' 2>/dev/null &)",
            "mkdir out.json",
            "ln -s nowhere/x out.json",
            "ln -s out.json out.json",
            "ln -s /dev/full out.json",
            "ln -s /proc/version out.json",
            "echo mine >out.json",
        ] {
            let folder = arena.folder("files")?;
            row.add(arena.broken(&line(asked).word("out.json").after(kind).within(60), &folder)?);
        }
    }
    // Names that are no text, of files that are there and of files that are not.
    for asked in READING {
        for prelude in ["", "cp ROOT/data/jsp/ft06.txt $'\\xff\\xfe.json'"] {
            let prelude = prelude.replace("ROOT", &root().display().to_string());
            let raw = OsString::from_vec(b"\xff\xfe.json".to_vec());
            let attempt = line(asked).word(raw).after(&prelude).within(30);
            row.add(arena.broken(&attempt, &arena.folder("files")?)?);
        }
    }
    Ok(row)
}

const NO_FILES: &[&str] = &[
    "folder.json",
    "dangling.json",
    "loop.json",
    "pipe.json",
    "sparse.json",
    "sparse.csv",
    "sparse.npz",
    "empty.json",
    "empty.npz",
    "empty.parquet",
    "bom.json",
    "deep.json",
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/proc/self/mem",
    "/dev/stdin",
    "/proc/self/environ",
    "",
];

/// Variables of the environment that are missing or make no sense.
fn environments(arena: &Arena) -> anyhow::Result<Row> {
    let mut row = Row::new("unusual environments");
    let raw = OsString::from_vec(b"\xff\xfe".to_vec());
    let odd: &[(&str, Option<&OsStr>)] = &[
        ("HOME", None),
        ("HOME", Some(OsStr::new("/nowhere"))),
        ("PATH", None),
        ("LC_ALL", Some(OsStr::new("tr_TR.UTF-8"))),
        ("LC_ALL", Some(OsStr::new("C"))),
        ("LANG", Some(&raw)),
        ("TERM", Some(&raw)),
        ("TERM", None),
        ("COLUMNS", Some(OsStr::new("0"))),
        ("COLUMNS", Some(OsStr::new("18446744073709551615"))),
        ("TMPDIR", Some(OsStr::new("/nowhere"))),
        ("TZ", Some(OsStr::new("Nowhere/Land"))),
        ("RAYON_NUM_THREADS", Some(OsStr::new("1"))),
        ("RAYON_NUM_THREADS", Some(OsStr::new("-1"))),
        ("RAYON_NUM_THREADS", Some(OsStr::new("200"))),
        ("CUDA_VISIBLE_DEVICES", Some(OsStr::new("99"))),
        ("CUDA_HOME", Some(&raw)),
        ("RUST_BACKTRACE", Some(OsStr::new("full"))),
        ("CLICOLOR_FORCE", Some(OsStr::new("1"))),
    ];
    for (name, value) in odd {
        for door in DOORS {
            let folder = arena.folder("environment")?;
            let attempt = line(door).with(name, *value).within(60);
            let ended = arena.run(&attempt, &folder)?;
            let broke = ended.broke().or_else(|| {
                (ended.code() == Some(2)).then(|| format!("was refused: {}", ended.said.trim_end()))
            });
            // The schedule that `verify` is shown is none.
            let broke = broke.filter(|_| !door.starts_with("verify"));
            row.add(broke.map(|broke| format!("{name}={value:?} {}: {broke}", attempt.shown())));
        }
    }
    Ok(row)
}

/// Results that standard output does not take, and notices that standard error does not.
fn full(arena: &Arena, doors: &[&str]) -> anyhow::Result<Row> {
    let mut row = Row::new("a full disk behind standard output or error");
    for door in doors {
        let folder = arena.folder("outputs")?;
        let ended = arena.run(&line(door).into(">/dev/full"), &folder)?;
        let told = matches!(ended.code(), Some(2 | 74));
        let broke = ended.broke().or_else(|| (!told).then(|| "swallowed the error".to_owned()));
        row.add(broke.map(|broke| format!("{door} >/dev/full: {broke}")));
        let ended = arena.run(&line(door).into("2>/dev/full"), &arena.folder("outputs")?)?;
        let broke =
            ended.code().is_none_or(|code| code > 2).then(|| format!("ended with {:?}", ended.status));
        row.add(broke.map(|broke| format!("{door} 2>/dev/full: {broke}")));
    }
    Ok(row)
}

/// Readers that go away, and outputs that were closed before the start.
fn closed(arena: &Arena, doors: &[&str]) -> anyhow::Result<Row> {
    let mut row = Row::new("closed pipes and descriptors");
    for door in doors {
        for redirect in
            ["> >(true)", "> >(head -c1 >/dev/null)", ">&-", "2>&-", "<&-", ">&- 2>&- <&-", "2> >(true)"]
        {
            let folder = arena.folder("outputs")?;
            let ended = arena.run(&line(door).into(redirect), &folder)?;
            let quiet = !matches!(ended.code(), Some(0 | 1 | 2 | 74)) || ended.said.contains("defect");
            let broke = quiet.then(|| format!("ended with {:?}: {}", ended.status, ended.said.trim_end()));
            row.add(broke.map(|broke| format!("{door} {redirect}: {broke}")));
        }
    }
    Ok(row)
}
