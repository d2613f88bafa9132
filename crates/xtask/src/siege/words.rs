//! Words that lie: values of flags, keys of specs, and the inputs that once broke a reader.

use super::attempt::{Arena, Attempt};
use super::{Row, Scale};
use crate::root;
use anyhow::ensure;
use std::fs;

/// A sound command line of each door: its flags are attacked one by one. `ROOT` is the repository's.
pub(super) const DOORS: &[&str] = &[
    "advise ROOT/examples/advise/null.jsonl",
    "oracle --horizon 3 --seeds 2 --losses ppo",
    "reproduce tab:diag-summary --seeds 1 --out out",
    "train ROOT/examples/train/tabular-ppo.toml --out out --set iterations=2",
    "solve ROOT/data/jsp/ft06.txt --time 1s",
    "solve ROOT/examples/planner/shop.csv --time 1s",
    "verify ROOT/data/jsp/ft06.txt ROOT/README.md",
    "convert ROOT/data/jsp/ft06.txt out.json",
    "generate easy-flow --count 1 --out out",
    "bench engine --lanes 8 --repeats 1",
    "bench shop ROOT/data/jsp --prefix ft06",
];

/// Values that no flag and few keys can mean.
const VALUES: &[&str] = &[
    "18446744073709551615",
    "-1",
    "NaN",
    "\u{1b}[2J\u{202e}",
    "",
    "1e308",
    "0",
    "1e9",
    "inf",
    "/nowhere/at/all",
    "a=b,c",
    "[]",
    "\u{feff}1",
    "9999999999999999999999",
    "4294967296",
    "9223372036854775807",
    "-inf",
];

/// Specs that ask for more than a machine has: refused in one line, with nothing written.
const UNBOUNDED: &[&str] = &[
    "train ROOT/examples/train/causal.toml --out out --set policy.width=1000000000",
    "train ROOT/examples/train/causal.toml --out out --set policy.blocks=1000000000",
    "train ROOT/examples/train/flow-shop.toml --out out --set task.jobs=100000",
    "bench engine --members 18446744073709551615",
];

/// Keys that say how large something is, with the spec in which each is attacked.
const SIZES: &[(&str, &[&str])] = &[
    (
        "causal",
        &[
            "policy.width",
            "policy.hidden",
            "policy.blocks",
            "policy.heads",
            "rollout.lanes",
            "task.horizon",
            "task.vocab",
        ],
    ),
    (
        "flow-shop",
        &[
            "policy.width",
            "policy.hidden",
            "policy.blocks",
            "policy.heads",
            "rollout.lanes",
            "task.jobs",
            "task.machines",
            "task.training",
            "task.validation",
        ],
    ),
    (
        "tabular-ppo",
        &["task.horizon", "task.vocab", "rollout.lanes", "update.reuse", "update.minibatches", "iterations"],
    ),
];

/// Sizes at which products of two wrap, and one that no machine word holds.
const LARGE: &[&str] = &[
    "1073741824",
    "4294967295",
    "4294967296",
    "9007199254740993",
    "4611686018427387904",
    "9223372036854775807",
    "9223372036854775808",
];

pub(super) fn attack(arena: &Arena, scale: Scale) -> anyhow::Result<Vec<Row>> {
    let values = if scale == Scale::Quick { &VALUES[..4] } else { VALUES };
    Ok(vec![
        flags(arena, values)?,
        keys(arena, values)?,
        study_keys(arena, values)?,
        unbounded(arena)?,
        lies(arena)?,
    ])
}

/// A command line with the repository's folder in its place.
pub(super) fn line(text: &str) -> Attempt {
    Attempt::new(&text.replace("ROOT", &root().display().to_string()))
}

/// Every flag of every door with every value.
fn flags(arena: &Arena, values: &[&str]) -> anyhow::Result<Row> {
    let mut row = Row::new("bad values of flags");
    for door in DOORS {
        let named: Vec<&str> =
            door.split_whitespace().take(if door.starts_with("bench") { 2 } else { 1 }).collect();
        let help = arena.run(&Attempt::new(&named.join(" ")).word("--help"), &arena.folder("flags")?)?;
        for flag in help.told.lines().filter_map(flag_of) {
            let sound = without(door, &flag);
            for value in values {
                let folder = arena.folder("flags")?;
                let attempt = line(&sound).word(&flag).word(value).within(5).endless();
                row.add(arena.broken(&attempt, &folder)?);
            }
        }
    }
    ensure!(row.count > 100, "only {} flags were found", row.count);
    Ok(row)
}

/// A command line without a flag and its value.
fn without(door: &str, flag: &str) -> String {
    let mut words: Vec<&str> = door.split_whitespace().collect();
    if let Some(at) = words.iter().position(|word| *word == flag) {
        words.drain(at..(at + 2).min(words.len()));
    }
    words.join(" ")
}

/// A flag with a value, where a line of help tells of one.
fn flag_of(line: &str) -> Option<String> {
    let rest = line.trim_start().strip_prefix("--")?;
    let name: String = rest.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
    (rest[name.len()..].starts_with(" <") && line.starts_with("  ")).then(|| format!("--{name}"))
}

