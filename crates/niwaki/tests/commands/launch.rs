//! `launch` with hostile names: its scripts are run under stand-ins of the schedulers, which get the very path and nothing
//! else.

use niwaki_study::machines::Split;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Names that a shell, YAML, Python or a scheduler could read as something else; none holds a slash.
const NAMES: [&str; 52] = [
    "o-$(touch PWNED)",
    "$(touch PWNED)",
    "`touch PWNED`",
    "${IFS}",
    "$HOME",
    "$$",
    "$",
    "$$(HOME)",
    "$(JOB_COMPLETION_INDEX)",
    "'; touch PWNED; '",
    "\"; touch PWNED; \"",
    "it's",
    "'",
    "\"",
    "''",
    "\"\"\"",
    "\\",
    "\\\\",
    "a\\nb",
    "a\\",
    "$'\\x41'",
    "a b",
    " a",
    "a ",
    "  ",
    "-x",
    "--wrap=touch PWNED",
    "-",
    "--",
    "; touch PWNED",
    "&& touch PWNED",
    "& touch PWNED &",
    "| tee PWNED",
    "> PWNED",
    "a>PWNED",
    "<PWNED",
    "*",
    "?[a-z]",
    "{a,b}",
    "~",
    "!!",
    "#a",
    "a#b %x %% %j",
    "%s%n",
    "BATCH",
    "JOB",
    "a\nJOB\ntouch PWNED\n",
    "a\nBATCH\ntouch PWNED\n",
    "tab\tand\rreturn\u{1b}[31m",
    "木 é \u{202e}\u{2028}\u{85}\u{feff}",
    "a: b, [c] # d",
    "\")\nopen(\"PWNED\", \"w\")  # ",
];

const STUDY: &str = "label = \"alone\"\ntitle = \"t \u{2028}\u{85}--- \\u007f\"\nquestion = \"q\"\nseeds = 1\n\
                     endpoints = [\"final\"]\n[base]\niterations = 2\n[[arm]]\nname = \"ppo\"\n[[cell]]\nname = \"a\"\n";

/// Takes a script and its arguments as Slurm does, keeps its options and runs one task of the array.
const SBATCH: &str = r#"#!/usr/bin/env bash
while [[ ${1-} == -* ]]; do printf '%s\0' "$1" >> "$RECORD.options"; shift; done
script=$1
shift
cat -- "$script" > "$RECORD.body"
SLURM_ARRAY_TASK_ID=0 bash "$RECORD.body" "$@" < /dev/null > "$RECORD.said" 2>&1
echo 7
"#;

const KUBECTL: &str = "#!/bin/sh\nprintf '%s\\0' \"$@\" > \"$RECORD.options\"\ncat > \"$RECORD\"\n";

/// Ray as far as the launcher's program knows it, each task run as soon as it is asked for.
const RAY: &str = r"
class exceptions:
    class RayError(Exception):
        pass

def is_initialized():
    return True

def remote(**options):
    def task(work):
        class Task:
            def options(self, **options):
                return self
            def remote(self, *words):
                return work(*words)
        return Task()
    return task

def wait(calls, num_returns):
    return calls[:1], calls[1:]

def get(call):
    return call
";

/// Writes down by which path it was called and with which words.
const PROGRAM: &str = "#!/bin/sh\nprintf '%s\\0' \"$0\" \"$@\" >> \"$RECORD\"\n";

