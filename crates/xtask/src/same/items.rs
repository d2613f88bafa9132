//! What both commands run: every example spec, the paper's quick tables, a small study, a sweep, the oracle, the advice and
//! the schedulers.

use crate::files;
use anyhow::Context;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A scheduling study that trains in a blink.
pub(super) const STUDY: &str = include_str!("pointer.toml");
/// Its name beside the items' folders.
pub(super) const STUDY_FILE: &str = "pointer.toml";

/// Iterations of examples that take long as a whole.
const SHORTER: [(&str, usize); 3] = [("causal", 2), ("flow-shop", 2), ("job-shop", 1)];

/// The recorded dumps.
const DUMPS: [&str; 4] = ["easy", "null", "trap", "win"];

/// One line of the report: commands that write below one folder.
pub(super) struct Item {
    pub(super) name: String,
    commands: Vec<String>,
}

impl Item {
    fn new(name: impl Into<String>, commands: &[String]) -> Self {
        Self { name: name.into(), commands: commands.to_vec() }
    }

    /// Where its commands write, below a side's folder.
    pub(super) fn folder(&self) -> PathBuf {
        self.name.replace(' ', "-").into()
    }

    /// Runs the commands in a side's folder; what they print and how they end is kept in a file beside what they write.
    pub(super) fn run(&self, binary: &Path, side: &Path) -> anyhow::Result<()> {
        let folder = self.folder();
        let mut printed = String::new();
        for command in &self.commands {
            let command = command.replace("OUT", &folder.display().to_string());
            let output = Command::new(binary)
                .args(command.split_whitespace())
                .current_dir(side)
                .output()
                .with_context(|| format!("cannot run {}", binary.display()))?;
            let _ = writeln!(printed, "$ niwaki {command}");
            printed += &String::from_utf8_lossy(&output.stdout);
            printed += &String::from_utf8_lossy(&output.stderr);
            let _ = writeln!(printed, "[exit code {}]", output.status.code().unwrap_or(-1));
        }
        fs::create_dir_all(side.join(&folder))?;
        fs::write(side.join(folder).join("printed.txt"), printed)?;
        Ok(())
    }
}

/// Everything that is compared; `specs` holds the example specs.
pub(super) fn items(specs: &Path) -> anyhow::Result<Vec<Item>> {
    let mut items = Vec::new();
    for path in files::below(specs, &[".toml"])? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut train = format!("train examples/train/{name}.toml --out OUT/run");
        if let Some((_, iterations)) = SHORTER.iter().find(|(longer, _)| *longer == name) {
            let _ = write!(train, " --set iterations={iterations}");
        }
        let mut commands = Vec::new();
        if name == "folder" {
            commands.push("generate hard-flow --machines 3 --jobs 6 --count 9 --out OUT/shops".to_owned());
            train += " --set task.folder=OUT/shops";
        }
        commands.push(train);
        items.push(Item::new(format!("train {name}"), &commands));
    }
    items.push(Item::new(
        "reproduce",
        &["reproduce tab:diag-summary app:diagnostics tab:g-detail --seeds 2 --out OUT".to_owned()],
    ));
    items.push(Item::new("pointer study", &[format!("reproduce {STUDY_FILE} --out OUT")]));
    items.push(Item::new(
        "oracle",
        &[
            "oracle --horizon 4 --seeds 2 --reward early-gate,two-branch --out OUT".to_owned(),
            "oracle --horizon 4 --seeds 2 --format json".to_owned(),
        ],
    ));
    items.push(Item::new(
        "oracle csv",
        &["oracle --horizon 4 --seeds 2 --clip 0.2 --no-routing --format csv \
           --losses ppo,full,gspo,minpro,ctpo,cispo,adaptive,token-tis,sequence-tis,token-mis,sequence-mis"
            .to_owned()],
    ));
    for dump in DUMPS {
        let dump_file = format!("examples/advise/{dump}.jsonl");
        items.push(Item::new(
            format!("advise {dump}"),
            &[format!("advise {dump_file} --out OUT"), format!("advise {dump_file} --format json")],
        ));
    }
    items.push(Item::new(
        "sweep",
        &[
            "sweep examples/train/tabular-ppo.toml --arm ppo --arm tempered:0.1 --seeds 3 --set iterations=5 --out OUT"
                .to_owned(),
            "compare OUT --out OUT/compared".to_owned(),
        ],
    ));
    items.push(Item::new(
        "solve",
        &[
            "solve examples/planner/shop.csv --rounds 2 --out OUT/table".to_owned(),
            "convert examples/planner/shop.csv OUT/shop.json".to_owned(),
            "verify OUT/shop.json OUT/table/schedule.csv".to_owned(),
            "generate hard-flow --machines 4 --jobs 8 --count 2 --out OUT/flow".to_owned(),
            "generate job-shop --machines 4 --jobs 5 --count 1 --out OUT/jobs".to_owned(),
        ],
    ));
    Ok(items)
}