/// Every key of a spec with every value; the spec is resolved and checked, and printed where it is sound.
fn keys(arena: &Arena, values: &[&str]) -> anyhow::Result<Row> {
    let mut row = Row::new("bad values of a spec's keys");
    for spec in ["tabular-ppo", "causal", "flow-shop"] {
        let sound = line(&format!("train ROOT/examples/train/{spec}.toml --print-spec"));
        let folder = arena.folder("keys")?;
        let printed: toml::Table = toml::from_str(&arena.run(&sound, &folder)?.told)?;
        for key in names("", &printed) {
            for value in values {
                let attempt = sound.clone().word("--set").word(format!("{key}={value}")).within(20);
                row.add(arena.broken(&attempt, &folder)?);
            }
        }
    }
    ensure!(row.count > 100, "only {} keys were found", row.count);
    Ok(row)
}

/// A study of two arms and two seeds, three iterations each.
pub(super) const STUDY: &str = "label = \"mine\"\ntitle = \"My study\"\nquestion = \"?\"\nseeds = 2\nendpoints = [\"final\"]\n\
    [base]\niterations = 3\n[base.task]\nhorizon = 3\n[[arm]]\nname = \"ppo\"\n[[arm]]\nname = \"full\"\n\
    [compare]\nagainst = [\"ppo\"]\nendpoints = [\"final\"]\n";

/// Every value of a study's file as another one, quoted and bare.
fn study_keys(arena: &Arena, values: &[&str]) -> anyhow::Result<Row> {
    let mut row = Row::new("bad values of a study's keys");
    for place in 0..STUDY.lines().count() {
        for value in values {
            for value in [(*value).to_owned(), format!("{value:?}")] {
                let folder = arena.folder("study")?;
                let lines: Vec<String> =
                    STUDY.lines().enumerate().map(|(at, line)| changed(line, at == place, &value)).collect();
                fs::write(folder.join("own.toml"), lines.join("\n"))?;
                let attempt = Attempt::new("reproduce own.toml --out out").within(20).endless();
                let broke = arena.broken(&attempt, &folder)?;
                row.add(broke.map(|broke| format!("{}: {broke}", lines[place].escape_debug())));
            }
        }
    }
    Ok(row)
}

fn changed(line: &str, here: bool, value: &str) -> String {
    match line.split_once(" = ") {
        Some((key, _)) if here => format!("{key} = {value}"),
        _ => line.to_owned(),
    }
}

fn names(prefix: &str, table: &toml::Table) -> Vec<String> {
    let mut found = Vec::new();
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        match value.as_table() {
            Some(inner) => found.extend(names(&format!("{name}."), inner)),
            None => found.push(name),
        }
    }
    found
}

fn unbounded(arena: &Arena) -> anyhow::Result<Row> {
    let mut row = Row::new("specs beyond any machine");
    let sizes = SIZES.iter().flat_map(|(spec, keys)| {
        let sound = format!("train ROOT/examples/train/{spec}.toml --out out --set");
        let pairs = keys.iter().flat_map(|key| LARGE.iter().map(move |value| format!("{key}={value}")));
        pairs.map(move |pair| format!("{sound} {pair}"))
    });
    for asked in UNBOUNDED.iter().map(|asked| (*asked).to_owned()).chain(sizes) {
        let folder = arena.folder("unbounded")?;
        let ended = arena.run(&line(&asked).within(30), &folder)?;
        let left = fs::read_dir(&folder)?.count();
        let broke = ended.not_refused().or_else(|| (left > 0).then(|| "left something behind".to_owned()));
        row.add(broke.map(|broke| format!("{asked}: {broke}")));
    }
    Ok(row)
}

/// The inputs that once broke a reader, from the laws' own fixtures.
fn lies(arena: &Arena) -> anyhow::Result<Row> {
    let mut row = Row::new("files whose headers lie");
    let folder = arena.folder("lies")?;
    for entry in fs::read_dir(root().join("crates/niwaki-advise/tests/fixtures/lies"))? {
        let file = entry?.path();
        let broke = arena.run(&Attempt::new("advise").word(&file).within(20), &folder)?.not_refused();
        row.add(broke.map(|broke| format!("{}: {broke}", file.display())));
    }
    for method in ["exact", "rule:spt"] {
        let asked = format!(
            "solve ROOT/crates/niwaki-shop/tests/corpus/many-machines.json --method {method} --time 1s"
        );
        row.add(arena.broken(&line(&asked).within(20), &folder)?);
    }
    Ok(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_come_from_help() {
        assert_eq!(flag_of("      --seeds <N>  How many"), Some("--seeds".to_owned()));
        assert_eq!(flag_of("      --clip <EPS> <EPS>"), Some("--clip".to_owned()));
        assert_eq!([flag_of("      --quiet  Print nothing"), flag_of("  -h, --help")], [None, None]);
        let table: toml::Table = toml::from_str("a = 1\n[b]\nc = 2\n[b.d]\ne = 3").unwrap();
        assert_eq!(names("", &table), ["a", "b.c", "b.d.e"]);
    }
}