struct Place {
    root: tempfile::TempDir,
    plan: String,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let here = root.path();
        fs::create_dir_all(here.join("bin")).unwrap();
        fs::create_dir_all(here.join("modules")).unwrap();
        for (name, text) in [("sbatch", SBATCH), ("kubectl", KUBECTL)] {
            executable(&here.join("bin").join(name), text);
        }
        fs::write(here.join("modules/ray.py"), RAY).unwrap();
        fs::write(here.join("alone.toml"), STUDY).unwrap();
        let mut made = Command::new(env!("CARGO_BIN_EXE_niwaki"));
        assert!(
            made.args(["cluster", "split", "alone.toml"])
                .current_dir(here)
                .output()
                .unwrap()
                .status
                .success()
        );
        let plan = fs::read_to_string(here.join("plan.json")).unwrap();
        Self { root, plan }
    }

    /// A folder of its own for the name of a place in the list, with the plan and the program under hostile names.
    fn prepared(&self, place: usize, name: &str) -> Site {
        let root = fs::canonicalize(self.root.path()).unwrap();
        let (folder, record) = (root.join(format!("{place}")), root.join(format!("record-{place}")));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), &self.plan).unwrap();
        let program = folder.join(format!("{name}.program"));
        executable(&program, PROGRAM);
        Site { root, folder, record, program: program.to_str().unwrap().to_owned(), name: name.to_owned() }
    }
}

/// Where one name is tried.
struct Site {
    root: PathBuf,
    folder: PathBuf,
    record: PathBuf,
    program: String,
    name: String,
}

impl Site {
    fn command(&self, program: &str) -> Command {
        let paths = format!("{}:{}", self.root.join("bin").display(), std::env::var("PATH").unwrap());
        // What an earlier launcher recorded is not this one's.
        for ending in ["", ".options", ".body", ".said"] {
            let _ = fs::remove_file(format!("{}{ending}", self.record.display()));
        }
        let logs = if self.name.contains('\\') { "logs".to_owned() } else { format!("{}.logs", self.name) };
        let mut command = Command::new(program);
        command.current_dir(&self.folder).env("PATH", paths).env("RECORD", &self.record);
        command.env("PYTHONPATH", self.root.join("modules")).env("PYTHONDONTWRITEBYTECODE", "1");
        command.env("NIWAKI_LOGS", logs).env_remove("SLURM_ARRAY_TASK_ID");
        command
    }

    fn launch(&self, launcher: &str, more: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_niwaki"));
        command.args(["cluster", "launch", launcher]).arg(format!("--plan={}", self.name));
        let out = if launcher == "kubernetes" { self.mounted() } else { format!("{}.out", self.name) };
        command.arg(format!("--out={out}")).args(more).output().unwrap()
    }

    /// Where a volume with the results is mounted.
    fn mounted(&self) -> String {
        format!("/{}.out", self.name)
    }

    /// What a record holds, word for word.
    fn words(&self, ending: &str) -> Vec<String> {
        let text = fs::read_to_string(format!("{}{ending}", self.record.display())).unwrap_or_default();
        text.split_terminator('\0').map(ToOwned::to_owned).collect()
    }

    /// What the program must have been called with.
    fn called(&self, more: &[&str]) -> Vec<String> {
        let at = |name: String| self.folder.join(name).to_str().unwrap().to_owned();
        let (plan, out) = (at(self.name.clone()), at(format!("{}.out", self.name)));
        let words = [&self.program, "cluster", "work", "--plan", &plan, "--out", &out, "--unit", "0"];
        words.iter().chain(more).map(ToString::to_string).collect()
    }

    /// The names below the folder.
    fn left(&self) -> BTreeSet<String> {
        let entries = fs::read_dir(&self.folder).unwrap().map(Result::unwrap);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    }

    /// The names that are there whatever is launched.
    fn given(&self) -> BTreeSet<String> {
        [self.name.clone(), format!("{}.program", self.name)].into()
    }
}

