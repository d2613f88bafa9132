//! How commands end: every write of a result counts, and what comes from files cannot act on a terminal.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

fn niwaki() -> Command {
    Command::new(env!("CARGO_BIN_EXE_niwaki"))
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/advise/win.jsonl");
    path.display().to_string()
}

/// A file of 250 MB, and addresses for less.
#[test]
#[cfg(target_os = "linux")]
fn memory_that_is_refused_is_one_line_and_exit_70() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.csv");
    File::create(&path).unwrap().set_len(250 << 20).unwrap();
    let script = "ulimit -v 250000; exec \"$0\" verify \"$1\" \"$1\"";
    let mut command = Command::new("bash");
    let command = command.args(["-c", script, env!("CARGO_BIN_EXE_niwaki")]).arg(&path);
    let ended = command.env("RUST_BACKTRACE", "1").output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), said.lines().count()), (Some(70), 1), "{said}");
    assert!(said.starts_with("niwaki: out of memory: the system refused "), "{said}");
    assert!(ended.stdout.is_empty());
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_standard_output_is_told() {
    for arguments in
        [&["--help"][..], &["oracle", "--help"], &["advise", &example()], &["reproduce", "--list"]]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = niwaki().args(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(74), "{arguments:?}: {said}");
        let expected = "niwaki: standard output did not take all of the result: ";
        assert!(said.starts_with(expected) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
}

#[test]
fn a_reader_that_has_gone_away_ends_a_command_quietly() {
    for arguments in [&["--help"][..], &["advise", &example()]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = niwaki().args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{arguments:?}");
    }
}

#[test]
fn names_cannot_act_on_a_terminal_or_in_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // A refusal, a page's title and a page's command, all with a name that would clear the screen.
    let output = niwaki().args(["advise", "\u{1b}[2Jx.jsonl"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("niwaki: \\u001b[2Jx.jsonl cannot be read") && !said.contains('\u{1b}'),
        "{said}"
    );
    fs::copy(example(), at("\u{1b}[2Jwin.jsonl")).unwrap();
    let output = niwaki()
        .current_dir(folder.path())
        .args(["advise", "\u{1b}[2Jwin.jsonl", "--out", "\u{1b}[31mpage"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(!output.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&output.stdout));
    let page = fs::read_to_string(at("\u{1b}[31mpage").join("index.html")).unwrap();
    assert!(!page.contains('\u{1b}') && page.contains("\\u001b[2Jwin.jsonl"));
}

#[test]
#[cfg(unix)]
fn a_folder_whose_name_is_no_text_gets_its_page() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join(std::ffi::OsStr::from_bytes(b"p\xffage"));
    let output = niwaki().args(["advise", &example(), "--out"]).arg(&out).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.join("index.html").exists());
}

#[test]
fn shells_and_manuals_know_every_command() {
    let said = |arguments: &[&str]| {
        let output = niwaki().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    let help = said(&["--help"]);
    let named = help.split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let commands: Vec<&str> = named
        .lines()
        .filter(|line| line.starts_with("  ") && !line.starts_with("   "))
        .filter_map(|line| line.split_whitespace().next())
        .filter(|name| *name != "help")
        .collect();
    assert!(commands.len() <= 16 && commands.contains(&"tour"), "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = said(&["help", "completions", shell]);
        assert!(commands.iter().all(|name| script.contains(name)), "{shell}");
    }
    let folder = tempfile::tempdir().unwrap();
    said(&["help", "man", "--out", &folder.path().display().to_string()]);
    for name in &commands {
        let page = fs::read_to_string(folder.path().join(format!("niwaki-{name}.1"))).unwrap();
        assert!(page.contains(".SH NAME"), "{name}");
    }
    // Alone, the command says what it does, and that something is missing.
    let alone = niwaki().output().unwrap();
    let words = String::from_utf8(alone.stderr).unwrap();
    assert!(
        alone.status.code() == Some(2) && words.contains("stale data") && words.contains("niwaki tour"),
        "{words}"
    );
}

#[test]
fn the_tour_runs_what_it_shows() {
    let folder = tempfile::tempdir().unwrap();
    let output = niwaki().current_dir(folder.path()).args(["tour", "--out", "t"]).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(said.matches("\n$ niwaki ").count() + usize::from(said.starts_with("$ niwaki ")), 4, "{said}");
    assert!(said.ends_with("wrote t/index.html\n"), "{said}");
    let page = fs::read_to_string(folder.path().join("t/index.html")).unwrap();
    for (command, leads) in [
        ("niwaki advise", "advise/index.html"),
        ("niwaki oracle", "oracle/index.html"),
        ("niwaki solve", "schedule/index.html"),
        ("niwaki sweep", "training/compare/index.html"),
    ] {
        assert!(page.contains(command) && page.contains(leads), "{command}");
        assert!(folder.path().join("t").join(leads).is_file(), "{leads}");
    }
}