fn executable(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn succeeded(output: &Output, name: &str) {
    assert!(output.status.success(), "{name:?}: {}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn slurm_gets_every_path_as_it_is_and_runs_nothing_else() {
    let place = Place::new();
    for (number, name) in NAMES.into_iter().enumerate() {
        let site = place.prepared(number, name);
        let program = format!("--program={}", site.program);
        let comment = format!("--comment={name}");
        let check = |how: &str| {
            let said = fs::read_to_string(format!("{}.said", site.record.display())).unwrap_or_default();
            assert_eq!(site.words(""), site.called(&[]), "{how} {name:?}: {said}");
            assert!(site.words(".options").contains(&comment), "{how} {name:?}");
            let logs = if name.contains('\\') { "logs".to_owned() } else { format!("{name}.logs") };
            let output = format!(
                "{}/%x.%A_%a.slurm",
                site.folder.join(&logs).display().to_string().replace('%', "%%")
            );
            assert!(site.words(".options").contains(&format!("--output={output}")), "{how} {name:?}");
            let expected: BTreeSet<String> = site.given().into_iter().chain([logs]).collect();
            assert_eq!(site.left(), expected, "{how} {name:?}");
        };
        succeeded(&site.launch("slurm", &[&program, "--", &comment]), name);
        check("submitted");
        // What is printed is the same script.
        let printed = site.launch("slurm", &[&program, "--dry-run", "--", &comment]);
        succeeded(&printed, name);
        let script = site.root.join("script");
        fs::write(&script, &printed.stdout).unwrap();
        succeeded(&site.command("bash").arg(&script).output().unwrap(), name);
        check("printed");
    }
    // Slurm has no way to write a backslash in the name of a log.
    let site = place.prepared(NAMES.len(), "plan.json");
    let program = format!("--program={}", site.program);
    let printed = site.launch("slurm", &[&program, "--dry-run"]);
    fs::write(site.root.join("script"), &printed.stdout).unwrap();
    let ended =
        site.command("bash").arg(site.root.join("script")).env("NIWAKI_LOGS", r"a\b").output().unwrap();
    assert_eq!(ended.status.code(), Some(2));
    assert_eq!(site.left(), site.given());
}

#[test]
fn ray_gets_every_path_as_it_is_and_runs_nothing_else() {
    let asked = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output();
    let Some(asked) = asked.ok().filter(|asked| asked.status.success()) else {
        eprintln!("without Python there is no program to try");
        return;
    };
    let python = String::from_utf8(asked.stdout).unwrap().trim().to_owned();
    let place = Place::new();
    for (number, name) in NAMES.into_iter().enumerate() {
        let site = place.prepared(number, name);
        let program = format!("--program={}", site.program);
        succeeded(&site.launch("ray", &[&program, "--python", &python]), name);
        assert_eq!(site.words(""), site.called(&["--quiet"]), "{name:?}");
        // What is done is read off the store while Ray works.
        let expected: BTreeSet<String> = site.given().into_iter().chain([format!("{name}.out")]).collect();
        assert_eq!(site.left(), expected, "{name:?}");
    }
}

/// The words of a flow sequence of a manifest.
fn sequence(line: &str) -> Vec<String> {
    let mut rest = line.trim().strip_prefix("command: [").unwrap();
    let mut words = Vec::new();
    while !rest.is_empty() {
        let length = if rest.starts_with('"') {
            let mut strings = serde_json::Deserializer::from_str(rest).into_iter::<String>();
            words.push(strings.next().unwrap().unwrap());
            strings.byte_offset()
        } else {
            let length = rest.find([',', ']']).unwrap();
            words.push(rest[..length].to_owned());
            length
        };
        rest = rest[length..].strip_prefix(", ").or_else(|| rest[length..].strip_prefix(']')).unwrap();
    }
    words
}

/// What Kubernetes makes of a word of a command: `$$` is `$`, and `$(NAME)` the variable's value.
fn expanded(word: &str) -> String {
    let (mut text, mut rest) = (String::new(), word);
    while let Some((before, after)) = rest.split_once('$') {
        text += before;
        if let Some(after) = after.strip_prefix('$') {
            text.push('$');
            rest = after;
        } else if let Some((name, after)) = after.strip_prefix('(').and_then(|after| after.split_once(')')) {
            text += if name == "JOB_COMPLETION_INDEX" { "0" } else { "WRONG" };
            rest = after;
        } else {
            text.push('$');
            rest = after;
        }
    }
    text + rest
}

#[test]
fn kubernetes_gets_every_path_as_it_is_and_runs_nothing_else() {
    let place = Place::new();
    let manifest = |site: &Site| {
        let image = format!("--image={}", site.name);
        let program = format!("--program={}", site.program);
        let ended = site.launch("kubernetes", &[&image, &program, "--volume=results"]);
        (ended, fs::read_to_string(&site.record).unwrap_or_default())
    };
    let lines = manifest(&place.prepared(NAMES.len(), "plan.json")).1.lines().count();
    for (number, name) in NAMES.into_iter().enumerate() {
        let site = place.prepared(number, name);
        let (ended, text) = manifest(&site);
        assert_eq!(site.left(), site.given(), "{name:?}");
        if name.contains(char::is_control) {
            // No volume can be mounted at such a place.
            assert_eq!((ended.status.code(), text.as_str()), (Some(2), ""), "{name:?}");
            continue;
        }
        succeeded(&ended, name);
        assert_eq!(site.words(".options"), ["apply", "-f", "-"]);
        // As many lines as of an ordinary name, and no character that YAML refuses or takes for a line's end.
        assert_eq!(text.lines().count(), lines, "{name:?}");
        let unlawful = |c: char| c != '\n' && (c.is_control() || "\u{2028}\u{2029}\u{feff}".contains(c));
        assert!(!text.contains(unlawful), "{name:?}");
        let line = |start: &str| text.lines().find(|line| line.trim_start().starts_with(start)).unwrap();
        let asked = ["--out".to_owned(), site.mounted()];
        let [before, after] =
            [&["cluster", "work", "--plan", "/etc/niwaki/plan.json"][..], &["--unit", "0", "--wait"]];
        let words = [&site.program].into_iter().cloned().chain(before.iter().map(ToString::to_string));
        let words: Vec<String> = words.chain(asked).chain(after.iter().map(ToString::to_string)).collect();
        let command: Vec<String> = sequence(line("command: [")).iter().map(|word| expanded(word)).collect();
        assert_eq!(command, words, "{name:?}");
        let quoted = |start: &str| line(start).trim_start().strip_prefix(start).unwrap().to_owned();
        let read = |text: String| serde_json::from_str::<String>(&text).unwrap();
        assert_eq!(read(quoted("image: ")), name);
        // The plan's own place comes first.
        let place =
            text.lines().filter_map(|line| line.trim_start().strip_prefix("mountPath: \"")).next().unwrap();
        assert_eq!(read(format!("\"{place}")), site.mounted());
        // The plan in it is the plan.
        let block = text.lines().skip_while(|line| !line.starts_with("  plan.json")).skip(1);
        let block: Vec<&str> = block.map_while(|line| line.strip_prefix("    ")).collect();
        Split::read("plan.json", &block.join("\n")).unwrap();
    }
}

#[test]
fn processes_of_this_machine_get_every_path_as_it_is() {
    let place = Place::new();
    for (number, name) in NAMES.into_iter().enumerate() {
        let site = place.prepared(number, name);
        let printed = site.launch("local", &["--workers=1", "--dry-run"]);
        succeeded(&printed, name);
        let line = String::from_utf8(printed.stdout).unwrap();
        let typed = format!("set -- {line}\nprintf '%s\\0' \"$@\"");
        let words = site.command("bash").args(["-c", &typed]).stdin(Stdio::null()).output().unwrap();
        succeeded(&words, name);
        let words = String::from_utf8(words.stdout).unwrap();
        let words: Vec<&str> = words.split_terminator('\0').collect();
        let plan = if name.starts_with('-') { format!("./{name}") } else { name.to_owned() };
        let out = format!("{name}.out");
        let asked =
            if out.starts_with('-') { vec![format!("--out={out}")] } else { vec!["--out".to_owned(), out] };
        assert_eq!(words[7..8 + asked.len()], [vec![plan], asked].concat(), "{name:?}");
        assert_eq!(site.left(), site.given(), "{name:?}");
    }
    // Names like flags are also what the processes themselves understand.
    let site = place.prepared(NAMES.len(), "-$(x)");
    succeeded(&site.launch("local", &["--workers=1"]), "-$(x)");
    let expected: BTreeSet<String> = site.given().into_iter().chain(["-$(x).out".to_owned()]).collect();
    assert_eq!(site.left(), expected);
}
